//! What runs tell of a difference between two means.
//!
//! The unit is the run: samples of one run are not independent, runs are. Each side has a mean and
//! a variance between its runs. The difference of the means has the standard error
//!
//! ```text
//! e = √(s₁²/n₁ + s₂²/n₂)
//! ```
//!
//! and difference / e has Student's distribution with the degrees of freedom of Welch and
//! Satterthwaite (B. L. Welch, "The generalization of 'Student's' problem when several different
//! population variances are involved", Biometrika 34, 1947). Sides need not vary equally.
//!
//! Of many functions compared at once some differ by chance. [`discoveries`] keeps their part among
//! all that are reported below a rate (Y. Benjamini, Y. Hochberg, "Controlling the false discovery
//! rate", J. R. Stat. Soc. B 57, 1995), which also holds where functions vary together
//! (Y. Benjamini, D. Yekutieli, Ann. Stat. 29, 2001). Where nothing has changed at all, it is the
//! probability that anything is reported.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The part of intervals that miss the truth.
pub const MISSED: f64 = 0.05;
/// The part of false reports among all.
pub const RATE: f64 = 0.025;
/// With which probability a change of the size that is expected is found in the number of runs that
/// is proposed. Size and variance are known from few runs only, so fewer are found.
const POWER: f64 = 0.9;
/// The most runs that are proposed.
const MOST_RUNS: f64 = 1000.0;
// Beyond this Student's distribution is the normal one, to three digits.
const MANY: f64 = 1e4;

/// The mean of some runs, and how far they vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean of the runs.
    pub mean: f64,
    /// The variance between them.
    pub variance: f64,
    /// How many there are.
    pub runs: usize,
}

impl Mean {
    /// That of these runs, which vary by `least` at least: the figures of a run are known to some
    /// unit only, and runs that are equal by chance are not without variance.
    pub fn of(values: &[f64], least: f64) -> Mean {
        let runs = values.len();
        let mean = values.iter().sum::<f64>() / runs.max(1) as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        let variance = squares.sum::<f64>() / runs.saturating_sub(1).max(1) as f64;
        Mean {
            mean,
            variance: variance.max(least),
            runs,
        }
    }
}

/// The difference of two means: new less base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error.
    pub error: f64,
    /// The degrees of freedom of that error.
    pub freedom: f64,
}

impl Difference {
    /// By the variance between runs, of which a side has at least two.
    pub fn between_runs(base: Mean, new: Mean) -> Difference {
        let [a, b] = [base, new].map(|side| side.variance / side.runs as f64);
        let freedom = match (base.runs, new.runs) {
            // One run varies as those of the other side do.
            (..=1, runs) | (runs, ..=1) => {
                let variance = if base.runs > 1 {
                    base.variance
                } else {
                    new.variance
                };
                let error = variance * (1.0 + 1.0 / runs as f64);
                return Difference {
                    estimate: new.mean - base.mean,
                    error: error.sqrt(),
                    freedom: runs.saturating_sub(1).max(1) as f64,
                };
            }
            (n, m) => (a + b).powi(2) / (a * a / (n - 1) as f64 + b * b / (m - 1) as f64),
        };
        Difference {
            estimate: new.mean - base.mean,
            error: (a + b).sqrt(),
            freedom: if freedom.is_finite() { freedom } else { 1.0 },
        }
    }

    /// By what is known of the variance of the two figures.
    pub fn of_variance(estimate: f64, variance: f64) -> Difference {
        Difference {
            estimate,
            error: variance.max(0.0).sqrt(),
            freedom: MANY,
        }
    }

    /// The probability that figures differ as far if nothing has changed.
    pub fn p_value(&self) -> f64 {
        if self.error == 0.0 {
            return if self.estimate == 0.0 { 1.0 } else { 0.0 };
        }
        let far = (self.estimate / self.error).abs();
        f64::min(2.0 * student(self.freedom).sf(far), 1.0)
    }

    /// The ends of the interval that holds the truth in 95 of 100 comparisons.
    pub fn interval(&self) -> [f64; 2] {
        let half = student(self.freedom).inverse_cdf(1.0 - MISSED / 2.0) * self.error;
        [self.estimate - half, self.estimate + half]
    }
}

fn student(freedom: f64) -> StudentsT {
    // The parameters are valid for any positive number.
    let freedom = freedom.clamp(1.0, MANY);
    StudentsT::new(0.0, 1.0, freedom).unwrap_or_else(|_| unreachable!("{freedom} is positive"))
}

/// How many runs a side find a difference of this size with some certainty, at a test of this
/// level; `None` where more than anyone would make do.
pub fn needed_runs(difference: f64, sides: [Mean; 2], level: f64) -> Option<u64> {
    let variance: f64 = sides.iter().map(|side| side.variance).sum();
    let normal = Normal::standard();
    let far = normal.inverse_cdf(1.0 - level / 2.0) + normal.inverse_cdf(POWER);
    let runs = (far / difference).powi(2) * variance;
    // Student's distribution is wider than the normal one (W. C. Guenther, "Sample size formulas
    // for normal theory t tests", The American Statistician 35, 1981).
    let runs = runs + normal.inverse_cdf(1.0 - level / 2.0).powi(2) / 4.0;
    (runs <= MOST_RUNS).then(|| runs.ceil().max(2.0) as u64)
}

/// Which of these p-values are discoveries at [`RATE`]; and the level that the least significant of
/// them had to pass, or that of a single one.
pub fn discoveries(p_values: &[f64]) -> (Vec<bool>, f64) {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let all = p_values.len().max(1) as f64;
    let level = |rank: usize| RATE * (rank + 1) as f64 / all;
    let last = order
        .iter()
        .enumerate()
        .rposition(|(rank, &place)| p_values[place] <= level(rank));
    let mut found = vec![false; p_values.len()];
    for &place in order.iter().take(last.map_or(0, |last| last + 1)) {
        found[place] = true;
    }
    (found, level(last.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // SciPy's ttest_ind(new, base, equal_var=False): p 0.201989, freedom 7.046875, 95 %
    // -1.696094 to 6.696094.
    #[test]
    fn welchs_test_agrees_with_scipy() {
        let base = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9];
        let new = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0];
        let difference = Difference::between_runs(Mean::of(&base, 0.0), Mean::of(&new, 0.0));
        assert!((difference.freedom - 7.046875).abs() < 1e-6);
        assert!((difference.p_value() - 0.201989).abs() < 1e-6);
        let [low, high] = difference.interval();
        assert!((low + 1.696094).abs() < 1e-6 && (high - 6.696094).abs() < 1e-6);
    }

    // Tables of Student's distribution: the quantile 0.975 of 4 degrees of freedom is 2.776.
    #[test]
    fn intervals_have_the_width_of_the_tables() {
        let side = |mean| Mean {
            mean,
            variance: 3.0,
            runs: 3,
        };
        let difference = Difference::between_runs(side(10.0), side(14.0));
        assert!((difference.freedom - 4.0).abs() < 1e-9);
        let [low, high] = difference.interval();
        assert!((high - low - 2.0 * 2.776 * 2.0f64.sqrt()).abs() < 1e-2);
    }

    // The p-values of the example of Benjamini and Hochberg 1995, section 3.2. The third is below
    // 3/15 of the rate, the fourth is not below 4/15.
    #[test]
    fn discoveries_are_those_up_to_the_last_below_its_part_of_the_rate() {
        let p_values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let (found, level) = discoveries(&p_values);
        assert_eq!(found.iter().filter(|found| **found).count(), 3);
        assert!((level - RATE * 3.0 / 15.0).abs() < 1e-12);
    }

    #[test]
    fn runs_that_are_equal_by_chance_prove_nothing() {
        let quantum = 1.0 / 12.0;
        let [base, new] = [[3.0, 3.0], [4.0, 4.0]].map(|runs| Mean::of(&runs, quantum));
        assert!(Difference::between_runs(base, new).p_value() > 0.01);
    }

    // The textbook figure: 21 s²/d² runs a side at 5 % and a power of 90 %, for a difference d.
    #[test]
    fn needed_runs_are_about_twenty_one_variances_over_the_square() {
        let side = Mean {
            mean: 0.0,
            variance: 1.0,
            runs: 5,
        };
        let runs = needed_runs(0.5, [side, side], 0.05).expect("a number");
        assert!((83..=87).contains(&runs), "{runs}");
        assert_eq!(needed_runs(0.0, [side, side], 0.05), None);
    }
}
