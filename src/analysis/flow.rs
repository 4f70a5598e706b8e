//! How much came over each arc: the numbers by which models divide a callee's weight.

use super::attribution::Attribution;
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallGraph};
use crate::profile::{Counts, FunctionId};

/// For each arc a number, 0 or more, in proportion to which callers account for a callee: calls,
/// or the weight of stacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// By arc.
    pub arcs: IdVec<ArcId, f64>,
    /// By function: what came from callers that are not in the graph. gprof takes 0 for all.
    pub roots: IdVec<FunctionId, f64>,
}

impl Flow {
    /// The counted calls, 0 where none were counted. Calls by callers that are not known are roots
    /// where `counts` is given; gprof leaves them out.
    pub fn of_calls(graph: &CallGraph, counts: Option<&Counts>) -> Flow {
        let arcs: Vec<f64> = graph
            .arcs()
            .iter()
            .map(|arc| arc.calls.unwrap_or(0) as f64)
            .collect();
        let mut roots = IdVec::filled(0.0, graph.functions());
        for count in counts.into_iter().flat_map(|counts| counts.calls()) {
            if count.from.is_none() {
                roots[count.to] += count.calls as f64;
            }
        }
        Flow {
            arcs: arcs.into(),
            roots,
        }
    }

    /// The measured weights of arcs, 0 in cycles; propagated they give the measured figures again.
    pub fn of_weight(measured: &Attribution) -> Flow {
        let arcs = measured.arcs.iter();
        let roots = measured.roots.iter();
        let arcs: Vec<f64> = arcs.map(|arc| arc.map_or(0.0, |arc| arc.total())).collect();
        let roots: Vec<f64> = roots.map(|root| root.total()).collect();
        Flow {
            arcs: arcs.into(),
            roots: roots.into(),
        }
    }
}
