//! The test suite: one binary.

mod corpus;
