//! Ring buffers: the events of a target opened, and the records that the kernel writes.
//!
//! Each processor has one buffer, which all events of all threads on it share. A thread that starts
//! while events are opened may be sampled twice; the second sample of each pair is dropped here,
//! before anyone else sees the records.

pub(super) mod descriptors;
pub(super) mod duplicate_samples;
pub(super) mod ring;
pub(super) mod ring_size;
