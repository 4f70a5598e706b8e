//! Shares of samples: how far they may be from the truth by chance.
//!
//! Of `n` independent samples of which each is of a kind with probability `p`, the share of that kind has
//! the standard error `√(p (1 − p) / n)`. A claim is refuted where the share found is [`SIGMA`] of
//! them away: chance alone does that less than once in a million.

/// How many standard errors refute a claim.
const SIGMA: f64 = 5.0;

/// By how many samples chance may change `percent` of `all`.
fn tolerance(all: u64, percent: f64) -> f64 {
    let p = percent / 100.0;
    // At least one sample, where hardly any or nearly all are expected.
    (SIGMA * (p * (1.0 - p) * all as f64).sqrt()).max(1.0)
}

/// Whether samples allow that the share of a kind is at least `percent`.
pub fn at_least(part: u64, all: u64, percent: f64) -> bool {
    part as f64 >= all as f64 * percent / 100.0 - tolerance(all, percent)
}

/// Whether samples allow that the share of a kind is at most `percent`.
pub fn at_most(part: u64, all: u64, percent: f64) -> bool {
    at_least(all - part, all, 100.0 - percent)
}

/// Whether samples allow that the share of a kind is `percent`, up to `points` by which the program
/// itself may miss it.
pub fn near(part: u64, all: u64, percent: f64, points: f64) -> bool {
    at_least(part, all, (percent - points).max(0.0))
        && at_most(part, all, (percent + points).min(100.0))
}

#[cfg(test)]
mod tests {
    use super::{at_least, at_most, near};

    #[test]
    fn a_tolerance_follows_from_the_number_of_samples() {
        // √(0.25 × 100) = 5 samples, five times.
        assert!(at_least(25, 100, 50.0) && !at_least(24, 100, 50.0));
        assert!(at_most(75, 100, 50.0) && !at_most(76, 100, 50.0));
        // √(0.25 × 10 000) = 50.
        assert!(near(4750, 10_000, 50.0, 0.0) && !near(4749, 10_000, 50.0, 0.0));
        assert!(near(4551, 10_000, 50.0, 2.0) && !near(4500, 10_000, 50.0, 2.0));
        assert!(at_least(99, 100, 100.0) && !at_least(98, 100, 100.0));
    }
}
