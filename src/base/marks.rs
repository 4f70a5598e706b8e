//! The names of marks: what stands on a stack where functions are not known.

/// The mark that stands outermost on a stack which was cut: by the kernel's limit of frames, or
/// where its copy ends.
pub const TRUNCATED: &str = "[truncated]";
/// The mark that stands outermost on a stack which led to no code.
pub const BROKEN: &str = "[broken stack]";
/// The mark that stands for stacks of which each was seldom met, where they were let go to bound
/// memory.
pub const SELDOM: &str = "[seldom]";
/// The mark that stands for the stack of time off the processor of which no stack was recorded.
pub const NO_SWITCH_STACK: &str = "[off-CPU, no stack]";

/// The name of the module that is the kernel itself.
pub const KERNEL: &str = "[kernel]";
