//! The addresses of each image that are to be looked up: each once, in order.

use crate::base::IdVec;
use crate::trace::{FrameAddress, FrameId, ImageId};

/// The addresses of all images. There may be millions of images with one address each.
pub(super) struct DistinctAddresses {
    /// By image: the address to look up, counted as the image's kind says, and the frame it is of;
    /// sorted.
    addresses: Vec<(u64, FrameId)>,
    /// For each image where its addresses begin; one more entry behind the last.
    starts: Vec<u32>,
}

impl DistinctAddresses {
    pub(super) fn of(frames: &IdVec<FrameId, FrameAddress>, images: usize) -> DistinctAddresses {
        let mut ids: Vec<FrameId> = frames.ids().collect();
        ids.sort_unstable_by_key(|&id| (frames[id].image, frames[id].address.lookup(), id));
        let mut starts: Vec<u32> = vec![0; images + 1];
        for frame in frames {
            starts[frame.image.index() + 1] += 1;
        }
        for image in 0..images {
            starts[image + 1] += starts[image];
        }
        let lookup = |id: FrameId| (frames[id].address.lookup(), id);
        DistinctAddresses {
            addresses: ids.into_iter().map(lookup).collect(),
            starts,
        }
    }

    pub(super) fn of_image(&self, image: ImageId) -> &[(u64, FrameId)] {
        let start = |index: usize| self.starts[index] as usize;
        &self.addresses[start(image.index())..start(image.index() + 1)]
    }

    /// The images in order, and their addresses.
    pub(super) fn enumerate(&self) -> impl Iterator<Item = (ImageId, &[(u64, FrameId)])> {
        let images = (0..self.starts.len() - 1).map(ImageId::new);
        images.map(|image| (image, self.of_image(image)))
    }
}
