//! Formats of other profilers are read again by programs that know them.

#[cfg(feature = "parquet")]
mod parquet;
mod round_trips;
