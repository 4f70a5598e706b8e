//! The strongly connected components of a call graph, callees before callers.
//!
//! The search is Kosaraju's (M. Sharir, "A strong-connectivity algorithm and its applications in
//! data flow analysis", 1981). It keeps its own stack: a chain of a million calls does not exhaust
//! the thread's. It runs on the arcs as two plain lists, as a large graph does not fit into a
//! processor's caches: for a million arcs of 200,000 functions petgraph takes 0.19 s, and this 0.05
//! s.

use super::{ArcId, CallArc, CallGraph};
use crate::base::Lists;

/// Which component each function is in.
pub(super) struct Components {
    /// For each function the number of its component. Over arcs that count, no component leads to
    /// one with a larger number.
    pub(super) of: Vec<u32>,
    /// The number of functions of each component.
    pub(super) sizes: Vec<u32>,
    /// A function of each component.
    pub(super) firsts: Vec<u32>,
}

impl Components {
    pub(super) fn of(graph: &CallGraph, counts: impl Fn(ArcId, &CallArc) -> bool) -> Components {
        let arcs = graph.arcs().enumerate();
        let arcs = arcs.filter(|&(id, arc)| !arc.is_self() && counts(id, arc));
        let arcs = arcs.map(|(_, arc)| (arc.from.index() as u32, arc.to.index() as u32));
        Components::of_arcs(graph.functions(), arcs.collect())
    }

    /// Finds those of a graph with this number of functions; `arcs` has pairs of caller and callee.
    fn of_arcs(functions: usize, arcs: Vec<(u32, u32)>) -> Components {
        let to_callers = arcs.iter().map(|&(from, to)| (to as usize, from));
        let finished = finish_order(&Lists::new(functions, to_callers));
        let to_callees = arcs.iter().map(|&(from, to)| (from as usize, to));
        let callees = Lists::new(functions, to_callees);
        drop(arcs);
        Components::collect(&callees, &finished)
    }

    /// The second search: what is reached from the function that was finished last is its
    /// component.
    fn collect(callees: &Lists<u32>, finished: &[u32]) -> Components {
        let mut components = Components {
            of: vec![u32::MAX; finished.len()],
            sizes: Vec::new(),
            firsts: Vec::new(),
        };
        let mut waiting: Vec<u32> = Vec::new();
        for &first in finished.iter().rev() {
            if components.of[first as usize] != u32::MAX {
                continue;
            }
            let number = components.sizes.len() as u32;
            let mut size = 1;
            components.of[first as usize] = number;
            waiting.push(first);
            while let Some(function) = waiting.pop() {
                for &callee in callees.of(function as usize) {
                    let of = &mut components.of[callee as usize];
                    if *of == u32::MAX {
                        *of = number;
                        size += 1;
                        waiting.push(callee);
                    }
                }
            }
            components.sizes.push(size);
            components.firsts.push(first);
        }
        components
    }
}

/// Returns the members of each cycle of a graph with this number of functions, in ascending order.
/// `arcs` has pairs of caller and callee.
pub fn cycles_of(functions: usize, arcs: Vec<(u32, u32)>) -> Vec<Vec<u32>> {
    let components = Components::of_arcs(functions, arcs);
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); components.sizes.len()];
    for (function, component) in (0..).zip(components.of) {
        members[component as usize].push(function);
    }
    members.retain(|members| members.len() > 1);
    members
}

/// The functions in the order in which a search in depth leaves them.
fn finish_order(neighbours: &Lists<u32>) -> Vec<u32> {
    let functions = neighbours.len();
    let mut seen = vec![false; functions];
    let mut finished = Vec::with_capacity(functions);
    // A function, and how many of its neighbours were passed.
    let mut path: Vec<(u32, u32)> = Vec::new();
    for root in 0..functions as u32 {
        if std::mem::replace(&mut seen[root as usize], true) {
            continue;
        }
        path.push((root, 0));
        while let Some((function, passed)) = path.last_mut() {
            let rest = &neighbours.of(*function as usize)[*passed as usize..];
            match rest.iter().position(|&to| !seen[to as usize]) {
                Some(at) => {
                    let to = rest[at];
                    *passed += at as u32 + 1;
                    seen[to as usize] = true;
                    path.push((to, 0));
                }
                None => {
                    finished.push(*function);
                    path.pop();
                }
            }
        }
    }
    finished
}

#[cfg(test)]
mod tests {
    use petgraph::algo::kosaraju_scc;
    use petgraph::graph::{DiGraph, NodeIndex};
    use proptest::{prop_assert_eq, proptest};

    use super::*;
    use crate::profile::{Builder, Function, Module, Selection};

    /// The graph of these calls, and the same in petgraph.
    fn graphs(functions: usize, calls: &[(usize, usize)]) -> (CallGraph, DiGraph<(), ()>) {
        let mut builder = Builder::default();
        let module = builder.module(Module {
            name: "app".into(),
            path: "app".into(),
        });
        let ids: Vec<_> = (0..functions)
            .map(|at| builder.function(Function::named(format!("f{at}"), module)))
            .collect();
        for (from, to) in calls {
            builder.count(Some(ids[from % functions]), ids[to % functions], 1);
        }
        let graph = CallGraph::of(&builder.finish(), &Selection::nothing());
        let mut other = DiGraph::new();
        for _ in 0..functions {
            other.add_node(());
        }
        for arc in graph.arcs() {
            let [from, to] = [arc.from, arc.to].map(|id| NodeIndex::new(id.index()));
            other.add_edge(from, to, ());
        }
        (graph, other)
    }

    proptest! {
        #[test]
        fn they_are_those_of_petgraph_in_its_order(
            functions in 1usize..40,
            calls in proptest::collection::vec((0usize..40, 0usize..40), 0..80),
        ) {
            let (graph, other) = graphs(functions, &calls);
            let found = Components::of(&graph, |_, _| true);
            let expected = kosaraju_scc(&other);
            let sizes: Vec<usize> = found.sizes.iter().map(|&size| size as usize).collect();
            prop_assert_eq!(sizes, expected.iter().map(Vec::len).collect::<Vec<_>>());
            for (number, members) in (0u32..).zip(&expected) {
                for member in members {
                    prop_assert_eq!(found.of[member.index()], number);
                }
                prop_assert_eq!(found.of[found.firsts[number as usize] as usize], number);
            }
        }
    }

    #[test]
    fn a_chain_of_a_million_calls_takes_no_stack() {
        let size = 1 << 20;
        let calls: Vec<_> = (1..size).map(|at| (at - 1, at)).collect();
        let (graph, _) = graphs(size, &calls);
        let found = Components::of(&graph, |_, _| true);
        assert_eq!(found.sizes.len(), size);
        assert!(found.firsts.iter().rev().copied().eq(0..size as u32));
    }
}
