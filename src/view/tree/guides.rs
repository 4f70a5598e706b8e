//! The lines before the names.

use super::Tree;
use crate::analysis::tree::NodeId;
use crate::base::IdVec;
use crate::view::table::{Branch, Guide};

/// Draws the lines before the names.
pub(super) struct Guides {
    /// For each node that was drawn, the number of lines that it is under.
    level: IdVec<NodeId, usize>,
    /// For each node, the number of its children that are shown.
    children: IdVec<NodeId, u32>,
    /// How many children are still to come.
    waiting: IdVec<NodeId, u32>,
    /// For each node on the way to the last one, how far to the side its children's lines are.
    column: Vec<usize>,
    /// For each step to the side, whether a sibling is still to come.
    open: Vec<bool>,
}

impl Guides {
    pub fn new(tree: &Tree) -> Guides {
        let mut children = IdVec::filled(0, tree.summary.calls.nodes.len());
        for id in tree.nodes() {
            if let Some(parent) = tree.parent(id) {
                children[parent] += 1;
            }
        }
        Guides {
            level: IdVec::filled(0, tree.summary.calls.nodes.len()),
            waiting: children.clone(),
            children,
            column: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The lines before `node`, the next one that is shown.
    pub fn next(&mut self, tree: &Tree, id: NodeId) -> Guide {
        let node = tree.node(id);
        let parent = tree.parent(id);
        self.level[id] = parent.map_or(0, |parent| self.level[parent] + 1);
        self.column.truncate(self.level[id]);
        let above = self.column.last().copied().unwrap_or(0);
        let Some(parent) = parent else {
            self.open.clear();
            self.column.push(0);
            return Guide::None;
        };
        self.waiting[parent] -= 1;
        self.open.truncate(above);
        let only = self.children[parent] == 1;
        let last = self.waiting[parent] == 0;
        // One step more than is drawn tells that there are more.
        let drawn = above.saturating_sub(Guide::STEPS + 1);
        let steps = self.open[drawn..].to_vec();
        let branch = match (only, last) {
            (true, _) => Branch::Only,
            (false, false) => Branch::Inner,
            (false, true) => Branch::Last,
        };
        if only && self.children[id] <= 1 {
            self.column.push(above);
        } else {
            self.open.push(!last);
            self.column.push(above + 1);
        }
        Guide::Tree {
            level: node.level,
            steps,
            branch,
        }
    }
}
