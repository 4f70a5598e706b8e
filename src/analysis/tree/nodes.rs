//! The nodes of a tree in memory: there may be one for each path, so each takes only 24 bytes, and
//! weights that few of them have are in columns of their own.

use super::column::Column;
use super::{Node, NodeId};
use crate::base::IdVec;
use crate::profile::FunctionId;

// The bits of [`NodeRow::marks`].
const STUB: u32 = 1 << 31;
const INLINED: u32 = 1 << 30;
const IN_CODE: u32 = 1 << 29;
// The deepest level that is stored exactly: its paths alone would take six gigabytes.
const DEEPEST: u32 = IN_CODE - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeRow {
    pub function: FunctionId,
    pub parent: Option<NodeId>,
    // Of a stub the node that it leads to. Of a node the first one under it while the tree is put
    // in order, and then one past the last.
    pub link: Option<NodeId>,
    marks: u32,
    // Of a node its direct weight, of a stub what went through it.
    pub weight: u64,
}

impl NodeRow {
    // A node, or a stub if there is a target.
    pub fn new(
        function: FunctionId,
        parent: Option<NodeId>,
        stub: Option<NodeId>,
        inlined: bool,
    ) -> NodeRow {
        let mark = |is: bool, bit| if is { bit } else { 0 };
        NodeRow {
            function,
            parent,
            link: stub,
            marks: mark(stub.is_some(), STUB) | mark(inlined && stub.is_none(), INLINED),
            weight: 0,
        }
    }

    // All marks and the level.
    pub fn marks_mut(&mut self) -> &mut u32 {
        &mut self.marks
    }

    pub fn is_stub(&self) -> bool {
        self.marks & STUB != 0
    }

    pub fn is_inlined(&self) -> bool {
        self.marks & INLINED != 0
    }

    pub fn stub(&self) -> Option<NodeId> {
        self.link.filter(|_| self.is_stub())
    }

    pub fn level(&self) -> u32 {
        self.marks & DEEPEST
    }

    pub fn set_level(&mut self, level: u32) {
        self.marks = self.marks & !DEEPEST | level.min(DEEPEST);
    }

    pub fn set_in_code(&mut self) {
        self.marks |= IN_CODE;
    }
}

/// The nodes in order of appearance: each before its children.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    pub(super) rows: IdVec<NodeId, NodeRow>,
    pub(super) indirect: Column,
    pub(super) in_only: Column,
    pub(super) cut: Column,
    pub(super) inferred: Column,
    pub(super) across_gap: Column,
}

impl Nodes {
    /// The number of nodes and stubs.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The ids in order of appearance.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        self.rows.ids()
    }

    /// The nodes in order of appearance.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Node> + ExactSizeIterator {
        self.ids().map(|id| self.at(id))
    }

    /// Ids and nodes in order of appearance.
    pub fn enumerate(&self) -> impl DoubleEndedIterator<Item = (NodeId, Node)> + ExactSizeIterator {
        self.ids().map(|id| (id, self.at(id)))
    }

    /// The node.
    pub fn at(&self, id: NodeId) -> Node {
        let row = &self.rows[id];
        let (direct, passes) = if row.is_stub() {
            (0, row.weight)
        } else {
            (row.weight, 0)
        };
        Node {
            function: row.function,
            parent: row.parent,
            level: row.level(),
            stub: row.stub(),
            inlined: row.marks & INLINED != 0,
            in_code: row.marks & IN_CODE != 0,
            direct,
            indirect: self.indirect.get(id),
            in_only: self.in_only.get(id),
            cut: self.cut.get(id),
            inferred: self.inferred.get(id),
            across_gap: self.across_gap.get(id),
            passes,
        }
    }

    // The weights that only some have.
    pub(super) fn columns(&mut self) -> [&mut Column; 5] {
        let Nodes {
            indirect,
            in_only,
            cut,
            inferred,
            across_gap,
            ..
        } = self;
        [indirect, in_only, cut, inferred, across_gap]
    }

    // One past the last node under this one, as an index.
    pub(super) fn end(&self, id: NodeId) -> usize {
        let row = &self.rows[id];
        match row.link {
            Some(end) if !row.is_stub() => end.index(),
            _ => id.index() + 1,
        }
    }

    // What counts where the heaviest come first; of a stub nothing.
    pub(super) fn weight(&self, id: NodeId) -> u64 {
        let row = &self.rows[id];
        if row.is_stub() {
            return 0;
        }
        row.weight + self.indirect.get(id)
    }

    // The weights are those that only some have.
    pub(super) fn push(
        &mut self,
        row: NodeRow,
        [indirect, in_only, cut, inferred, across_gap]: [u64; 5],
    ) -> NodeId {
        self.indirect.push(indirect);
        self.in_only.push(in_only);
        self.cut.push(cut);
        self.inferred.push(inferred);
        self.across_gap.push(across_gap);
        self.rows.push(row)
    }
}
