//! The perf.data format, in both directions.

mod feature;

pub use feature::Feature;
