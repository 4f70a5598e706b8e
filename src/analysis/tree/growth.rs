//! A tree under construction.

use std::cmp::Reverse;

use super::{CallTree, Collapse, Node, NodeId};
use crate::analysis::inclusive;
use crate::base::{Distinct, Id, IdVec, define_id};
use crate::profile::{FunctionId, Profile};

define_id! {
    /// A node or stub under construction; a parent has the smaller id.
    pub(super) StepId
}

/// What is known of a node or stub beside its parent and function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    /// The node that a stub leads to.
    pub stub: Option<StepId>,
    /// Whether all that reach it are inlined there.
    pub inlined: bool,
    /// The weights of [`Node`]; `cut` of a node and `passes` of a stub are one.
    pub direct: u64,
    pub indirect: u64,
    pub in_only: u64,
    pub elsewhere: u64,
}

/// Nodes and stubs under construction, found by their parent and function.
#[derive(Default)]
pub(super) struct Growth {
    steps: Distinct<StepId, (Option<StepId>, FunctionId)>,
    pub raw: IdVec<StepId, Raw>,
}

impl Growth {
    /// What stands for a call of `function` by `parent`, and whether it was made just now, as a
    /// node. It counts as inlined while all that reach it are.
    pub fn step(
        &mut self,
        parent: Option<StepId>,
        function: FunctionId,
        inlined: bool,
    ) -> (StepId, bool) {
        let id = self.steps.id_of((parent, function));
        let new = id.index() == self.raw.len();
        if new {
            self.raw.push(Raw {
                stub: None,
                inlined,
                direct: 0,
                indirect: 0,
                in_only: 0,
                elsewhere: 0,
            });
        } else {
            self.raw[id].inlined &= inlined;
        }
        (id, new)
    }

    /// The node that a stack is in after this step: a stub leads to another one.
    pub fn node(&self, step: StepId) -> StepId {
        self.raw[step].stub.unwrap_or(step)
    }

    /// The node above.
    pub fn parent(&self, step: StepId) -> Option<StepId> {
        self.steps.rows()[step].0
    }

    /// The function of a node or stub.
    pub fn function(&self, step: StepId) -> FunctionId {
        self.steps.rows()[step].1
    }

    /// The number of nodes and stubs so far.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// The arena in order of appearance.
    pub fn arrange(self, profile: &Profile, collapse: Collapse) -> CallTree {
        let raw = self.raw;
        let steps = self.steps.into_rows();
        let ranks = inclusive::name_ranks(profile);
        // The children of each node side by side, the last to be shown first.
        let mut order: Vec<StepId> = steps.ids().collect();
        order.sort_unstable_by_key(|&id| {
            let (parent, function) = steps[id];
            let row = &raw[id];
            let weight = row.direct + row.indirect;
            (parent, row.stub.is_none(), weight, Reverse(ranks[function]))
        });
        let under = |parent: Option<StepId>| {
            let start = order.partition_point(|&id| steps[id].0 < parent);
            let len = order[start..].partition_point(|&id| steps[id].0 == parent);
            start..start + len
        };
        let mut nodes: IdVec<NodeId, Node> = Vec::with_capacity(order.len()).into();
        let mut placed: IdVec<StepId, Option<NodeId>> = IdVec::filled(None, order.len());
        let mut waiting: Vec<StepId> = order[under(None)].to_vec();
        while let Some(id) = waiting.pop() {
            let row = &raw[id];
            let (parent, function) = steps[id];
            let parent = parent.and_then(|parent| placed[parent]);
            let of_stub = row.stub.is_some();
            let node = nodes.push(Node {
                function,
                parent,
                level: parent.map_or(1, |parent| nodes[parent].level.saturating_add(1)),
                end: 0,
                stub: row.stub.and_then(|target| placed[target]),
                inlined: row.inlined && !of_stub,
                direct: row.direct,
                indirect: row.indirect,
                in_only: row.in_only,
                cut: if of_stub { 0 } else { row.elsewhere },
                passes: if of_stub { row.elsewhere } else { 0 },
            });
            nodes[node].end = nodes.len() as u32;
            placed[id] = Some(node);
            waiting.extend_from_slice(&order[under(Some(id))]);
        }
        for id in nodes.ids().rev() {
            if let Some(parent) = nodes[id].parent {
                nodes[parent].end = nodes[parent].end.max(nodes[id].end);
            }
        }
        CallTree { collapse, nodes }
    }
}
