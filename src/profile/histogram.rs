//! What a gmon.out has in addition to samples and call counts.

use super::FunctionId;

/// How the histogram of addresses of a gmon.out was made: what gprof's own text needs beyond the
/// profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The number of ticks per second.
    pub rate: u64,
    /// The number of all ticks.
    pub ticks: u64,
    /// The ticks of functions that have some, with fractions where buckets were shared, in order of
    /// function: what weights are rounded from.
    pub shares: Vec<(FunctionId, f64)>,
    /// The number of bytes of code that one bucket covers; 0 where there is none.
    pub bucket: u64,
    /// The pairs of callers and callees that were counted, in the file's order.
    pub arcs: Vec<(FunctionId, FunctionId)>,
    /// The name of the source file of functions that are local to it, in order of function, where
    /// debug information states it.
    pub files: Vec<(FunctionId, String)>,
}
