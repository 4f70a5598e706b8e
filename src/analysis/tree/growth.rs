//! A tree under construction: first its shape, then its weights, then its order.
//!
//! Until [`arrange`] the ids of nodes are those of growth: a parent has the smaller id, but
//! siblings stand in no order. There may be as many nodes as paths, so each phase keeps only what
//! it needs, and the order is made in place.

use std::cmp::Reverse;

use super::nodes::{NodeRow, Nodes};
use super::{CallTree, Collapse, NodeId};
use crate::analysis::inclusive;
use crate::base::{DistinctTree, IdVec, TreeRow};
use crate::profile::{FunctionId, Profile};

// A node or a stub stands for it.
#[derive(PartialEq, Eq, Hash)]
struct Call {
    parent: Option<NodeId>,
    function: FunctionId,
}

impl TreeRow<NodeId> for Call {
    fn parent(&self) -> Option<NodeId> {
        self.parent
    }
}

// Found by their parent and function.
#[derive(Default)]
pub(super) struct Growth {
    known: DistinctTree<NodeId, Call>,
    // Where a stub leads.
    stubs: IdVec<NodeId, Option<NodeId>>,
    inlined: IdVec<NodeId, bool>,
}

impl Growth {
    // Unused room takes little memory.
    pub fn with_room(steps: usize) -> Growth {
        Growth {
            known: DistinctTree::with_room(steps),
            stubs: Vec::with_capacity(steps).into(),
            inlined: Vec::with_capacity(steps).into(),
        }
    }

    // What stands for a call of `function` by `parent`, and whether it was made just now, as a
    // node. It counts as inlined while all that reach it are.
    pub fn step(
        &mut self,
        parent: Option<NodeId>,
        function: FunctionId,
        inlined: bool,
    ) -> (NodeId, bool) {
        let id = self.known.id_of(Call { parent, function });
        let new = id.index() == self.stubs.len();
        if new {
            self.stubs.push(None);
            self.inlined.push(inlined);
        } else {
            self.inlined[id] &= inlined;
        }
        (id, new)
    }

    pub fn lead(&mut self, step: NodeId, target: Option<NodeId>) {
        self.stubs[step] = target;
    }

    pub fn stub(&self, step: NodeId) -> Option<NodeId> {
        self.stubs[step]
    }

    // The node that a stack is in after this step: a stub leads to another one.
    pub fn node(&self, step: NodeId) -> NodeId {
        self.stub(step).unwrap_or(step)
    }

    pub fn parent(&self, step: NodeId) -> Option<NodeId> {
        self.known.rows()[step].parent
    }

    pub fn function(&self, step: NodeId) -> FunctionId {
        self.known.rows()[step].function
    }

    // Nodes and stubs.
    pub fn len(&self) -> usize {
        self.stubs.len()
    }

    // The nodes and stubs in order of growth, without weights.
    pub fn finish(self) -> IdVec<NodeId, NodeRow> {
        let steps = self.known.into_rows();
        let marks = self.stubs.iter().zip(&self.inlined);
        let row = |(call, (&stub, &inlined)): (&Call, _)| {
            NodeRow::new(call.function, call.parent, stub, inlined)
        };
        let rows: Vec<NodeRow> = steps.iter().zip(marks).map(row).collect();
        rows.into()
    }
}

pub(super) fn arrange(mut nodes: Nodes, profile: &Profile, collapse: Collapse) -> CallTree {
    let places = appearance(&mut nodes, profile);
    for column in nodes.columns() {
        *column = std::mem::take(column).moved(&places);
    }
    let rows = &mut nodes.rows;
    for row in rows.iter_mut() {
        row.parent = row.parent.map(|parent| places[parent]);
        row.link = row.stub().map(|target| places[target]);
    }
    // One field after the other: a second table of rows would take more than all that is gone by
    // now.
    settle(rows, &places, |row| &mut row.function);
    settle(rows, &places, |row| &mut row.parent);
    settle(rows, &places, |row| &mut row.link);
    settle(rows, &places, NodeRow::marks_mut);
    settle(rows, &places, |row| &mut row.weight);
    drop(places);
    for id in rows.ids() {
        let above = rows[id].parent.map_or(0, |parent| rows[parent].level());
        rows[id].set_level(above.saturating_add(1));
        if !rows[id].is_stub() {
            rows[id].link = Some(NodeId::new(id.index() + 1));
        }
    }
    for id in rows.ids().rev() {
        let end = nodes.end(id);
        let rows = &mut nodes.rows;
        if let Some(parent) = rows[id].parent {
            rows[parent].link = rows[parent].link.max(Some(NodeId::new(end)));
        }
    }
    CallTree { collapse, nodes }
}

// Moves a field of each row to the row's place. Places of a chain of calls follow each other, so
// both ends of the move are close to those of the move before; swaps of whole rows would jump with
// each row.
fn settle<T: Copy>(
    rows: &mut IdVec<NodeId, NodeRow>,
    places: &IdVec<NodeId, NodeId>,
    field: impl Fn(&mut NodeRow) -> &mut T,
) {
    let moved: Vec<T> = rows.iter_mut().map(|row| *field(row)).collect();
    let mut moved = IdVec::<NodeId, T>::from(moved);
    for (&place, row) in places.iter().zip(rows.iter_mut()) {
        moved[place] = *field(row);
    }
    for (&value, row) in moved.iter().zip(rows.iter_mut()) {
        *field(row) = value;
    }
}

// Leaves the links of nodes without meaning.
fn appearance(nodes: &mut Nodes, profile: &Profile) -> IdVec<NodeId, NodeId> {
    let ranks = inclusive::name_ranks(profile);
    // The children of a node begin at its link, and each leads to the next.
    let mut siblings: IdVec<NodeId, Option<NodeId>> = IdVec::filled(None, nodes.len());
    let mut root = None;
    for id in nodes.ids().rev() {
        let first = match nodes.rows[id].parent {
            Some(parent) => &mut nodes.rows[parent].link,
            None => &mut root,
        };
        siblings[id] = first.replace(id);
    }
    let mut places = IdVec::filled(NodeId::new(0), nodes.len());
    let mut shown = 0;
    // Of each family the last to be shown comes first.
    let mut waiting: Vec<NodeId> = Vec::new();
    let mut first = root;
    loop {
        let family = waiting.len();
        waiting.extend(std::iter::successors(first, |&child| siblings[child]));
        waiting[family..].sort_unstable_by_key(|&id| {
            let row = &nodes.rows[id];
            (
                !row.is_stub(),
                nodes.weight(id),
                Reverse(ranks[row.function]),
            )
        });
        let Some(id) = waiting.pop() else {
            return places;
        };
        places[id] = NodeId::new(shown);
        shown += 1;
        let row = &nodes.rows[id];
        first = row.link.filter(|_| !row.is_stub());
    }
}
