//! Which addresses of which image are to be looked up: each once, in order.

use crate::base::IdVec;
use crate::trace::{FrameId, ImageId, Trace};

/// The addresses of one image.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The address to look up, counted as the image's kind says, and the frame it is of; sorted.
    pub(super) addresses: Vec<(u64, FrameId)>,
}

/// The plan of each image.
pub(super) fn by_image(trace: &Trace) -> IdVec<ImageId, Plan> {
    let mut plans = IdVec::filled(Plan::default(), trace.images.len());
    for (id, frame) in trace.frames.enumerate() {
        let plan: &mut Plan = &mut plans[frame.image];
        plan.addresses.push((frame.address.lookup(), id));
    }
    for image in trace.images.ids() {
        plans[image].addresses.sort_unstable();
    }
    plans
}
