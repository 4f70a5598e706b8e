//! Further callees of a tree's functions: those in the code that no sample shows there, as leaves
//! without weight.
//!
//! A callee that is above already is left out, as its callees would repeat the tree.

use rustc_hash::{FxHashMap, FxHashSet};

use super::nodes::{NodeRow, Nodes};
use super::{CallTree, NodeId};
use crate::callgraph::CallGraph;
use crate::profile::{CallKind, FunctionId};

impl CallTree {
    /// The tree with the callees that the code has, after those that samples show, in order of id.
    /// Linear in nodes and the arcs of their functions.
    pub fn with_code(self, graph: &CallGraph) -> CallTree {
        let mut grown = Grown {
            graph,
            nodes: Nodes::default(),
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
            // The callees in the code are put in when their node closes, so ids move and parents
            // stay before their children.
            let mut copy = self.nodes.rows[id];
            copy.parent = node.parent.map(place);
            copy.link = node.stub.map(place);
            let place = grown.nodes.push(copy, node.rare_weights());
            grown.places.push(place);
            if node.stub.is_none() {
                grown.open.push(id);
                *grown.above.entry(node.function).or_default() += 1;
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

struct Grown<'a> {
    graph: &'a CallGraph,
    nodes: Nodes,
    // Where each node of the old tree is in the new one.
    places: Vec<NodeId>,
    // The nodes of the old tree from the root to the last one that may have more children.
    open: Vec<NodeId>,
    // Their functions, and how often each stands there: where nothing is collapsed, perhaps often.
    above: FxHashMap<FunctionId, u32>,
}

impl Grown<'_> {
    // The leaves of the innermost node that is open.
    fn close(&mut self, tree: &CallTree, id: NodeId) {
        let node = tree.nodes.at(id);
        let place = self.places[id.index()];
        let shown: FxHashSet<FunctionId> = tree
            .children(id)
            .map(|child| tree.nodes.rows[child].function)
            .collect();
        for arc in self.graph.arcs_from(node.function) {
            if arc.sites() == 0 || shown.contains(&arc.to) || self.above.contains_key(&arc.to) {
                continue;
            }
            let inlined = arc.sites() == arc.sites_of(CallKind::Inlined);
            let mut leaf = NodeRow::new(arc.to, Some(place), None, inlined);
            leaf.set_level(node.level.saturating_add(1));
            leaf.set_in_code();
            self.nodes.push(leaf, [0; 5]);
        }
        self.nodes.rows[place].link = Some(NodeId::new(self.nodes.len()));
        self.open.pop();
        if let Some(times) = self.above.get_mut(&node.function) {
            *times -= 1;
            if *times == 0 {
                self.above.remove(&node.function);
            }
        }
    }
}
