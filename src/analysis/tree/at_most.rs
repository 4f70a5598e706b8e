//! What cut stacks hide of the nodes of a call tree.
//!
//! ```text
//!   stacks             80 cut in f, which shows g;   main may call f, b does not
//!   main;b;g   5       main ─▶ b ─▶ g        main       from 20 to 100
//!   main;f;g  15         └───▶ f ─▶ g        main;b     from  5 to   5   nor does what is under it
//!   cut        80                            main;f;g   from 15 to  95   the known part shows both
//! ```
//!
//! A sample that passes a node has all functions on the way to it on its stack. So a node is passed
//! by no more incomplete samples than show, or hide, each of these functions, and by no more
//! samples in all than each of them may have. How much known calls allow is limited in the same
//! way; where that is less, it is unknown whether the node can have as much as its bound.

use super::{CallTree, Direction, Node, NodeId};
use crate::analysis::cut::{self, AtMost, Hidden, Unknown};
use crate::analysis::inclusive;
use crate::base::IdVec;
use crate::profile::{FunctionId, Profile, Selection};

/// Returns the upper bound of the weight of each node of a tree; nothing for stubs.
///
/// In a tree that is read from callers to callees, the bounds of a function's outermost nodes add
/// up to at least the bound of its total. What may be hidden in places where the function was never
/// seen counts for its nodes under the mark of cut stacks, if it has such nodes, else for all of
/// its outermost nodes. Linear in nodes and functions.
pub fn at_most(
    profile: &Profile,
    selection: &Selection,
    tree: &CallTree,
    direction: Direction,
) -> IdVec<NodeId, AtMost> {
    let hidden = &cut::by_function(profile, selection);
    let mut at_most = IdVec::filled(AtMost::default(), tree.nodes.len());
    if !hidden.is_any() {
        for (id, node) in tree.nodes.enumerate() {
            at_most[id].weight = node.weight();
        }
        return at_most;
    }
    let mut bounds = Bounds {
        profile,
        hidden,
        totals: &inclusive::by_function(profile, selection).total,
        total: selection.total(),
        direction,
        more: IdVec::filled(More::default(), tree.nodes.len()),
        is_cut: IdVec::filled(false, tree.nodes.len()),
    };
    for (id, node) in tree.nodes.enumerate() {
        if node.stub.is_none() {
            let parent = node.parent.map(|parent| (parent, tree.nodes.at(parent)));
            bounds.add(id, &node, parent);
        }
    }
    if direction == Direction::TopDown {
        bounds.cover(tree);
    }
    for (id, node) in tree.nodes.enumerate() {
        let more = bounds.more[id];
        at_most[id] = AtMost {
            weight: node.weight().saturating_add(more.weight),
            unknown: more.unknown.filter(|_| more.can_be < more.weight),
        };
    }
    at_most
}

// How much more than its weight a node may have.
#[derive(Clone, Copy, Debug, Default)]
struct More {
    weight: u64,
    // The part that known calls allow.
    can_be: u64,
    // Why it is unknown whether calls allow more than that, in the node's function or the closest
    // one above it where that is unknown.
    unknown: Option<Unknown>,
}

// What the outermost nodes of a function have together.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    more: u64,
    has_cut: bool,
}

struct Bounds<'a> {
    profile: &'a Profile,
    hidden: &'a Hidden,
    totals: &'a IdVec<FunctionId, u64>,
    total: u64,
    direction: Direction,
    more: IdVec<NodeId, More>,
    // Whether a node is under the mark of cut stacks, or the mark itself.
    is_cut: IdVec<NodeId, bool>,
}

impl Bounds<'_> {
    fn add(&mut self, id: NodeId, node: &Node, parent: Option<(NodeId, Node)>) {
        let is_mark = self.profile.functions[node.function].is_cut_mark();
        self.is_cut[id] = is_mark || parent.is_some_and(|(parent, _)| self.is_cut[parent]);
        if self.is_cut[id] {
            return;
        }
        let (function, weight) = (node.function, node.weight());
        let (hidden, shown) = (self.hidden.at_most[function], self.hidden.shown[function]);
        let (can_be, total) = (self.hidden.can_be[function], self.totals[function]);
        // A node has no more than the one above it, and none has more than all.
        let (above, above_can_be, unknown_above) = match (parent, self.direction) {
            (Some((id, parent)), _) => {
                let More {
                    weight: more,
                    can_be,
                    unknown,
                } = self.more[id];
                let above = parent.weight();
                (
                    above.saturating_add(more),
                    above.saturating_add(can_be),
                    unknown,
                )
            }
            (None, Direction::TopDown) => (self.total, self.total, None),
            // Cut stacks show in which functions their samples were taken.
            (None, Direction::BottomUp) => (weight, weight, None),
        };
        let more = |hidden: u64, above: u64| {
            let room = above
                .min(total.saturating_add(hidden))
                .saturating_sub(weight);
            room.min(shown.saturating_add(hidden))
        };
        self.more[id] = More {
            weight: more(hidden.weight, above),
            can_be: more(can_be, above_can_be),
            unknown: hidden.unknown.or(unknown_above),
        };
    }

    // Lets the outermost nodes of each function have together what it may have.
    fn cover(&mut self, tree: &CallTree) {
        let outermost = outermost(self.profile, tree);
        let mut sums = IdVec::filled(Sum::default(), self.profile.functions.len());
        for &id in &outermost {
            let sum = &mut sums[tree.nodes.at(id).function];
            sum.more = sum.more.saturating_add(self.more[id].weight);
            sum.has_cut |= self.is_cut[id];
        }
        for &id in &outermost {
            let function = tree.nodes.at(id).function;
            let (sum, all) = (sums[function], self.hidden.at_most[function]);
            if sum.more < all.weight && sum.has_cut == self.is_cut[id] {
                let more = &mut self.more[id];
                more.weight = more.weight.max(all.weight);
                more.can_be = more.can_be.max(self.hidden.can_be[function]);
                more.unknown = all.unknown.or(more.unknown);
            }
        }
    }
}

// Without one of the same function above them.
fn outermost(profile: &Profile, tree: &CallTree) -> Vec<NodeId> {
    let mut depth = IdVec::filled(0u32, profile.functions.len());
    let mut open: Vec<(NodeId, FunctionId)> = Vec::new();
    let mut outermost = Vec::new();
    for (id, node) in tree.nodes.enumerate() {
        while let Some((_, function)) = open.pop_if(|(last, _)| node.parent != Some(*last)) {
            depth[function] -= 1;
        }
        if node.stub.is_some() {
            continue;
        }
        if depth[node.function] == 0 {
            outermost.push(id);
        }
        depth[node.function] += 1;
        open.push((id, node.function));
    }
    outermost
}
