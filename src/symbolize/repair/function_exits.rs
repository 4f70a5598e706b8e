//! How control leaves functions: their calls and jumps, by where functions start.

use std::rc::Rc;

use crate::base::Svma;
use crate::trace::ImageId;

/// A function by where it starts, never a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FunctionStart {
    pub(super) image: ImageId,
    /// The stated address of its first byte.
    pub(super) start: u64,
}

impl FunctionStart {
    pub(super) fn of(image: ImageId, start: Svma) -> FunctionStart {
        let start = start.0;
        FunctionStart { image, start }
    }
}

/// Where a call or jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum To {
    /// To this function.
    Function(FunctionStart),
    /// To the function that this one chose when the program started.
    ChosenBy(FunctionStart),
    /// It is known only at run time.
    Unknown,
}

/// An instruction that calls or jumps to elsewhere, by the stated addresses of its first byte and
/// of what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) at: u64,
    pub(super) end: u64,
}

/// How control leaves a function: all calls of one other, or all jumps to it.
#[derive(Clone, Debug)]
pub(super) struct WayOut {
    /// Whether it comes back.
    pub(super) is_call: bool,
    /// Where to.
    pub(super) to: To,
    pub(super) name: Option<Rc<str>>,
    /// In order of address.
    pub(super) sites: Vec<Site>,
}

/// What is known of the code of a function.
#[derive(Debug, Default)]
pub(super) struct Function {
    /// In order of their first sites.
    pub(super) ways_out: Vec<WayOut>,
    /// Whether all of its code could be read, so that there are no other ways out.
    pub(super) is_complete: bool,
}
