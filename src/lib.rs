//! proftool: a sampling profiler for Linux that tells the truth about where time goes.

pub mod base;
pub mod binary;
pub mod perfdata;
pub mod profile;
pub mod symbolize;
pub mod trace;
