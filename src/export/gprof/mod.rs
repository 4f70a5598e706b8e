//! The text of GNU gprof 2.40, byte for byte, for programs that read it.
//!
//! | function | prints what prints |
//! |---|---|
//! | [`write_graph`] | `gprof -b -q PROGRAM gmon.out`, with static arcs `-c`, with zeros `-z` |
//! | [`write_flat`] | `gprof -b -p PROGRAM gmon.out` |
//!
//! The figures are those of [`analysis::gprof`](crate::analysis::gprof), which makes its sums in
//! gprof's order; `scripts/compare_gprof.py` compares text and figures with gprof's.
//!
//! Numbers of calls are counted calls, never weights. A profile without counts has no such text.

mod flat;
mod graph;

pub use flat::write as write_flat;
pub use graph::write as write_graph;

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether functions without time and calls are printed.
    pub zeros: bool,
}
