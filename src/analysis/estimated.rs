//! Totals where no stacks were recorded and calls were counted: gprof's estimate.
//!
//! gprof has no totals for members of cycles: it gives a member its own weight and that of callees
//! outside the cycle. Here members have totals from [Fonseca's rule](super::fonseca), which
//! propagates inside cycles from their entries:
//!
//! ```text
//!   main ─ 1 call ─▶ a ⇄ b ─▶ leaf         own  gprof  here
//!                                  main     1     6     6
//!                                  a        2     2     5     where the cycle is entered
//!                                  b        1     3     3
//!                                  leaf     2     2     2
//! ```
//!
//! All of it rests on the assumption that every call of a function takes the same time.

use super::attribution::{Attribution, Portion};
use super::flow::Flow;
use super::fonseca::{self, Rule};
use super::propagation;
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallArc, CallGraph, Cycles};
use crate::profile::{FunctionId, Profile, Selection};

/// Whether totals can only be estimated: calls were counted, and no stack has a caller on it.
pub fn is_needed(profile: &Profile, selection: &Selection) -> bool {
    let mut paths = selection.rows().iter().map(|row| &profile.paths[row.path]);
    profile.counts.is_some() && !paths.any(|path| path.caller.is_some())
}

/// The estimate of a profile.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The calls that were counted, and the arcs of the code.
    pub graph: CallGraph,
    /// The cycles of the counted calls.
    pub cycles: Cycles,
    /// The times, with totals of all functions.
    pub attribution: Attribution,
    // What came over arcs inside of cycles; where there are none, nothing.
    inside: Option<IdVec<ArcId, Option<Portion>>>,
}

impl Estimate {
    /// What of its callee's total came over an arc; `None` where a function calls itself. The parts
    /// of a function's callers add up to its total, except for the part without a known caller.
    pub fn over(&self, arc: ArcId) -> Option<Portion> {
        let ends = &self.graph.arcs()[arc];
        if !self.cycles.is_within(ends) {
            self.attribution.arcs[arc]
        } else if ends.is_self() {
            None
        } else {
            *self.inside.as_ref()?.get(arc)?
        }
    }
}

/// The estimate for the selected samples; `self_weights` are theirs.
pub fn of(
    profile: &Profile,
    selection: &Selection,
    self_weights: &IdVec<FunctionId, f64>,
) -> Estimate {
    let graph = CallGraph::of(profile, selection).without(|arc| !arc.is_call());
    let cycles = Cycles::find(&graph, CallArc::is_observed);
    let flow = Flow::of_calls(&graph, profile.counts.as_ref());
    let (attribution, inside) = estimate(&graph, &cycles, self_weights, &flow);
    Estimate {
        graph,
        cycles,
        attribution,
        inside,
    }
}

/// [`propagation::propagate`], with totals for members of cycles too.
pub fn attribute(
    graph: &CallGraph,
    cycles: &Cycles,
    self_weights: &IdVec<FunctionId, f64>,
    flow: &Flow,
) -> Attribution {
    estimate(graph, cycles, self_weights, flow).0
}

fn estimate(
    graph: &CallGraph,
    cycles: &Cycles,
    self_weights: &IdVec<FunctionId, f64>,
    flow: &Flow,
) -> (Attribution, Option<IdVec<ArcId, Option<Portion>>>) {
    let mut attribution = propagation::propagate(graph, cycles, self_weights, flow);
    if cycles.members().is_empty() {
        return (attribution, None);
    }
    let inside = fonseca::estimate(graph, self_weights, flow, Rule::Sound).attribution;
    let totals = graph.function_ids().map(|id| {
        let Some(cycle) = cycles.of()[id] else {
            return attribution.total(id);
        };
        // Where arcs without calls, or without those that are cut, make other cycles than the
        // calls.
        let least = attribution.functions[id].total();
        let most = attribution.cycles[cycle].portion.total();
        inside.total(id).max(least).min(most.max(least))
    });
    let totals: Vec<f64> = totals.collect();
    attribution.totals = Some(totals.into());
    attribution.standard_error = inside.standard_error;
    (attribution, Some(inside.arcs))
}
