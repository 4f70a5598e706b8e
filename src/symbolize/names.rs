//! Where functions start, by their linkage names.

use rustc_hash::FxHashMap;

use crate::base::IdVec;
use crate::binary::Binary;
use crate::trace::ImageId;

use super::home::Home;

/// The functions of images by name; those of an image are read when the first is asked for.
pub(super) struct Names<'a> {
    /// The start of the only function of a name; `None` where there are several.
    starts: FxHashMap<ImageId, FxHashMap<String, Option<u64>>>,
    homes: &'a IdVec<ImageId, Home>,
}

impl<'a> Names<'a> {
    pub(super) fn new(homes: &'a IdVec<ImageId, Home>) -> Names<'a> {
        Names {
            starts: FxHashMap::default(),
            homes,
        }
    }

    /// The start of the only function of this name in an image.
    pub(super) fn start(&mut self, image: ImageId, name: &str) -> Option<u64> {
        let home = &self.homes[image];
        let starts = self.starts.entry(image).or_insert_with(|| match home {
            Home::Binary(binary) => starts_by_name(binary),
            _ => FxHashMap::default(),
        });
        starts.get(name).copied().flatten()
    }

    /// Where the function starts, and its name, that a compiler has moved a part of elsewhere: the
    /// part `f.cold` is the function `f`, if there is one of the name.
    pub(super) fn whole<'n>(&mut self, image: ImageId, part: &'n str) -> Option<(u64, &'n str)> {
        let marks = [".cold", ".warm"].into_iter();
        let (name, _) = marks.filter_map(|mark| part.split_once(mark)).next()?;
        let start = self.start(image, name)?;
        Some((start, name))
    }
}

fn starts_by_name(binary: &Binary) -> FxHashMap<String, Option<u64>> {
    let mut starts: FxHashMap<String, Option<u64>> = FxHashMap::default();
    for function in binary.functions() {
        if let Some(name) = binary.function_name(function) {
            starts
                .entry(name.into_owned())
                .and_modify(|start| *start = None)
                .or_insert(Some(function.start.0));
        }
    }
    starts
}
