//! The test suite: one binary.
mod binary;
