//! Cycles: functions that all reach each other by calls.
//!
//! They are the strongly connected components with two members or more (Graham, Kessler and
//! McKusick, "gprof: a call graph execution profiler", 1982, section 4); a function that only
//! calls itself is none. The search is Kosaraju's in petgraph, which keeps its own stack: a chain of
//! a million calls does not exhaust the thread's.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::{Arc, CallGraph};
use crate::base::{Id, IdVec, define_id};
use crate::profile::FunctionId;

define_id! {
    /// A row of [`Cycles::members`].
    pub CycleId
}

/// The cycles of a call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    /// The members of each cycle, two or more, in order of id; cycles in order of their first
    /// members.
    pub members: IdVec<CycleId, Vec<FunctionId>>,
    /// For each function the cycle that it is a member of.
    pub of: IdVec<FunctionId, Option<CycleId>>,
}

impl Cycles {
    /// The cycles over the arcs that `counts` lets pass.
    ///
    /// ```
    /// use proftool::base::Id;
    /// use proftool::callgraph::{CallGraph, Cycles};
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId};
    ///
    /// let text = "main;even;odd;even 3\nmain;lex;lex 1\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let graph = CallGraph::of(&profile, &profile.select(EventId::new(0), &Filter::default()));
    /// let cycles = Cycles::find(&graph, |arc| arc.is_observed());
    /// let [even, odd] = [1, 2].map(FunctionId::new);
    /// assert_eq!(cycles.members.iter().collect::<Vec<_>>(), [&[even, odd]]);
    /// ```
    pub fn find(graph: &CallGraph, counts: impl Fn(&Arc) -> bool) -> Cycles {
        let functions = graph.functions();
        let mut digraph = DiGraph::<(), ()>::with_capacity(functions, graph.arcs.len());
        for _ in 0..functions {
            digraph.add_node(());
        }
        for arc in graph.arcs.iter().filter(|arc| counts(arc)) {
            let [from, to] = [arc.from, arc.to].map(|id| NodeIndex::new(id.index()));
            digraph.add_edge(from, to, ());
        }
        let mut members: Vec<Vec<FunctionId>> = kosaraju_scc(&digraph)
            .into_iter()
            .filter(|members| members.len() > 1)
            .map(|members| {
                let ids = members.iter().map(|member| FunctionId::new(member.index()));
                let mut ids: Vec<FunctionId> = ids.collect();
                ids.sort_unstable();
                ids
            })
            .collect();
        members.sort_unstable();
        let members: IdVec<CycleId, Vec<FunctionId>> = members.into();
        let mut of = IdVec::filled(None, functions);
        for (cycle, members) in members.enumerate() {
            for &member in members {
                of[member] = Some(cycle);
            }
        }
        Cycles { members, of }
    }

    /// Whether the two are members of one cycle.
    pub fn share(&self, a: FunctionId, b: FunctionId) -> bool {
        self.of[a].is_some() && self.of[a] == self.of[b]
    }
}
