//! What a recording says of itself.

use super::FunctionId;

/// The circumstances of a recording, as far as it tells them. No analysis computes from these:
/// they are for a person who wants to know what lies before them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The command that was recorded, or the recorder's own command line.
    pub command: Option<String>,
    /// The time from the first sample to the last, in nanoseconds.
    pub duration: Option<u64>,
    /// Where the samples are those of a histogram of addresses, how it was made.
    pub histogram: Option<Histogram>,
}

/// How the address histogram of a gmon.out was made. It is needed to print the profile as gprof
/// does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The number of ticks a second.
    pub rate: u64,
    /// The number of all ticks.
    pub ticks: u64,
    /// The ticks of functions that have some, with fractions where buckets were shared, in order of
    /// function: what weights are rounded from.
    pub shares: Vec<(FunctionId, f64)>,
    /// The number of bytes of code that one bucket covers; 0 if there is no histogram.
    pub bucket: u64,
    /// The pairs of callers and callees that were counted, in the file's order.
    pub arcs: Vec<(FunctionId, FunctionId)>,
    /// The name of the source file of functions that only it could name, in order of function, where
    /// debug information tells it.
    pub files: Vec<(FunctionId, String)>,
}
