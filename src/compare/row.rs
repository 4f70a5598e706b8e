//! The figures of a function in each run of both sides.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::calls::Variation;
use super::identity::{Identities, Shown};
use super::matching::Pair;
use super::run::{ArcFigures, Figures, Run};
use super::{CAUSE, Calls, FEWEST, Side};
use crate::profile::Line;

/// What is compared.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The function.
    pub pair: Pair,
    /// Its figures in each run.
    pub figures: [Vec<Figures>; 2],
    /// By the row of the caller: what its calls have in each run.
    pub callers: FxHashMap<usize, [Vec<ArcFigures>; 2]>,
    /// By line, counted from the declaration: its own weight there in each run.
    pub lines: BTreeMap<i64, [Vec<f64>; 2]>,
    /// The numbers of functions whose own weight is counted here, as the other side has them here.
    pub absorbed: Vec<u32>,
}

impl Row {
    /// A figure in each run.
    pub fn values<T>(&self, of: impl Fn(&Figures) -> T) -> [Vec<T>; 2] {
        self.figures
            .each_ref()
            .map(|runs| runs.iter().map(&of).collect())
    }

    /// What is shown of the function: as on the new side, if that has it.
    pub fn shown<'a>(&self, identities: &'a Identities) -> Option<&'a Shown> {
        let [base, new] = self.pair.numbers;
        let new = new.and_then(|it| identities.shown(Side::New, it));
        new.or_else(|| identities.shown(Side::Base, base?))
    }

    /// The line of the source that is this far after the declaration, as on the side that is shown.
    pub fn place(&self, line: i64, identities: &Identities) -> Option<Line> {
        let declared = self.shown(identities)?.declared_at.as_ref()?;
        Some(Line {
            line: u32::try_from(i64::from(declared.line) + line).ok()?,
            file: declared.file.clone(),
        })
    }

    /// The function's number on the side that has it, on the new one if both have.
    pub fn number(&self) -> u32 {
        let [base, new] = self.pair.numbers;
        new.or(base).unwrap_or_default()
    }

    /// The row of the caller for which most of a difference of calls is, and its calls.
    pub fn calls_by(&self, calls: Calls, variation: Variation) -> Option<(usize, Calls)> {
        let difference = |calls: Calls| {
            let [base, new] = calls.changed()?;
            Some(new as f64 - base as f64)
        };
        let all = difference(calls)?;
        self.callers.iter().find_map(|(place, runs)| {
            // All calls of the function were counted: a caller without a number made none.
            let of = |runs: &Vec<ArcFigures>| runs.iter().map(|it| it.calls.or(Some(0))).collect();
            let calls = Calls::of(&runs.each_ref().map(of), variation)?;
            (difference(calls)? / all >= CAUSE).then_some((*place, calls))
        })
    }

    /// New less base: of the means of the own weight.
    fn difference(&self) -> f64 {
        let mean = |runs: &Vec<Figures>| {
            runs.iter().map(|it| it.own).sum::<f64>() / runs.len().max(1) as f64
        };
        mean(&self.figures[1]) - mean(&self.figures[0])
    }
}

/// The rows of all pairs, in their order; those without what others absorb are empty.
pub(super) fn rows(pairs: &[Pair], sides: [&[Run]; 2]) -> Vec<Row> {
    let mut places: [FxHashMap<u32, usize>; 2] = Default::default();
    for (place, pair) in pairs.iter().enumerate() {
        for (places, number) in places.iter_mut().zip(pair.numbers) {
            if let Some(number) = number {
                places.insert(number, place);
            }
        }
    }
    let mut rows: Vec<Row> = pairs
        .iter()
        .map(|pair| Row {
            pair: *pair,
            figures: sides.map(|runs| vec![Figures::default(); runs.len()]),
            callers: FxHashMap::default(),
            lines: BTreeMap::new(),
            absorbed: Vec::new(),
        })
        .collect();
    for (side, runs) in sides.iter().enumerate() {
        for (number, run) in runs.iter().enumerate() {
            for (function, figures) in &run.functions {
                rows[places[side][function]].figures[side][number] = *figures;
            }
            for ((function, line), weight) in &run.lines {
                let empty = || sides.map(|runs| vec![0.0; runs.len()]);
                let lines = &mut rows[places[side][function]].lines;
                lines.entry(*line).or_insert_with(empty)[side][number] = *weight;
            }
            for ((from, to), arc) in &run.arcs {
                let known = (places[side].get(from), places[side].get(to));
                let (Some(&from), Some(&to)) = known else {
                    continue;
                };
                let empty = || sides.map(|runs| vec![ArcFigures::default(); runs.len()]);
                rows[to].callers.entry(from).or_insert_with(empty)[side][number] = *arc;
            }
        }
    }
    absorb(&mut rows, sides);
    rows
}

// A function that only one side has was inlined into its callers on the other, or split off from
// them, if the callers differ less with its weight than without. With few samples it may be on one
// side by chance.
fn absorb(rows: &mut [Row], sides: [&[Run]; 2]) {
    for place in 0..rows.len() {
        let side = match rows[place].pair.numbers {
            [Some(_), None] => 0,
            [None, Some(_)] => 1,
            _ => continue,
        };
        let runs = rows[place].figures[side].iter().zip(sides[side]);
        let samples = runs.map(|(figures, run)| figures.own / run.weight.max(f64::MIN_POSITIVE));
        if samples.sum::<f64>() < FEWEST as f64 {
            continue;
        }
        let callers: Vec<(usize, Vec<f64>)> = rows[place]
            .callers
            .iter()
            .filter(|(caller, _)| rows[**caller].pair.numbers.iter().all(Option::is_some))
            .map(|(caller, sides)| (*caller, sides[side].iter().map(|it| it.own).collect()))
            .collect();
        let sign = if side == 0 { -1.0 } else { 1.0 };
        let (mut without, mut with) = (0.0, 0.0);
        for (caller, weights) in &callers {
            let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
            let difference = rows[*caller].difference();
            without += difference.abs();
            with += (difference + sign * mean).abs();
        }
        // Else it is a change of its own.
        if with >= 0.5 * without {
            continue;
        }
        let number = rows[place].number();
        for (caller, weights) in callers {
            let row = &mut rows[caller];
            row.absorbed.push(number);
            for (figures, weight) in row.figures[side].iter_mut().zip(weights) {
                figures.own += weight;
            }
        }
        for figures in &mut rows[place].figures[side] {
            *figures = Figures {
                calls: figures.calls,
                ..Figures::default()
            };
        }
    }
}
