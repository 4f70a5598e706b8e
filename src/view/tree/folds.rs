//! Chains of calls outside of the user's own code, each as one line.
//!
//! ```text
//!   clone3                                     ⋯ 47 frames: std, tokio → Context::run_task
//!   ↳ start_thread                             ↳ srv::handle
//!   ↳ std::sys::thread_start
//!     …
//!   ↳ tokio::runtime::Context::run_task
//!   ↳ srv::handle
//! ```
//!
//! A chain is of functions that each have the next one as the only line under them, with nearly the
//! same weight. Its last function is named, and the figures are those of the last.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::owners::{OwnerKind, Owners};
use crate::analysis::tree::{CallTree, Node, NodeId};
use crate::base::IdVec;
use crate::names::Labels;
use crate::profile::FunctionKind;
use crate::view::Subject;
use crate::view::flat::reaches;
use crate::view::table::What;

/// A shorter chain is no line less to read.
const SHORTEST: usize = 3;

/// A chain of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fold {
    /// The number of frames, with the last.
    pub frames: usize,
    /// Whose they are, those of the most frames first.
    pub owners: Vec<String>,
}

impl Fold {
    /// The nodes of a chain that ends at `last`, without the last.
    pub fn others<'t>(
        &self,
        calls: &'t CallTree,
        last: NodeId,
    ) -> impl Iterator<Item = NodeId> + use<'t> {
        let parent = |&id: &NodeId| calls.nodes.at(id).parent;
        let others = std::iter::successors(parent(&last), parent);
        others.take(self.frames - 1)
    }
}

/// The chains of calls outside of the user's own code that a list of a tree's nodes shows as one
/// line each.
#[derive(Clone, Debug, Default)]
pub struct Folds {
    by_last: FxHashMap<NodeId, Fold>,
    within: FxHashSet<NodeId>,
}

impl Folds {
    /// Finds the chains among the nodes with at least this share, in percent. Smaller nodes beside
    /// a chain are hidden while it is folded.
    pub fn new(subject: &Subject, calls: &CallTree, owners: &Owners, min: f64) -> Folds {
        let whole = subject.selection.total();
        let nodes = calls.nodes.enumerate();
        let chosen: Vec<NodeId> = nodes
            .filter(|(_, node)| reaches(node.standing(), whole, min))
            .map(|(id, _)| id)
            .collect();
        let by_last = foreign_chains(subject, calls, &chosen, owners);
        let within = by_last
            .iter()
            .flat_map(|(&last, fold)| fold.others(calls, last))
            .collect();
        Folds { by_last, within }
    }

    /// Whether a node is in a chain and not its last one, which stands for all of it.
    pub fn hides(&self, node: NodeId) -> bool {
        self.within.contains(&node)
    }

    /// What the line of a node is about.
    pub fn what(&self, node: &Node, id: NodeId, labels: &Labels, whole: u64) -> What {
        super::what(node, labels, self.by_last.get(&id), whole)
    }

    /// Whether a node is in a chain with a callee.
    pub fn continues(&self, node: NodeId, callee: NodeId) -> bool {
        self.hides(node) && (self.hides(callee) || self.by_last.contains_key(&callee))
    }
}

/// The chains of calls outside of the user's own code among these nodes, by their last node.
pub(super) fn foreign_chains(
    subject: &Subject,
    calls: &CallTree,
    chosen: &[NodeId],
    owners: &Owners,
) -> FxHashMap<NodeId, Fold> {
    let can = |node: &Node| is_foreign(subject, owners, node);
    let is_joined = |caller: &Node, callee: &Node| is_joined(subject, caller, callee);
    chains(calls, chosen, owners, can, is_joined)
}

/// The chains among these nodes, by their last node, of functions that `can` be in one,
/// and in one with the next.
pub(super) fn chains(
    calls: &CallTree,
    chosen: &[NodeId],
    owners: &Owners,
    can: impl Fn(&Node) -> bool,
    is_joined: impl Fn(&Node, &Node) -> bool,
) -> FxHashMap<NodeId, Fold> {
    let mut children: IdVec<NodeId, u32> = IdVec::filled(0, calls.nodes.len());
    for &id in chosen {
        if let Some(parent) = calls.nodes.at(id).parent {
            children[parent] += 1;
        }
    }
    // For each node at the end of a chain where the chain starts, and of how many frames it is.
    let mut chain: FxHashMap<NodeId, (NodeId, usize)> = FxHashMap::default();
    let mut ended: Vec<NodeId> = Vec::new();
    for &id in chosen {
        let node = calls.nodes.at(id);
        if node.stub.is_some() || node.in_code || !can(&node) {
            continue;
        }
        let around = node
            .parent
            .filter(|&parent| children[parent] == 1)
            .filter(|&parent| is_joined(&calls.nodes.at(parent), &node));
        let before = around
            .and_then(|parent| chain.get(&parent).copied())
            .filter(|&(start, _)| {
                let whole = calls.nodes.at(start).weight();
                (whole - node.weight().min(whole)) as f64 <= whole as f64 / 100.0
            });
        match before {
            Some((start, frames)) => {
                chain.insert(id, (start, frames + 1));
            }
            None => {
                chain.insert(id, (id, 1));
            }
        }
        ended.push(id);
    }
    // Those that another one continues do not end there.
    let mut folds = FxHashMap::default();
    let mut continued: IdVec<NodeId, bool> = IdVec::filled(false, calls.nodes.len());
    for &id in &ended {
        let parent = calls.nodes.at(id).parent;
        if let (Some(parent), Some((_, 2..))) = (parent, chain.get(&id)) {
            continued[parent] = true;
        }
    }
    for id in ended.into_iter().filter(|&id| !continued[id]) {
        let frames = chain.get(&id).map_or(0, |&(_, frames)| frames);
        if frames < SHORTEST {
            continue;
        }
        let mut fold = Fold {
            frames,
            owners: Vec::new(),
        };
        let mut nodes: Vec<NodeId> = fold.others(calls, id).collect();
        nodes.insert(0, id);
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for &node in nodes.iter().rev() {
            let owner = owners.of(calls.nodes.at(node).function);
            let name = match owner.kind {
                OwnerKind::Standard => "std",
                _ => &owner.name,
            };
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
        }
        // Of equals the outermost.
        counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        fold.owners = counts
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .collect();
        folds.insert(id, fold);
    }
    folds
}

/// Whether it is in the kernel.
fn is_kernel(subject: &Subject, node: &Node) -> bool {
    let module = subject.profile.functions[node.function].module;
    subject.profile.modules[module].is_kernel()
}

/// Whether a chain may go on from a caller to a callee: not from the function that waits to the
/// kernel, where threads leave their processor.
pub(super) fn is_joined(subject: &Subject, caller: &Node, callee: &Node) -> bool {
    let sides = [caller, callee].map(|node| is_kernel(subject, node));
    !subject.selection.event().is_off_processor() || sides[0] == sides[1]
}

/// Whether it is outside of the user's own code, and so can be in a chain. Where nothing is known
/// to be the user's own, only the scheduler of threads that leave their processor is known not to
/// be.
pub(super) fn is_foreign(subject: &Subject, owners: &Owners, node: &Node) -> bool {
    if !owners.has_own() {
        return subject.selection.event().is_off_processor() && is_kernel(subject, node);
    }
    !matches!(
        owners.of(node.function).kind,
        OwnerKind::Project | OwnerKind::Mark
    )
}

/// The node of the user's own code with the largest weight, other than `main`.
pub(super) fn heaviest_own(subject: &Subject, calls: &CallTree, owners: &Owners) -> Option<NodeId> {
    let is_own = |id: &NodeId| {
        let node = calls.nodes.at(*id);
        let function = &subject.profile.functions[node.function];
        let is_main = function.name == "main" || function.name.ends_with("::main");
        let is_named = function.kind == FunctionKind::Named;
        node.stub.is_none() && !is_main && is_named && owners.is_own(node.function)
    };
    let own = calls.nodes.ids().filter(is_own);
    // Of equals the first.
    own.max_by_key(|&id| (calls.nodes.at(id).weight(), std::cmp::Reverse(id)))
}
