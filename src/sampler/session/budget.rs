//! How much of each stack is copied where the size adapts.
//!
//! The kernel is asked for the largest copy of which the ring buffers hold enough samples
//! (`rings/ring_size`), and fills what there is of the stack; the rest is taken out before a sample
//! is written ([`Trimmer`](crate::perfdata::raw::trimmed::Trimmer)). So samples are as large as
//! their stacks are deep. If that is too much, less is kept of each copy:
//!
//! ```text
//!   64 MB in less than a second      the next smaller size      60 ▶ 32 ▶ 16 ▶ 8 KiB
//!   at most 32 MB in a whole second  the next larger size
//! ```

use std::time::Duration;

use crate::sampler::events::stacks::CopySize;

const WINDOW: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Budget {
    per_second: u64,
    most: CopySize,
    kept: CopySize,
    began: Duration,
    bytes: u64,
}

impl Budget {
    pub(super) fn new(per_second: u64, most: CopySize) -> Budget {
        Budget {
            per_second,
            most,
            kept: most,
            began: Duration::ZERO,
            bytes: 0,
        }
    }

    /// Returns how much of each copy to keep, after these bytes came until now; `now` counts from
    /// the beginning.
    pub(super) fn spend(&mut self, bytes: u64, now: Duration) -> CopySize {
        self.bytes = self.bytes.saturating_add(bytes);
        let elapsed = now.saturating_sub(self.began);
        if elapsed < WINDOW && self.bytes <= self.per_second {
            return self.kept;
        }
        let rate = self.bytes as f64 / elapsed.max(WINDOW).as_secs_f64();
        if rate > self.per_second as f64 {
            self.kept = self.kept.smaller();
        } else if rate * 2.0 <= self.per_second as f64 {
            self.kept = self.kept.larger().min(self.most);
        }
        (self.began, self.bytes) = (now, 0);
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    fn kib(size: CopySize) -> u32 {
        size.bytes() / 1024
    }

    #[test]
    fn copies_shrink_at_once_and_grow_when_the_double_would_do() {
        let mut budget = Budget::new(64_000_000, CopySize::LARGEST);
        let mut spend = |megabytes: u64, millis| {
            kib(budget.spend(megabytes * 1_000_000, Duration::from_millis(millis)))
        };
        assert_eq!(spend(60, 200), 60);
        assert_eq!(spend(10, 400), 32);
        // 40 MB in a second are within the budget, but 80 would not be.
        assert_eq!([spend(20, 900), spend(20, 1400)], [32, 32]);
        assert_eq!(
            [spend(100, 1500), spend(100, 1600), spend(100, 1700)],
            [16, 8, 8]
        );
        assert_eq!([spend(20, 2200), spend(12, 2700)], [8, 16]);
        assert_eq!(
            [spend(0, 3700), spend(0, 4700), spend(0, 9700)],
            [32, 60, 60]
        );
    }

    proptest! {
        #[test]
        fn a_steady_recording_comes_to_rest_within_its_budget(
            samples in 1u64..20_000,
            depth in 0u64..70_000,
        ) {
            let mut budget = Budget::new(64_000_000, CopySize::LARGEST);
            let mut kept = CopySize::LARGEST;
            let mut sizes = Vec::new();
            for fifth in 1..100u64 {
                let each = depth.min(u64::from(kept.bytes())) + 400;
                kept = budget.spend(samples * each / 5, Duration::from_millis(fifth * 200));
                sizes.push(kept);
            }
            let (last, before) = (sizes[98], &sizes[80..]);
            prop_assert!(before.iter().all(|size| *size == last), "{:?}", before);
            let each = depth.min(u64::from(last.bytes())) + 400;
            prop_assert!(samples * each <= 64_000_000 * 6 / 5 || kib(last) == 8);
        }
    }
}
