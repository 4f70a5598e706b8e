//! A tree under construction: first its shape, then its weights, then its order.
//!
//! Until [`arrange`] the ids of nodes are those of growth: a parent has the smaller id, but
//! siblings stand in no order. There may be as many nodes as paths, so each phase keeps only what
//! it needs, and the order is made in place.

use std::cmp::Reverse;

use super::{CallTree, Collapse, Node, NodeId};
use crate::analysis::inclusive;
use crate::base::{Distinct, Id, IdVec};
use crate::profile::{FunctionId, Profile};

/// What is known of a node or stub beside its parent and function.
struct Mark {
    stub: Option<NodeId>,
    inlined: bool,
}

/// Nodes and stubs, found by their parent and function.
#[derive(Default)]
pub(super) struct Growth {
    known: Distinct<NodeId, (Option<NodeId>, FunctionId)>,
    marks: IdVec<NodeId, Mark>,
}

impl Growth {
    /// Nothing, with room for so many nodes and stubs; only what is used of it takes memory.
    pub fn with_room(steps: usize) -> Growth {
        Growth {
            known: Distinct::default(),
            marks: Vec::with_capacity(steps).into(),
        }
    }

    /// What stands for a call of `function` by `parent`, and whether it was made just now, as a
    /// node. It counts as inlined while all that reach it are.
    pub fn step(
        &mut self,
        parent: Option<NodeId>,
        function: FunctionId,
        inlined: bool,
    ) -> (NodeId, bool) {
        let id = self.known.id_of((parent, function));
        let new = id.index() == self.marks.len();
        if new {
            self.marks.push(Mark {
                stub: None,
                inlined,
            });
        } else {
            self.marks[id].inlined &= inlined;
        }
        (id, new)
    }

    /// Makes it a stub that leads to `target`, if there is one.
    pub fn lead(&mut self, step: NodeId, target: Option<NodeId>) {
        self.marks[step].stub = target;
    }

    /// The node that a stub leads to.
    pub fn stub(&self, step: NodeId) -> Option<NodeId> {
        self.marks[step].stub
    }

    /// The node that a stack is in after this step: a stub leads to another one.
    pub fn node(&self, step: NodeId) -> NodeId {
        self.stub(step).unwrap_or(step)
    }

    /// The node above.
    pub fn parent(&self, step: NodeId) -> Option<NodeId> {
        self.known.rows()[step].0
    }

    /// The function of a node or stub.
    pub fn function(&self, step: NodeId) -> FunctionId {
        self.known.rows()[step].1
    }

    /// The number of nodes and stubs so far.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// The nodes and stubs in order of growth, without weights.
    pub fn finish(self) -> IdVec<NodeId, Node> {
        let rows = self.known.into_rows();
        let node = |(&(parent, function), mark): (&(Option<NodeId>, FunctionId), &Mark)| Node {
            function,
            parent,
            level: 0,
            end: 0,
            stub: mark.stub,
            inlined: mark.inlined && mark.stub.is_none(),
            in_code: false,
            direct: 0,
            indirect: 0,
            in_only: 0,
            cut: 0,
            passes: 0,
        };
        let nodes: Vec<Node> = rows.iter().zip(&self.marks).map(node).collect();
        nodes.into()
    }
}

/// The tree, its nodes in order of appearance.
pub(super) fn arrange(
    mut nodes: IdVec<NodeId, Node>,
    profile: &Profile,
    collapse: Collapse,
) -> CallTree {
    let mut places = appearance(&nodes, profile);
    for node in nodes.iter_mut() {
        node.parent = node.parent.map(|parent| places[parent]);
        node.stub = node.stub.map(|target| places[target]);
    }
    // Each swap brings a node to its place.
    for id in nodes.ids() {
        while places[id] != id {
            let place = places[id];
            (nodes[id], nodes[place]) = (nodes[place], nodes[id]);
            (places[id], places[place]) = (places[place], place);
        }
    }
    for id in nodes.ids() {
        let above = nodes[id].parent.map_or(0, |parent| nodes[parent].level);
        nodes[id].level = above.saturating_add(1);
        nodes[id].end = id.index() as u32 + 1;
    }
    for id in nodes.ids().rev() {
        if let Some(parent) = nodes[id].parent {
            nodes[parent].end = nodes[parent].end.max(nodes[id].end);
        }
    }
    CallTree { collapse, nodes }
}

/// The place of each node in the order of appearance.
fn appearance(nodes: &IdVec<NodeId, Node>, profile: &Profile) -> IdVec<NodeId, NodeId> {
    let ranks = inclusive::name_ranks(profile);
    let family = |parent: Option<NodeId>| parent.map_or(0, |parent| parent.index() + 1);
    // Where the children of each node begin in `order`; before them all the roots.
    let mut starts = vec![0u32; nodes.len() + 2];
    for node in nodes {
        starts[family(node.parent)] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut order: Vec<NodeId> = nodes.ids().collect();
    for id in nodes.ids() {
        let start = &mut starts[family(nodes[id].parent)];
        *start -= 1;
        order[*start as usize] = id;
    }
    // Of each family the last to be shown comes first.
    let mut places: IdVec<NodeId, NodeId> = order.clone().into();
    let mut shown = 0;
    let mut waiting: Vec<NodeId> = Vec::new();
    let mut next = Some(None);
    while let Some(parent) = next {
        let family = family(parent);
        let children = &mut order[starts[family] as usize..starts[family + 1] as usize];
        children.sort_unstable_by_key(|&id| {
            let node = &nodes[id];
            (
                node.stub.is_none(),
                node.weight(),
                Reverse(ranks[node.function]),
            )
        });
        waiting.extend_from_slice(children);
        let id = waiting.pop();
        if let Some(id) = id {
            places[id] = NodeId::new(shown);
            shown += 1;
        }
        next = id.map(Some);
    }
    places
}
