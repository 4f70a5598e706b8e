//! The arcs that samples show.
//!
//! A sample counts once for an arc, however often caller and callee follow each other on its
//! stack. Over the tree of call paths that is: a path adds its weight to its arc only if no path
//! above it has the same.

use super::Arc;
use super::ordered::ordered_by;
use crate::base::{Id, IdVec, define_id};
use crate::profile::{FunctionId, PathId, PathWeights, Profile, Selection, Step};

define_id! {
    /// A pair of caller and callee.
    Pair
}

/// The arcs on the stacks of the selected samples, in order of caller and callee. Linear in paths
/// and functions.
pub(super) fn arcs(profile: &Profile, selection: &Selection) -> Vec<Arc> {
    let weights = PathWeights::of(profile, selection);
    let function = |path: PathId| profile.paths[path].function;
    let caller = |path: PathId| profile.paths[path].caller.map(function);
    let calls = profile.paths.ids();
    let calls = calls.filter(|&id| weights.is_taken(id) && caller(id).is_some());
    let functions = profile.functions.len();
    let calls = ordered_by(calls.collect(), functions, |id| function(id).index());
    let calls = ordered_by(calls, functions, |id| {
        caller(id).map_or(0, FunctionId::index)
    });

    let mut arcs: IdVec<Pair, Arc> = IdVec::new();
    let mut pair_of = IdVec::filled(None, profile.paths.len());
    let mut last = None;
    for path in calls {
        if let Some(from) = caller(path) {
            let to = function(path);
            let pair = match last {
                Some((pair, ends)) if ends == (from, to) => pair,
                _ => arcs.push(Arc::new(from, to)),
            };
            last = Some((pair, (from, to)));
            pair_of[path] = Some(pair);
        }
    }
    let mut depth = IdVec::filled(0u32, arcs.len());
    let taken = |path| weights.is_taken(path);
    profile.paths.walk(taken, |step| match step {
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
