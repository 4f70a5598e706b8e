//! The functions, times and calls of gmon.out files as gprof 2.40 computes them, for its own text.
//!
//! gprof leaves symbols out and credits their time and calls to the symbol before
//! ([`GprofSymbols`]); the caller is whatever holds the place that stands in the file.

use super::file::Gmon;
use super::share::{self, Extent, Rule};
use super::{Counted, Symbol};
use crate::base::{CaveatKind, Caveats, Svma};
use crate::binary::{Binary, GprofSymbols};
use crate::profile::{FunctionId, Histogram};

pub(super) fn count(gmon: &Gmon, functions: &GprofSymbols, caveats: &mut Caveats) -> Counted {
    let starts = functions.rows.iter().map(|row| row.start.0 / 2);
    let ends = starts.clone().skip(1).chain([functions.end.0 / 2]);
    let extents: Vec<Extent> = starts
        .zip(ends)
        .enumerate()
        .map(|(function, (start, end))| Extent {
            start,
            end: end.max(start),
            function,
        })
        .collect();
    let rows = functions.rows.iter().map(|row| Symbol {
        start: row.start,
        name: Some(row.name.clone()),
    });
    Counted {
        symbols: rows.collect(),
        shares: share::of(
            &gmon.histograms,
            &extents,
            functions.rows.len(),
            Rule::Gprof,
            |_| None,
        ),
        calls: calls(gmon, functions, caveats),
    }
}

// The calls between functions, by place, in the order of the file's arcs; what lies outside of
// functions is left out and reported. A call of what is no function is one of the function before
// it.
fn calls(gmon: &Gmon, functions: &GprofSymbols, caveats: &mut Caveats) -> Vec<(usize, usize, u64)> {
    let mut astray = 0u64;
    let mut calls = Vec::new();
    let mut last = None;
    let rows = functions.rows.iter().enumerate();
    let callees: Vec<Option<usize>> = rows
        .map(|(place, row)| {
            last = if row.is_function { Some(place) } else { last };
            last
        })
        .collect();
    for arc in &gmon.arcs {
        let place = |address| functions.at(Svma(address));
        let function = |place: usize| callees.get(place).copied().flatten();
        match (place(arc.from), place(arc.to).and_then(function)) {
            (Some(from), Some(to)) => calls.push((from, to, arc.count)),
            _ => astray = astray.saturating_add(arc.count),
        }
    }
    if astray > 0 {
        caveats.add(CaveatKind::AstrayCounts, astray);
    }
    calls
}

// `ids` are those of the functions, in their order.
pub(super) fn histogram(
    gmon: &Gmon,
    counted: &Counted,
    functions: &GprofSymbols,
    program: &Binary,
    ids: &[FunctionId],
) -> Histogram {
    let all = gmon.histograms.iter();
    let ticks = all.flat_map(|histogram| &histogram.ticks);
    let shares = ids
        .iter()
        .copied()
        .zip(counted.shares.ticks.iter().copied());
    let arcs = counted.calls.iter();
    Histogram {
        rate: u64::from(gmon.rate.unwrap_or(0)),
        ticks: ticks.fold(0, |sum, &ticks| sum.saturating_add(ticks)),
        bucket: (gmon.histograms.first())
            .map_or(0, |first| (first.scale() as u64).saturating_mul(2)),
        shares: shares.filter(|&(_, ticks)| ticks > 0.0).collect(),
        arcs: arcs.map(|&(from, to, _)| (ids[from], ids[to])).collect(),
        files: source_files(program, functions, ids),
    }
}

// The names of the source files of local functions, as far as debug information has them.
fn source_files(
    program: &Binary,
    functions: &GprofSymbols,
    ids: &[FunctionId],
) -> Vec<(FunctionId, String)> {
    if !program.has_debug_info() {
        return Vec::new();
    }
    let lines = program.lines();
    let mut frames = Vec::new();
    let rows = functions.rows.iter().zip(ids);
    let local = rows.filter(|(row, _)| row.is_local);
    let named = local.filter_map(|(row, &id)| {
        lines.frames(row.start, &mut frames);
        let file = frames.first()?.file?;
        let name = file.rsplit('/').next().unwrap_or(file).to_owned();
        frames.clear();
        Some((id, name))
    });
    named.collect()
}
