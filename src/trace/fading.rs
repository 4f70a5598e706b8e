//! Samples that count for less the longer ago they were.

use crate::base::IdVec;

use super::TraceSample;
use super::samples::{self, SampleId, Samples};

/// Weight and number of the samples of each row, faded up to the last time; and what the row had
/// then without fading.
#[derive(Debug, Default)]
pub(super) struct Fading {
    rows: IdVec<SampleId, Row>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    weight: f64,
    count: f64,
    seen: (u64, u64),
}

impl Fading {
    /// Takes in what has come since the last time, after which all that was there before counts
    /// `share` of what it did.
    pub(super) fn fade(&mut self, samples: &Samples, share: f64) {
        let known = self.rows.len();
        for _ in known..samples.sums().len() {
            self.rows.push(Row::default());
        }
        for (row, &(weight, count)) in self.rows.iter_mut().zip(samples.sums().iter()) {
            let new = (weight - row.seen.0, count - row.seen.1);
            row.weight = row.weight * share + new.0 as f64;
            row.count = row.count * share + new.1 as f64;
            row.seen = (weight, count);
        }
    }

    /// The rows as they were at the last time, but for those that are less than half a sample. What
    /// is left of a sample is rounded to whole ones.
    pub(super) fn rows(&self, samples: &Samples) -> Vec<TraceSample> {
        let sums = self.rows.iter().map(|row| {
            let whole = |sum: f64| sum.round() as u64;
            (whole(row.weight), whole(row.count))
        });
        let pairs = samples.keys().iter().zip(sums);
        samples::rows(pairs.filter(|&(_, (_, count))| count > 0))
    }

    /// The same for other rows: `new` has for each old one the row that it is part of now.
    pub(super) fn moved(&self, samples: &Samples, new: &[SampleId]) -> Fading {
        let mut moved = Fading::default();
        moved.fade(samples, 1.0);
        for row in moved.rows.iter_mut() {
            (row.weight, row.count) = (0.0, 0.0);
        }
        for (old, &new) in self.rows.iter().zip(new) {
            moved.rows[new].weight += old.weight;
            moved.rows[new].count += old.count;
        }
        moved
    }
}
