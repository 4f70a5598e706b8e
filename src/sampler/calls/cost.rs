//! What counting a call takes on this machine.
#![expect(
    unsafe_code,
    reason = "what is measured are calls through stubs as programs make them, in memory of their \
        own"
)]

use std::io;
use std::ptr::{self, NonNull};

// How often it is tried out, and how many calls are made each time, without and with a lock. In
// loops of some thousand calls, processors that forward a stored word to the next load at once take
// a third of what it takes in the long run.
const TRIALS: usize = 3;
const CALLS: u64 = 1 << 19;
const CALLS_LOCKED: u64 = 1 << 17;
// What is believed at least and where nothing can be measured, in nanoseconds.
const LEAST: f64 = 0.5;
const UNKNOWN: (f64, f64) = (1.5, 8.0);

// How far stubs are from the calls, as in programs, and counters from the stubs.
const STUBS: usize = 64 << 20;
const COUNTERS: usize = 64 << 10;
const PAGE: usize = 4096;
// Where in their page the loop begins that counts, and the function that is called.
const COUNTED: usize = 64;
const FUNCTION: usize = 128;
// Where in its page the stub begins that locks.
const LOCKED: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) unlocked: f64,
    pub(super) locked: f64,
}

impl Cost {
    /// Measures it, which takes about ten milliseconds: the difference between calls through a stub
    /// and others.
    pub(super) fn measured() -> Cost {
        let Some(calls) = Calls::write().ok().filter(|_| cfg!(target_arch = "x86_64")) else {
            let (unlocked, locked) = UNKNOWN;
            return Cost { unlocked, locked };
        };
        let plain = calls.of_one(0, CALLS);
        Cost {
            unlocked: (calls.of_one(COUNTED, CALLS) - plain).max(LEAST),
            locked: (calls.of_one(COUNTED + COUNTED / 2, CALLS_LOCKED) - plain).max(LEAST),
        }
    }
}

/// Loops that call a function, in memory while the value lives.
///
/// ```text
///   page      0: call function; dec %rdi; jnz; ret    64, 96: call stub; …    128: function: ret
///   stubs     ds incq counter; jmp function    16: lock incq counter; jmp function
///   counters
/// ```
struct Calls(NonNull<u8>);

impl Calls {
    fn write() -> io::Result<Calls> {
        let mut page = [0xcc; PAGE];
        let mut stubs = [0xcc; PAGE];
        for (at, to) in [
            (0, FUNCTION),
            (COUNTED, STUBS),
            (COUNTED + COUNTED / 2, STUBS + LOCKED),
        ] {
            // call to; dec %rdi; jnz back; ret
            put(&mut page, at, &[0xe8]);
            put(&mut page, at + 1, &distance(at + 5, to));
            put(&mut page, at + 5, &[0x48, 0xff, 0xcf, 0x75, 0xf6, 0xc3]);
        }
        put(&mut page, FUNCTION, &[0xc3]);
        for (at, prefix) in [(0, 0x3e), (LOCKED, 0xf0)] {
            put(&mut stubs, at, &[prefix, 0x48, 0xff, 0x05]);
            put(&mut stubs, at + 4, &distance(at + 8, COUNTERS));
            put(&mut stubs, at + 8, &[0xe9]);
            put(&mut stubs, at + 9, &distance(STUBS + at + 13, FUNCTION));
        }
        let length = STUBS + COUNTERS + PAGE;
        // SAFETY: with a null hint and without MAP_FIXED the kernel chooses a place where nothing
        // is mapped, so no memory of this program is touched.
        let address = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let calls = Calls(NonNull::new(address.cast()).ok_or(io::ErrorKind::Other)?);
        for (at, bytes) in [(0, &page), (STUBS, &stubs)] {
            // SAFETY: both pages are inside of what was mapped, which nothing else refers to.
            unsafe {
                let place = calls.0.as_ptr().add(at);
                ptr::copy_nonoverlapping(bytes.as_ptr(), place, PAGE);
                let protection = libc::PROT_READ | libc::PROT_EXEC;
                if libc::mprotect(place.cast(), PAGE, protection) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(calls)
    }

    /// How many nanoseconds a call takes in the loop that begins there: the median of some trials.
    fn of_one(&self, begin: usize, calls: u64) -> f64 {
        let mut trials = [0.0; TRIALS];
        for trial in &mut trials {
            let start = own_time();
            self.run(begin, calls);
            *trial = own_time().saturating_sub(start) as f64 / calls as f64;
        }
        trials.sort_unstable_by(f64::total_cmp);
        trials[TRIALS / 2]
    }

    #[cfg(target_arch = "x86_64")]
    fn run(&self, begin: usize, calls: u64) {
        debug_assert!([0, COUNTED, COUNTED + COUNTED / 2].contains(&begin));
        // SAFETY: `write` has put a function there that changes `rdi`, the flags and a counter
        // behind the stubs, and returns when it has made these calls.
        unsafe {
            let place = self.0.as_ptr().add(begin);
            let function: extern "C" fn(u64) = std::mem::transmute(place);
            function(calls);
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn run(&self, _: usize, _: u64) {}
}

impl Drop for Calls {
    fn drop(&mut self) {
        // SAFETY: exactly what `write` mapped, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), STUBS + COUNTERS + PAGE) };
    }
}

// The processor time of this thread, in nanoseconds: others may run meanwhile.
fn own_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written to a live local. Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn put(page: &mut [u8; PAGE], at: usize, bytes: &[u8]) {
    if let Some(place) = page.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn distance(from: usize, to: usize) -> [u8; 4] {
    (to as u32).wrapping_sub(from as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_a_call_takes_nanoseconds() {
        // A locked addition takes between some cycles and some hundred, also under an emulator.
        let cost = Cost::measured();
        for cost in [cost.unlocked, cost.locked] {
            assert!((0.5..1000.0).contains(&cost), "{cost}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_is_measured_counts() {
        let calls = Calls::write().unwrap();
        // SAFETY: the word is mapped, and nobody changes it now.
        let counter = || unsafe { calls.0.as_ptr().add(STUBS + COUNTERS).cast::<u64>().read() };
        calls.run(0, 10);
        assert_eq!(counter(), 0);
        calls.run(COUNTED, 10);
        assert_eq!(counter(), 10);
        calls.run(COUNTED + COUNTED / 2, 5);
        assert_eq!(counter(), 15);
    }
}
