//! The paths of checked stacks while they are made: what is put in, and where stacks are marked.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::base::{BROKEN, CaveatKind, CodeAddress, TRUNCATED};
use crate::trace::{
    AddressPath, AddressPathId, CallerBy, FrameAddress, FrameId, Image, ImageId, ImageKind, Trace,
};

use super::check::Checks;
use super::checked::{Checked, PathState};
use super::explanation::Missing;

/// The paths while they are made. Those of the trace are distinct, and stay so with what is put
/// in; only what is put in is looked for before it is made.
#[derive(Default)]
pub(super) struct Making {
    pub(super) checked: Checked,
    put_in: FxHashMap<(AddressPath, Rc<[FrameId]>), AddressPathId>,
    new_frames: FxHashMap<FrameAddress, FrameId>,
    /// The places of functions of which some are missing, where they are known to be in the file.
    candidates: FxHashMap<Rc<[Missing]>, Option<Rc<[FrameId]>>>,
    marks: FxHashMap<CaveatKind, AddressPathId>,
    /// The paths under others: by the innermost of what was put in outside of them, and as they
    /// were.
    moved: FxHashMap<(AddressPathId, AddressPathId), AddressPathId>,
}

impl Making {
    pub(super) fn new(trace: &Trace, checks: &Checks) -> Making {
        let frames = trace.frames.iter();
        let frames: Vec<FrameAddress> = frames.map(|&frame| checks.corrected(frame)).collect();
        Making {
            checked: Checked {
                frames: frames.into(),
                recorded: trace.frames.len(),
                ..Checked::default()
            },
            ..Making::default()
        }
    }

    /// The mark under which stacks hang of which this is to be said now.
    pub(super) fn mark(&mut self, trace: &Trace, flaw: CaveatKind) -> Option<AddressPathId> {
        if let Some(&known) = self.marks.get(&flaw) {
            return Some(known);
        }
        let name = match flaw {
            CaveatKind::OtherStack => TRUNCATED,
            _ => BROKEN,
        };
        let is_mark = |image: &Image| image.kind == ImageKind::Mark && *image.path == *name;
        let (image, _) = trace.images.enumerate().find(|(_, image)| is_mark(image))?;
        let frame = self.frame(FrameAddress {
            image,
            address: CodeAddress::Instruction(0),
            caller_by: CallerBy::Rules,
        });
        let caller = None;
        let mark = self.push(AddressPath { caller, frame }, PathState::default());
        self.marks.insert(flaw, mark);
        Some(mark)
    }

    pub(super) fn push(&mut self, path: AddressPath, state: PathState) -> AddressPathId {
        self.checked.states.push(state);
        self.checked.paths.push(path)
    }

    /// The places at which functions that may be missing were left; `None` where their code is
    /// nowhere in the file.
    pub(super) fn candidates(
        &mut self,
        missing: &Rc<[Missing]>,
        checks: &Checks,
    ) -> Option<Rc<[FrameId]>> {
        if let Some(known) = self.candidates.get(missing) {
            return known.clone();
        }
        let left_at = missing.iter().flat_map(|missing| {
            let image = missing.function.image;
            missing.left_at.iter().map(move |&end| (image, end))
        });
        let frames = left_at
            .map(|(image, end)| self.left_at(image, end, checks))
            .collect::<Option<Rc<[FrameId]>>>();
        self.candidates.insert(missing.clone(), frames.clone());
        frames
    }

    fn left_at(&mut self, image: ImageId, end: u64, checks: &Checks) -> Option<FrameId> {
        let last = checks.offset(image, end.checked_sub(1)?)?;
        let address = CodeAddress::Return(last.0.checked_add(1)?);
        Some(self.frame(missing_frame(image, address)))
    }

    /// Adds missing functions, outermost first, to the path of a caller, which `calls_pointer` or
    /// not. Returns whether the innermost may have been left through a pointer; `None` if the code
    /// of some is not in their files: these are left out.
    pub(super) fn put_in_all(
        &mut self,
        caller: &mut Option<AddressPathId>,
        mut calls_pointer: bool,
        missing: &[Missing],
        checks: &Checks,
    ) -> Option<bool> {
        let mut are_all = true;
        for missing in missing {
            if let Some(path) = self.put_in(*caller, missing, checks) {
                self.checked.states[path].through_pointer = calls_pointer;
                *caller = Some(path);
            } else {
                are_all = false;
            }
            calls_pointer = checks.may_leave_through_pointer(missing);
        }
        are_all.then_some(calls_pointer)
    }

    /// The path of a missing function under `caller`; `None` where its code is nowhere in the file.
    fn put_in(
        &mut self,
        caller: Option<AddressPathId>,
        missing: &Missing,
        checks: &Checks,
    ) -> Option<AddressPathId> {
        let image = missing.function.image;
        let is_few = missing.left_at.len() < PLACES;
        let left_at = missing.left_at.iter().filter(|_| is_few);
        let places = left_at.map(|&end| self.left_at(image, end, checks));
        let places = places.collect::<Option<Rc<[FrameId]>>>()?;
        let frame = match *places {
            [only] => only,
            _ => {
                let start = checks.offset(image, missing.function.start)?;
                let address = CodeAddress::Instruction(start.0);
                self.frame(missing_frame(image, address))
            }
        };
        Some(self.put_in_frame(AddressPath { caller, frame }, places))
    }

    fn put_in_frame(&mut self, path: AddressPath, places: Rc<[FrameId]>) -> AddressPathId {
        let key = (path, places);
        if let Some(&known) = self.put_in.get(&key) {
            return known;
        }
        let id = self.push(path, PathState::INFERRED);
        if key.1.len() > 1 {
            self.checked.places.insert(id, key.1.clone());
        }
        self.put_in.insert(key, id);
        id
    }

    /// Puts inferred frames outside of a path's outermost; they are the path where it is `None`.
    pub(super) fn put_outside(
        &mut self,
        frames: &[FrameId],
        path: Option<AddressPathId>,
    ) -> Option<AddressPathId> {
        let mut put_in = None;
        for &frame in frames {
            let path = AddressPath {
                caller: put_in,
                frame,
            };
            put_in = Some(self.put_in_frame(path, [frame].into()));
        }
        let put_in = put_in?;
        let mut stack = Vec::new();
        let (mut at, mut caller) = (path, put_in);
        while let Some(id) = at {
            if let Some(&known) = self.moved.get(&(put_in, id)) {
                caller = known;
                break;
            }
            stack.push(id);
            at = self.checked.paths[id].caller;
        }
        for id in stack.into_iter().rev() {
            caller = self.moved(caller, id);
            self.moved.insert((put_in, id), caller);
        }
        Some(caller)
    }

    /// The innermost frame of a path under another caller.
    fn moved(&mut self, caller: AddressPathId, path: AddressPathId) -> AddressPathId {
        let frame = self.checked.paths[path].frame;
        let caller = Some(caller);
        let id = self.push(AddressPath { caller, frame }, self.checked.states[path]);
        if let Some(places) = self.checked.places.get(&path).cloned() {
            self.checked.places.insert(id, places);
        }
        id
    }

    fn frame(&mut self, frame: FrameAddress) -> FrameId {
        let frames = &mut self.checked.frames;
        let id = self.new_frames.entry(frame);
        *id.or_insert_with(|| frames.push(frame))
    }
}

/// A frame that was put in.
fn missing_frame(image: ImageId, address: CodeAddress) -> FrameAddress {
    // A frame pointer led past it.
    FrameAddress {
        image,
        address,
        caller_by: CallerBy::FramePointer,
    }
}

// A function that was left in more places is shown without what is inlined there.
const PLACES: usize = 64;
