//! The calls of collapsed stacks by pairs of functions: the tree merged to a graph.

use super::inwards::shape;
use super::{Collapse, NodeId, Stacks};
use crate::base::{Distinct, IdVec, define_id};
use crate::profile::{FunctionId, Step};

define_id! {
    /// A pair of functions.
    PairId
}

/// A function that called another on collapsed stacks.
///
/// ```text
///   main       6                 main ─6▶ r ─3▶ s
///   └─ r       6                          ⤺ 4          folded: back to the r above
///      ├─ s    1 (2)
///      └─ r... 4
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeArc {
    /// The caller.
    pub from: FunctionId,
    /// The callee, or where the call is folded the function that the stub leads to.
    pub to: FunctionId,
    /// Whether these are stubs of the tree.
    pub folded: bool,
    /// The weight of the samples that took it, each once, in whatever branches of the tree.
    pub weight: u64,
}

// The arcs in order of caller, callee and whether they are folded. Linear in paths.
pub(super) fn arcs(stacks: &Stacks, collapse: Collapse) -> Vec<TreeArc> {
    let (growth, step_of) = shape(stacks, collapse, usize::MAX);
    let mut pairs: Distinct<PairId, (FunctionId, FunctionId, bool)> = Distinct::default();
    let mut pair_of: IdVec<NodeId, Option<PairId>> = IdVec::filled(None, growth.len());
    for step in pair_of.ids() {
        let folded = growth.stub(step).is_some();
        pair_of[step] = growth
            .parent(step)
            .map(|parent| pairs.id_of((growth.function(parent), growth.function(step), folded)));
    }
    drop(growth);
    let pairs = pairs.into_rows();
    let mut visits: IdVec<PairId, u32> = IdVec::filled(0, pairs.len());
    let mut weights: IdVec<PairId, u64> = IdVec::filled(0, pairs.len());
    stacks.links.walk(&stacks.profile.paths, |step| {
        let (Step::Enter(path) | Step::Leave(path)) = step;
        let Some(pair) = step_of[path].and_then(|step| pair_of[step]) else {
            return;
        };
        match step {
            Step::Enter(_) => {
                if visits[pair] == 0 {
                    weights[pair] += stacks.total[path];
                }
                visits[pair] += 1;
            }
            Step::Leave(_) => visits[pair] -= 1,
        }
    });
    let arc = |(&(from, to, folded), &weight)| TreeArc {
        from,
        to,
        folded,
        weight,
    };
    let mut arcs: Vec<TreeArc> = pairs.iter().zip(&weights).map(arc).collect();
    arcs.sort_unstable();
    arcs
}
