//! The arcs that samples show.
//!
//! A sample counts once for an arc, however often caller and callee follow each other on its
//! stack. Over the tree of call paths that is: a path adds its weight to its arc only if no path
//! above it has the same.

use super::ordered::ordered_by;
use super::{ArcId, CallArc};
use crate::base::IdVec;
use crate::profile::{FunctionId, Links, PathId, PathWeights, Profile, Selection, Step};

/// The arcs on the stacks of the selected samples, in order of caller and callee. Linear in paths
/// and functions.
pub(super) fn arcs(profile: &Profile, selection: &Selection) -> Vec<CallArc> {
    let weights = PathWeights::of(profile, selection);
    let function = |path: PathId| profile.paths[path].function;
    let caller = |path: PathId| profile.paths[path].caller.map(function);
    let taken = profile
        .paths
        .ids()
        .filter(|&id| weights.is_taken(id) && caller(id).is_some());
    let functions = profile.functions.len();
    // The sort is stable: by callee first, then by caller, gives the order by both.
    let by_callee = ordered_by(taken.collect(), functions, |id| function(id).index());
    let calls = ordered_by(by_callee, functions, |id| {
        caller(id).map_or(0, FunctionId::index)
    });

    // By place among these arcs, to which others are still to come.
    let is_same = |&a: &PathId, &b: &PathId| (caller(a), function(a)) == (caller(b), function(b));
    let mut arcs: Vec<CallArc> = Vec::with_capacity(calls.chunk_by(is_same).count());
    let mut arc_of: IdVec<PathId, Option<ArcId>> = IdVec::filled(None, profile.paths.len());
    for path in calls {
        if let Some(from) = caller(path) {
            let pair = (from, function(path));
            if arcs.last().is_none_or(|last| last.pair() != pair) {
                arcs.push(CallArc::new(pair.0, pair.1));
            }
            arc_of[path] = Some(ArcId::new(arcs.len() - 1));
        }
    }
    let mut depth: IdVec<ArcId, u32> = IdVec::filled(0, arcs.len());
    let links = Links::new(profile, &weights);
    links.walk(&profile.paths, |step| match step {
        Step::Enter(path) => {
            if let Some(id) = arc_of[path] {
                if depth[id] == 0 {
                    let arc = &mut arcs[id.index()];
                    arc.weight += weights.total(path);
                    arc.samples += weights.samples(path);
                }
                depth[id] += 1;
            }
        }
        Step::Leave(path) => {
            if let Some(id) = arc_of[path] {
                depth[id] -= 1;
            }
        }
    });
    let mut shown_by = |is_such: &dyn Fn(PathId) -> bool, arcs: &[CallArc]| {
        let mut shown: Vec<u64> = vec![0; arcs.len()];
        links.walk(&profile.paths, |step| {
            let (Step::Enter(path) | Step::Leave(path)) = step;
            let Some(id) = arc_of[path].filter(|_| is_such(path)) else {
                return;
            };
            match step {
                Step::Enter(_) => {
                    if depth[id] == 0 {
                        shown[id.index()] += weights.total(path);
                    }
                    depth[id] += 1;
                }
                Step::Leave(_) => depth[id] -= 1,
            }
        });
        shown
    };
    if profile.paths.has_inferred() {
        let is_recorded = |id: PathId| {
            let path = &profile.paths[id];
            !path.inferred && path.caller.is_none_or(|id| !profile.paths[id].inferred)
        };
        let recorded = shown_by(&is_recorded, &arcs);
        for (arc, recorded) in arcs.iter_mut().zip(recorded) {
            arc.inferred = arc.weight - recorded;
        }
    }
    if profile.paths.has_gaps() {
        let called = shown_by(&|id| !profile.paths[id].across_gap, &arcs);
        for (arc, called) in arcs.iter_mut().zip(called) {
            arc.across_gaps = arc.weight - called;
        }
    }
    arcs
}
