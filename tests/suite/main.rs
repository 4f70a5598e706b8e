//! The test suite: one binary.

mod architecture;
