//! The paths of a trace with the missing frames restored.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::base::{BROKEN, CaveatKind, CodeAddress, IdVec, TRUNCATED};
use crate::profile::Quality;
use crate::trace::{
    AddressPath, AddressPathId, AddressPaths, CallerBy, FrameAddress, FrameId, Image, ImageId,
    ImageKind, Trace,
};

use super::beginnings::Beginnings;
use super::check::{Checks, Verdict};
use super::explanation::Missing;
use super::function_exits::FunctionStart;

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

/// What is to be said of the outer ends of stacks: as recorded, and now; `None` for those that are
/// not cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flaws {
    recorded: Option<CaveatKind>,
    now: Option<CaveatKind>,
    /// Whether the callers are missing outside of code that a process made at run time.
    is_in_generated: bool,
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

/// What is to be said of a stack, as bits that gather from the outermost frame inwards.
mod said {
    pub(super) const CHECKED: u8 = 1;
    pub(super) const UNKNOWN: u8 = 1 << 1;
    pub(super) const MISSING: u8 = 1 << 2;
    pub(super) const AMBIGUOUS: u8 = 1 << 3;
    pub(super) const CONTRADICTED: u8 = 1 << 4;
    /// It has frames in user space.
    pub(super) const USER: u8 = 1 << 5;
    /// It begins where nothing calls.
    pub(super) const ROOTED: u8 = 1 << 6;
    /// Rules have found the caller of its innermost function in user space, so far.
    pub(super) const EXACT_LEAF: u8 = 1 << 7;
}

/// Checks all stacks; puts in what is missing.
pub(super) fn checked(trace: &Trace, checks: &mut Checks) -> Checked {
    let mut making = Making {
        checked: Checked {
            frames: trace
                .frames
                .iter()
                .map(|&frame| checks.corrected(frame))
                .collect::<Vec<_>>()
                .into(),
            recorded: trace.frames.len(),
            ..Checked::default()
        },
        put_in: FxHashMap::default(),
        new_frames: FxHashMap::default(),
        candidates: FxHashMap::default(),
        marks: FxHashMap::default(),
        moved: FxHashMap::default(),
    };
    let broken = if trace.recording.copies_alone {
        CaveatKind::BrokenCopy
    } else {
        CaveatKind::BrokenStack
    };
    // In a recording without stacks, a single frame is all there is: nothing was cut.
    let has_stacks = trace.caveats.count(CaveatKind::NoStacks) == 0;
    checks.note_callers_of_main();
    let beginnings = Beginnings::of(trace, checks);
    let mut is_any_changed = false;
    let mut flaws: IdVec<AddressPathId, Flaws> = IdVec::new();
    let mut said: IdVec<AddressPathId, u8> = IdVec::new();
    // The function that a path begins with, until it leads to another file.
    let mut starts: IdVec<AddressPathId, Option<FunctionStart>> = IdVec::new();
    for (_, path) in trace.paths.enumerate() {
        let mut caller = path.caller.map(|caller| making.checked.now[caller]);
        let mut here = path.caller.map_or(0, |caller| said[caller]);
        let mut flaw = path.caller.map_or_else(
            || Flaws::recorded(mark_flaw(trace, path.frame)),
            |caller| flaws[caller],
        );
        let outer = path.caller.map(|outer| trace.paths[outer].frame);
        let verdict = outer.map(|outer| checks.verdict(outer, path.frame).clone());
        let is_astray = match (outer, &verdict) {
            (Some(outer), Some(Verdict::Astray)) => {
                let beyond = path
                    .caller
                    .and_then(|outer| trace.paths[outer].caller)
                    .map(|beyond| trace.paths[beyond].frame);
                !checks.was_called(beyond, outer, path.frame)
            }
            // The frame pointer is still that of whoever set the stack up.
            (Some(_), _) => {
                trace.frames[path.frame].caller_by == CallerBy::FramePointer
                    && checks.is_user_code(path.frame)
                    && checks.is_set_up(path.frame)
            }
            _ => false,
        };
        let is_first = path
            .caller
            .is_some_and(|outer| trace.paths[outer].caller.is_none() && flaw.recorded.is_some());
        let is_outermost = is_astray || is_first || outer.is_none();
        let is_start = is_outermost && checks.is_a_start(path.frame);
        let is_left = has_stacks && outer.is_none() && checks.lacks_callers(path.frame);
        if is_astray || is_first || is_left {
            // Nothing is missing outside of where a program or a thread starts.
            let now = match flaw.recorded {
                _ if is_start => None,
                _ if is_astray || is_left => Some(broken),
                Some(CaveatKind::NoUnwindRules) if checks.switches_stacks(path.frame) => {
                    Some(CaveatKind::OtherStack)
                }
                recorded => recorded,
            };
            if is_astray || is_left || now != flaw.recorded {
                is_any_changed = true;
                here = 0;
                caller = now.and_then(|now| making.mark(trace, now));
            }
            flaw.now = now;
            flaw.is_in_generated = is_left && checks.is_generated(path.frame);
        }
        flaws.push(flaw);
        if is_of_user(trace, path.frame) {
            here |= said::USER;
            here &= !said::EXACT_LEAF;
            if path.caller.is_some() && trace.frames[path.frame].caller_by == CallerBy::Rules {
                here |= said::EXACT_LEAF;
            }
        }
        if is_start {
            here |= said::ROOTED;
        }
        let mut across_gap = false;
        let mut candidates = None;
        let mut both = outer.into_iter().chain([path.frame]);
        let is_within_user = both.all(|frame| is_of_user(trace, frame));
        let mut start = match path.caller.filter(|_| !is_outermost) {
            Some(caller) => starts[caller],
            None if is_start && caller.is_none() => checks.starts_task(path.frame),
            None => None,
        };
        if let Some(begins) = start {
            let missing = match &verdict {
                Some(Verdict::Missing(missing)) => missing.first(),
                Some(Verdict::Ambiguous { certain, .. }) => certain.first(),
                _ => None,
            };
            let entered = missing.map_or(trace.frames[path.frame].image, |it| it.function.image);
            if let Some(frames) = beginnings.outside(begins, entered) {
                caller = making.put_outside(frames, caller);
                is_any_changed = true;
                start = None;
            } else if entered != begins.image {
                start = None;
            }
        }
        starts.push(start);
        if let Some(verdict) = verdict.filter(|_| !is_astray) {
            here |= match &verdict {
                // Code that was made at run time cannot be read.
                Verdict::Outside if is_within_user => said::UNKNOWN,
                Verdict::Outside => 0,
                Verdict::Verified => said::CHECKED,
                Verdict::Unknown => said::UNKNOWN,
                Verdict::Missing(_) => said::MISSING,
                Verdict::Ambiguous { .. } => said::AMBIGUOUS,
                Verdict::Contradicted | Verdict::Astray => said::CONTRADICTED,
            };
            across_gap = matches!(
                &verdict,
                Verdict::Ambiguous { .. } | Verdict::Contradicted | Verdict::Astray
            );
            match verdict {
                Verdict::Missing(missing) => {
                    across_gap |= !making.put_in_all(&mut caller, missing, checks);
                }
                Verdict::Ambiguous { certain, possible } => {
                    let are_in = making.put_in_all(&mut caller, certain, checks);
                    let possible = possible.filter(|_| are_in);
                    candidates = possible.and_then(|these| making.candidates(&these, checks));
                }
                _ => {}
            }
        }
        said.push(here);
        let frame = path.frame;
        let id = making.push(AddressPath { caller, frame }, false);
        making.checked.across_gap[id] = across_gap;
        if let Some(candidates) = candidates {
            making.checked.candidates.insert(id, candidates);
        }
        making.checked.now.push(id);
    }
    let Checked {
        quality,
        corrections,
        ..
    } = &mut making.checked;
    let is_led_by_pointer = |path: &AddressPath| {
        let is_pointer = trace.frames[path.frame].caller_by != CallerBy::Rules;
        is_pointer && path.caller.is_some() && checks.is_user_code(path.frame)
    };
    quality.by_frame_pointers = trace.paths.iter().any(is_led_by_pointer);
    quality.calls = checks.calls();
    for sample in &trace.samples {
        let Flaws {
            recorded,
            now,
            is_in_generated,
        } = flaws[sample.path];
        if recorded == now {
            continue;
        }
        let fresh = Correction {
            recorded,
            now,
            are_in_generated: is_in_generated,
            samples: 0,
        };
        let same = |other: &Correction| {
            Correction {
                samples: 0,
                ..*other
            } == fresh
        };
        let index = corrections.iter().position(same).unwrap_or_else(|| {
            corrections.push(fresh);
            corrections.len() - 1
        });
        let samples = &mut corrections[index].samples;
        *samples = samples.saturating_add(sample.count);
    }
    for sample in &trace.samples {
        let here = said[sample.path];
        if here & said::USER == 0 {
            continue;
        }
        quality.stacks += sample.count;
        if here & said::ROOTED != 0 {
            quality.rooted += sample.count;
        }
        if here & said::EXACT_LEAF != 0 {
            quality.exact_leaf += sample.count;
        }
        let worst_first = [
            (said::CONTRADICTED, &mut quality.contradicted),
            (said::AMBIGUOUS, &mut quality.ambiguous),
            (said::MISSING, &mut quality.lacking),
            (said::UNKNOWN, &mut quality.unchecked),
            (said::CHECKED, &mut quality.verified),
            (said::USER, &mut quality.alone),
        ];
        let mut known = worst_first.into_iter();
        if let Some((_, into)) = known.find(|(bit, _)| here & bit != 0) {
            *into += sample.count;
        }
    }
    if is_any_changed {
        making.checked.drop_unused(trace);
    }
    making.checked
}

/// Whether a frame is in user space, also if there is no file with its code.
fn is_of_user(trace: &Trace, frame: FrameId) -> bool {
    let kind = trace.images[trace.frames[frame].image].kind;
    !(kind.is_kernel() || matches!(kind, ImageKind::Guest | ImageKind::Mark))
}

impl Flaws {
    fn recorded(flaw: Option<CaveatKind>) -> Flaws {
        Flaws {
            recorded: flaw,
            now: flaw,
            is_in_generated: false,
        }
    }
}

/// What was said of stacks whose outermost frame is this, if it is a mark.
fn mark_flaw(trace: &Trace, outermost: FrameId) -> Option<CaveatKind> {
    let frame = trace.frames[outermost];
    let is_mark = trace.images[frame.image].kind == ImageKind::Mark;
    frame.flaw().filter(|_| is_mark)
}

/// The paths while they are made. Those of the trace are distinct, and stay so with what is put
/// in; only what is put in is looked for before it is made.
struct Making {
    checked: Checked,
    put_in: FxHashMap<(AddressPath, Rc<[FrameId]>), AddressPathId>,
    new_frames: FxHashMap<FrameAddress, FrameId>,
    /// The frames of functions of which some are missing, where they are known to be in the file.
    candidates: FxHashMap<Rc<[Missing]>, Option<Rc<[FrameId]>>>,
    /// The marks that were put in, by what they say.
    marks: FxHashMap<CaveatKind, AddressPathId>,
    /// The paths under others: by the innermost of what was put in outside of them, and as they were.
    moved: FxHashMap<(AddressPathId, AddressPathId), AddressPathId>,
}

impl Making {
    /// The mark under which stacks hang of which this is to be said now.
    fn mark(&mut self, trace: &Trace, flaw: CaveatKind) -> Option<AddressPathId> {
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
        let mark = self.push(AddressPath { caller, frame }, false);
        self.marks.insert(flaw, mark);
        Some(mark)
    }

    fn push(&mut self, path: AddressPath, inferred: bool) -> AddressPathId {
        self.checked.inferred.push(inferred);
        self.checked.across_gap.push(false);
        self.checked.paths.push(path)
    }

    /// The places at which functions that may be missing were left; `None` where their code is nowhere in
    /// the file.
    fn candidates(
        &mut self,
        missing: &Rc<[Missing]>,
        checks: &mut Checks,
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

    /// The frame of a missing function that was left by what is before this stated address.
    fn left_at(&mut self, image: ImageId, end: u64, checks: &mut Checks) -> Option<FrameId> {
        let last = checks.offset(image, end.checked_sub(1)?)?;
        let address = CodeAddress::Return(last.0.checked_add(1)?);
        Some(self.frame(missing_frame(image, address)))
    }

    /// Adds missing functions, outermost first, to the path of a caller. Returns whether the code of all
    /// is in their files; others are left out.
    fn put_in_all(
        &mut self,
        caller: &mut Option<AddressPathId>,
        missing: Vec<Missing>,
        checks: &mut Checks,
    ) -> bool {
        let mut are_in = true;
        for missing in missing {
            let put_in = self.put_in(*caller, missing, checks);
            are_in &= put_in.is_some();
            *caller = put_in.or(*caller);
        }
        are_in
    }

    /// The path of a missing function under `caller`; `None` where its code is nowhere in the file.
    fn put_in(
        &mut self,
        caller: Option<AddressPathId>,
        missing: Missing,
        checks: &mut Checks,
    ) -> Option<AddressPathId> {
        let image = missing.function.image;
        let is_few = missing.left_at.len() < PLACES;
        let left_at = missing.left_at.iter().filter(|_| is_few);
        let places: Option<Rc<[FrameId]>> = left_at
            .map(|&end| self.left_at(image, end, checks))
            .collect();
        let places = places?;
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

    /// The path of a frame that was not recorded and was left in one of these places.
    fn put_in_frame(&mut self, path: AddressPath, places: Rc<[FrameId]>) -> AddressPathId {
        let key = (path, places);
        if let Some(&known) = self.put_in.get(&key) {
            return known;
        }
        let id = self.push(path, true);
        if key.1.len() > 1 {
            self.checked.left_at.insert(id, key.1.clone());
        }
        self.put_in.insert(key, id);
        id
    }

    /// The same path with these frames, which were not recorded, outside of its outermost; only with them, if it is
    /// none.
    fn put_outside(
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
        let AddressPath { frame, .. } = self.checked.paths[path];
        let caller_of = AddressPath {
            caller: Some(caller),
            frame,
        };
        let id = self.push(caller_of, self.checked.inferred[path]);
        self.checked.across_gap[id] = self.checked.across_gap[path];
        if let Some(candidates) = self.checked.candidates.get(&path).cloned() {
            self.checked.candidates.insert(id, candidates);
        }
        if let Some(places) = self.checked.left_at.get(&path).cloned() {
            self.checked.left_at.insert(id, places);
        }
        id
    }

    fn frame(&mut self, frame: FrameAddress) -> FrameId {
        let frames = &mut self.checked.frames;
        let id = self.new_frames.entry(frame);
        *id.or_insert_with(|| frames.push(frame))
    }
}

/// A frame that was put in. A frame pointer led past it.
fn missing_frame(image: ImageId, address: CodeAddress) -> FrameAddress {
    FrameAddress {
        image,
        address,
        caller_by: CallerBy::FramePointer,
    }
}

/// A function that was left in more places is shown without what is inlined there.
const PLACES: usize = 64;
