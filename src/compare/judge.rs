//! From figures of runs to verdicts.

use super::row::Row;
use super::run::{ArcFigures, Run};
use super::statistics::{Difference, MISSED, Mean, needed_runs};
use super::{Apart, CAUSE, Change, LARGE, SAME, SINGLE, Verdict};

/// A figure of both sides with the test of its difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// The number of samples of both sides that it rests on.
    pub samples: u64,
    /// The difference.
    pub difference: Difference,
    means: [Mean; 2],
    /// Whether the side has what the figure is of.
    has: [bool; 2],
}

/// What all verdicts of a comparison have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge<'a> {
    sides: [&'a [Run]; 2],
    /// The mean weight of a sample.
    weight: f64,
    /// The mean of the base's runs.
    whole: f64,
    /// Why no difference of times counts, if the sides are too far apart.
    pub apart: Option<Apart>,
}

impl<'a> Judge<'a> {
    pub fn of(sides: [&'a [Run]; 2]) -> Judge<'a> {
        let runs = || sides.iter().flat_map(|runs| runs.iter());
        let mean = |runs: &[Run]| runs.iter().map(|run| run.total).sum::<f64>() / runs.len() as f64;
        Judge {
            apart: Apart::of(sides.map(|runs| runs.iter().map(|run| &run.about))),
            sides,
            weight: runs().map(|run| run.weight).sum::<f64>() / runs().count().max(1) as f64,
            whole: mean(sides[0]),
        }
    }

    fn is_single(&self) -> bool {
        self.sides.iter().all(|runs| runs.len() < 2)
    }

    /// All of the time.
    pub fn of_runs(&self) -> Measured {
        let values = self
            .sides
            .map(|runs| runs.iter().map(|run| run.total).collect());
        let runs = || self.sides.iter().flat_map(|runs| runs.iter());
        let variance = runs().map(|run| run.variance).sum();
        let samples = runs().map(|run| run.samples).sum();
        self.measured(&values, variance, samples, [true; 2])
    }

    /// A figure of a function: in each run.
    pub fn measure(&self, values: &[Vec<f64>; 2], row: &Row) -> Measured {
        let sum: f64 = values.iter().flatten().sum();
        let own: f64 = row.figures.iter().flatten().map(|it| it.own).sum();
        let variance: f64 = row.figures.iter().flatten().map(|it| it.variance).sum();
        // Weights are nearly equal, so a figure has the variance of the own weight in proportion.
        let variance = if own > 0.0 {
            variance * (sum / own).max(1.0)
        } else {
            sum * self.weight
        };
        let samples = self.samples(sum);
        self.measured(
            values,
            variance,
            samples,
            row.pair.numbers.map(|it| it.is_some()),
        )
    }

    /// The own weight of several functions together.
    pub fn measure_all<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Measured {
        let mut values = self.sides.map(|runs| vec![0.0; runs.len()]);
        let (mut variance, mut has) = (0.0, [false; 2]);
        for row in rows {
            for (side, runs) in row.figures.iter().enumerate() {
                has[side] |= row.pair.numbers[side].is_some();
                for (value, figures) in values[side].iter_mut().zip(runs) {
                    *value += figures.own;
                    variance += figures.variance;
                }
            }
        }
        let samples = self.samples(values.iter().flatten().sum());
        self.measured(&values, variance, samples, has)
    }

    fn samples(&self, weight: f64) -> u64 {
        (weight / self.weight.max(f64::MIN_POSITIVE)).round() as u64
    }

    fn measured(
        &self,
        values: &[Vec<f64>; 2],
        variance: f64,
        samples: u64,
        has: [bool; 2],
    ) -> Measured {
        // A weight is known to a sample: that is the variance of what is rounded to it.
        let least = self.weight * self.weight / 12.0;
        let mut means = values.each_ref().map(|runs| Mean::of(runs, least));
        let difference = if self.is_single() {
            let variance = SINGLE * variance.max(least);
            means
                .iter_mut()
                .for_each(|side| side.variance = variance / 2.0);
            Difference::of_variance(means[1].mean - means[0].mean, variance)
        } else {
            Difference::between_runs(means[0], means[1])
        };
        Measured {
            samples,
            difference,
            means,
            has,
        }
    }

    /// What a test says that was passed or not; the level is what a single one would have to pass.
    pub fn change(&self, measured: &Measured, is_found: bool, level: f64) -> Change {
        let Measured {
            difference,
            means: [base, new],
            has,
            ..
        } = *measured;
        let size = difference.estimate.abs();
        let interval = difference.interval();
        let same = SAME * self.whole;
        let verdict = if self.apart.is_some() {
            Verdict::Undecided
        } else if self.is_single() {
            let least = LARGE * base.mean.max(new.mean);
            match is_found && size >= least && size >= 4.0 * same {
                true => Verdict::Large,
                false => Verdict::Undecided,
            }
        } else if is_found {
            match has {
                [false, _] => Verdict::New,
                [_, false] => Verdict::Gone,
                _ if difference.estimate > 0.0 => Verdict::Worse,
                _ => Verdict::Better,
            }
        } else if interval.iter().all(|end| end.abs() <= same) {
            Verdict::Same
        } else {
            Verdict::Undecided
        };
        let now = self.sides.iter().map(|runs| runs.len()).min().unwrap_or(0) as u64;
        // By chance a difference looks larger or smaller than it is. Where it looks larger, too few
        // runs would be proposed: it is taken as half a standard error smaller, but not below what
        // matters.
        let likely = (size - 0.5 * difference.error).max(same);
        let needed = needed_runs(likely, measured.means, level);
        Change {
            base: base.mean,
            new: new.mean,
            interval,
            verdict,
            more_runs: needed
                .filter(|_| verdict == Verdict::Undecided && self.apart.is_none())
                .map(|needed| needed.saturating_sub(now).max(1)),
        }
    }

    /// The row of the caller for which most of a function's difference is, and its part.
    pub fn caller(&self, row: &Row, own: &Change) -> Option<(usize, Change)> {
        let parts = row.callers.iter().map(|(place, runs)| {
            let own = |runs: &Vec<ArcFigures>| runs.iter().map(|it| it.own).collect();
            (*place, runs.each_ref().map(own))
        });
        Some(self.cause(row, own, parts)?.0)
    }

    /// The line on which most of a function's difference is, counted from its declaration, and its
    /// part. Where lines were inserted or removed, the same code has other lines, which differ by
    /// more than the function does.
    pub fn line(&self, row: &Row, own: &Change) -> Option<(i64, Change)> {
        let parts = row.lines.iter();
        let parts = parts.map(|(line, runs)| (*line, runs.clone()));
        let (cause, others) = self.cause(row, own, parts)?;
        let error = self.measure(&row.values(|it| it.own), row).difference.error;
        let is_moved = others > (1.0 - CAUSE) * own.difference().abs() + error;
        (row.absorbed.is_empty() && !is_moved).then_some(cause)
    }

    // Of several parts the one that most of a difference is of, and how much the others differ.
    fn cause<K>(
        &self,
        row: &Row,
        own: &Change,
        parts: impl Iterator<Item = (K, [Vec<f64>; 2])>,
    ) -> Option<((K, Change), f64)> {
        let parts = parts.map(|(key, values)| (key, self.measure(&values, row)));
        let parts: Vec<(K, Measured)> = parts.collect();
        let part = |it: &Measured| it.difference.estimate / own.difference();
        let sum = |it: &(K, Measured)| it.1.difference.estimate.abs();
        let (number, all) = (parts.len(), parts.iter().map(sum).sum::<f64>());
        let largest = parts
            .into_iter()
            .max_by(|a, b| part(&a.1).total_cmp(&part(&b.1)));
        let (key, measured) = largest?;
        let is_found = measured.difference.p_value() <= MISSED;
        let is_cause = number > 1 && is_found && part(&measured) >= CAUSE;
        let others = all - measured.difference.estimate.abs();
        is_cause.then(|| ((key, self.change(&measured, is_found, MISSED)), others))
    }
}
