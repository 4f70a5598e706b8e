//! Stacks that were checked.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::base::{CaveatKind, CodeAddress, IdVec};
use crate::profile::Quality;
use crate::trace::{AddressPathId, AddressPaths, FrameAddress, FrameId, Trace};

/// The stacks of a trace, checked.
#[derive(Clone, Debug, Default)]
pub(in crate::symbolize) struct Checked {
    pub(in crate::symbolize) frames: IdVec<FrameId, FrameAddress>,
    /// How many are of the trace.
    pub(super) recorded: usize,
    /// The stacks, callers before callees.
    pub(in crate::symbolize) paths: AddressPaths,
    /// What is known of the innermost frame of each path.
    pub(in crate::symbolize) states: IdVec<AddressPathId, PathState>,
    /// Where functions were left. Of an inferred frame the calls or jumps that may have left it,
    /// where there are several. Of a recorded one those that may be missing outside of it; none of
    /// paths of which others may be missing too.
    pub(super) places: FxHashMap<AddressPathId, Rc<[FrameId]>>,
    pub(in crate::symbolize) now: IdVec<AddressPathId, AddressPathId>,
    /// What the code says of the stacks.
    pub(in crate::symbolize) quality: Quality,
    /// Samples of whose stacks something else is to be said than as recorded.
    pub(in crate::symbolize) corrections: Vec<Correction>,
}

/// What is known of the innermost frame of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::symbolize) struct PathState {
    /// It was put in.
    pub(in crate::symbolize) inferred: bool,
    /// It was called by another than the frame outside of it: frames are missing there that could
    /// not be restored.
    pub(in crate::symbolize) across_gap: bool,
    pub(in crate::symbolize) through_pointer: bool,
}

impl PathState {
    pub(super) const INFERRED: PathState = PathState {
        inferred: true,
        across_gap: false,
        through_pointer: false,
    };
}

/// A number of samples of whose stacks something else is to be said than as recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::symbolize) struct Correction {
    /// What was said when they were recorded; `None` of whole stacks.
    pub(in crate::symbolize) recorded: Option<CaveatKind>,
    pub(in crate::symbolize) now: Option<CaveatKind>,
    /// Whether their callers are missing outside of code that a process made at run time.
    pub(in crate::symbolize) are_in_generated: bool,
    pub(in crate::symbolize) samples: u64,
}

impl Checked {
    pub(in crate::symbolize) fn as_recorded(trace: &Trace) -> Checked {
        Checked {
            frames: trace.frames.clone(),
            recorded: trace.frames.len(),
            paths: trace.paths.clone(),
            states: IdVec::filled(PathState::default(), trace.paths.len()),
            now: trace.paths.ids().collect::<Vec<_>>().into(),
            ..Checked::default()
        }
    }

    /// Returns the places where the function of a path may have been left, if it was restored and
    /// there are several: what is inlined at all of them was on the stack. Returns those of the
    /// functions of which some are missing outside of a recorded frame across a gap; `None` if
    /// there may be others.
    pub(in crate::symbolize) fn places_of(&self, path: AddressPathId) -> Option<&[FrameId]> {
        self.places.get(&path).map(|places| &**places)
    }

    /// Whether it is known where in its function a frame is: of one that was put in it need not be.
    pub(in crate::symbolize) fn is_place(&self, frame: FrameId) -> bool {
        let recorded = frame.index() < self.recorded;
        recorded || matches!(self.frames[frame].address, CodeAddress::Return(_))
    }
}
