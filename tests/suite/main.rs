//! The test suite: one binary.

mod architecture;
mod corpus;
