//! The perf.data format, in both directions.
//!
//! Reading: a [`Reader`] opens a file, a directory or a pipe in either byte order, and hands out
//! [`Record`]s in order of time. It is built on the layouts, flags and numbers of
//! `linux-perf-event-reader`, behind one bounds-checked cursor: every size and count is compared
//! with the bytes that are left before it is used. Damaged parts are skipped, counted, and reported
//! with their offset in the file.
//!
//! ```text
//!  source   bytes: pread into own buffers, or a pipe
//!  header   magic, sections, events         features  optional sections
//!  attr     the options of an event         layout    where that puts ids and times
//!  split    bytes into records              decompress zstd blocks into more bytes
//!  sorter   order of time, in memory        spill     the same on disk
//!  buffers  bytes of records that wait      deliver   records to the visitor
//!                                           pass      all of these, once over the file
//!  record   what the kernel says            user      what perf itself adds
//!  sample   PERF_RECORD_SAMPLE, whole       cursor    bounds-checked reading
//!  feed     records as they are made        packed    records that are kept in little memory
//!  raw      fields of records as bytes, for recorders that pass records on
//! ```

mod attr;
mod buffers;
mod cursor;
mod decompress;
mod deliver;
mod error;
mod feature;
mod features;
mod feed;
mod header;
mod layout;
mod name;
mod offsets;
mod origin;
mod packed;
mod pass;
#[cfg(feature = "record")]
pub(crate) mod raw;
mod reader;
mod record;
mod recorded_stacks;
mod sample;
mod sorter;
mod source;
mod spill;
mod split;
mod user;
pub mod writer;

pub use attr::Attr;
pub use buffers::SharedBytes;
pub use cursor::Words;
pub use error::Error;
pub use feature::Feature;
pub use features::{
    CallCounts, ClockReference, CountedAgent, CountedCallee, CountedImage, CountedSite, Features,
    FileBuildId, Job, KeptJitDump, KeptPerfMap, MappedFile,
};
pub use feed::Feed;
#[cfg(test)]
pub(crate) use feed::empty_recording;
pub use header::{EventDescription, is_recording};
pub use origin::Origin;
pub use packed::Packed;
pub use pass::Pass;
pub use reader::{Reader, Storage};
pub use record::{Body, CpuMode, Mapping, Record, Task, type_name};
pub use recorded_stacks::RecordedStacks;
#[cfg(feature = "record")]
pub(crate) use sample::Mover;
pub(crate) use sample::unwound;
pub use sample::{BranchStack, ReadValues, Registers, Sample};
