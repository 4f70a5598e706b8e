//! The tree from the innermost functions outwards.
//!
//! Stacks that end alike part on the way out, so the tree can be far larger than what it is made
//! from, and a stack that is collapsed can go round in it for as long as it likes. Both ways of
//! building it have an end, and what it leaves out is counted in [`Node::cut`](super::Node::cut).

use std::cmp::Reverse;

use super::growth::{Growth, StepId};
use super::{CallTree, Collapse, Reach, Stacks};
use crate::base::IdVec;
use crate::profile::{FunctionId, PathId};

/// How many frames are followed in all where recursion is collapsed.
const FRAMES: usize = 100_000_000;
/// How many frames of a stack are followed at least.
const FRAMES_EACH: usize = 64;
/// How many nodes and stubs a collapsed tree has at most.
const STEPS: usize = 4_000_000;

/// The distinct paths at which stacks end, with the weight of those that end there.
fn ends(stacks: &Stacks) -> Vec<(PathId, u64)> {
    let mut weights: Vec<(PathId, u64)> = stacks
        .selection
        .rows
        .iter()
        .filter(|row| stacks.links.holds(row.path))
        .map(|row| (row.path, row.weight))
        .collect();
    weights.sort_unstable_by_key(|&(path, _)| path);
    weights.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    weights
}

/// The tree in which every call is a node.
///
/// All stacks move outwards together, one frame a round, so that the weights of a level are
/// known before the next one is begun.
pub(super) fn tree(stacks: &Stacks, reach: Reach) -> CallTree {
    let paths = &stacks.profile.paths;
    let mut growth = Growth::default();
    // Stacks on their way: the node reached, the path that stands there, the weight.
    let mut moving: Vec<(StepId, PathId, u64)> = Vec::new();
    for (path, weight) in ends(stacks) {
        let (root, _) = growth.step(None, paths[path].function, paths[path].inlined);
        moving.push((root, path, weight));
    }
    let mut level = 1;
    while !moving.is_empty() {
        for &(node, _, weight) in &moving {
            growth.raw[node].direct += weight;
        }
        let mut next = Vec::new();
        for (node, path, weight) in moving {
            let raw = &mut growth.raw[node];
            match stacks.links.caller(paths, path) {
                None => raw.in_only += weight,
                Some(_) if level >= reach.depth || raw.direct < reach.min => {
                    raw.elsewhere += weight;
                }
                Some(caller) => {
                    let call = &paths[caller];
                    let (node, _) = growth.step(Some(node), call.function, call.inlined);
                    next.push((node, caller, weight));
                }
            }
        }
        moving = next;
        level += 1;
    }
    growth.arrange(stacks.profile, Collapse::None)
}

/// How far a node is from its root, in levels and in distinct functions, and for which stack it
/// was last counted.
#[derive(Clone, Copy)]
struct Place {
    level: u32,
    distinct: u32,
    last: usize,
}

/// The tree in which recursion is collapsed. The stacks are followed one after the other, the
/// heaviest first.
pub(super) fn collapsed(stacks: &Stacks, collapse: Collapse, reach: Reach) -> CallTree {
    let paths = &stacks.profile.paths;
    let mut ends = ends(stacks);
    ends.sort_by_key(|&(_, weight)| Reverse(weight));
    let mut of_root: IdVec<FunctionId, u64> = IdVec::filled(0, stacks.profile.functions.len());
    for &(path, weight) in &ends {
        of_root[paths[path].function] += weight;
    }
    let frames = FRAMES_EACH.max(FRAMES / ends.len().max(1));
    let mut grower = Grower {
        collapse,
        growth: Growth::default(),
        places: IdVec::new(),
    };
    for (stack, &(end, weight)) in ends.iter().enumerate() {
        let root = &paths[end];
        let mut node = grower.step(None, root.function, root.inlined);
        let mut jumped = false;
        grower.count(node, stack, weight, jumped);
        let mut path = end;
        for followed in 1.. {
            let Some(caller) = stacks.links.caller(paths, path) else {
                grower.growth.raw[node].in_only += weight;
                break;
            };
            let full = grower.growth.len() >= STEPS;
            if full || followed >= frames || of_root[root.function] < reach.min {
                grower.growth.raw[node].elsewhere += weight;
                break;
            }
            let call = &paths[caller];
            if grower.places[node].level >= reach.depth {
                grower.growth.raw[node].elsewhere += weight;
                break;
            }
            let step = grower.step(Some(node), call.function, call.inlined);
            jumped |= grower.growth.raw[step].stub.is_some();
            grower.count(step, stack, weight, jumped);
            node = grower.growth.node(step);
            path = caller;
        }
    }
    grower.growth.arrange(stacks.profile, collapse)
}

struct Grower {
    collapse: Collapse,
    growth: Growth,
    places: IdVec<StepId, Place>,
}

impl Grower {
    /// The node or stub for `function` under `from`.
    fn step(&mut self, from: Option<StepId>, function: FunctionId, inlined: bool) -> StepId {
        let (step, new) = self.growth.step(from, function, inlined);
        if new {
            let above = std::iter::successors(from, |&node| self.growth.parent(node))
                .find(|&node| self.growth.function(node) == function);
            let of = |node: Option<StepId>| node.map(|node| self.places[node]);
            let (here, there) = (of(from), of(above));
            self.growth.raw[step].stub = above.filter(|_| match self.collapse {
                Collapse::None => false,
                Collapse::Direct => above == from,
                Collapse::Conservative => {
                    here.map(|place| place.distinct) == there.map(|place| place.distinct)
                }
                Collapse::Full => true,
            });
            self.places.push(Place {
                level: here.map_or(0, |place| place.level).saturating_add(1),
                distinct: here.map_or(0, |place| place.distinct) + u32::from(above.is_none()),
                last: usize::MAX,
            });
        }
        step
    }

    /// Counts the weight of a stack in a node or stub, the first time that it comes there.
    fn count(&mut self, step: StepId, stack: usize, weight: u64, jumped: bool) {
        if std::mem::replace(&mut self.places[step].last, stack) == stack {
            return;
        }
        let row = &mut self.growth.raw[step];
        match row.stub {
            Some(_) => row.elsewhere += weight,
            None if jumped => row.indirect += weight,
            None => row.direct += weight,
        }
    }
}
