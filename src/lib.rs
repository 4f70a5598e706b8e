//! proftool: a sampling profiler for Linux that tells the truth about where time goes.

pub mod analysis;
pub mod base;
pub mod export;
pub mod input;
pub mod perfdata;
pub mod profile;
pub mod view;
