//! What to sample, and how.

use crate::sampler::events::event::EventSpec;
use crate::sampler::events::rate::Rate;
use crate::sampler::events::stacks::Stacks;

/// What to sample, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The events. With none, cycles, or the processor's clock where cycles cannot be counted.
    pub events: Vec<EventSpec>,
    /// How often. With `None`, at [`Options::FREQUENCY`], but events that are rare by nature
    /// (tracepoints, context switches) at each occurrence.
    pub rate: Option<Rate>,
    /// How each sample has its stack.
    pub stacks: Stacks,
    /// Whether copies may be smaller than `stacks` says: where so much memory may not be locked
    /// that the ring buffers hold enough of them, and where more than
    /// [`Options::COPIED_PER_SECOND`] would be recorded.
    pub fit_copies: bool,
    /// Whether copies are unwound before they are written, by a [`Stage`](crate::sampler::Stage).
    pub unwinds: bool,
    /// Pages of each ring buffer, a power of two; by default [`Options::RING_BYTES`], for copies
    /// of stacks as much as comes in a quarter of a second, for time off the processor eight times
    /// that, and less where so much memory may not be locked.
    pub ring_pages: Option<usize>,
    /// The zstd level, 1 to 22, at which records are compressed; `None` for no compression.
    pub compression: Option<u8>,
    /// Whether off-CPU time is recorded in addition to the events.
    pub off_cpu: bool,
}

impl Options {
    /// The default number of samples per second: a prime, so as not to run in step with anything in
    /// the program.
    pub const FREQUENCY: u64 = 997;
    /// The bytes of records a second above which copies become smaller where they may.
    pub const COPIED_PER_SECOND: u64 = 64_000_000;
    /// The default size of each processor's ring buffer, in bytes.
    pub const RING_BYTES: usize = 512 * 1024;

    /// The samples a second of all events at this frequency.
    pub(in crate::sampler) fn samples_per_second(&self, frequency: u64) -> u64 {
        frequency.saturating_mul(self.events.len().max(1) as u64)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            events: Vec::new(),
            rate: None,
            stacks: Stacks::FramePointers,
            fit_copies: false,
            unwinds: false,
            ring_pages: None,
            compression: None,
            off_cpu: false,
        }
    }
}
