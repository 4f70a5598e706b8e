//! Call trees: from the outermost functions inwards, or from the innermost outwards.
//!
//! ```text
//!   top down                    bottom up
//!   main        10              lex      6
//!   └─ parse     9              ├─ parse 5     lex was called by parse
//!      ├─ lex    5              │  └─ main 5
//!      └─ eval   4              └─ eval  1
//!         └─ lex 1                 └─ parse 1
//!                                     └─ main 1
//! ```
//!
//! Top down, the roots' weights add up to the total; bottom up, a root's weight is the self
//! weight of its function. In both a sample is at most once in a node.
//!
//! A tree is an arena in the order in which it is shown: a node, then its children, the heaviest
//! first. No node owns another, so nothing recurses, dropping included.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::base::{Id, IdVec, define_id};
use crate::profile::{FunctionId, PathId, PathWeights, Profile, Selection};

use super::inclusive;

define_id! {
    /// A row of [`CallTree::nodes`].
    pub NodeId
}

/// What becomes of recursion in a call tree (HP Puma's degrees).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Collapse {
    /// Nothing: every call is a node of its own.
    #[default]
    None,
}

impl Collapse {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Collapse::None => "none",
        }
    }
}

/// A function as it was reached by one chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The function.
    pub function: FunctionId,
    /// The node above it.
    pub parent: Option<NodeId>,
    /// How deep it is; 1 for a root.
    pub level: u32,
    /// Whether all its code was inlined into the caller's: the caller is the node above it top
    /// down, the one below it bottom up.
    pub inlined: bool,
    /// The weight of the samples that passed it, each once, and arrived by calls alone.
    pub direct: u64,
    /// The weight of the samples that arrived only after a jump out of recursion; 0 where
    /// nothing is collapsed.
    pub indirect: u64,
    /// The weight of the samples that end here: top down, taken in the function itself; bottom
    /// up, in stacks that begin with it.
    pub in_only: u64,
    /// The weight of the samples that go on from here but were not followed.
    pub cut: u64,
    /// Where a stub of collapsed recursion leads: the level of the node that stands for it.
    pub stub: Option<u32>,
    /// One past the last node under this one, as an index.
    end: usize,
}

impl Node {
    /// The weight of the samples that passed it, each once.
    pub fn weight(&self) -> u64 {
        self.direct + self.indirect
    }
}

/// A call tree: see the [module's page](self).
#[derive(Clone, Debug)]
pub struct CallTree {
    /// What became of recursion.
    pub collapse: Collapse,
    /// The nodes in order of appearance: each before its children.
    pub nodes: IdVec<NodeId, Node>,
}

impl CallTree {
    /// The roots, the heaviest first.
    pub fn roots(&self) -> impl Iterator<Item = NodeId> {
        self.siblings(0, self.nodes.len())
    }

    /// The children of a node, the heaviest first.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.siblings(node.index() + 1, self.nodes[node].end)
    }

    fn siblings(&self, first: usize, end: usize) -> impl Iterator<Item = NodeId> {
        let known = move |index: usize| (index < end).then(|| NodeId::new(index));
        std::iter::successors(known(first), move |&node| known(self.nodes[node].end))
    }
}

/// How far a bottom-up tree is followed. Its size can grow with the square of the depth of the
/// stacks, so there has to be an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The deepest level, counted from 1.
    pub depth: u32,
    /// Nodes of a lesser weight are not followed further.
    pub min: u64,
}

impl Default for Reach {
    fn default() -> Self {
        Reach { depth: 64, min: 0 }
    }
}

/// A node under construction; a parent comes before its children.
struct Raw {
    function: FunctionId,
    parent: Option<usize>,
    inlined: bool,
    weight: u64,
    in_only: u64,
    cut: u64,
}

/// Nodes under construction, found by their parent and function.
#[derive(Default)]
struct Growth {
    nodes: Vec<Raw>,
    known: FxHashMap<(Option<usize>, FunctionId), usize>,
}

impl Growth {
    /// The node for `function` under `parent`. It counts as inlined while all that reach it are.
    fn child(&mut self, parent: Option<usize>, function: FunctionId, inlined: bool) -> usize {
        let nodes = &mut self.nodes;
        let node = *self.known.entry((parent, function)).or_insert_with(|| {
            nodes.push(Raw {
                function,
                parent,
                inlined,
                weight: 0,
                in_only: 0,
                cut: 0,
            });
            nodes.len() - 1
        });
        nodes[node].inlined &= inlined;
        node
    }

    /// The arena in order of appearance.
    fn arrange(self, profile: &Profile) -> CallTree {
        let raw = self.nodes;
        let ranks = inclusive::name_ranks(profile);
        // The children of each node side by side, the last to be shown first.
        let mut order: Vec<usize> = (0..raw.len()).collect();
        order.sort_unstable_by_key(|&i| {
            let node = &raw[i];
            (
                node.parent,
                node.weight,
                Reverse(ranks[node.function]),
                Reverse(i),
            )
        });
        let under = |parent: Option<usize>| {
            let start = order.partition_point(|&i| raw[i].parent < parent);
            let len = order[start..].partition_point(|&i| raw[i].parent == parent);
            start..start + len
        };
        let mut nodes: IdVec<NodeId, Node> = IdVec::new();
        let mut placed: Vec<Option<NodeId>> = vec![None; raw.len()];
        let mut waiting: Vec<usize> = order[under(None)].to_vec();
        while let Some(i) = waiting.pop() {
            let node = &raw[i];
            let parent = node.parent.and_then(|parent| placed[parent]);
            placed[i] = Some(nodes.push(Node {
                function: node.function,
                parent,
                level: parent.map_or(1, |parent| nodes[parent].level.saturating_add(1)),
                inlined: node.inlined,
                direct: node.weight,
                indirect: 0,
                in_only: node.in_only,
                cut: node.cut,
                stub: None,
                end: nodes.len() + 1,
            }));
            waiting.extend_from_slice(&order[under(Some(i))]);
        }
        for id in nodes.ids().rev() {
            if let Some(parent) = nodes[id].parent {
                nodes[parent].end = nodes[parent].end.max(nodes[id].end);
            }
        }
        CallTree {
            collapse: Collapse::None,
            nodes,
        }
    }
}

/// The tree of calls from the outermost functions inwards.
pub fn top_down(profile: &Profile, selection: &Selection, collapse: Collapse) -> CallTree {
    let Collapse::None = collapse;
    let weights = PathWeights::of(profile, selection);
    let mut growth = Growth::default();
    let mut node_of: IdVec<PathId, Option<usize>> = IdVec::filled(None, profile.paths.len());
    for (id, path) in profile.paths.enumerate() {
        if weights.samples[id] > 0 || weights.total[id] > 0 {
            let parent = path.caller.and_then(|caller| node_of[caller]);
            let node = growth.child(parent, path.function, path.inlined);
            growth.nodes[node].weight += weights.total[id];
            growth.nodes[node].in_only += weights.self_weight[id];
            node_of[id] = Some(node);
        }
    }
    growth.arrange(profile)
}

/// The tree of callers from the functions in which samples were taken outwards.
///
/// All stacks move outwards together, one frame a round, so that the weights of a level are
/// known before the next one is begun.
pub fn bottom_up(profile: &Profile, selection: &Selection, reach: Reach) -> CallTree {
    let weights = PathWeights::of(profile, selection);
    let mut growth = Growth::default();
    // Stacks on their way: the node reached, the path that stands there, the weight.
    let mut moving: Vec<(usize, PathId, u64)> = Vec::new();
    let mut ended = IdVec::filled(false, profile.paths.len());
    for row in &selection.rows {
        if !std::mem::replace(&mut ended[row.path], true) {
            let path = &profile.paths[row.path];
            let root = growth.child(None, path.function, path.inlined);
            moving.push((root, row.path, weights.self_weight[row.path]));
        }
    }
    let mut level = 1;
    while !moving.is_empty() {
        for &(node, _, weight) in &moving {
            growth.nodes[node].weight += weight;
        }
        let mut next = Vec::new();
        for (node, path, weight) in moving {
            let raw = &mut growth.nodes[node];
            match profile.paths[path].caller {
                None => raw.in_only += weight,
                Some(_) if level >= reach.depth || raw.weight < reach.min => raw.cut += weight,
                Some(caller) => {
                    let path = &profile.paths[caller];
                    let node = growth.child(Some(node), path.function, path.inlined);
                    next.push((node, caller, weight));
                }
            }
        }
        moving = next;
        level += 1;
    }
    growth.arrange(profile)
}
