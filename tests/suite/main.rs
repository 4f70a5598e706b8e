//! The test suite: one binary.

#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]

mod cli;
mod flat;
mod folded;
mod golden;
mod laws;
mod report;
mod tree;
