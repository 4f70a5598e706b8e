//! The functions, times and calls of gmon.out files by the program's own symbols.
//!
//! Each symbol keeps its time and calls, also those that gprof leaves out: `scan.part.0`,
//! `scan.cold`. A function reaches as far as its symbol says. Only what no symbol covers belongs to
//! the function before it: sizes that assembler code states are sometimes too small.

use super::callers;
use super::file::Gmon;
use super::function_at::function_at;
use super::share::{self, Extent, Rule};
use super::{Counted, Symbol};
use crate::base::Caveats;
use crate::binary::Binary;

pub(super) fn count(gmon: &Gmon, program: &Binary, caveats: &mut Caveats) -> Counted {
    let functions = program.functions();
    let symbols = functions.iter().map(|function| Symbol {
        start: function.start,
        name: program
            .function_name(function)
            .map(|name| name.into_owned()),
    });
    let shares = share::of(
        &gmon.histograms,
        &extents(program),
        functions.len(),
        Rule::Covered,
        |unit| function_at(program, unit.saturating_mul(2)),
    );
    Counted {
        symbols: symbols.collect(),
        shares,
        calls: callers::calls(gmon, program, caveats),
    }
}

// A unit of two bytes at the end of one function and the start of the next belongs to the next, as
// in gprof.
fn extents(program: &Binary) -> Vec<Extent> {
    let stretches = program.stretches();
    let next = stretches
        .iter()
        .skip(1)
        .map(|next| next.start.0 / 2)
        .chain([u64::MAX]);
    let extents = stretches.iter().zip(next).map(|(stretch, next)| Extent {
        start: stretch.start.0 / 2,
        end: stretch.end.0.div_ceil(2).min(next),
        function: stretch.function,
    });
    extents.collect()
}
