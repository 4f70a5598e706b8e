//! The paths of a trace with the missing frames restored.

use std::rc::Rc;

use crate::base::{CaveatKind, IdVec};
use crate::trace::{AddressPath, AddressPathId, CallerBy, FrameId, ImageKind, Trace};

use super::beginnings::Beginnings;
use super::check::{Checks, Verdict};
use super::checked::{Checked, Correction, PathState};
use super::explanation::Explanation;
use super::function_exits::FunctionStart;
use super::making::Making;

/// What is known of a recorded path. It starts out as its caller's.
#[derive(Clone, Copy, Default)]
struct Row {
    /// What is to be said of the outer end of the stack.
    end: Correction,
    /// What is to be said of the stack: see [`said`].
    said: u8,
    /// The function that the path begins with, until it leads to another file.
    start: Option<FunctionStart>,
}

/// What is to be said of a stack, as bits that gather from the outermost frame inwards.
mod said {
    pub(super) const CHECKED: u8 = 1;
    pub(super) const UNKNOWN: u8 = 1 << 1;
    pub(super) const MISSING: u8 = 1 << 2;
    pub(super) const AMBIGUOUS: u8 = 1 << 3;
    pub(super) const CONTRADICTED: u8 = 1 << 4;
    pub(super) const USER: u8 = 1 << 5;
    /// It begins where nothing calls.
    pub(super) const ROOTED: u8 = 1 << 6;
    /// Rules have found the caller of its innermost function in user space, so far.
    pub(super) const EXACT_LEAF: u8 = 1 << 7;
}

/// How a stack goes on outside of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    /// With the frame that was recorded.
    Frame,
    /// What was recorded there is no frame.
    Astray,
    /// With a mark that says why the stack ends.
    Mark,
    /// Not, although callers are missing.
    Lacking,
    /// Not.
    Nothing,
}

struct Walk<'a, 'c, 'h> {
    trace: &'a Trace,
    checks: &'a Checks<'c, 'h>,
    beginnings: Beginnings,
    /// What is said of stacks that are cut here.
    broken: CaveatKind,
    has_stacks: bool,
    making: Making,
    rows: IdVec<AddressPathId, Row>,
    is_any_changed: bool,
}

pub(super) fn checked(trace: &Trace, checks: &Checks) -> Checked {
    let mut walk = Walk {
        trace,
        checks,
        beginnings: Beginnings::of(trace, checks),
        broken: if trace.recording.copies_alone {
            CaveatKind::BrokenCopy
        } else {
            CaveatKind::BrokenStack
        },
        has_stacks: trace.has_user_stacks(),
        making: Making::new(trace, checks),
        rows: IdVec::new(),
        is_any_changed: false,
    };
    for (_, path) in trace.paths.enumerate() {
        walk.add(*path);
    }
    walk.note_corrections();
    walk.note_quality();
    if walk.is_any_changed {
        walk.making.checked.drop_unused(trace);
    }
    walk.making.checked
}

impl Walk<'_, '_, '_> {
    fn add(&mut self, path: AddressPath) {
        let (trace, checks) = (self.trace, self.checks);
        let outer = path.caller.map(|outer| trace.paths[outer].frame);
        let verdict = outer.map(|outer| checks.verdict(outer, path.frame));
        let verdict = verdict.as_deref();
        let mut caller = path.caller.map(|caller| self.making.checked.now[caller]);
        let mut row = match path.caller {
            Some(caller) => self.rows[caller],
            None => Row::outermost(mark_flaw(trace, path.frame)),
        };
        let outside = self.outside(path, verdict, &row);
        let is_start = outside != Outside::Frame && checks.is_a_start(path.frame);
        self.cut(path.frame, outside, is_start, &mut row, &mut caller);
        self.note_frame(path, is_start, &mut row);
        if outside != Outside::Frame {
            let is_new = is_start && caller.is_none();
            let start = is_new.then(|| checks.starts_task(path.frame));
            row.start = start.flatten();
        }
        self.put_beginning(path.frame, verdict, &mut row, &mut caller);
        let verdict = verdict.filter(|_| outside != Outside::Astray);
        let (mut state, mut candidates) = (PathState::default(), None);
        if let (Some(outer), Some(verdict)) = (outer, verdict) {
            row.said |= self.said(outer, path.frame, verdict);
            (state, candidates) = self.put_missing(outer, verdict, &mut caller);
            if state.across_gap && !checks.may_lack_a_frame(outer, path.frame) {
                // Only what has made way is missing: it was not on the stack.
                candidates = Some(Rc::default());
            }
        }
        self.rows.push(row);
        let frame = path.frame;
        let id = self.making.push(AddressPath { caller, frame }, state);
        if let Some(candidates) = candidates {
            self.making.checked.places.insert(id, candidates);
        }
        self.making.checked.now.push(id);
    }

    fn outside(&self, path: AddressPath, verdict: Option<&Verdict>, row: &Row) -> Outside {
        let (trace, checks) = (self.trace, self.checks);
        let Some(caller) = path.caller else {
            return if self.has_stacks && checks.lacks_callers(path.frame) {
                Outside::Lacking
            } else {
                Outside::Nothing
            };
        };
        let AddressPath {
            caller: beyond,
            frame: outer,
        } = trace.paths[caller];
        let is_whole = beyond.is_none() && row.end.now.is_none();
        let is_left_over = is_whole && checks.ends_by_chance(outer, path.frame);
        let is_astray = if verdict == Some(&Verdict::Astray) {
            let beyond = beyond.map(|beyond| trace.paths[beyond].frame);
            !checks.was_called(beyond, outer, path.frame)
        } else {
            // The frame pointer is still that of whoever set the stack up.
            trace.frames[path.frame].caller_by == CallerBy::FramePointer
                && checks.is_user_code(path.frame)
                && checks.is_set_up(path.frame)
        };
        match (is_astray || is_left_over, row.end.recorded) {
            (true, _) => Outside::Astray,
            (false, Some(_)) if beyond.is_none() => Outside::Mark,
            (false, _) => Outside::Frame,
        }
    }

    fn cut(
        &mut self,
        frame: FrameId,
        outside: Outside,
        is_start: bool,
        row: &mut Row,
        caller: &mut Option<AddressPathId>,
    ) {
        let recorded = row.end.recorded;
        let now = match outside {
            Outside::Frame | Outside::Nothing => return,
            // Nothing is missing outside of where a program or a thread starts.
            _ if is_start => None,
            Outside::Astray | Outside::Lacking => Some(self.broken),
            Outside::Mark
                if recorded == Some(CaveatKind::NoUnwindRules)
                    && self.checks.switches_stacks(frame) =>
            {
                Some(CaveatKind::OtherStack)
            }
            Outside::Mark => recorded,
        };
        if outside != Outside::Mark || now != recorded {
            self.is_any_changed = true;
            row.said = 0;
            *caller = now.and_then(|now| self.making.mark(self.trace, now));
        }
        row.end.now = now;
        row.end.are_in_generated = outside == Outside::Lacking && self.checks.is_generated(frame);
    }

    fn note_frame(&self, path: AddressPath, is_start: bool, row: &mut Row) {
        if is_of_user(self.trace, path.frame) {
            row.said |= said::USER;
            row.said &= !said::EXACT_LEAF;
            let caller_by = self.trace.frames[path.frame].caller_by;
            if path.caller.is_some() && caller_by == CallerBy::Rules {
                row.said |= said::EXACT_LEAF;
            }
        }
        if is_start {
            row.said |= said::ROOTED;
        }
    }

    /// Puts the frames outside with which other stacks begin that start as this one does, as soon
    /// as the path enters a function that tells which: the next one of the program.
    fn put_beginning(
        &mut self,
        frame: FrameId,
        verdict: Option<&Verdict>,
        row: &mut Row,
        caller: &mut Option<AddressPathId>,
    ) {
        let Some(start) = row.start else {
            return;
        };
        let missing = match verdict {
            Some(Verdict::Lacks(explanation)) => explanation.certain().first(),
            _ => None,
        };
        let image = self.trace.frames[frame].image;
        let entered = missing.map_or(image, |it| it.function.image);
        if let Some(frames) = self.beginnings.outside(self.trace, start, entered) {
            *caller = self.making.put_outside(frames, *caller);
            self.is_any_changed = true;
            row.start = None;
        } else if entered != start.image {
            row.start = None;
        }
    }

    fn said(&self, outer: FrameId, inner: FrameId, verdict: &Verdict) -> u8 {
        match verdict {
            // Code that was made at run time cannot be read.
            Verdict::Outside if [outer, inner].iter().all(|&it| is_of_user(self.trace, it)) => {
                said::UNKNOWN
            }
            Verdict::Outside => 0,
            Verdict::Verified => said::CHECKED,
            Verdict::ThroughPointer | Verdict::Unknown => said::UNKNOWN,
            Verdict::Lacks(Explanation::One(_)) => said::MISSING,
            Verdict::Lacks(_) => said::AMBIGUOUS,
            Verdict::Contradicted | Verdict::Astray => said::CONTRADICTED,
        }
    }

    /// Puts in what is missing between a path and its caller, as far as that is known. Returns what
    /// is known of the path, and the places of functions of which some are missing, too.
    fn put_missing(
        &mut self,
        outer: FrameId,
        verdict: &Verdict,
        caller: &mut Option<AddressPathId>,
    ) -> (PathState, Option<Rc<[FrameId]>>) {
        let (making, checks) = (&mut self.making, self.checks);
        let mut candidates = None;
        let mut state = PathState {
            inferred: false,
            across_gap: matches!(verdict, Verdict::Contradicted | Verdict::Astray),
            through_pointer: *verdict == Verdict::ThroughPointer,
        };
        if let Verdict::Lacks(explanation) = verdict {
            let calls_pointer = checks.calls_pointer(outer);
            let certain = explanation.certain();
            let put = making.put_in_all(caller, calls_pointer, certain, checks);
            match explanation {
                Explanation::Several { possible, .. } => {
                    state.across_gap = true;
                    let possible = possible.as_ref().filter(|_| put.is_some());
                    candidates = possible.and_then(|these| making.candidates(these, checks));
                }
                _ => {
                    state.across_gap = put.is_none();
                    state.through_pointer = put == Some(true);
                }
            }
        }
        (state, candidates)
    }

    /// Counts the samples of whose stacks something else is to be said now.
    fn note_corrections(&mut self) {
        let corrections = &mut self.making.checked.corrections;
        for sample in &self.trace.samples {
            let end = self.rows[sample.path].end;
            if end.recorded == end.now {
                continue;
            }
            let same = |other: &Correction| {
                Correction {
                    samples: 0,
                    ..*other
                } == end
            };
            let index = corrections.iter().position(same).unwrap_or_else(|| {
                corrections.push(end);
                corrections.len() - 1
            });
            let samples = &mut corrections[index].samples;
            *samples = samples.saturating_add(sample.count);
        }
    }

    /// Counts the samples by what is to be said of their stacks.
    fn note_quality(&mut self) {
        let (trace, checks) = (self.trace, self.checks);
        let quality = &mut self.making.checked.quality;
        quality.by_frame_pointers = trace.paths.iter().any(|path| {
            let is_pointer = trace.frames[path.frame].caller_by != CallerBy::Rules;
            is_pointer && path.caller.is_some() && checks.is_user_code(path.frame)
        });
        quality.calls = checks.calls();
        for sample in &trace.samples {
            let here = self.rows[sample.path].said;
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
    }
}

fn is_of_user(trace: &Trace, frame: FrameId) -> bool {
    let kind = trace.images[trace.frames[frame].image].kind;
    !(kind.is_kernel() || matches!(kind, ImageKind::Guest | ImageKind::Mark))
}

impl Row {
    fn outermost(recorded: Option<CaveatKind>) -> Row {
        let mut row = Row::default();
        (row.end.recorded, row.end.now) = (recorded, recorded);
        row
    }
}

/// What was said of stacks whose outermost frame is this, if it is a mark.
fn mark_flaw(trace: &Trace, outermost: FrameId) -> Option<CaveatKind> {
    let frame = trace.frames[outermost];
    let is_mark = trace.images[frame.image].kind == ImageKind::Mark;
    frame.flaw().filter(|_| is_mark)
}
