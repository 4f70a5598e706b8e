//! How often an event is sampled.

/// How often to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// So many samples a second of run time; the kernel chooses the periods.
    Frequency(u64),
    /// A sample every so many events (nanoseconds for clocks).
    Period(u64),
}
