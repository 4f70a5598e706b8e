//! The tree from the innermost functions outwards.
//!
//! Stacks that end alike differ further out, so the tree can be far larger than its input, and a
//! collapsed stack can go round in it without end. Both ways of building it are bounded, and
//! [`Node::cut`](super::Node::cut) counts what they leave out.

use std::cmp::Reverse;

use super::column::Column;
use super::growth::{Growth, arrange};
use super::nodes::Nodes;
use super::{CallTree, Collapse, NodeId, Reach, Stacks};
use crate::base::IdVec;
use crate::profile::{FunctionId, PathId};

// How many frames are followed in all where recursion is collapsed.
const FRAMES: usize = 100_000_000;
// How many frames of a stack are followed at least.
const FRAMES_EACH: usize = 64;
// Nodes and stubs of a collapsed tree at most.
const STEPS: usize = 4_000_000;

// Distinct paths, with the weight of the samples that end there.
fn ends(stacks: &Stacks) -> Vec<(PathId, u64)> {
    let mut weights: Vec<(PathId, u64)> = stacks
        .selection
        .rows()
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

// Every call is a node. All stacks move outwards together, one frame a round, so that the weights
// of a level are known before the next one is begun.
pub(super) fn tree(stacks: &Stacks, reach: Reach) -> CallTree {
    let paths = &stacks.profile.paths;
    let mut grower = Grower::new(Collapse::None);
    // Stacks on their way: the node reached, the path that stands there, the weight.
    let mut moving: Vec<(NodeId, PathId, u64)> = Vec::new();
    for (path, weight) in ends(stacks) {
        let root = grower.step(None, paths[path].function, paths[path].inlined);
        moving.push((root, path, weight));
    }
    let mut level = 1;
    while !moving.is_empty() {
        for &(node, path, weight) in &moving {
            let place = &mut grower.places[node];
            place.direct += weight;
            if paths[path].inferred {
                place.inferred += weight;
            }
        }
        let mut next = Vec::new();
        for (node, path, weight) in moving {
            let place = &mut grower.places[node];
            match stacks.links.caller(paths, path) {
                None => place.in_only += weight,
                Some(_) if level >= reach.depth || place.direct < reach.min => {
                    place.elsewhere += weight;
                }
                Some(caller) => {
                    let call = &paths[caller];
                    let node = grower.step(Some(node), call.function, call.inlined);
                    next.push((node, caller, weight));
                }
            }
        }
        moving = next;
        level += 1;
    }
    grower.finish(stacks)
}

// The stacks are followed one after the other, the heaviest first.
pub(super) fn collapsed(stacks: &Stacks, collapse: Collapse, reach: Reach) -> CallTree {
    let paths = &stacks.profile.paths;
    let mut ends = ends(stacks);
    ends.sort_by_key(|&(_, weight)| Reverse(weight));
    let mut of_root: IdVec<FunctionId, u64> = IdVec::filled(0, stacks.profile.functions.len());
    for &(path, weight) in &ends {
        of_root[paths[path].function] += weight;
    }
    let frames = FRAMES_EACH.max(FRAMES / ends.len().max(1));
    let mut grower = Grower::new(collapse);
    for (stack, &(end, weight)) in ends.iter().enumerate() {
        let root = &paths[end];
        let light = of_root[root.function] < reach.min;
        let mut node = grower.step(None, root.function, root.inlined);
        let mut jumped = false;
        grower.count(node, stack, weight, jumped, root.inferred);
        let mut path = end;
        for followed in 1.. {
            let place = &mut grower.places[node];
            let Some(caller) = stacks.links.caller(paths, path) else {
                place.in_only += weight;
                break;
            };
            let full = followed >= frames || grower.growth.len() >= STEPS;
            if light || full || place.level >= reach.depth {
                place.elsewhere += weight;
                break;
            }
            let call = &paths[caller];
            let step = grower.step(Some(node), call.function, call.inlined);
            jumped |= grower.growth.stub(step).is_some();
            grower.count(step, stack, weight, jumped, call.inferred);
            node = grower.growth.node(step);
            path = caller;
        }
    }
    grower.finish(stacks)
}

#[derive(Clone, Copy, Default)]
struct NodeState {
    level: u32,
    // How many functions stand on the way from the root to here.
    distinct: u32,
    // One more than the number of the stack that was counted here last, and whether that had the
    // function put in here.
    last: usize,
    is_inferred: bool,
    // `elsewhere` is what was not followed, or went through the stub.
    direct: u64,
    indirect: u64,
    in_only: u64,
    elsewhere: u64,
    inferred: u64,
}

struct Grower {
    collapse: Collapse,
    growth: Growth,
    places: IdVec<NodeId, NodeState>,
}

impl Grower {
    fn new(collapse: Collapse) -> Grower {
        Grower {
            collapse,
            growth: Growth::default(),
            places: IdVec::new(),
        }
    }

    fn step(&mut self, from: Option<NodeId>, function: FunctionId, inlined: bool) -> NodeId {
        let (step, new) = self.growth.step(from, function, inlined);
        if new {
            let here = from.map_or(NodeState::default(), |from| self.places[from]);
            // Where nothing is collapsed nobody asks what stands above.
            let up = match self.collapse {
                Collapse::None => None,
                _ => from,
            };
            let above = std::iter::successors(up, |&node| self.growth.parent(node))
                .find(|&node| self.growth.function(node) == function);
            let target = above.filter(|&above| match self.collapse {
                Collapse::None => false,
                Collapse::Direct => Some(above) == from,
                Collapse::Conservative => self.places[above].distinct == here.distinct,
                Collapse::Full => true,
            });
            self.growth.lead(step, target);
            self.places.push(NodeState {
                level: here.level.saturating_add(1),
                distinct: here.distinct + u32::from(above.is_none()),
                ..NodeState::default()
            });
        }
        step
    }

    // Counts the weight of a stack in a node or stub, the first time that it comes there.
    fn count(&mut self, step: NodeId, stack: usize, weight: u64, jumped: bool, inferred: bool) {
        let place = &mut self.places[step];
        if std::mem::replace(&mut place.last, stack + 1) == stack + 1 {
            if !inferred && std::mem::take(&mut place.is_inferred) {
                // It comes here again, and this time as it was recorded.
                place.inferred -= weight;
            }
            return;
        }
        place.is_inferred = inferred && self.growth.stub(step).is_none();
        if place.is_inferred {
            place.inferred += weight;
        }
        match self.growth.stub(step) {
            Some(_) => place.elsewhere += weight,
            None if jumped => place.indirect += weight,
            None => place.direct += weight,
        }
    }

    fn finish(self, stacks: &Stacks) -> CallTree {
        let mut rows = self.growth.finish();
        for (row, place) in rows.iter_mut().zip(&self.places) {
            row.weight = if row.is_stub() {
                place.elsewhere
            } else {
                place.direct
            };
        }
        let cut = rows
            .iter()
            .zip(&self.places)
            .map(|(row, place)| if row.is_stub() { 0 } else { place.elsewhere });
        let nodes = Nodes {
            indirect: Column::of(self.places.iter().map(|place| place.indirect)),
            in_only: Column::of(self.places.iter().map(|place| place.in_only)),
            inferred: Column::of(self.places.iter().map(|place| place.inferred)),
            cut: Column::of(cut),
            across_gap: Column::default(),
            rows,
        };
        arrange(nodes, stacks.profile, self.collapse)
    }
}
