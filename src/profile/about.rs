//! What a recording states about itself.

/// The circumstances of a recording, as far as it states them. No analysis of one recording uses
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The command that was recorded, or the recorder's own command line.
    pub command: Option<String>,
    /// The time from the first sample to the last, in nanoseconds.
    pub duration: Option<u64>,
    /// The name of the machine.
    pub host: Option<String>,
    /// The model of its processor.
    pub processor: Option<String>,
    /// The time of the first sample, in nanoseconds since 1970 (UTC).
    pub started: Option<u64>,
    /// Whether its recorder has unwound copies of stacks.
    pub is_unwound: bool,
}
