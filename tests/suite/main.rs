//! The test suite: one binary.

mod cli;
mod flat;
mod folded;
mod golden;
mod laws;
mod tree;
