//! The clock by which the kernel takes samples, and the time of day.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

// How far the kernel's clock and those that programs can read are apart. They start within some
// milliseconds of each other.
const APART: Duration = Duration::from_secs(1);
// A time that is later than now by more is of an earlier start of the machine.
const AHEAD: Duration = Duration::from_secs(10);

/// Returns the latest time of day at which the kernel's clock may have shown this, on this machine.
///
/// The clock counts from the start of the machine and stands while that sleeps. If the machine was
/// started again since, or slept, it was earlier than what is returned.
pub fn latest_time(kernel_clock: Duration) -> SystemTime {
    let now = SystemTime::now();
    // The kernel's clock is not adjusted, and yet that of a virtual machine may be.
    let clocks = [ClockId::Monotonic, ClockId::MonotonicRaw];
    let ago = clocks.map(|clock| ago(kernel_clock, since_start(clock)));
    let least = ago.into_iter().min().unwrap_or_default();
    now.checked_sub(least).map_or(now, |time| time + APART)
}

fn ago(then: Duration, now: Duration) -> Duration {
    if then > now + AHEAD {
        now
    } else {
        now.saturating_sub(then)
    }
}

fn since_start(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_before_the_last_start_is_at_most_that() {
        let seconds = Duration::from_secs;
        assert_eq!(ago(seconds(90), seconds(100)), seconds(10));
        assert_eq!(ago(seconds(101), seconds(100)), seconds(0));
        assert_eq!(ago(seconds(900), seconds(100)), seconds(100));
    }

    #[test]
    fn now_is_now() {
        let before = SystemTime::now();
        let told = latest_time(since_start(ClockId::Monotonic));
        let after = SystemTime::now() + APART;
        assert!(told >= before && told <= after);
    }
}
