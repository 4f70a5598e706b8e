//! How often an event is sampled.

/// How often to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// This number of samples per second of run time; the kernel chooses the periods.
    Frequency(u64),
    /// One sample per this number of events (nanoseconds for clocks).
    Period(u64),
}
