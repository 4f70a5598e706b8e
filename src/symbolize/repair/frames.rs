//! Whether a function has a frame of its own at an address, by unwind information.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use crate::base::{IdVec, Svma};
use crate::trace::{ImageId, RuleSource, Trace};
use crate::unwind::{FrameState, Rules, Scratch};

use super::super::library::Library;
use super::memo::Memo;

/// The frames of all files.
pub(super) struct Frames<'h> {
    trace: &'h Trace,
    library: &'h Library,
    rules: IdVec<ImageId, OnceCell<Option<Arc<Rules>>>>,
    known: Memo<(ImageId, u64), Option<FrameState>>,
    scratch: RefCell<Scratch>,
}

// Longer functions are taken to have a frame somewhere, in bytes.
const SHORT: u64 = 512;

impl<'h> Frames<'h> {
    pub(super) fn new(trace: &'h Trace, library: &'h Library) -> Frames<'h> {
        Frames {
            trace,
            library,
            rules: IdVec::filled(OnceCell::new(), trace.images.len()),
            known: Memo::default(),
            scratch: RefCell::default(),
        }
    }

    /// Whether the frame pointer is that of the function at this stated address, rather than of one
    /// that called it; `None` if its unwind information does not tell.
    pub(super) fn has_frame(&self, image: ImageId, at: u64) -> Option<bool> {
        self.state(image, at)?.is_set_up
    }

    pub(super) fn may_have_frame(&self, image: ImageId, from: u64, to: u64) -> bool {
        let is_long = to.saturating_sub(from) > SHORT;
        is_long || (from..to).any(|at| self.has_frame(image, at) != Some(false))
    }

    pub(super) fn is(
        &self,
        image: ImageId,
        at: u64,
        property: impl Fn(FrameState) -> bool,
    ) -> bool {
        self.state(image, at).is_some_and(property)
    }

    pub(super) fn state(&self, image: ImageId, at: u64) -> Option<FrameState> {
        let rules = self.rules[image].get_or_init(|| {
            let release = self.trace.recording.os_release.as_deref();
            self.library.rules(&self.trace.images[image], release)
        });
        let rules = rules.as_ref()?;
        self.known.get(&(image, at), || {
            rules.frame_at(Svma(at), &mut self.scratch.borrow_mut())
        })
    }
}
