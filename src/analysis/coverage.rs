//! How much of the code's call graph samples touched.
//!
//! The base is what can be reached, by arcs in the code or in samples, from where the run entered
//! the modules: functions that were outermost on a stack or were called from other modules.

use super::inclusive;
use crate::base::IdVec;
use crate::callgraph::{CallArc, CallGraph};
use crate::profile::{FunctionId, Profile, Selection};

/// Numbers of functions and arcs of the modules that are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The functions that can be reached.
    pub functions: u64,
    /// Those of them on the stack of some sample.
    pub touched_functions: u64,
    /// The arcs in the code of functions that can be reached.
    pub arcs: u64,
    /// Those of them that samples show.
    pub touched_arcs: u64,
    /// Arcs that samples show and the code does not: calls through pointers, and misleading stacks.
    pub only_observed: u64,
}

impl Coverage {
    /// Computes the coverage of the functions `within`; others count only where they call these.
    pub fn of(
        profile: &Profile,
        selection: &Selection,
        graph: &CallGraph,
        within: &IdVec<FunctionId, bool>,
    ) -> Coverage {
        let weights = inclusive::by_function(profile, selection);
        let mut entered = IdVec::filled(false, graph.functions());
        for row in selection.rows() {
            if let Some(root) = profile.paths.outwards(row.path).last() {
                entered[root.function] = true;
            }
        }
        for arc in graph.arcs().iter().filter(|arc| arc.is_observed()) {
            entered[arc.to] |= !within[arc.from];
        }
        let starts = entered.ids().filter(|&id| entered[id] && within[id]);
        let inside = |arc: &CallArc| arc.is_call() && within[arc.to];
        let reached = graph.reachable(starts, inside);
        let mut coverage = Coverage::default();
        for id in reached.ids().filter(|&id| reached[id] && within[id]) {
            coverage.functions += 1;
            coverage.touched_functions += u64::from(weights.samples[id] > 0);
        }
        let arcs = graph.arcs().iter();
        for arc in arcs.filter(|arc| within[arc.from] && reached[arc.from] && arc.is_call()) {
            if arc.sites() == 0 {
                coverage.only_observed += 1;
                continue;
            }
            coverage.arcs += 1;
            coverage.touched_arcs += u64::from(arc.is_observed());
        }
        coverage
    }
}
