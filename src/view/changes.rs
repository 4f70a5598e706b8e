//! What has changed, as frames of a flame graph show it: only changes that are known have a colour.

use crate::base::IdVec;
use crate::profile::FunctionId;

/// What a frame is coloured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tint {
    /// Nothing: the function is the same, or the runs do not tell.
    #[default]
    Neutral,
    /// It has more self weight.
    Worse,
    /// It has more weight in what it calls.
    WorseByCallees,
    /// It has less self weight.
    Better,
    /// It has less weight in what it calls.
    BetterByCallees,
}

/// A function on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameChange {
    /// The colour of its frames.
    pub tint: Tint,
    /// Both means, the interval and the verdict; empty for marks.
    pub text: String,
}

/// The changes of the functions of a profile, which is the sum of the new runs.
#[derive(Clone, Debug)]
pub struct ChangedFrames {
    /// The title of the picture.
    pub title: String,
    /// What was compared, and how all of the time has changed.
    pub summary: [String; 2],
    /// What is only in the base, so that it has no frame.
    pub gone: Option<String>,
    /// By function.
    pub functions: IdVec<FunctionId, FrameChange>,
}
