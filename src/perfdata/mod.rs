//! The perf.data format, in both directions.

mod feature;
mod writer;

pub use feature::Feature;
pub use writer::{
    ATTR_SIZE, BuildIdEntry, EventDescription, FeatureSections, Mapping, TracepointFormats, Writer,
    lost_samples_record,
};
