//! The heaviest paths through a tree: what someone would find who opens the heaviest line again and
//! again.
//!
//! ```text
//!   main      100                   main     100
//!   ├─ parse   70                   ├─ parse  70
//!   │  ├─ lex  40                   │  └─ lex 40    rest of parse: 1 callee, 25
//!   │  └─ fold 25                   └─ emit   30
//!   └─ emit    30
//! ```

use super::nodes::Nodes;
use super::{CallTree, Node, NodeId, Summary};
use crate::analysis::cut::AtMost;
use crate::base::IdVec;
use crate::profile::FunctionId;

// A lighter step, as a part of all samples, is not followed.
const LEAST: f64 = 0.01;
// A second path whose first node has less than this part of all samples is not shown.
const SECOND: f64 = 0.1;
// The part of the root's weight that a function must have for the path to start there.
const NEARLY_ALL: f64 = 0.99;
const LONGEST: usize = 1000;

/// The callees of a node that are on none of the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Their number.
    pub callees: usize,
    /// The sum of their weights.
    pub weight: u64,
    /// Whether a sample may count in several, as recursion is collapsed: an upper bound.
    pub is_limit: bool,
}

impl Rest {
    /// Adds a callee.
    pub fn add(&mut self, callee: &Node) {
        self.callees += 1;
        self.weight = self.weight.saturating_add(callee.weight());
        self.is_limit |= callee.indirect > 0;
    }
}

/// The heaviest path of a tree and the heaviest one that leaves it, as a tree of their nodes alone.
#[derive(Clone, Debug)]
pub struct HotPaths {
    /// The nodes of the paths with the weights, bounds and levels of the whole tree. First
    /// those of the heaviest path, outermost first, then those of the second below the node that it
    /// leaves the first at, if there is one.
    pub tree: Summary,
    /// For each node the callees that are not on a path.
    pub rest: IdVec<NodeId, Rest>,
    /// For each node the one of the whole tree.
    pub origins: IdVec<NodeId, NodeId>,
    /// The number of nodes of the first path.
    pub first: usize,
}

/// What a function is for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user's own: a path may start there.
    Own,
    /// A mark of an incomplete stack: a path starts no further in.
    Mark,
    /// One that paths end before, unless they start there.
    End,
    /// Any other.
    Other,
}

/// Follows the heaviest callee from the heaviest root on while it has 1 % of `total`, and from the
/// heaviest other callee on the way if it has 10 %. The path starts at the first of the user's own
/// functions if nearly all samples of the root are in it. Linear in nodes.
pub fn hot_paths(whole: &Summary, total: u64, role: impl Fn(FunctionId) -> Role) -> HotPaths {
    let tree = &whole.calls;
    let is_end = |function| role(function) == Role::End;
    let nodes = &tree.nodes;
    let least = (total as f64 * LEAST).max(1.0) as u64;
    let children = |node: Option<NodeId>| -> Vec<NodeId> {
        let called = |&id: &NodeId| nodes.at(id).stub.is_none();
        match node {
            Some(node) => tree.children(node).filter(called).collect(),
            None => tree.roots().filter(called).collect(),
        }
    };
    // Children are in order of weight.
    let down = |start: Option<NodeId>| -> Vec<NodeId> {
        let next = |&node: &NodeId| {
            let mut called = tree.children(node);
            let heaviest = called.find(|&id| nodes.at(id).stub.is_none());
            let ends = |id| is_end(nodes.at(id).function);
            let heaviest = heaviest.filter(|&id| ends(node) || !ends(id));
            heaviest.filter(|&id| nodes.at(id).weight() >= least)
        };
        std::iter::successors(start, next).take(LONGEST).collect()
    };
    let roots = children(None);
    let mut first = down(roots.first().copied());
    let enough = |id: NodeId| {
        let root = roots.first().map_or(0, |&root| nodes.at(root).weight());
        nodes.at(id).weight() as f64 >= root as f64 * NEARLY_ALL
    };
    let own = first
        .iter()
        .position(|&id| matches!(role(nodes.at(id).function), Role::Own | Role::Mark))
        .filter(|&place| enough(first[place]));
    let is_trimmed = own.is_some_and(|place| place > 0);
    first.drain(..own.unwrap_or(0));
    // Where the second one leaves: after a node of the first, or at the roots.
    let mut leaves: Option<(u64, Option<usize>, NodeId)> = None;
    let roots_too = (!is_trimmed).then_some(None);
    for place in roots_too.into_iter().chain((0..first.len()).map(Some)) {
        let second = match place {
            None => roots.get(1).copied(),
            Some(place) => {
                let called = children(Some(first[place]));
                let next = first.get(place + 1);
                let ends = |id: NodeId| is_end(nodes.at(id).function);
                let mut called = called.into_iter().filter(|id| Some(id) != next);
                called.find(|&id| ends(first[place]) || !ends(id))
            }
        };
        let Some(second) = second else { continue };
        let weight = nodes.at(second).weight();
        if weight as f64 >= total as f64 * SECOND && leaves.is_none_or(|(most, ..)| weight > most) {
            leaves = Some((weight, place, second));
        }
    }
    let second = down(leaves.map(|(_, _, second)| second));
    let at = leaves.and_then(|(_, place, _)| place);
    of_nodes(whole, &first, &second, at)
}

// The nodes of two paths; `at` is the place on the first path where the second one leaves it.
fn of_nodes(whole: &Summary, first: &[NodeId], second: &[NodeId], at: Option<usize>) -> HotPaths {
    let (tree, nodes) = (&whole.calls, &whole.calls.nodes);
    let mut on_paths = Nodes::default();
    let (mut rests, mut origins) = (IdVec::new(), IdVec::new());
    let all = first.len() + second.len();
    for (index, &id) in first.iter().chain(second).enumerate() {
        let parent = match index {
            0 => None,
            _ if index == first.len() => at,
            _ => Some(index - 1),
        };
        let end = match index {
            _ if index >= first.len() || at.is_some_and(|at| index <= at) => all,
            _ => first.len(),
        };
        let node = nodes.at(id);
        let mut row = nodes.rows[id];
        row.parent = parent.map(NodeId::new);
        row.link = Some(NodeId::new(end));
        on_paths.push(row, node.rare_weights());
        origins.push(id);
        let mut rest = Rest::default();
        let next = match index + 1 {
            next if next == first.len() => None,
            next => first.iter().chain(second).nth(next),
        };
        for callee in tree.children(id) {
            let called = nodes.at(callee);
            let leads_on = Some(&callee) == next;
            let leaves_here = at == Some(index) && Some(&callee) == second.first();
            if called.stub.is_none() && !leads_on && !leaves_here {
                rest.add(&called);
            }
        }
        rests.push(rest);
    }
    let of_paths = |at_most: &IdVec<NodeId, AtMost>| -> IdVec<NodeId, AtMost> {
        let of_paths: Vec<AtMost> = origins.iter().map(|&id| at_most[id]).collect();
        of_paths.into()
    };
    HotPaths {
        tree: Summary {
            calls: CallTree {
                collapse: tree.collapse,
                nodes: on_paths,
            },
            at_most: whole.at_most.as_ref().map(of_paths),
            ..*whole
        },
        rest: rests,
        origins,
        first: first.len(),
    }
}
