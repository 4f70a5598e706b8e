//! Where records come from.

/// The task that was running when the kernel wrote a record, and its processor, as far as the
/// record states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The process and the thread; -1 where the kernel does not know.
    pub task: Option<(i32, i32)>,
    pub cpu: Option<u32>,
}
