//! The tree from the outermost functions inwards, in any degree.
//!
//! Where a call leads depends on the node that it is made in and on the function that it calls, on
//! nothing else. So each distinct path takes one step, and the paths that are in one node take
//! theirs together:
//!
//! ```text
//!   main ─▶ r          the node r is open: its way down is marked by function, [main, r]
//!           │ paths    r has the paths main;r, and when r calls r, gets main;r;r as well
//!           └ children with paths of their own are opened one after the other
//! ```
//!
//! While a node is open, the nearest node above it is known for every function, and a jump up
//! only hands a path to a node that is open too and will be looked at again on the way back. A
//! node is opened once for each time that paths came into it, so all of it is linear in paths, in
//! every degree and at every depth.

use super::growth::{Growth, arrange};
use super::{CallTree, Collapse, Node, NodeId, Stacks};
use crate::base::IdVec;
use crate::profile::{FunctionId, PathId, Step};

/// The tree.
pub(super) fn tree(stacks: &Stacks, collapse: Collapse) -> CallTree {
    let (growth, step_of) = shape(stacks, collapse, usize::MAX);
    let mut nodes = growth.finish();
    weigh(stacks, &mut nodes, &step_of);
    drop(step_of);
    arrange(nodes, stacks.profile, collapse)
}

/// How many nodes and stubs it has, if no more than `most`.
pub(super) fn rows(stacks: &Stacks, collapse: Collapse, most: usize) -> Option<usize> {
    let rows = shape(stacks, collapse, most).0.len();
    (rows <= most).then_some(rows)
}

/// What is known of a node while the tree grows; of a stub nothing of it is used.
#[derive(Clone, Copy)]
struct Place {
    /// How many functions stand on the way from the root to here.
    distinct: u32,
    /// The nearest node above it that is the same function's.
    shadowed: Option<NodeId>,
    /// The first path that came here and whose callees were not looked at.
    pending: Option<PathId>,
    /// The first child with pending paths.
    child: Option<NodeId>,
    /// The next child of the parent with pending paths.
    sibling: Option<NodeId>,
}

struct Shaper<'a> {
    stacks: &'a Stacks<'a>,
    collapse: Collapse,
    growth: Growth,
    step_of: IdVec<PathId, Option<NodeId>>,
    /// After a pending path the next one of the same node.
    next: IdVec<PathId, Option<PathId>>,
    places: IdVec<NodeId, Place>,
    /// The first root with pending paths.
    root: Option<NodeId>,
    /// The nearest open node of each function.
    open: IdVec<FunctionId, Option<NodeId>>,
}

/// The nodes and stubs without weights, and the one that each path's last call leads to. Ends when
/// there are more than `most`.
fn shape(
    stacks: &Stacks,
    collapse: Collapse,
    most: usize,
) -> (Growth, IdVec<PathId, Option<NodeId>>) {
    let paths = stacks.profile.paths.len();
    let mut shaper = Shaper {
        stacks,
        collapse,
        growth: Growth::with_room(paths),
        step_of: IdVec::filled(None, paths),
        next: IdVec::filled(None, paths),
        places: Vec::with_capacity(paths).into(),
        root: None,
        open: IdVec::filled(None, stacks.profile.functions.len()),
    };
    for path in stacks.links.outermost() {
        shaper.step(None, path);
    }
    let mut at: Option<NodeId> = None;
    loop {
        if let Some(node) = at {
            while let Some(path) = shaper.places[node].pending {
                shaper.places[node].pending = shaper.next[path];
                for callee in stacks.links.callees(path) {
                    shaper.step(at, callee);
                }
            }
        }
        match (shaper.take_child(at), at) {
            (Some(child), _) => {
                let open = &mut shaper.open[shaper.growth.function(child)];
                shaper.places[child].shadowed = open.replace(child);
                at = Some(child);
            }
            (None, Some(node)) => {
                shaper.open[shaper.growth.function(node)] = shaper.places[node].shadowed;
                at = shaper.growth.parent(node);
            }
            (None, None) => break,
        }
        if shaper.growth.len() > most {
            break;
        }
    }
    (shaper.growth, shaper.step_of)
}

impl Shaper<'_> {
    /// Lets a path take its last step from the node that its caller is in, which is open.
    fn step(&mut self, from: Option<NodeId>, path: PathId) {
        let call = &self.stacks.profile.paths[path];
        let (step, new) = self.growth.step(from, call.function, call.inlined);
        if new {
            let above = self.open[call.function];
            let target = from.and_then(|from| self.target(from, above));
            self.growth.lead(step, target);
            let distinct = from.map_or(0, |from| self.places[from].distinct);
            self.places.push(Place {
                distinct: distinct + u32::from(above.is_none()),
                shadowed: None,
                pending: None,
                child: None,
                sibling: None,
            });
        }
        self.step_of[path] = Some(step);
        let node = self.growth.node(step);
        let waits = self.places[node].pending.replace(path);
        self.next[path] = waits;
        if node == step && waits.is_none() {
            let first = match from {
                Some(from) => &mut self.places[from].child,
                None => &mut self.root,
            };
            let sibling = first.replace(node);
            self.places[node].sibling = sibling;
        }
    }

    /// The node that a call from `from` is folded into, if it is: `above` is the nearest node of
    /// the called function on the way from the root to `from`.
    fn target(&self, from: NodeId, above: Option<NodeId>) -> Option<NodeId> {
        above.filter(|&above| match self.collapse {
            Collapse::None => false,
            Collapse::Direct => above == from,
            // Between them is no function that is not above as well.
            Collapse::Conservative => self.places[above].distinct == self.places[from].distinct,
            Collapse::Full => true,
        })
    }

    fn take_child(&mut self, parent: Option<NodeId>) -> Option<NodeId> {
        let child = match parent {
            Some(parent) => self.places[parent].child,
            None => self.root,
        }?;
        let sibling = self.places[child].sibling.take();
        match parent {
            Some(parent) => self.places[parent].child = sibling,
            None => self.root = sibling,
        }
        Some(child)
    }
}

/// Gives the nodes and stubs their weights: each sample once, where its stack first comes there.
fn weigh(
    stacks: &Stacks,
    nodes: &mut IdVec<NodeId, Node>,
    step_of: &IdVec<PathId, Option<NodeId>>,
) {
    let mut visits: IdVec<NodeId, u32> = IdVec::filled(0, nodes.len());
    let mut jumps = 0u32;
    stacks.links.walk(&stacks.profile.paths, |step| match step {
        Step::Enter(path) => {
            let Some(step) = step_of[path] else { return };
            let first = visits[step] == 0;
            visits[step] += 1;
            let node = &mut nodes[step];
            let weight = if first { stacks.total[path] } else { 0 };
            match node.stub {
                Some(_) => {
                    jumps += 1;
                    node.passes += weight;
                }
                None if jumps == 0 => node.direct += weight,
                None => node.indirect += weight,
            }
        }
        Step::Leave(path) => {
            let Some(step) = step_of[path] else { return };
            visits[step] -= 1;
            jumps -= u32::from(nodes[step].stub.is_some());
        }
    });
    for row in &stacks.selection.rows {
        if let Some(step) = step_of[row.path] {
            let node = nodes[step].stub.unwrap_or(step);
            nodes[node].in_only += row.weight;
        }
    }
}
