//! The test suite: one binary.
mod record;
