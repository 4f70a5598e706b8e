//! The arcs that samples show.
//!
//! A sample counts once for an arc, however often caller and callee follow each other on its
//! stack. Over the tree of call paths that is: a path adds its weight to its arc only if no path
//! above it has the same.

use super::ordered::ordered_by;
use super::{ArcId, CallArc};
use crate::base::IdVec;
use crate::profile::{Links, PathId, PathWeights, Profile, Selection, Step};

/// The arcs on the stacks of the selected samples, in order of caller and callee.
pub(super) fn arcs(profile: &Profile, selection: &Selection) -> Vec<CallArc> {
    // Linear in paths and functions.
    let weights = PathWeights::of(profile, selection);
    let functions = profile.functions.len();
    // Caller and callee are in the rows that are sorted: to look them up by path in the order of
    // callees would be to wait for memory for each.
    let calls = profile.paths.enumerate().filter_map(|(id, path)| {
        let from = profile.paths[path.caller?].function;
        weights.is_taken(id).then_some((from, path.function, id))
    });
    // The sort is stable: by callee first, then by caller, gives the order by both.
    let calls = ordered_by(calls.collect(), functions, |(_, to, _)| to.index());
    let calls = ordered_by(calls, functions, |(from, ..)| from.index());
    let by_arc = || calls.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    // By place among these arcs, to which others are still to come.
    let mut arcs: Vec<CallArc> = Vec::with_capacity(by_arc().count());
    let mut arc_of: IdVec<PathId, Option<ArcId>> = IdVec::filled(None, profile.paths.len());
    for paths in by_arc() {
        let id = ArcId::new(arcs.len());
        arcs.push(CallArc::new(paths[0].0, paths[0].1));
        for &(.., path) in paths {
            arc_of[path] = Some(id);
        }
    }
    drop(calls);
    let links = Links::new(profile, &weights);
    let mut seen: IdVec<ArcId, Seen> = IdVec::filled(Seen::default(), arcs.len());
    links.walk(&profile.paths, |step| match step {
        Step::Enter(path) => {
            if let Some(id) = arc_of[path] {
                let seen = &mut seen[id];
                if seen.depth == 0 {
                    seen.weight += weights.total(path);
                    seen.samples += weights.samples(path);
                }
                seen.depth += 1;
            }
        }
        Step::Leave(path) => {
            if let Some(id) = arc_of[path] {
                seen[id].depth -= 1;
            }
        }
    });
    for (arc, seen) in arcs.iter_mut().zip(&seen) {
        (arc.weight, arc.samples) = (seen.weight, seen.samples);
    }
    drop(seen);
    let mut depth: IdVec<ArcId, u32> = IdVec::new();
    let mut shown_by = |is_such: &dyn Fn(PathId) -> bool, arcs: &[CallArc]| {
        let mut shown: Vec<u64> = vec![0; arcs.len()];
        depth = IdVec::filled(0, arcs.len());
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
        let adjacent = shown_by(&|id| !profile.paths[id].across_gap, &arcs);
        for (arc, adjacent) in arcs.iter_mut().zip(adjacent) {
            arc.across_gaps = arc.weight - adjacent;
        }
    }
    if profile.paths.has_pointers() {
        let is_call = |id: PathId| {
            let path = &profile.paths[id];
            !path.across_gap && !path.through_pointer
        };
        let called = shown_by(&is_call, &arcs);
        for (arc, called) in arcs.iter_mut().zip(called) {
            arc.through_pointer = arc.weight - arc.across_gaps - called;
        }
    }
    arcs
}

/// What the stacks that are walked along show of an arc: apart from the arc, which is several times
/// as large.
#[derive(Clone, Copy, Default)]
struct Seen {
    weight: u64,
    samples: u64,
    /// How often the arc is on the stack.
    depth: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Event, WeightSum};
    use crate::profile::{Builder, CallPath, Filter, Function, Module, Thread};

    #[test]
    fn calls_gaps_and_pointers_add_up_to_the_weight_of_an_arc() {
        let mut builder = Builder::default();
        let module = builder.module(Module {
            name: "app".into(),
            path: "/app".into(),
        });
        let [main, work] =
            ["main", "work"].map(|name| builder.function(Function::named(name, module)));
        let event = builder.event(Event::named("cpu-clock"));
        let thread = builder.thread(Thread::new(1, 1, "app"));
        let outside = builder.path(None, main, false);
        let called = builder.path(Some(outside), work, false);
        let across_gap = builder.path_across_gap(outside, work);
        let through_pointer = builder.path_of(CallPath {
            through_pointer: true,
            ..CallPath::of(Some(outside), work)
        });
        for (path, weight) in [(called, 1), (across_gap, 20), (through_pointer, 300)] {
            builder.sample(event, thread, path, None, WeightSum::of(weight));
        }
        let profile = builder.finish();
        let arcs = arcs(&profile, &profile.select(event, &Filter::default()));
        let parts = (arcs[0].weight, arcs[0].across_gaps, arcs[0].through_pointer);
        assert_eq!((arcs.len(), parts), (1, (321, 20, 300)));
    }
}
