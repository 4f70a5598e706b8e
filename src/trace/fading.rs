//! Samples whose weight decreases with their age.

use crate::base::{IdVec, WeightSum};

use super::TraceSample;
use super::samples::{self, SampleId, Samples};

// Less of a sample is forgotten.
const NOTHING: f64 = 1e-3;

/// Weight and number of the samples of each row, faded up to the last time; and what the row had
/// then without fading.
#[derive(Debug, Default)]
pub(super) struct Fading {
    rows: IdVec<SampleId, FadingSum>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FadingSum {
    weight: f64,
    squares: f64,
    count: f64,
    seen: WeightSum,
}

impl Fading {
    /// Takes in what has come since the last time, after which all that was there before counts
    /// `share` of what it did.
    pub(super) fn fade(&mut self, samples: &Samples, share: f64) {
        let known = self.rows.len();
        for _ in known..samples.sums().len() {
            self.rows.push(FadingSum::default());
        }
        for (row, &sum) in self.rows.iter_mut().zip(samples.sums().iter()) {
            row.weight = row.weight * share + (sum.weight - row.seen.weight) as f64;
            // Each weight fades by the share, so its square fades by the share's square.
            let squares = (sum.squares - row.seen.squares) as f64;
            row.squares = row.squares * share * share + squares;
            row.count = row.count * share + (sum.count - row.seen.count) as f64;
            row.seen = sum;
        }
    }

    /// The rows as they were at the last time, except for those that are next to nothing.
    pub(super) fn rows(&self, samples: &Samples) -> Vec<TraceSample> {
        // Weights are rounded to whole ones, and so are the numbers of samples, in a way that keeps
        // their sum: what is left of a row is added to the next.
        let mut rest = 0.5;
        let sums = self.rows.iter().map(|row| {
            if row.count < NOTHING {
                return WeightSum::default();
            }
            rest += row.count;
            let count = rest.floor();
            rest -= count;
            WeightSum {
                weight: row.weight.round() as u64,
                squares: row.squares.round() as u128,
                count: count as u64,
            }
        });
        let pairs = samples.keys().iter().copied().zip(sums);
        samples::rows(pairs.filter(|&(_, sum)| (sum.weight, sum.count) != (0, 0)))
    }

    /// The weights by other rows: `new` has for each old one the row that it is part of now.
    pub(super) fn moved(&self, samples: &Samples, new: &[SampleId]) -> Fading {
        let mut moved = Fading::default();
        moved.fade(samples, 1.0);
        for row in moved.rows.iter_mut() {
            (row.weight, row.squares, row.count) = (0.0, 0.0, 0.0);
        }
        for (old, &new) in self.rows.iter().zip(new) {
            moved.rows[new].weight += old.weight;
            moved.rows[new].squares += old.squares;
            moved.rows[new].count += old.count;
        }
        moved
    }
}
