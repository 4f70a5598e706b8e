//! proftool: a sampling profiler for Linux that tells the truth about where time goes.

pub mod base;
pub mod perfdata;
pub mod profile;
pub mod sampler;
