//! Which addresses of which image are to be looked up: each once, in order.

use crate::base::IdVec;
use crate::trace::{FrameAddress, FrameId, ImageId};

/// The addresses of one image.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The address to look up, counted as the image's kind says, and the frame it is of; sorted.
    pub(super) addresses: Vec<(u64, FrameId)>,
}

/// The plan of each of so many images.
pub(super) fn by_image(
    frames: &IdVec<FrameId, FrameAddress>,
    images: usize,
) -> IdVec<ImageId, Plan> {
    let mut counts: IdVec<ImageId, u32> = IdVec::filled(0, images);
    for frame in frames {
        counts[frame.image] += 1;
    }
    // Of very many images most have one address.
    let plans = counts.iter().map(|&count| Plan {
        addresses: Vec::with_capacity(count as usize),
    });
    let mut plans: IdVec<ImageId, Plan> = plans.collect::<Vec<_>>().into();
    for (id, frame) in frames.enumerate() {
        let plan: &mut Plan = &mut plans[frame.image];
        plan.addresses.push((frame.address.lookup(), id));
    }
    for plan in plans.iter_mut() {
        plan.addresses.sort_unstable();
    }
    plans
}
