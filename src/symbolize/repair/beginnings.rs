//! How programs and threads begin. A chain of frame pointers ends short of that, and other stacks
//! show it, or more of it:
//!
//! ```text
//!   unwound by rules    _start ← __libc_start_main ← __libc_start_call_main ← main ← work
//!   in a small copy              __libc_start_main ← __libc_start_call_main ← main ← step
//!   by frame pointers                                __libc_start_call_main ← main ← play
//! ```
//!
//! Each program begins in its own `_start`. It is known by its file, which is that of the function
//! that the C library calls; otherwise the stack stays as it is.

use rustc_hash::FxHashMap;

use crate::base::{CodeAddress, IdVec};
use crate::trace::{AddressPathId, FrameId, ImageId, ImageKind, Trace};

use super::check::Checks;
use super::function_exits::FunctionStart;

// Longer ones are not looked at: three frames are the rule.
const LONGEST: usize = 8;

/// The stacks outside of functions with which programs and threads start, as far as frame pointers
/// show.
#[derive(Default)]
pub(super) struct Beginnings {
    /// By that function and the file of the outermost one; `None` if stacks differ in more than how
    /// far out they go.
    of: FxHashMap<(FunctionStart, ImageId), Option<Vec<FrameId>>>,
}

impl Beginnings {
    /// Those that are recorded.
    pub fn of(trace: &Trace, checks: &Checks) -> Beginnings {
        let mut beginnings = Beginnings::default();
        // For each path how many frames it has, if it is one.
        let mut begins: IdVec<AddressPathId, Option<usize>> = IdVec::new();
        for (_, path) in trace.paths.enumerate() {
            // A frame pointer may have led on from where a program starts.
            let caller = path.caller.filter(|&caller| !is_mark(trace, caller));
            let Some(caller) = caller else {
                let is_start =
                    checks.is_outermost(path.frame) || checks.starts_task(path.frame).is_some();
                begins.push(is_start.then_some(1));
                continue;
            };
            let length = begins[caller].filter(|&length| length <= LONGEST);
            let start = length.and_then(|_| checks.starts_task(path.frame));
            begins.push(length.filter(|_| start.is_some()).map(|length| length + 1));
            if let Some(start) = start {
                beginnings.add(trace, start, caller);
            }
        }
        beginnings
    }

    fn add(&mut self, trace: &Trace, start: FunctionStart, caller: AddressPathId) {
        let mut frames = Vec::new();
        let mut at = Some(caller);
        let mut image = start.image;
        while let Some(path) = at.filter(|&path| !is_mark(trace, path)) {
            let frame = trace.paths[path].frame;
            frames.push(frame);
            image = trace.frames[frame].image;
            at = trace.paths[path].caller;
        }
        frames.reverse();
        let known = self.of.entry((start, image));
        let known = known.or_insert_with(|| Some(frames.clone()));
        *known = known
            .take()
            .and_then(|known| longer(trace, known, frames.clone()));
    }

    /// The frames outside of a function with which a program or a thread starts and which leads to
    /// this file; `None` if no stack shows them, or stacks differ.
    pub fn outside(
        &self,
        trace: &Trace,
        start: FunctionStart,
        entered: ImageId,
    ) -> Option<&[FrameId]> {
        let of = |image| self.of.get(&(start, image));
        let other = of(entered).filter(|_| entered != start.image);
        match (of(start.image), other) {
            // The stacks of a file of its own end with the same frames, if they go further out.
            (Some(Some(inner)), Some(Some(whole))) => {
                ends_with(trace, whole, inner).then_some(whole.as_slice())
            }
            (Some(_), Some(_)) => None,
            (only, other) => only.or(other)?.as_deref(),
        }
    }
}

/// Whether the innermost frame of a path is a mark.
fn is_mark(trace: &Trace, path: AddressPathId) -> bool {
    let frame = trace.frames[trace.paths[path].frame];
    trace.images[frame.image].kind == ImageKind::Mark
}

/// The one of two beginnings that goes further out, if they agree otherwise.
fn longer(trace: &Trace, one: Vec<FrameId>, other: Vec<FrameId>) -> Option<Vec<FrameId>> {
    if ends_with(trace, &one, &other) {
        Some(one)
    } else {
        ends_with(trace, &other, &one).then_some(other)
    }
}

/// Whether frames are the innermost of others.
fn ends_with(trace: &Trace, frames: &[FrameId], inner: &[FrameId]) -> bool {
    // Whether they were left by rules or by a frame pointer does not matter.
    let place = |frame: &FrameId| -> (ImageId, CodeAddress) {
        let frame = trace.frames[*frame];
        (frame.image, frame.address)
    };
    let from = frames.len().checked_sub(inner.len());
    let innermost = from.and_then(|from| frames.get(from..));
    innermost.is_some_and(|innermost| innermost.iter().map(place).eq(inner.iter().map(place)))
}
