//! Where functions start, by their linkage names.

use std::hash::{BuildHasher, RandomState};

use rustc_hash::FxHashMap;

use crate::base::{IdVec, Svma};
use crate::binary::Binary;
use crate::trace::ImageId;

use super::home::Home;

/// The functions of images by name; those of an image are read when the first is asked for.
pub(super) struct Names<'a> {
    starts: FxHashMap<ImageId, Starts>,
    homes: &'a IdVec<ImageId, Home>,
    /// Seeded anew each time, so that no file can foresee which names collide.
    hasher: RandomState,
}

/// By the hash of a name the start of the only function of it; `None` where there are several. There
/// may be half a million names: no copies of them are kept.
type Starts = FxHashMap<u64, Option<u64>>;

impl<'a> Names<'a> {
    pub(super) fn new(homes: &'a IdVec<ImageId, Home>) -> Names<'a> {
        Names {
            starts: FxHashMap::default(),
            homes,
            hasher: RandomState::new(),
        }
    }

    /// The start of the only function of this name in an image.
    pub(super) fn start(&mut self, image: ImageId, name: &str) -> Option<u64> {
        let Home::Binary(binary) = &self.homes[image] else {
            return None;
        };
        let hasher = &self.hasher;
        let starts = self.starts.entry(image);
        let starts = starts.or_insert_with(|| starts_by_name(binary, hasher));
        let start = starts.get(&hasher.hash_one(name)).copied().flatten()?;
        let function = binary.function_at(Svma(start))?;
        (binary.function_name(function)? == name).then_some(start)
    }

    /// Where the function starts, and its name, that a compiler has moved a part of elsewhere: the
    /// part `f.cold` is the function `f`, if there is one of the name.
    pub(super) fn whole<'n>(&mut self, image: ImageId, part: &'n str) -> Option<(u64, &'n str)> {
        let name = base_of_part(part)?;
        let start = self.start(image, name)?;
        Some((start, name))
    }
}

/// The name of the function that a compiler has moved a part out of, by the name of the part.
pub(super) fn base_of_part(part: &str) -> Option<&str> {
    let marks = [".cold", ".warm"].into_iter();
    let (base, _) = marks.filter_map(|mark| part.split_once(mark)).next()?;
    Some(base)
}

fn starts_by_name(binary: &Binary, hasher: &RandomState) -> Starts {
    let functions = binary.functions();
    let mut starts = Starts::with_capacity_and_hasher(functions.len(), Default::default());
    for function in functions {
        if let Some(name) = binary.function_name(function) {
            starts
                .entry(hasher.hash_one(&*name))
                .and_modify(|start| *start = None)
                .or_insert(Some(function.start.0));
        }
    }
    starts
}
