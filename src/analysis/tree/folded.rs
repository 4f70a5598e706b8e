//! Which node of a collapsed tree each call path leads to, without weights.

use super::inwards::shape;
use super::{Collapse, NodeId, Stacks};
use crate::base::IdVec;
use crate::profile::{FunctionId, PathId};

/// A node of a collapsed tree, or a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedNode {
    /// The node above it; it has the smaller id.
    pub caller: Option<NodeId>,
    /// The function.
    pub function: FunctionId,
    /// Whether all its code was inlined into the caller's.
    pub inlined: bool,
    /// Whether it is a stub. No path leads to one.
    pub is_stub: bool,
}

/// The nodes of a collapsed tree in order of growth, and where paths lead.
#[derive(Clone, Debug)]
pub struct Folded {
    /// The nodes and stubs.
    pub nodes: IdVec<NodeId, FoldedNode>,
    /// The node that each path leads to; `None` for paths without samples.
    pub of_paths: IdVec<PathId, Option<NodeId>>,
}

pub(super) fn folded(stacks: &Stacks, collapse: Collapse) -> Folded {
    let (growth, steps) = shape(stacks, collapse, usize::MAX);
    let of_paths: Vec<Option<NodeId>> = steps
        .iter()
        .map(|step| step.map(|step| growth.node(step)))
        .collect();
    let nodes: Vec<FoldedNode> = growth
        .finish()
        .iter()
        .map(|row| FoldedNode {
            caller: row.parent,
            function: row.function,
            inlined: row.is_inlined(),
            is_stub: row.is_stub(),
        })
        .collect();
    Folded {
        nodes: nodes.into(),
        of_paths: of_paths.into(),
    }
}
