//! What cut stacks hide of the nodes of a call tree.
//!
//! ```text
//!   stacks             80 cut in f, which shows g;   main may call f, b does not
//!   main;b;g   5       main ─▶ b ─▶ g        main       from 20 to 100
//!   main;f;g  15         └───▶ f ─▶ g        main;b     from  5 to   5     nor does anything under it
//!   cut        80                            main;f;g   from 15 to  95     the known part shows both
//! ```
//!
//! A sample that passes a node has all functions on the way to it on its stack. So a node is passed
//! by no more incomplete samples than show, or hide, each of these functions, and by no more samples
//! in all than each of them may have.

use super::{AtMost, Hidden};
use crate::analysis::inclusive;
use crate::analysis::tree::{CallTree, Node, NodeId};
use crate::base::IdVec;
use crate::profile::{FunctionId, Profile, Selection};

/// What the roots of a tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The functions in which stacks begin: the tree is read from callers to callees.
    Outermost,
    /// The functions in which samples were taken, which cut stacks show too: the tree is read from
    /// callees to callers.
    Innermost,
}

/// Returns the upper bound of the weight of each node of a tree; nothing for stubs.
///
/// In a tree that is read from callers to callees, the bounds of a function's outermost nodes add
/// up to at least the bound of its total. What may be hidden in places where the function was never
/// seen counts for its nodes under the mark of cut stacks, if it has such nodes, else for all of
/// its outermost nodes. Linear in nodes and functions.
pub fn by_node(
    profile: &Profile,
    selection: &Selection,
    tree: &CallTree,
    roots: Roots,
) -> IdVec<NodeId, AtMost> {
    let hidden = &super::by_function(profile, selection);
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
        roots,
        more: IdVec::filled(AtMost::default(), tree.nodes.len()),
        is_cut: IdVec::filled(false, tree.nodes.len()),
    };
    for (id, node) in tree.nodes.enumerate() {
        if node.stub.is_none() {
            let parent = node.parent.map(|parent| (parent, tree.nodes.at(parent)));
            bounds.add(id, &node, parent);
        }
    }
    if roots == Roots::Outermost {
        bounds.cover(tree);
    }
    for (id, node) in tree.nodes.enumerate() {
        at_most[id] = bounds.more[id].plus(node.weight());
    }
    at_most
}

/// What the outermost nodes of a function have together.
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
    roots: Roots,
    /// How much more than its weight a node may have.
    more: IdVec<NodeId, AtMost>,
    /// Whether a node is under the mark of cut stacks, or the mark itself.
    is_cut: IdVec<NodeId, bool>,
}

impl Bounds<'_> {
    /// The bound of a node whose parent has one.
    fn add(&mut self, id: NodeId, node: &Node, parent: Option<(NodeId, Node)>) {
        let is_mark = self.profile.functions[node.function].is_cut_mark();
        self.is_cut[id] = is_mark || parent.is_some_and(|(parent, _)| self.is_cut[parent]);
        if self.is_cut[id] {
            return;
        }
        let own = self.hidden.at_most[node.function].plus(self.hidden.shown[node.function]);
        // A node has no more than the one above it, and none has more than all.
        let above = match (parent, self.roots) {
            (Some((id, parent)), _) => self.more[id].plus(parent.weight()),
            (None, Roots::Outermost) => AtMost {
                weight: self.total,
                unknown: own.unknown,
            },
            (None, Roots::Innermost) => AtMost {
                weight: node.weight(),
                unknown: None,
            },
        };
        let all = self.hidden.at_most[node.function].plus(self.totals[node.function]);
        let room = above.weight.min(all.weight);
        let more = own.weight.min(room.saturating_sub(node.weight()));
        self.more[id] = AtMost {
            weight: more,
            // One bound that is known is enough, and nothing more is known.
            unknown: own.unknown.and(above.unknown).filter(|_| more > 0),
        };
    }

    /// Lets the outermost nodes of each function have together what it may have.
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
                more.unknown = more.unknown.or(all.unknown);
            }
        }
    }
}

/// The nodes without one of the same function above them.
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
