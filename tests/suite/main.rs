//! The test suite: one binary.
