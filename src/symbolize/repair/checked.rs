//! Stacks that were checked.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::base::{CaveatKind, CodeAddress, IdVec};
use crate::profile::Quality;
use crate::trace::{AddressPathId, AddressPaths, FrameAddress, FrameId, Trace};

/// The stacks of a trace, checked.
#[derive(Clone, Debug, Default)]
pub(in crate::symbolize) struct Checked {
    /// The frames of the trace, then those that were put in.
    pub(in crate::symbolize) frames: IdVec<FrameId, FrameAddress>,
    /// How many are of the trace.
    pub(super) recorded: usize,
    /// The stacks, callers before callees.
    pub(in crate::symbolize) paths: AddressPaths,
    /// For each path whether its innermost frame was put in.
    pub(in crate::symbolize) inferred: IdVec<AddressPathId, bool>,
    /// For each path whether its innermost frame was called by another than the one outside of it:
    /// frames are missing there that could not be restored.
    pub(in crate::symbolize) across_gap: IdVec<AddressPathId, bool>,
    /// For each path whether its innermost frame was called through a pointer, or jumped to by what was.
    pub(in crate::symbolize) through_pointer: IdVec<AddressPathId, bool>,
    /// Where the functions that may be missing outside of a path's innermost frame were left; none of
    /// paths of which others may be missing too.
    pub(super) candidates: FxHashMap<AddressPathId, Rc<[FrameId]>>,
    /// The calls or jumps that may have left a restored function, where there are several.
    pub(super) left_at: FxHashMap<AddressPathId, Rc<[FrameId]>>,
    /// The new path of each path of the trace.
    pub(in crate::symbolize) now: IdVec<AddressPathId, AddressPathId>,
    /// What the code says of the stacks.
    pub(in crate::symbolize) quality: Quality,
    /// Samples of whose stacks something else is to be said than as recorded.
    pub(in crate::symbolize) corrections: Vec<Correction>,
}

/// A number of samples of whose stacks something else is to be said than as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::symbolize) struct Correction {
    pub(in crate::symbolize) recorded: Option<CaveatKind>,
    pub(in crate::symbolize) now: Option<CaveatKind>,
    /// Whether their callers are missing outside of code that a process made at run time.
    pub(in crate::symbolize) are_in_generated: bool,
    pub(in crate::symbolize) samples: u64,
}

impl Checked {
    /// Returns the stacks as recorded, without any check.
    pub(in crate::symbolize) fn as_recorded(trace: &Trace) -> Checked {
        Checked {
            frames: trace.frames.clone(),
            recorded: trace.frames.len(),
            paths: trace.paths.clone(),
            inferred: IdVec::filled(false, trace.paths.len()),
            across_gap: IdVec::filled(false, trace.paths.len()),
            through_pointer: IdVec::filled(false, trace.paths.len()),
            candidates: FxHashMap::default(),
            left_at: FxHashMap::default(),
            now: trace.paths.ids().collect::<Vec<_>>().into(),
            quality: Quality::default(),
            corrections: Vec::new(),
        }
    }

    /// Returns the places where the function of a path may have been left, if it was restored and
    /// there are several: what is inlined at all of them was on the stack.
    pub(in crate::symbolize) fn places_of(&self, path: AddressPathId) -> &[FrameId] {
        self.left_at.get(&path).map_or(&[], |places| places)
    }

    /// Returns the places of which some are missing outside of the innermost frame of a path, if it is
    /// across a gap; `None` if there may be others.
    pub(in crate::symbolize) fn candidates(&self, path: AddressPathId) -> Option<&[FrameId]> {
        self.candidates.get(&path).map(|places| &**places)
    }

    /// Whether it is known where in its function a frame is: of one that was put in it need not be.
    pub(in crate::symbolize) fn is_place(&self, frame: FrameId) -> bool {
        let recorded = frame.index() < self.recorded;
        recorded || matches!(self.frames[frame].address, CodeAddress::Return(_))
    }
}
