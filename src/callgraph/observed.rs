//! The arcs that samples show.
//!
//! A sample counts once for an arc, however often caller and callee follow each other on its
//! stack. Over the tree of call paths that is: a path adds its weight to its arc only if no path
//! above it has the same.

use super::Arc;
use crate::base::{Distinct, IdVec, define_id};
use crate::profile::{FunctionId, Links, PathWeights, Profile, Selection, Step};

define_id! {
    /// A pair in order of first appearance.
    Pair
}

/// The arcs on the stacks of the selected samples, in order of first appearance. Linear in paths.
pub(super) fn arcs(profile: &Profile, selection: &Selection) -> Vec<Arc> {
    let weights = PathWeights::of(profile, selection);
    let mut pairs: Distinct<Pair, (FunctionId, FunctionId)> = Distinct::default();
    let mut pair_of = IdVec::filled(None, profile.paths.len());
    for (id, path) in profile.paths.enumerate() {
        if let Some(caller) = path.caller
            && weights.is_taken(id)
        {
            pair_of[id] = Some(pairs.id_of((profile.paths[caller].function, path.function)));
        }
    }
    let mut arcs: IdVec<Pair, Arc> = pairs
        .rows()
        .iter()
        .map(|&(from, to)| Arc::new(from, to))
        .collect::<Vec<_>>()
        .into();
    let mut depth = IdVec::filled(0u32, arcs.len());
    Links::new(profile, &weights).walk(&profile.paths, |step| match step {
        Step::Enter(path) => {
            if let Some(pair) = pair_of[path] {
                if depth[pair] == 0 {
                    arcs[pair].weight += weights.total[path];
                    arcs[pair].samples += weights.samples[path];
                }
                depth[pair] += 1;
            }
        }
        Step::Leave(path) => {
            if let Some(pair) = pair_of[path] {
                depth[pair] -= 1;
            }
        }
    });
    arcs.iter().copied().collect()
}
