//! The test suite: one binary.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod architecture;
mod corpus;
