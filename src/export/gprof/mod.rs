//! The text of GNU gprof 2.40, byte for byte, for what reads it.
//!
//! | function | prints what prints |
//! |---|---|
//! | [`write_graph`] | `gprof -b -q PROGRAM gmon.out`, with static arcs `-c`, with zeros `-z` |
//! | [`write_flat`] | `gprof -b -p PROGRAM gmon.out` |
//!
//! For that the sums have to be made in gprof's order: a last bit of difference shows where it
//! decides which line comes first. So `assemble` goes through functions by address and through arcs
//! as they stand in the file, as gprof does (`cg_dfn.c`, `cg_arcs.c`), where everybody else
//! takes [`propagation`](crate::analysis::propagation); `scripts/compare_gprof.py` holds both against
//! gprof.
//!
//! Other than gprof: static arcs are those that the code really has (gprof misses backward calls
//! and takes bytes for calls).
//!
//! Numbers of calls are what was counted, never weights: a profile without counts has no such text.

mod assemble;
mod flat;
mod graph;

pub use flat::write as write_flat;
pub use graph::write as write_graph;

use crate::profile::{Profile, Selection};

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether functions without time and calls are printed.
    pub zeros: bool,
}

/// Whether a profile has what gprof's text needs: a histogram and counts, as a gmon.out has.
pub fn can_write(profile: &Profile) -> bool {
    profile.about.histogram.is_some()
}

/// Functions that are part of the profiler; gprof leaves their time out.
const EXCLUDED: [&str; 6] = [
    "_gprof_mcount",
    "mcount",
    "_mcount",
    "__mcount",
    "__mcount_internal",
    "__mcleanup",
];

/// A function in gprof's eyes. Times are in ticks of the histogram.
#[derive(Clone, Debug, Default)]
struct Function {
    /// The name in the symbol table.
    symbol: String,
    /// The name that is printed.
    name: String,
    /// Its source file, where only that could name it.
    file: Option<String>,
    excluded: bool,
    /// Calls by other functions.
    calls: u64,
    /// Calls by itself.
    recursive: u64,
    /// Ticks in it.
    time: f64,
    /// Ticks that came up from callees.
    child_time: f64,
    /// The part of both that is printed.
    fraction: f64,
    shown_self: f64,
    shown_child: f64,
    is_printed: bool,
    /// Its cycle, of [`Assembled::cycles`].
    cycle: Option<usize>,
    /// Its rank among all functions and cycles, from 1.
    index: usize,
}

impl Function {
    fn shown(&self) -> f64 {
        self.shown_self + self.shown_child
    }
}

/// A caller and a callee.
#[derive(Clone, Copy, Debug)]
struct Arc {
    from: usize,
    to: usize,
    count: u64,
    time: f64,
    child_time: f64,
}

/// The figures of a whole profile.
#[derive(Clone, Debug, Default)]
struct Assembled {
    /// By address.
    functions: Vec<Function>,
    /// In gprof's order of adding.
    arcs: Vec<Arc>,
    /// By function the arcs to it, and from it, in order of adding.
    callers: Vec<Vec<usize>>,
    callees: Vec<Vec<usize>>,
    /// The cycles as if they were functions without names; their numbers begin with 1.
    cycles: Vec<Function>,
    /// Their members, in the order in which gprof links them.
    members: Vec<Vec<usize>>,
    /// The ticks that percentages are of: in the graph, and in the flat profile.
    base: f64,
    flat_base: f64,
    /// Ticks a second.
    rate: f64,
    /// Bytes a bucket.
    bucket: u64,
    /// Whether calls were counted at all.
    has_arcs: bool,
}

impl Assembled {
    fn of(profile: &Profile, selection: &Selection) -> Assembled {
        assemble::all(profile, selection)
    }

    fn is_within(&self, arc: &Arc) -> bool {
        let cycle = |function: usize| self.functions[function].cycle;
        arc.from == arc.to || cycle(arc.from).is_some() && cycle(arc.from) == cycle(arc.to)
    }
}
