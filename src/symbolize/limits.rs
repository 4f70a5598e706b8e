//! Limits on what a profile keeps of debug information, so that small files cannot make large
//! profiles.
//!
//! Two things grow as products: names, because many functions may each have a part of the same long
//! string, and stacks with inlined calls, as each address on each stack may have hundreds of them.
//! Both are cut where they far exceed what compilers make, in an order that depends on the input
//! alone. What is cut is counted.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::base::IdVec;
use crate::binary::DefinitionId;
use crate::profile::LineId;
use crate::trace::{FrameId, ImageId};

// How many bytes the names and declarations that debug information gives to functions may have
// together: those of 200 000 functions of 500 bytes each.
const NAME_BYTES: u64 = 96 << 20;
// How many bytes the paths of all source lines may have together.
const PATH_BYTES: u64 = 192 << 20;
/// How many bytes the readable forms of all names may have beyond the linkage names.
pub(super) const DEMANGLED_BYTES: usize = 96 << 20;
/// How many functions have their names demangled before the sum is looked at.
pub(super) const DEMANGLED_AT_ONCE: usize = 4096;
// How many calls inlined at its addresses a chunk of addresses may have together: 32 at each of a
// full one.
const INLINED_PER_CHUNK: u64 = 1 << 15;
// How many inlined calls the stacks may have together for each frame that was recorded, …
const INLINED_PER_FRAME: u64 = 16;
// … and in any case.
const INLINED_AT_LEAST: u64 = 1 << 20;

/// What is left for text that comes from debug information, and what was left out.
#[derive(Debug)]
pub(super) struct TextLeft {
    names: u64,
    paths: u64,
    /// How many source lines are known so far, by the number of the next.
    lines: usize,
    /// The functions of each image that have no name for want of room.
    nameless: BTreeMap<ImageId, FxHashSet<DefinitionId>>,
    /// How many addresses have no source line for want of room.
    pub(super) lineless: u64,
}

impl Default for TextLeft {
    fn default() -> Self {
        TextLeft {
            names: NAME_BYTES,
            paths: PATH_BYTES,
            lines: 0,
            nameless: BTreeMap::new(),
            lineless: 0,
        }
    }
}

impl TextLeft {
    pub(super) fn has_names(&mut self, image: ImageId, definition: DefinitionId) -> bool {
        let any = self.names > 0;
        if !any {
            self.nameless.entry(image).or_default().insert(definition);
        }
        any
    }

    /// Takes the bytes of a name.
    pub(super) fn take_name(&mut self, bytes: usize) {
        // The last one may be longer than what is left.
        self.names = self.names.saturating_sub(bytes as u64);
    }

    /// Returns whether a source line whose path has this number of bytes may be kept.
    pub(super) fn has_path(&mut self, bytes: usize) -> bool {
        let fits = self.paths >= bytes as u64;
        self.lineless += u64::from(!fits);
        fits
    }

    /// Takes the bytes of the path of a line if that is new.
    pub(super) fn take_path(&mut self, line: LineId, bytes: usize) {
        if line.index() >= self.lines {
            self.lines = line.index() + 1;
            self.paths = self.paths.saturating_sub(bytes as u64);
        }
    }

    /// The images with functions that have no name for want of room, and how many.
    pub(super) fn nameless(&self) -> impl Iterator<Item = (ImageId, u64)> {
        let nameless = self.nameless.iter();
        nameless.map(|(&image, functions)| (image, functions.len() as u64))
    }
}

/// The greatest depth of inlined calls at which those of all addresses together are no more than
/// `limit`; `None` if nothing has to be cut. `depths` has the number of calls at each address, and
/// how often the address counts.
pub(super) fn depth(depths: impl Iterator<Item = (usize, u64)>, limit: u64) -> Option<usize> {
    // How much is at each depth or deeper.
    let mut deeper: Vec<u64> = Vec::new();
    for (depth, count) in depths {
        if depth > deeper.len() {
            deeper.resize(depth, 0);
        }
        if let Some(last) = depth.checked_sub(1).and_then(|at| deeper.get_mut(at)) {
            *last = last.saturating_add(count);
        }
    }
    let mut above: u64 = 0;
    for count in deeper.iter_mut().rev() {
        above = above.saturating_add(*count);
        *count = above;
    }
    let mut sum: u64 = 0;
    deeper.iter().position(|count| {
        sum = sum.saturating_add(*count);
        sum > limit
    })
}

pub(super) fn depth_of_chunk(depths: impl Iterator<Item = u32>) -> Option<usize> {
    depth(depths.map(|depth| (depth as usize, 1)), INLINED_PER_CHUNK)
}

/// The depth at which inlined calls are cut on stacks: `inlined` at each frame, and how often each
/// frame is on the paths of all stacks.
pub(super) fn depth_on_stacks(
    inlined: impl Fn(FrameId) -> usize,
    uses: &IdVec<FrameId, u64>,
) -> Option<usize> {
    let frames: u64 = uses.iter().sum();
    let limit = frames.saturating_mul(INLINED_PER_FRAME);
    let depths = uses
        .enumerate()
        .map(|(frame, &count)| (inlined(frame), count));
    depth(depths, limit.max(INLINED_AT_LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prop_assert, proptest};

    #[test]
    fn a_path_is_counted_once_and_what_does_not_fit_is_counted() {
        let mut left = TextLeft {
            paths: 10,
            ..TextLeft::default()
        };
        for line in [0, 0, 1] {
            assert!(left.has_path(4));
            left.take_path(LineId::new(line), 4);
        }
        assert!(!left.has_path(4));
        assert!(left.has_path(2));
        assert_eq!(left.lineless, 1);
    }

    #[test]
    fn depths_within_the_limit_are_not_cut() {
        assert_eq!(depth([(3, 2), (1, 4)].into_iter(), 10), None);
        assert_eq!(depth([(3, 2), (1, 4)].into_iter(), 9), Some(2));
        assert_eq!(depth([(3, 2)].into_iter(), 1), Some(0));
        assert_eq!(depth(std::iter::empty(), 0), None);
    }

    proptest! {
        #[test]
        fn the_cut_depth_fits_and_one_more_level_would_not(
            depths in proptest::collection::vec((0_usize..40, 0_u64..9), 0..30),
            limit in 0_u64..300,
        ) {
            let sum = |cut: usize| depths.iter().map(|&(d, n)| d.min(cut) as u64 * n).sum::<u64>();
            match depth(depths.iter().copied(), limit) {
                None => prop_assert!(sum(usize::MAX) <= limit),
                Some(cut) => prop_assert!(sum(cut) <= limit && sum(cut + 1) > limit),
            }
        }
    }
}
