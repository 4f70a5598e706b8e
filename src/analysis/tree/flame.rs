//! The frames of a flame graph: how wide each node of a call tree is drawn, and where.
//!
//! ```text
//!   stacks          frames                        start  weight  own
//!   main;parse 5    ┌──────────────┬──────┐       parse      0       5    5
//!   main;emit  3    │    parse     │ emit │       emit       5       3    3
//!   main       2    ├──────────────┴──────┴────┐  main       0      10    2
//!                   │           main           │
//!                   └──────────────────────────┘
//! ```
//!
//! A frame is as wide as the weight of the samples that end in its node or in a node under it. So
//! frames on one frame never overlap, and what they leave free is what ends in it. Where recursion
//! is not collapsed, that is the weight of the node. Where it is, a sample that went through a stub
//! ends under the node that the stub leads to: its stack is the path from the root to where it
//! ends, as in exported stacks, and a node that it only passed on the way is narrower than its
//! weight.

use super::{CallTree, NodeId};
use crate::base::IdVec;

/// A node as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlameFrame {
    /// The node. No frame is one of a stub.
    pub node: NodeId,
    /// The weight of what is drawn left of it.
    pub start: u64,
    /// The weight of the samples that end in the node or under it.
    pub weight: u64,
    /// The weight of the samples that end in it, or are not followed further.
    pub own: u64,
}

/// The frames of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlameLayout {
    /// The frames in order of the nodes: each before those on it, siblings from left to right.
    pub frames: Vec<FlameFrame>,
    /// The weight of all samples: the width of the picture.
    pub total: u64,
    /// The number of nodes, stubs not counted, that are lighter than was asked for.
    pub left_out: usize,
    /// The deepest level of the frames; 0 for an empty graph.
    pub depth: u32,
}

impl CallTree {
    /// The weight of the samples that end in each node or under it, and that of all of them: how
    /// wide nodes are drawn. A stub has none. Linear in nodes.
    pub fn flame_weights(&self) -> (IdVec<NodeId, u64>, u64) {
        let mut weights: IdVec<NodeId, u64> = IdVec::filled(0, self.nodes.len());
        let mut total = 0u64;
        // Parents come before children.
        for (id, node) in self.nodes.enumerate().rev() {
            let own = node.in_only.saturating_add(node.cut);
            let weight = weights[id].saturating_add(own);
            weights[id] = weight;
            let around = node
                .parent
                .map_or(&mut total, |parent| &mut weights[parent]);
            *around = around.saturating_add(weight);
        }
        (weights, total)
    }

    /// Lays out the nodes that have at least this weight, and any weight at all. Linear in nodes.
    ///
    /// ```
    /// use proftool::analysis::tree::{Collapse, Stacks};
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter};
    ///
    /// let text = "main;parse 5\nmain;emit 3\nmain 2\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let tree = Stacks::new(&profile, &selection).top_down(Collapse::None);
    /// let layout = tree.flame_layout(4);
    /// let frames: Vec<_> = layout.frames.iter().map(|f| (f.start, f.weight, f.own)).collect();
    /// assert_eq!(frames, [(0, 10, 2), (0, 5, 5)]);
    /// assert_eq!((layout.total, layout.left_out, layout.depth), (10, 1, 2));
    /// ```
    pub fn flame_layout(&self, least: u64) -> FlameLayout {
        let nodes = &self.nodes;
        let (weights, total) = self.flame_weights();
        let mut layout = FlameLayout {
            total,
            ..FlameLayout::default()
        };
        // Where the next frame on each node starts, and the next root.
        let mut free: IdVec<NodeId, u64> = IdVec::filled(0, nodes.len());
        let mut free_root = 0u64;
        for (id, node) in nodes.enumerate().filter(|(_, node)| node.stub.is_none()) {
            let weight = weights[id];
            let next = node
                .parent
                .map_or(&mut free_root, |parent| &mut free[parent]);
            let start = *next;
            *next = next.saturating_add(weight);
            free[id] = start;
            if weight < least.max(1) {
                layout.left_out += 1;
                continue;
            }
            layout.depth = layout.depth.max(node.level);
            layout.frames.push(FlameFrame {
                node: id,
                start,
                weight,
                own: node.in_only.saturating_add(node.cut),
            });
        }
        layout
    }
}
