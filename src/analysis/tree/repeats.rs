//! How much of a tree's first page would be recursion, and so whether it is better collapsed.
//!
//! Collapsing has a price: what arrives through a collapsed call stands under another caller than
//! its own. It pays where the heaviest lines of the plain tree repeat one function again and again,
//! as they do for an interpreter, and it does not pay where a recursive function is on the stacks
//! only two or three times, as the pass manager of a compiler is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::{Collapse, Stacks};
use crate::analysis::inclusive;
use crate::base::IdVec;
use crate::profile::{FunctionId, PathId};

// The heaviest nodes that are looked at: what a page shows.
const PAGE: usize = 80;
// The most of them that may repeat a function.
const FEW: usize = PAGE / 4;

/// The heaviest nodes of the tree in which every call is a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// The number of nodes that were looked at, at most 80.
    pub nodes: usize,
    /// Those of them that stand somewhere below a node of the same function.
    pub repeating: usize,
}

impl Repeats {
    /// The degree that suits them: [`Collapse::None`] if no more than 20 repeat a function, else
    /// [`Collapse::Conservative`], which loses no function from a chain of calls.
    pub fn degree(self) -> Collapse {
        if self.repeating > FEW {
            Collapse::Conservative
        } else {
            Collapse::None
        }
    }
}

// Heavier ones come first, of equals those that were reached first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Reached {
    weight: u64,
    sequence: Reverse<usize>,
    function: FunctionId,
    // The node above among those that were looked at.
    parent: Option<usize>,
    paths: Vec<PathId>,
}

// The nodes that were looked at, and those that come next.
struct Front<'a> {
    stacks: &'a Stacks<'a>,
    ranks: IdVec<FunctionId, u32>,
    reached: BinaryHeap<Reached>,
    sequence: usize,
}

// A node is at least as heavy as those under it, so they are found from the roots on, and no more
// than their children are made.
pub(super) fn repeats(stacks: &Stacks) -> Repeats {
    let mut front = Front {
        stacks,
        ranks: inclusive::name_ranks(stacks.profile),
        reached: BinaryHeap::new(),
        sequence: 0,
    };
    front.reach(None, stacks.links.outermost());
    let mut looked_at: Vec<(FunctionId, Option<usize>)> = Vec::new();
    let mut repeating = 0;
    while looked_at.len() < PAGE {
        let Some(node) = front.reached.pop() else {
            break;
        };
        let above = |&at: &usize| looked_at[at].1;
        let mut above = std::iter::successors(node.parent, above);
        repeating += usize::from(above.any(|at| looked_at[at].0 == node.function));
        let at = looked_at.len();
        looked_at.push((node.function, node.parent));
        let callees = node
            .paths
            .iter()
            .flat_map(|&path| stacks.links.callees(path));
        front.reach(Some(at), callees);
    }
    Repeats {
        nodes: looked_at.len(),
        repeating,
    }
}

impl Front<'_> {
    // One node for each function.
    fn reach(&mut self, parent: Option<usize>, paths: impl Iterator<Item = PathId>) {
        let mut nodes: FxHashMap<FunctionId, (u64, Vec<PathId>)> = FxHashMap::default();
        for path in paths {
            let node = nodes.entry(self.stacks.profile.paths[path].function);
            let (weight, paths) = node.or_default();
            *weight += self.stacks.total[path];
            paths.push(path);
        }
        let mut nodes: Vec<_> = nodes.into_iter().collect();
        nodes.sort_unstable_by_key(|&(function, _)| self.ranks[function]);
        for (function, (weight, paths)) in nodes {
            self.sequence += 1;
            self.reached.push(Reached {
                weight,
                sequence: Reverse(self.sequence),
                function,
                parent,
                paths,
            });
        }
    }
}
