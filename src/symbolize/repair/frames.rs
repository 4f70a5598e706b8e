//! Whether a function has a frame of its own at an address, by unwind information.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::{IdVec, Svma};
use crate::trace::{ImageId, RuleSource, Trace};
use crate::unwind::{FrameState, Rules, Scratch};

use super::super::library::Library;

/// The frames of all files.
pub(super) struct Frames<'h> {
    trace: &'h Trace,
    library: &'h Library,
    rules: IdVec<ImageId, Option<Option<Arc<Rules>>>>,
    known: FxHashMap<(ImageId, u64), Option<FrameState>>,
    scratch: Scratch,
}

/// Longer functions are taken to have a frame somewhere, in bytes.
const SHORT: u64 = 512;

impl<'h> Frames<'h> {
    pub(super) fn new(trace: &'h Trace, library: &'h Library) -> Frames<'h> {
        Frames {
            trace,
            library,
            rules: IdVec::filled(None, trace.images.len()),
            known: FxHashMap::default(),
            scratch: Scratch::default(),
        }
    }

    /// Whether the frame pointer is that of the function at this stated address, rather than of one
    /// that called it; `None` if its unwind information does not tell.
    pub(super) fn has_frame(&mut self, image: ImageId, at: u64) -> Option<bool> {
        self.state(image, at)?.is_set_up
    }

    /// Whether there is unwind information for this stated address.
    pub(super) fn has_rules(&mut self, image: ImageId, at: u64) -> bool {
        self.state(image, at).is_some()
    }

    /// Whether the function may have a frame at one of these addresses.
    pub(super) fn may_have_frame(&mut self, image: ImageId, from: u64, to: u64) -> bool {
        let is_long = to.saturating_sub(from) > SHORT;
        is_long || (from..to).any(|at| self.has_frame(image, at) != Some(false))
    }

    /// Whether the frame pointer holds something else than a frame at this stated address.
    pub(super) fn is_overwritten(&mut self, image: ImageId, at: u64) -> bool {
        let state = self.state(image, at);
        state.is_some_and(|state| state.is_overwritten)
    }

    /// Whether the unwind information says that nothing calls the function at this stated address.
    pub(super) fn is_outermost(&mut self, image: ImageId, at: u64) -> bool {
        let state = self.state(image, at);
        state.is_some_and(|state| state.is_outermost)
    }

    /// Whether signal handlers return to this stated address.
    pub(super) fn is_signal_frame(&mut self, image: ImageId, at: u64) -> bool {
        let state = self.state(image, at);
        state.is_some_and(|state| state.is_signal_frame)
    }

    /// Whether the function at this stated address is one that returns to handlers of exceptions.
    pub(super) fn returns_to_handlers(&mut self, image: ImageId, at: u64) -> bool {
        let state = self.state(image, at);
        state.is_some_and(|state| state.returns_to_handlers)
    }

    fn state(&mut self, image: ImageId, at: u64) -> Option<FrameState> {
        let rules = self.rules[image]
            .get_or_insert_with(|| {
                let release = self.trace.recording.os_release.as_deref();
                self.library.rules(&self.trace.images[image], release)
            })
            .as_ref()?;
        let state = self.known.entry((image, at));
        *state.or_insert_with(|| rules.frame_at(Svma(at), &mut self.scratch))
    }
}
