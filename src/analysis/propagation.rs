//! gprof's propagation of time from callees to callers, by numbers of calls.
//!
//! ```text
//!   a ─ 1 call ─▶ ┐                        a accounts for 1/4 of log's 8: 2
//!                 log  self 6, children 2
//!   b ─ 3 calls ─▶┘                        b for 3/4: 6
//! ```
//!
//! Callees come before callers, so that what a callee has is known when it is divided. A cycle is
//! divided as a whole among its callers from outside, whichever member they call; its members pass
//! no time to each other. That every call of a function takes the same time is an assumption
//! ([`error`](super::error) says what it costs); whole stacks need none
//! ([`measured`](super::measured)).
//!
//! After Graham, Kessler and McKusick, "gprof: a call graph execution profiler", 1982, section 4,
//! and `cg_arcs.c` of GNU gprof 2.40 where the paper is silent.

use super::attribution::{Attribution, CycleWeight, Portion};
use super::flow::Flow;
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallGraph, Cycles, GroupId};
use crate::profile::FunctionId;

/// Propagates the functions' own weights along `flow`. Linear in functions and arcs.
///
/// Cycles are expected to be found over all arcs that have a flow. An arc that was left out and
/// leads back to a caller, or was cut ([`Cycles::cut`]), is ignored.
///
/// ```
/// use proftool::analysis::flow::Flow;
/// use proftool::analysis::propagation;
/// use proftool::base::Id;
/// use proftool::callgraph::{CallGraph, Cycles};
/// use proftool::profile::{Builder, Function, FunctionId, Module, Selection};
///
/// let mut builder = Builder::default();
/// let module = builder.module(Module { name: "app".into(), path: "app".into() });
/// let named = |name| builder.function(Function::named(name, module));
/// let [a, b, log, write] = ["a", "b", "log", "write"].map(named);
/// for (from, to, calls) in [(a, log, 1), (b, log, 3), (log, write, 1)] {
///     builder.count(Some(from), to, calls);
/// }
/// let graph = CallGraph::of(&builder.finish(), &Selection::nothing());
/// let cycles = Cycles::find(&graph, |_| true);
/// let flow = Flow::of_calls(&graph, None);
/// let times = propagation::propagate(&graph, &cycles, &vec![0.0, 0.0, 6.0, 2.0].into(), &flow);
/// assert_eq!(times.functions[b].children, 6.0);
/// let arc = times.arcs[graph.arc_between(a, log).unwrap()].unwrap();
/// assert_eq!((arc.self_weight, arc.children), (1.5, 0.5));
/// ```
pub fn propagate(
    graph: &CallGraph,
    cycles: &Cycles,
    self_weights: &IdVec<FunctionId, f64>,
    flow: &Flow,
) -> Attribution {
    let carries = carrying(graph, cycles, flow);
    let mut shared = IdVec::filled(0.0, cycles.groups());
    for (id, arc) in graph.arcs().enumerate().filter(|&(id, _)| carries[id]) {
        shared[cycles.group(arc.to)] += flow.arcs[id];
    }
    let mut groups = IdVec::filled(Portion::default(), cycles.groups());
    let mut functions = IdVec::filled(Portion::default(), graph.functions());
    for function in functions.ids() {
        functions[function].self_weight = self_weights[function];
        groups[cycles.group(function)].self_weight += self_weights[function];
        shared[cycles.group(function)] += flow.roots[function];
    }
    let mut arcs: IdVec<ArcId, Option<Portion>> = graph
        .arcs()
        .iter()
        .map(|arc| (!cycles.is_within(arc)).then(Portion::default))
        .collect::<Vec<_>>()
        .into();
    // Callees first, so that what a group has is complete when it is shared out among its callers.
    for group in cycles.callees_first() {
        for function in cycles.functions_of(group) {
            for id in graph.callees(function).filter(|&id| carries[id]) {
                let callee = cycles.group(graph.arcs()[id].to);
                let portion = groups[callee] * (flow.arcs[id] / shared[callee]);
                arcs[id] = Some(portion);
                functions[function].children += portion.total();
                groups[group].children += portion.total();
            }
        }
    }
    let mut roots = IdVec::filled(Portion::default(), graph.functions());
    for function in functions.ids() {
        let group = cycles.group(function);
        roots[function] = match shared[group] {
            // Nothing is known to call it, so it keeps what it has. Of a cycle that nothing calls
            // it is not known which member was entered: only the cycle as a whole keeps it.
            0.0 if cycles.of()[function].is_none() => groups[group],
            0.0 => Portion::default(),
            all => groups[group] * (flow.roots[function] / all),
        };
    }
    let of_cycles: Vec<CycleWeight> = cycles
        .members()
        .enumerate()
        .map(|(id, members)| {
            let group = cycles.group_of_cycle(id);
            let mut root = Portion::default();
            members.iter().for_each(|&member| root += roots[member]);
            CycleWeight {
                portion: groups[group],
                root: if shared[group] == 0.0 {
                    groups[group]
                } else {
                    root
                },
            }
        })
        .collect();
    Attribution {
        standard_error: 0.0,
        functions,
        roots,
        totals: None,
        cycles: of_cycles.into(),
        arcs,
    }
}

// For each arc whether it carries weight from its callee to its caller.
pub(super) fn carrying(graph: &CallGraph, cycles: &Cycles, flow: &Flow) -> IdVec<ArcId, bool> {
    let mut place: IdVec<GroupId, u32> = IdVec::filled(0, cycles.groups());
    for (at, group) in (0u32..).zip(cycles.callees_first()) {
        place[group] = at;
    }
    let mut carries: IdVec<ArcId, bool> = graph
        .arcs()
        .enumerate()
        .map(|(id, arc)| {
            flow.arcs[id] > 0.0 && place[cycles.group(arc.to)] < place[cycles.group(arc.from)]
        })
        .collect::<Vec<_>>()
        .into();
    cycles.cut().iter().for_each(|&arc| carries[arc] = false);
    carries
}
