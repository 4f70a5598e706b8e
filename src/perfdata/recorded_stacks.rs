//! How the call stacks of a recording were recorded, as its events state it.

use std::fmt;

use linux_perf_event_reader::{AttrFlags, SampleFormat};

use super::Attr;

/// What samples hold of the user's stack, in increasing order. If there are several events, the one
/// with most decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordedStacks {
    None,
    /// The last branches.
    Branches,
    /// The kernel's call chain.
    Chain,
    /// The kernel's call chain, registers, and at most this many bytes from the top of the stack.
    Joined(u32),
    /// Registers, and at most this many bytes from the top of the stack.
    Copies(u32),
}

impl RecordedStacks {
    /// What the samples of these events hold.
    ///
    /// ```
    /// use proftool::perfdata::RecordedStacks;
    /// assert_eq!(RecordedStacks::of([]), RecordedStacks::None);
    /// ```
    pub fn of<'a>(attrs: impl IntoIterator<Item = &'a Attr>) -> RecordedStacks {
        let of_events = attrs.into_iter().map(RecordedStacks::of_event);
        of_events.max().unwrap_or(RecordedStacks::None)
    }

    fn of_event(attr: &Attr) -> RecordedStacks {
        let format = attr.sample_format();
        let follows_pointers = format.contains(SampleFormat::CALLCHAIN)
            && !attr.flags().contains(AttrFlags::EXCLUDE_CALLCHAIN_USER);
        let has_copy = format.contains(SampleFormat::STACK_USER) || attr.carries_copy();
        match (has_copy, follows_pointers) {
            (true, true) => RecordedStacks::Joined(attr.sample_stack_user),
            (true, false) => RecordedStacks::Copies(attr.sample_stack_user),
            _ if format.contains(SampleFormat::CALLCHAIN) => RecordedStacks::Chain,
            _ if format.contains(SampleFormat::BRANCH_STACK) => RecordedStacks::Branches,
            _ => RecordedStacks::None,
        }
    }
}

impl RecordedStacks {
    /// What it is called where the recorder has unwound copies, or has not.
    pub fn named(self, is_unwound: bool) -> String {
        match self {
            RecordedStacks::Joined(_) if is_unwound => {
                "frame pointers and DWARF, unwound while recorded".into()
            }
            RecordedStacks::Copies(_) if is_unwound => "DWARF, unwound while recorded".into(),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for RecordedStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordedStacks::None => f.write_str("none"),
            RecordedStacks::Branches => f.write_str("branch records (LBR)"),
            RecordedStacks::Chain => f.write_str("frame pointers, or as the kernel unwound them"),
            RecordedStacks::Joined(bytes) => write!(
                f,
                "frame pointers, and the top of the stack (up to {bytes} bytes per sample)"
            ),
            RecordedStacks::Copies(bytes) => {
                write!(f, "DWARF, copies of up to {bytes} bytes per sample")
            }
        }
    }
}
