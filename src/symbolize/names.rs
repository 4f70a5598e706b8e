//! Where functions start, by their linkage names.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;
use rustc_hash::FxHashMap;

use crate::base::{IdVec, Svma};
use crate::binary::Binary;
use crate::trace::ImageId;

use super::name_source::NameSource;

/// The functions of images by name; those of an image are read when the first is asked for. There
/// is one table for all who ask, as half a million names take a while.
pub(super) struct Names<'a> {
    starts: IdVec<ImageId, OnceCell<Box<Starts>>>,
    name_sources: &'a IdVec<ImageId, NameSource>,
    /// Seeded for each run, so that no file can foresee which names collide.
    hasher: DefaultHashBuilder,
}

/// By the hash of a name the start of the first function of it, and whether there are more. There
/// may be half a million names: no copies of them are kept.
#[derive(Clone, Default)]
struct Starts {
    first: FxHashMap<u64, u64>,
    /// The others, by name and in order of address.
    more: FxHashMap<u64, Vec<u64>>,
}

// The number of functions of one name that are distinguished.
const SAME_NAME_LIMIT: usize = 256;

impl<'a> Names<'a> {
    pub(super) fn new(name_sources: &'a IdVec<ImageId, NameSource>) -> Names<'a> {
        Names {
            starts: IdVec::filled(OnceCell::new(), name_sources.len()),
            name_sources,
            hasher: DefaultHashBuilder::default(),
        }
    }

    pub(super) fn start(&self, image: ImageId, name: &str) -> Option<u64> {
        let mut starts = self.starts(image, name);
        let only = starts.next()?;
        starts.next().is_none().then_some(only)
    }

    pub(super) fn at(&self, image: ImageId, start: u64) -> Option<Cow<'a, str>> {
        let NameSource::Binary(binary, _) = &self.name_sources[image] else {
            return None;
        };
        let function = binary.function_at(Svma(start))?;
        let starts_there = function.start.0 == start;
        starts_there.then(|| binary.function_name(function))?
    }

    /// The starts of all functions of this name in an image.
    pub(super) fn starts(
        &self,
        image: ImageId,
        name: &str,
    ) -> impl Iterator<Item = u64> + use<'_, 'a> {
        // The marks that linkers add to names of local functions which they move between units are
        // no part of the name.
        let name = without_link_mark(name).to_owned();
        let binary = match &self.name_sources[image] {
            NameSource::Binary(binary, _) => Some(binary),
            _ => None,
        };
        let hash = self.hasher.hash_one(&*name);
        let found = binary.map(|binary| {
            self.starts[image].get_or_init(|| Box::new(starts_by_name(binary, &self.hasher)))
        });
        let first = found.and_then(|found| found.first.get(&hash));
        let more = found.and_then(|found| found.more.get(&hash));
        let all = first.into_iter().chain(more.into_iter().flatten()).copied();
        all.filter(move |&start| {
            let function = binary.and_then(|b| Some((b, b.function_at(Svma(start))?)));
            let found = function.and_then(|(binary, function)| binary.function_name(function));
            found.is_some_and(|found| without_link_mark(&found) == name)
        })
    }

    /// Where the function starts, and its name, that a compiler has moved a part of elsewhere: the
    /// part `f.cold` is the function `f`, if there is one of the name.
    pub(super) fn whole<'n>(&self, image: ImageId, part: &'n str) -> Option<(u64, &'n str)> {
        let name = base_of_part(part)?;
        let start = self.start(image, name)?;
        Some((start, name))
    }
}

/// The name of the function that a compiler has moved a part out of, by the name of the part.
pub(super) fn base_of_part(part: &str) -> Option<&str> {
    // Hundreds of thousands of names are asked about; few have a dot.
    let mut dots = part.match_indices('.').map(|(at, _)| part.split_at(at));
    // LLVM names the parts that have sections of their own `.__part.1` and `.eh`.
    let moved = [".cold", ".warm", ".__part."];
    let is_moved = |mark: &str| moved.iter().any(|it| mark.starts_with(it)) || mark == ".eh";
    let base = dots.find(|(_, mark)| is_moved(mark));
    base.map(|(base, _)| base)
}

/// A name without the marks of link-time optimization: `.llvm.123` of ThinLTO, `.lto_priv.0` of
/// GCC.
pub(super) fn without_link_mark(name: &str) -> &str {
    // Half a million names are asked about; most of them do not end in a digit.
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() {
        return name;
    }
    let marks = [".llvm.", ".lto_priv."].into_iter();
    let before = marks.filter_map(|mark| stem.strip_suffix(mark)).next();
    before.filter(|before| !before.is_empty()).unwrap_or(name)
}

fn starts_by_name(binary: &Binary, hasher: &DefaultHashBuilder) -> Starts {
    let functions = binary.functions();
    let mut starts = Starts::default();
    starts.first.reserve(functions.len());
    for function in functions {
        let Some(name) = binary.function_name(function) else {
            continue;
        };
        let hash = hasher.hash_one(without_link_mark(&name));
        match starts.first.entry(hash) {
            Entry::Vacant(entry) => {
                entry.insert(function.start.0);
            }
            Entry::Occupied(_) => {
                let more = starts.more.entry(hash).or_default();
                if more.len() < SAME_NAME_LIMIT {
                    more.push(function.start.0);
                }
            }
        }
    }
    starts
}
