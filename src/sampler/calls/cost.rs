//! What counting a call takes on this machine.
#![expect(
    unsafe_code,
    reason = "what is measured is one instruction, the same in every build"
)]

use std::time::{Duration, Instant};

/// How often it is tried out, and how many calls are counted each time.
const TRIALS: usize = 40;
const CALLS: u64 = 2048;

/// Returns how many nanoseconds it takes to count a call, at the best of many trials. Nothing shorter
/// than half a nanosecond is believed: there are two jumps, too.
pub(super) fn of_one_call() -> f64 {
    let trials = (0..TRIALS).map(|_| {
        let begin = Instant::now();
        count(CALLS);
        begin.elapsed()
    });
    let best = trials.min().unwrap_or(Duration::ZERO);
    (best.as_nanos() as f64 / CALLS as f64).max(0.5)
}

/// Counts as a stub does, `calls` times.
#[cfg(target_arch = "x86_64")]
fn count(calls: u64) {
    let mut counter = 0u64;
    // SAFETY: the instructions change the register `left`, the flags, and the word at `counter`, which
    // is a live local.
    unsafe {
        std::arch::asm!(
            "2:",
            "lock inc qword ptr [{counter}]",
            "dec {left}",
            "jnz 2b",
            counter = in(reg) &mut counter,
            left = inout(reg) calls => _,
            options(nostack)
        );
    }
    debug_assert_eq!(counter, calls);
}

/// Nothing is counted on other machines.
#[cfg(not(target_arch = "x86_64"))]
fn count(_: u64) {}

#[cfg(test)]
mod tests {
    #[test]
    fn counting_a_call_takes_nanoseconds() {
        // A locked addition takes between some cycles and some hundred, also under an emulator.
        let cost = super::of_one_call();
        assert!((0.5..1000.0).contains(&cost), "{cost}");
    }
}
