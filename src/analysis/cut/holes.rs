//! Where stacks are incomplete.

use rustc_hash::FxHashMap;

use super::{Cut, is_row};
use crate::profile::{FunctionId, FunctionSetId, PathId, PathWeights, Profile};

// A place of a stack at which callers are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Hole {
    // `None` where the stack is cut.
    pub(super) outer: Option<FunctionId>,
    pub(super) inner: FunctionId,
    // The functions of which some are missing, if it is known that no others are.
    pub(super) candidates: Option<FunctionSetId>,
}

#[derive(Debug, Default)]
pub(super) struct Holes {
    // Each hole once, with the samples that have it.
    holes: Vec<(Hole, Cut)>,
    // The place in `holes` of the hole right outside of a path.
    at: FxHashMap<PathId, usize>,
}

impl Holes {
    pub(super) fn of(profile: &Profile, weights: &PathWeights) -> Holes {
        let mut known: FxHashMap<Hole, usize> = FxHashMap::default();
        let mut holes = Holes::default();
        for (id, path) in profile.paths.enumerate() {
            let Some(caller) = path.caller else { continue };
            if !weights.is_taken(id) || is_row(profile, path.function) {
                continue;
            }
            let outer = &profile.paths[caller];
            let is_mark = profile.functions[outer.function].is_cut_mark();
            // Outside of the mark there may be the row of the sample's thread.
            let is_outermost =
                (outer.caller).is_none_or(|id| is_row(profile, profile.paths[id].function));
            let is_cut = is_mark && is_outermost;
            let is_incomplete = path.across_gap || path.may_lack_inlined;
            let is_gap = is_incomplete && !is_mark && !is_row(profile, outer.function);
            if !is_cut && !is_gap {
                continue;
            }
            let hole = Hole {
                outer: (!is_cut).then_some(outer.function),
                inner: path.function,
                candidates: path.candidates.filter(|_| !is_cut),
            };
            let place = *known.entry(hole).or_insert_with(|| {
                holes.holes.push((hole, Cut::default()));
                holes.holes.len() - 1
            });
            // A recursive function may have the same hole twice on one stack, which only makes its
            // weight a larger bound; a stack is cut once.
            let cut = &mut holes.holes[place].1;
            cut.weight = cut.weight.saturating_add(weights.total(id));
            cut.samples = cut.samples.saturating_add(weights.samples(id));
            holes.at.insert(id, place);
        }
        holes.holes.shrink_to_fit();
        holes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (Hole, Cut)> {
        self.holes.iter().copied()
    }

    pub(super) fn at(&self, path: PathId) -> Option<usize> {
        self.at.get(&path).copied()
    }
}
