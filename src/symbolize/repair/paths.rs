//! The paths of a trace with the missing frames restored.

use crate::base::{CaveatKind, IdVec};
use crate::trace::{AddressPath, AddressPathId, CallerBy, FrameId, ImageKind, Trace};

use super::beginnings::Beginnings;
use super::check::{Checks, Verdict};
use super::checked::{Checked, Correction};
use super::function_exits::FunctionStart;
use super::making::Making;

/// What is to be said of the outer ends of stacks: as recorded, and now; `None` for those that are
/// not cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flaws {
    recorded: Option<CaveatKind>,
    now: Option<CaveatKind>,
    /// Whether the callers are missing outside of code that a process made at run time.
    is_in_generated: bool,
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
    let mut making = Making::new(trace, checks);
    let broken = if trace.recording.copies_alone {
        CaveatKind::BrokenCopy
    } else {
        CaveatKind::BrokenStack
    };
    let has_stacks = trace.has_user_stacks();
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
        let (mut across_gap, mut through_pointer) = (false, false);
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
            if let Some(frames) = beginnings.outside(trace, begins, entered) {
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
                Verdict::ThroughPointer | Verdict::Unknown => said::UNKNOWN,
                Verdict::Missing(_) => said::MISSING,
                Verdict::Ambiguous { .. } => said::AMBIGUOUS,
                Verdict::Contradicted | Verdict::Astray => said::CONTRADICTED,
            };
            across_gap = matches!(
                &verdict,
                Verdict::Ambiguous { .. } | Verdict::Contradicted | Verdict::Astray
            );
            through_pointer = verdict == Verdict::ThroughPointer;
            let calls_pointer =
                |checks: &mut Checks| outer.is_some_and(|it| checks.calls_pointer(it));
            match verdict {
                Verdict::Missing(missing) => {
                    let calls_pointer = calls_pointer(checks);
                    let put = making.put_in_all(&mut caller, calls_pointer, missing, checks);
                    across_gap |= !put.are_all;
                    through_pointer = put.leads_through_pointer && put.are_all;
                }
                Verdict::Ambiguous { certain, possible } => {
                    let calls_pointer = calls_pointer(checks);
                    let put = making.put_in_all(&mut caller, calls_pointer, certain, checks);
                    let possible = possible.filter(|_| put.are_all);
                    candidates = possible.and_then(|these| making.candidates(&these, checks));
                }
                _ => {}
            }
        }
        said.push(here);
        let frame = path.frame;
        let id = making.push(AddressPath { caller, frame }, false);
        making.checked.across_gap[id] = across_gap;
        making.checked.through_pointer[id] = through_pointer;
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
