//! Where records come from.

/// Whom the kernel was running as it wrote a record, and where, as far as the record tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The process and the thread; -1 where the kernel does not know.
    pub task: Option<(i32, i32)>,
    /// The processor.
    pub cpu: Option<u32>,
}
