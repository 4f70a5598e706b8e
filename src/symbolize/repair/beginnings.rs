//! How programs and threads begin. A chain of frame pointers ends short of that, and other stacks show it:
//!
//! ```text
//!   unwound by rules    _start ← __libc_start_main ← __libc_start_call_main ← main ← work
//!   by frame pointers                                __libc_start_call_main ← main ← play
//! ```
//!
//! Each program begins in its own `_start`, which is in the file of the function that is entered from the C
//! library, or not to be told.

use rustc_hash::FxHashMap;

use crate::base::{CodeAddress, IdVec};
use crate::trace::{AddressPathId, FrameId, ImageId, Trace};

use super::check::Checks;
use super::function_exits::FunctionStart;

/// The stacks outside of functions with which programs and threads start, as far as frame pointers show.
#[derive(Default)]
pub(super) struct Beginnings {
    of: FxHashMap<FunctionStart, Vec<Beginning>>,
}

/// A stack from the function that nothing calls.
struct Beginning {
    /// Where that function is.
    image: ImageId,
    /// Its frames, the outermost first.
    frames: Vec<FrameId>,
}

impl Beginnings {
    /// Those that are recorded.
    pub fn of(trace: &Trace, checks: &mut Checks) -> Beginnings {
        let mut beginnings = Beginnings::default();
        let mut begins: IdVec<AddressPathId, bool> = IdVec::new();
        for (_, path) in trace.paths.enumerate() {
            let Some(caller) = path.caller else {
                begins.push(checks.is_outermost(path.frame));
                continue;
            };
            let start = { begins[caller] }.then(|| checks.starts_task(path.frame));
            let start = start.flatten();
            begins.push(start.is_some());
            if let Some(start) = start {
                beginnings.add(trace, start, caller);
            }
        }
        beginnings
    }

    fn add(&mut self, trace: &Trace, start: FunctionStart, caller: AddressPathId) {
        let mut frames = Vec::new();
        let mut at = Some(caller);
        while let Some(path) = at {
            frames.push(trace.paths[path].frame);
            at = trace.paths[path].caller;
        }
        frames.reverse();
        // Whether a frame was left by rules or by a frame pointer does not matter.
        let place = |frame: FrameId| -> (ImageId, CodeAddress) {
            let frame = trace.frames[frame];
            (frame.image, frame.address)
        };
        let is_same = |known: &Beginning| {
            let [known, new] = [&known.frames, &frames].map(|it| it.iter().copied().map(place));
            known.eq(new)
        };
        let known = self.of.entry(start).or_default();
        if let Some(&outermost) = frames.first().filter(|_| !known.iter().any(is_same)) {
            known.push(Beginning {
                image: trace.frames[outermost].image,
                frames,
            });
        }
    }

    /// The frames outside of a function with which a program or a thread starts, where that leads to this
    /// file; `None` where there are none, or several.
    pub fn outside(&self, start: FunctionStart, entered: ImageId) -> Option<&[FrameId]> {
        let may_be = |it: &&Beginning| it.image == start.image || it.image == entered;
        let mut these = self.of.get(&start)?.iter().filter(may_be);
        let only = these.next()?;
        these.next().is_none().then_some(&only.frames)
    }
}
