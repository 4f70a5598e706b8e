//! Numbers of calls, which are compared by equality.
//!
//! What all runs of a side have repeats, and where sides differ the program does, as long as no
//! number varies. Where some do, as with the seed of a hash table, others may be equal by chance. A
//! number that takes one of two values is equal in all of m and of n runs and differs between them
//! in at most 2 of C(m + n, m) arrangements of its values. Where v numbers are seen to vary, and
//!
//! ```text
//!   2 v / C(m + n, m)  >  2.5 %
//! ```
//!
//! a difference counts only if it is larger, in proportion, than what varies from run to run. Where
//! nothing is seen to vary, a number that the toss of a coin decides is taken for a change in 1 of
//! 8 comparisons of two runs a side, and in 1 of 128 of four.

use super::statistics::RATE;

/// How often something was called, on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The number of each side, where all calls were counted and all runs have the same.
    pub exact: [Option<u64>; 2],
    /// Whether the runs of a side have different numbers.
    pub varies: bool,
    /// Whether each side has at least two runs.
    pub is_repeated: bool,
    /// Whether the numbers differ by no more than others vary from run to run.
    pub may_be_chance: bool,
}

/// How far numbers of calls vary from run to run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variation {
    /// The largest part of a number by which runs of a side differ, where a difference of that size
    /// may be chance.
    spread: f64,
}

impl Variation {
    /// Measures the spread of all functions. `numbers` has, for each function and side, the calls
    /// in each run; `runs` is the number of runs of each side.
    pub fn of(numbers: impl Iterator<Item = Vec<Option<u64>>>, runs: [usize; 2]) -> Variation {
        let spreads = numbers.filter_map(|numbers| {
            let numbers: Option<Vec<u64>> = numbers.into_iter().collect();
            let numbers = numbers?;
            let (least, most) = (numbers.iter().min()?, numbers.iter().max()?);
            (least < most).then(|| (most - least) as f64 / *most as f64)
        });
        let spreads: Vec<f64> = spreads.collect();
        match 2.0 * spreads.len() as f64 / arrangements(runs) > RATE {
            true => Variation {
                spread: spreads.into_iter().fold(0.0, f64::max),
            },
            false => Variation::default(),
        }
    }
}

// The number of ways to divide the values of all runs into those of two sides.
fn arrangements([base, new]: [usize; 2]) -> f64 {
    let factor = |number: usize| (new + number) as f64 / number as f64;
    (1..=base).map(factor).product()
}

impl Calls {
    /// Of each run; `None` where no run has a number.
    pub(super) fn of(runs: &[Vec<Option<u64>>; 2], variation: Variation) -> Option<Calls> {
        runs.iter().flatten().any(Option::is_some).then_some(())?;
        let is_known = |runs: &Vec<Option<u64>>| runs.iter().all(Option::is_some);
        let is_same = |runs: &Vec<Option<u64>>| runs.windows(2).all(|two| two[0] == two[1]);
        let number = |runs: &Vec<Option<u64>>| runs.first().copied()?.filter(|_| is_same(runs));
        let exact = runs.each_ref().map(number);
        let may_be_chance = match exact {
            [Some(base), Some(new)] if base != new => {
                base.abs_diff(new) as f64 <= variation.spread * base.max(new) as f64
            }
            _ => false,
        };
        Some(Calls {
            exact,
            varies: runs.iter().any(|runs| is_known(runs) && !is_same(runs)),
            is_repeated: runs.iter().all(|runs| runs.len() > 1),
            may_be_chance,
        })
    }

    /// Whether the numbers are known, repeat, and differ.
    pub fn changed(&self) -> Option<[u64; 2]> {
        match self.exact {
            [Some(base), Some(new)] if self.is_fact() && base != new => Some([base, new]),
            _ => None,
        }
    }

    /// Whether the runs are enough to know that the numbers repeat.
    pub fn is_fact(&self) -> bool {
        self.is_repeated && !self.may_be_chance
    }
}
