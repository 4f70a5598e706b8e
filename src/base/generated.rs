//! Code that appears in a process's memory while it runs.

/// A piece of code that a process put at an address, at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratedCode {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// The address of its first byte in memory.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Where its bytes are in the file that lists it. No other code has this place, so it is a
    /// name for the code that does not depend on where the code is in memory.
    pub place: u64,
    /// The address that it was moved away from, if it was moved.
    pub moved_from: Option<u64>,
}
