//! What counting a call takes on this machine.
#![expect(
    unsafe_code,
    reason = "what is measured is a few instructions, the same in every build"
)]

use std::time::{Duration, Instant};

/// How often it is tried out, and how many calls are made each time.
const TRIALS: usize = 40;
const CALLS: u64 = 2048;

/// Returns how many nanoseconds it takes to count a call, with a lock or without: the difference between
/// calls through a stub and others, each at the best of many trials. Less than half a nanosecond is not
/// believed.
pub(super) fn of_one_call(locks: bool) -> f64 {
    let counted = if locks { count_with_lock } else { count };
    let difference = best(counted).saturating_sub(best(call));
    (difference.as_nanos() as f64 / CALLS as f64).max(0.5)
}

fn best(calls: fn(&mut u64, u64)) -> Duration {
    let mut counter = 0;
    let trials = (0..TRIALS).map(|_| {
        let begin = Instant::now();
        calls(&mut counter, CALLS);
        begin.elapsed()
    });
    trials.min().unwrap_or(Duration::ZERO)
}

/// Makes a function that makes calls: first of what is given, which ends with the function itself.
macro_rules! calls {
    ($name:ident, $($stub:literal),*) => {
        #[cfg(target_arch = "x86_64")]
        fn $name(counter: &mut u64, calls: u64) {
            // SAFETY: the instructions change the register `left`, the flags, the word at `counter`, which
            // is a live one that nobody else uses, and a return address on the stack.
            unsafe {
                std::arch::asm!(
                    "2:",
                    "call 3f",
                    "dec {left}",
                    "jnz 2b",
                    "jmp 5f",
                    "3:",
                    $($stub,)*
                    "4:",
                    "ret",
                    "5:",
                    "/* {counter} */",
                    counter = in(reg) counter,
                    left = inout(reg) calls => _,
                );
            }
        }

        /// Nothing is counted on other machines.
        #[cfg(not(target_arch = "x86_64"))]
        fn $name(_: &mut u64, _: u64) {}
    };
}

calls!(call,);
calls!(count, "inc qword ptr [{counter}]", "jmp 4f", "int3");
calls!(
    count_with_lock,
    "lock inc qword ptr [{counter}]",
    "jmp 4f",
    "int3"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_a_call_takes_nanoseconds() {
        // A locked addition takes between some cycles and some hundred, also under an emulator.
        for locks in [false, true] {
            let cost = of_one_call(locks);
            assert!((0.5..1000.0).contains(&cost), "{cost}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_is_measured_counts() {
        let mut counter = 0;
        call(&mut counter, 10);
        assert_eq!(counter, 0);
        count(&mut counter, 10);
        count_with_lock(&mut counter, 5);
        assert_eq!(counter, 15);
    }
}
