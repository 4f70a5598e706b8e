//! Cycles that run through the scheduler of a runtime.
//!
//! A worker of rayon or tokio takes a task, which waits for others, and takes the next one on the
//! same stack. So everything that such a runtime runs reaches everything else, and forms one cycle
//! of calls with the runtime's own functions. If the cycle disappears without the runtime's
//! functions, the program itself does not recurse.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::{OwnerId, Owners};
use crate::analysis::graph::{Entry, Summary};
use crate::base::IdVec;
use crate::callgraph::{CallArc, CycleId, Cycles};
use crate::profile::FunctionId;

// Runtimes that run tasks on stacks of others, by package or crate.
const RUNTIMES: [&str; 12] = [
    "rayon-core",
    "rayon_core",
    "tokio",
    "async-executor",
    "async_executor",
    "async-std",
    "async_std",
    "smol",
    "futures-executor",
    "futures_executor",
    "libtbb.so.12",
    "libtbb.so.2",
];

/// A cycle through a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The owners of the scheduler.
    pub runtimes: Vec<OwnerId>,
    /// The members that are the user's own code, the largest total first.
    pub own: Vec<FunctionId>,
}

/// For each cycle, the runtimes without whose functions it disappears; `None` if it stays.
pub fn scheduled(summary: &Summary, owners: &Owners) -> IdVec<CycleId, Option<Scheduled>> {
    let cycles = &summary.cycles;
    let is_runtime = |id: FunctionId| RUNTIMES.contains(&&*owners.of(id).name);
    let runtimes_of = |members: &[FunctionId]| {
        let in_runtime = members.iter().filter(|&&id| is_runtime(id));
        let mut runtimes: Vec<OwnerId> = in_runtime.map(|&id| owners.id_of(id)).collect();
        runtimes.sort_unstable();
        runtimes.dedup();
        runtimes
    };
    let runtimes = cycles.members().iter().map(|members| runtimes_of(members));
    let runtimes: Vec<Vec<OwnerId>> = runtimes.collect();
    // Most programs have no runtime in a cycle; then there is nothing to leave out.
    let left = runtimes
        .iter()
        .any(|runtimes| !runtimes.is_empty())
        .then(|| without_runtimes(summary, &is_runtime));
    let total = |id: FunctionId| summary.total(Entry::Function(id)).round() as u64;
    let mut found = IdVec::default();
    for (members, runtimes) in cycles.members().iter().zip(runtimes) {
        let recurses = |left: &Cycles| members.iter().any(|&id| left.of()[id].is_some());
        let is_scheduled = !runtimes.is_empty() && !left.as_ref().is_some_and(recurses);
        found.push(is_scheduled.then(|| {
            let mut own: Vec<FunctionId> = members
                .iter()
                .copied()
                .filter(|&id| owners.is_own(id))
                .collect();
            own.sort_by_key(|&id| (Reverse(total(id)), id));
            Scheduled { runtimes, own }
        }));
    }
    found
}

fn without_runtimes(summary: &Summary, is_runtime: &dyn Fn(FunctionId) -> bool) -> Cycles {
    let cycles = &summary.cycles;
    let cut: FxHashSet<_> = (cycles.cut().iter())
        .map(|&id| summary.graph.arcs()[id].pair())
        .collect();
    let counts = |arc: &CallArc| {
        arc.is_observed()
            && cycles.share(arc.from, arc.to)
            && !cut.contains(&arc.pair())
            && !is_runtime(arc.from)
            && !is_runtime(arc.to)
    };
    Cycles::find(&summary.graph, counts)
}
