//! The test suite: one binary.

#![expect(
    clippy::print_stderr,
    reason = "a test that cannot run here says so, and why"
)]

mod architecture;
mod binary;
mod corpus;
mod record;
