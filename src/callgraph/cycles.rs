//! Cycles: functions that all reach each other by calls.
//!
//! They are the strongly connected components with two members or more (gprof, 1982, section
//! 4); a function that only calls itself is none. The search is Kosaraju's in petgraph, which
//! keeps its own stack: a chain of a hundred thousand calls does not exhaust the thread's.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::base::Id;
use crate::profile::FunctionId;

/// The cycles among functions with ids below `functions`; members in order of id, cycles in
/// order of their first members.
///
/// ```
/// use proftool::base::Id;
/// use proftool::callgraph::find_cycles;
/// use proftool::profile::FunctionId;
///
/// let [a, b, c] = [0, 1, 2].map(FunctionId::new);
/// assert_eq!(find_cycles(3, [(a, b), (b, a), (b, c), (c, c)]), [[a, b]]);
/// ```
pub fn find(
    functions: usize,
    arcs: impl IntoIterator<Item = (FunctionId, FunctionId)>,
) -> Vec<Vec<FunctionId>> {
    let mut graph = DiGraph::<(), ()>::new();
    for _ in 0..functions {
        graph.add_node(());
    }
    for (from, to) in arcs {
        graph.add_edge(NodeIndex::new(from.index()), NodeIndex::new(to.index()), ());
    }
    let components = kosaraju_scc(&graph);
    let mut cycles: Vec<Vec<FunctionId>> = components
        .into_iter()
        .filter(|members| members.len() > 1)
        .map(|members| {
            let ids = members.iter().map(|member| FunctionId::new(member.index()));
            let mut ids: Vec<FunctionId> = ids.collect();
            ids.sort_unstable();
            ids
        })
        .collect();
    cycles.sort_unstable();
    cycles
}
