//! Output: from drained records to a perf.data file.
//!
//! ```text
//!   records ─┬──────────────▶ log ─▶ perfdata::writer ─▶ file: perf.data.part ─▶ perf.data
//!            ├▶ staged: stage ─┘ └ tally: samples, losses, mapped files
//!            └▶ history ─▶ the same log, later, when the file is asked for
//! ```
//!
//! It takes bytes and writes bytes. It does not open events and does not know when a recording
//! ends.

mod earlier;
pub(super) mod file;
mod group_values;
pub(super) mod history;
pub(super) mod log;
pub(super) mod staged;
pub(super) mod tally;
