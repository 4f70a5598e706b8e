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

use std::num::NonZeroU32;

use super::column::Column;
use super::growth::{Growth, arrange};
use super::nodes::{NodeRow, Nodes};
use super::{CallTree, Collapse, NodeId, Stacks};
use crate::base::IdVec;
use crate::profile::{CallPath, FunctionId, PathId, Step};

pub(super) fn tree(stacks: &Stacks, collapse: Collapse) -> CallTree {
    let (growth, step_of) = shape(stacks, collapse, usize::MAX);
    let mut rows = growth.finish();
    let indirect = weigh(stacks, &mut rows, &step_of);
    let in_only = ends(stacks, &rows, &step_of);
    let paths = &stacks.profile.paths;
    let only_by = |can: bool, is: fn(&CallPath) -> bool| {
        if can {
            only_by(stacks, &rows, &indirect, &step_of, is)
        } else {
            Column::default()
        }
    };
    let inferred = only_by(paths.has_inferred(), |path| path.inferred);
    let across_gap = only_by(paths.has_gaps(), |path| path.across_gap);
    drop(step_of);
    let nodes = Nodes {
        rows,
        indirect,
        in_only,
        cut: Column::default(),
        inferred,
        across_gap,
    };
    arrange(nodes, stacks.profile, collapse)
}

// `None` if there are more than `most`.
pub(super) fn rows(stacks: &Stacks, collapse: Collapse, most: usize) -> Option<usize> {
    let rows = shape(stacks, collapse, most).0.len();
    (rows <= most).then_some(rows)
}

// What waits in a node while the tree grows; in a stub nothing does.
#[derive(Clone, Copy)]
struct NodeState {
    // The first path that came here and whose callees were not looked at.
    pending: Option<PathId>,
    // The first child with pending paths.
    child: Option<NodeId>,
    // The next child of the parent with pending paths.
    sibling: Option<NodeId>,
}

// A node on the way from the root to the one at hand.
#[derive(Clone, Copy)]
struct Open {
    node: NodeId,
    // How many functions stand on the way from the root to it.
    distinct: u32,
    // The nearest node above it that is the same function's, as its level.
    shadowed: Option<NonZeroU32>,
}

struct Shaper<'a> {
    stacks: &'a Stacks<'a>,
    collapse: Collapse,
    growth: Growth,
    step_of: IdVec<PathId, Option<NodeId>>,
    // After a pending path the next one of the same node.
    next: IdVec<PathId, Option<PathId>>,
    places: IdVec<NodeId, NodeState>,
    // The first root with pending paths.
    root: Option<NodeId>,
    // The node at hand and those above it, the root first.
    open: Vec<Open>,
    // The nearest open node of each function, as its level, which is one more than its index.
    nearest: IdVec<FunctionId, Option<NonZeroU32>>,
}

// Without weights; with the node that each path's last call leads to. Ends when there are more than
// `most`.
pub(super) fn shape(
    stacks: &Stacks,
    collapse: Collapse,
    most: usize,
) -> (Growth, IdVec<PathId, Option<NodeId>>) {
    let paths = stacks.profile.paths.len();
    let room = paths.min(most.saturating_add(1));
    let mut shaper = Shaper {
        stacks,
        collapse,
        growth: Growth::with_room(room),
        step_of: IdVec::filled(None, paths),
        next: IdVec::filled(None, paths),
        places: Vec::with_capacity(room).into(),
        root: None,
        open: Vec::new(),
        nearest: IdVec::filled(None, stacks.profile.functions.len()),
    };
    for path in stacks.links.outermost() {
        shaper.step(None, path);
    }
    loop {
        let at = shaper.at();
        if let Some(node) = at {
            // A step can make more paths pending in this very node: a recursive call that is
            // folded into it.
            while let Some(path) = shaper.places[node].pending {
                shaper.places[node].pending = shaper.next[path];
                for callee in stacks.links.callees(path) {
                    shaper.step(at, callee);
                }
            }
        }
        match shaper.take_child(at) {
            Some(child) => shaper.enter(child),
            None if at.is_some() => shaper.leave(),
            None => break,
        }
        if shaper.growth.len() > most {
            break;
        }
    }
    (shaper.growth, shaper.step_of)
}

impl Shaper<'_> {
    fn at(&self) -> Option<NodeId> {
        self.open.last().map(|open| open.node)
    }

    // Goes down to a child of the node at hand, or to a root.
    fn enter(&mut self, node: NodeId) {
        let above = self.open.last().map_or(0, |open| open.distinct);
        // No more nodes are open than there are, and these have ids of 32 bits.
        let level = NonZeroU32::new(self.open.len() as u32 + 1);
        let nearest = &mut self.nearest[self.growth.function(node)];
        let shadowed = std::mem::replace(nearest, level);
        self.open.push(Open {
            node,
            distinct: above + u32::from(shadowed.is_none()),
            shadowed,
        });
    }

    fn leave(&mut self) {
        if let Some(open) = self.open.pop() {
            self.nearest[self.growth.function(open.node)] = open.shadowed;
        }
    }

    // Lets a path take its last step from the node at hand, which its caller is in.
    fn step(&mut self, from: Option<NodeId>, path: PathId) {
        let call = &self.stacks.profile.paths[path];
        let (step, new) = self.growth.step(from, call.function, call.inlined);
        if new {
            let target = self.target(call.function);
            self.growth.lead(step, target);
            self.places.push(NodeState {
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

    // The node that a call of `function` from the node at hand is folded into, if it is.
    fn target(&self, function: FunctionId) -> Option<NodeId> {
        let from = self.open.last()?;
        let above = &self.open[self.nearest[function]?.get() as usize - 1];
        let folds = match self.collapse {
            Collapse::None => false,
            Collapse::Direct => above.node == from.node,
            // Between them is no function that is not above as well.
            Collapse::Conservative => above.distinct == from.distinct,
            Collapse::Full => true,
        };
        folds.then_some(above.node)
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

// Each sample once, where its stack first comes there. Those that came there through a stub are
// returned.
fn weigh(
    stacks: &Stacks,
    rows: &mut IdVec<NodeId, NodeRow>,
    step_of: &IdVec<PathId, Option<NodeId>>,
) -> Column {
    let mut visits: IdVec<NodeId, u32> = IdVec::filled(0, rows.len());
    let mut indirect: IdVec<NodeId, u64> = IdVec::filled(0, rows.len());
    let mut jumps = 0u32;
    let mut jumped = false;
    stacks.links.walk(&stacks.profile.paths, |step| match step {
        Step::Enter(path) => {
            let Some(step) = step_of[path] else { return };
            let first = visits[step] == 0;
            visits[step] += 1;
            let row = &mut rows[step];
            let weight = if first { stacks.total[path] } else { 0 };
            if row.is_stub() {
                jumps += 1;
                jumped = true;
                row.weight += weight;
            } else if jumps == 0 {
                row.weight += weight;
            } else {
                indirect[step] += weight;
            }
        }
        Step::Leave(path) => {
            let Some(step) = step_of[path] else { return };
            visits[step] -= 1;
            jumps -= u32::from(rows[step].is_stub());
        }
    });
    drop(visits);
    if jumped {
        Column::of(indirect.iter().copied())
    } else {
        Column::default()
    }
}

// What of the weights of nodes came there only by paths of this kind.
fn only_by(
    stacks: &Stacks,
    rows: &IdVec<NodeId, NodeRow>,
    indirect: &Column,
    step_of: &IdVec<PathId, Option<NodeId>>,
    is_of_kind: fn(&CallPath) -> bool,
) -> Column {
    let paths = &stacks.profile.paths;
    let mut visits: IdVec<NodeId, u32> = IdVec::filled(0, rows.len());
    let mut otherwise: IdVec<NodeId, u64> = IdVec::filled(0, rows.len());
    stacks.links.walk(paths, |step| {
        let (Step::Enter(path) | Step::Leave(path)) = step;
        let Some(node) = step_of[path].filter(|_| !is_of_kind(&paths[path])) else {
            return;
        };
        match step {
            Step::Enter(_) => {
                if visits[node] == 0 {
                    otherwise[node] += stacks.total[path];
                }
                visits[node] += 1;
            }
            Step::Leave(_) => visits[node] -= 1,
        }
    });
    Column::of(rows.enumerate().map(|(id, row)| {
        if row.is_stub() {
            0
        } else {
            row.weight + indirect.get(id) - otherwise[id]
        }
    }))
}

fn ends(
    stacks: &Stacks,
    rows: &IdVec<NodeId, NodeRow>,
    step_of: &IdVec<PathId, Option<NodeId>>,
) -> Column {
    let ends = || {
        stacks.selection.rows().iter().filter_map(|row| {
            let step = step_of[row.path]?;
            Some((rows[step].stub().unwrap_or(step), row.weight))
        })
    };
    let mut in_only = Column::marked(rows.len(), ends().map(|(node, _)| node));
    ends().for_each(|(node, weight)| in_only.add(node, weight));
    in_only
}
