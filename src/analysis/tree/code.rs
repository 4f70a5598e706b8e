//! What the functions of a tree could have called, too: callees in the code that no sample shows
//! there, as leaves without weight.
//!
//! A callee that stands above already is left out: its way on would be the tree again.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CallTree, Node, NodeId};
use crate::base::{Id, IdVec};
use crate::callgraph::{Arc, CallGraph};
use crate::profile::{CallKind, FunctionId};

impl CallTree {
    /// The tree with the callees that the code has, after those that samples show, in order of id.
    /// Linear in nodes and the arcs of their functions.
    pub fn with_code(self, graph: &CallGraph) -> CallTree {
        let mut grown = Grown {
            graph,
            nodes: IdVec::new(),
            places: Vec::with_capacity(self.nodes.len()),
            open: Vec::new(),
            above: FxHashMap::default(),
        };
        for (id, node) in self.nodes.enumerate() {
            while let Some(&last) = grown.open.last() {
                if node.parent == Some(last) {
                    break;
                }
                grown.close(&self, last);
            }
            let place = |of: NodeId| grown.places[of.index()];
            let copy = Node {
                parent: node.parent.map(place),
                stub: node.stub.map(place),
                ..*node
            };
            let place = grown.nodes.push(copy);
            grown.places.push(place);
            if node.stub.is_none() {
                grown.open.push(id);
                *grown.above.entry(node.function).or_default() += 1;
            } else {
                grown.nodes[place].end = grown.nodes.len() as u32;
            }
        }
        while let Some(&last) = grown.open.last() {
            grown.close(&self, last);
        }
        CallTree {
            collapse: self.collapse,
            nodes: grown.nodes,
        }
    }
}

/// A tree that is copied with leaves added.
struct Grown<'a> {
    graph: &'a CallGraph,
    nodes: IdVec<NodeId, Node>,
    /// Where each node of the old tree is in the new one.
    places: Vec<NodeId>,
    /// The nodes of the old tree from the root to the last one that may have more children.
    open: Vec<NodeId>,
    /// Their functions, and how often each stands there: where nothing is collapsed, perhaps often.
    above: FxHashMap<FunctionId, u32>,
}

impl Grown<'_> {
    /// Adds the leaves of the innermost node that is open.
    fn close(&mut self, tree: &CallTree, id: NodeId) {
        let node = &tree.nodes[id];
        let place = self.places[id.index()];
        let shown: FxHashSet<FunctionId> = tree
            .children(id)
            .map(|child| tree.nodes[child].function)
            .collect();
        for arc in self.graph.callees(node.function) {
            let arc: &Arc = &self.graph.arcs[arc];
            if arc.sites() == 0 || shown.contains(&arc.to) || self.above.contains_key(&arc.to) {
                continue;
            }
            let end = self.nodes.len() as u32 + 1;
            self.nodes.push(Node {
                function: arc.to,
                parent: Some(place),
                level: node.level.saturating_add(1),
                end,
                in_code: true,
                stub: None,
                inlined: arc.sites() == arc.sites_of(CallKind::Inlined),
                direct: 0,
                indirect: 0,
                in_only: 0,
                cut: 0,
                passes: 0,
            });
        }
        self.nodes[place].end = self.nodes.len() as u32;
        self.open.pop();
        if let Some(times) = self.above.get_mut(&node.function) {
            *times -= 1;
            if *times == 0 {
                self.above.remove(&node.function);
            }
        }
    }
}
