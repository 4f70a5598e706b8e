//! The test suite: one binary.

#![expect(
    clippy::print_stderr,
    reason = "a test that cannot run here says so, and why"
)]

mod live;
mod process;
mod pure;
mod sampled;
mod support;
