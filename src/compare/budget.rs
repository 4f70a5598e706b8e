//! Limits that runs keep or not.

use super::SINGLE;
use super::statistics::{Difference, Mean};

/// What a run has of something that has a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The figure.
    pub value: f64,
    /// Its variance within the run; 0 of what is counted.
    pub variance: f64,
}

/// Whether a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is.
    Pass,
    /// It is not.
    Fail,
    /// The runs do not tell.
    Undecided,
}

impl Kept {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Kept::Pass => "pass",
            Kept::Fail => "fail",
            Kept::Undecided => "undecided",
        }
    }
}

/// Whether the mean of the runs is at most `limit`, by its interval.
pub fn at_most(runs: &[Measure], limit: f64) -> Kept {
    if let [run] = runs {
        return kept(Difference::of_variance(
            run.value - limit,
            SINGLE * run.variance,
        ));
    }
    // A limit does not vary, so only the runs have degrees of freedom.
    let limit = Mean {
        mean: limit,
        variance: 0.0,
        runs: 2,
    };
    kept(Difference::between_runs(limit, mean(runs, 1.0)))
}

/// Whether the mean of the new runs is at most `factor` times that of the base's.
pub fn below(base: &[Measure], new: &[Measure], factor: f64) -> Kept {
    if let ([base], [new]) = (base, new) {
        let variance = factor * factor * base.variance + new.variance;
        let difference = new.value - factor * base.value;
        return kept(Difference::of_variance(difference, SINGLE * variance));
    }
    kept(Difference::between_runs(mean(base, factor), mean(new, 1.0)))
}

fn mean(runs: &[Measure], factor: f64) -> Mean {
    let values: Vec<f64> = runs.iter().map(|it| factor * it.value).collect();
    Mean::of(&values, 0.0)
}

fn kept(difference: Difference) -> Kept {
    match difference.interval() {
        [_, high] if high <= 0.0 => Kept::Pass,
        [low, _] if low > 0.0 => Kept::Fail,
        _ => Kept::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kept, Measure, at_most, below};

    fn runs<const N: usize>(values: [f64; N]) -> [Measure; N] {
        values.map(|value| Measure {
            value,
            variance: value,
        })
    }

    #[test]
    fn a_limit_that_the_interval_holds_is_undecided() {
        let new = runs([98.0, 101.0, 99.0, 100.0]);
        assert_eq!(at_most(&new, 110.0), Kept::Pass);
        assert_eq!(at_most(&new, 99.0), Kept::Undecided);
        assert_eq!(at_most(&new, 90.0), Kept::Fail);
    }

    #[test]
    fn figures_that_are_equal_in_all_runs_are_compared_exactly() {
        let new = runs([100.0, 100.0]);
        assert_eq!(at_most(&new, 100.0), Kept::Pass);
        assert_eq!(at_most(&new, 99.0), Kept::Fail);
        assert_eq!(below(&new, &new, 1.0), Kept::Pass);
    }

    #[test]
    fn a_single_run_varies_by_four_times_what_it_varies_within() {
        assert_eq!(at_most(&runs([100.0]), 135.0), Kept::Undecided);
        assert_eq!(at_most(&runs([100.0]), 145.0), Kept::Pass);
        assert_eq!(below(&runs([100.0]), &runs([200.0]), 1.05), Kept::Fail);
        assert_eq!(below(&runs([100.0]), &runs([120.0]), 1.05), Kept::Undecided);
    }
}
