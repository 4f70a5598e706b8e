//! Cycles: functions that all reach each other by calls.
//!
//! They are the strongly connected components with two members or more (Graham, Kessler and
//! McKusick, "gprof: a call graph execution profiler", 1982, section 4). A function that only
//! calls itself forms no cycle.
//!
//! ```text
//!   main ─▶ parse ─▶ expr ⇄ term ─▶ lex      groups, callees first: lex, {expr, term}, parse, main
//! ```
//!
//! Drawn together, each cycle is one node of a graph without cycles: a *group* is a cycle or a
//! function that is in none.

use super::components::Components;
use super::{ArcId, CallArc, CallGraph};
use crate::base::{IdVec, define_id};
use crate::profile::FunctionId;

define_id! {
    /// A row of [`Cycles::members`].
    pub CycleId
}

define_id! {
    /// A cycle as a whole, or a function outside of all cycles; see [`Cycles::group`].
    pub GroupId
}

/// The cycles of a call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    members: IdVec<CycleId, Vec<FunctionId>>,
    of: IdVec<FunctionId, Option<CycleId>>,
    cut: Vec<ArcId>,
    order: Vec<GroupId>,
}

impl Cycles {
    /// The members of each cycle, two or more, in order of id; cycles in order of their first
    /// members.
    pub fn members(&self) -> &IdVec<CycleId, Vec<FunctionId>> {
        &self.members
    }

    /// For each function the cycle that it is a member of.
    pub fn of(&self) -> &IdVec<FunctionId, Option<CycleId>> {
        &self.of
    }

    /// The arcs that would make cycles larger but are too weak to count, in order of id. Only
    /// [`Cycles::find_strong`] leaves arcs out.
    pub fn cut(&self) -> &[ArcId] {
        &self.cut
    }

    /// The cycles over the arcs that `counts` lets pass.
    ///
    /// ```
    /// use proftool::callgraph::{CallGraph, Cycles};
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter, FunctionId};
    ///
    /// let text = "main;even;odd;even 3\nmain;lex;lex 1\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let graph = CallGraph::of(&profile, &profile.select(EventId::new(0), &Filter::default()));
    /// let cycles = Cycles::find(&graph, |arc| arc.is_observed());
    /// let [even, odd] = [1, 2].map(FunctionId::new);
    /// assert_eq!(cycles.members().iter().collect::<Vec<_>>(), [&[even, odd]]);
    /// ```
    pub fn find(graph: &CallGraph, counts: impl Fn(&CallArc) -> bool) -> Cycles {
        Cycles::find_over(graph, |_, arc| counts(arc))
    }

    /// [`Cycles::find`] for a choice that looks arcs up by their ids.
    pub(crate) fn find_over(graph: &CallGraph, counts: impl Fn(ArcId, &CallArc) -> bool) -> Cycles {
        let functions = graph.functions();
        let components = Components::of(graph, counts);
        let mut members: IdVec<CycleId, Vec<FunctionId>> = IdVec::new();
        let mut cycle_of: Vec<Option<CycleId>> = vec![None; components.sizes.len()];
        let mut of = IdVec::filled(None, functions);
        for function in graph.function_ids() {
            let component = components.of[function.index()] as usize;
            let size = components.sizes[component] as usize;
            if size > 1 {
                let cycle = *cycle_of[component]
                    .get_or_insert_with(|| members.push(Vec::with_capacity(size)));
                members[cycle].push(function);
                of[function] = Some(cycle);
            }
        }
        let mut cycles = Cycles {
            members,
            of,
            cut: Vec::new(),
            order: Vec::new(),
        };
        let firsts = components.firsts.iter();
        cycles.order = firsts
            .map(|&first| cycles.group(FunctionId::new(first as usize)))
            .collect();
        cycles
    }

    /// The cycles over the arcs that `counts` lets pass, without those that only `weak` arcs hold
    /// together: a single stray sample can join two cycles into a large one that explains nothing.
    ///
    /// A weak arc is left out if both its ends are in one cycle, and listed in [`Cycles::cut`] if
    /// they are not in one cycle without it. Weak arcs elsewhere form no cycle and stay.
    ///
    /// ```
    /// use proftool::callgraph::{CallGraph, Cycles};
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter};
    ///
    /// let text = "main;even;odd;even 300\nmain;even;odd;main 1\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let graph = CallGraph::of(&profile, &profile.select(EventId::new(0), &Filter::default()));
    /// assert_eq!(Cycles::find(&graph, |_| true).members().iter().next().unwrap().len(), 3);
    /// let cycles = Cycles::find_strong(&graph, |_| true, |arc| arc.weight < 3);
    /// assert_eq!(cycles.members().iter().next().unwrap().len(), 2);
    /// assert_eq!(cycles.cut().len(), 1);
    /// ```
    pub fn find_strong(
        graph: &CallGraph,
        counts: impl Fn(&CallArc) -> bool,
        weak: impl Fn(&CallArc) -> bool,
    ) -> Cycles {
        let all = Cycles::find(graph, &counts);
        let suspect = |arc: &CallArc| weak(arc) && !arc.is_self() && all.share(arc.from, arc.to);
        if !graph.arcs().iter().any(|arc| counts(arc) && suspect(arc)) {
            return all;
        }
        let mut cycles = Cycles::find(graph, |arc| counts(arc) && !suspect(arc));
        let cut = graph
            .arcs
            .enumerate()
            .filter(|(_, arc)| counts(arc) && suspect(arc) && !cycles.share(arc.from, arc.to));
        cycles.cut = cut.map(|(id, _)| id).collect();
        cycles
    }

    /// Whether the two are members of one cycle.
    pub fn share(&self, a: FunctionId, b: FunctionId) -> bool {
        self.of[a].is_some() && self.of[a] == self.of[b]
    }

    /// Whether the arc stays within its group: inside of a cycle, or a function that calls itself.
    pub fn is_within(&self, arc: &CallArc) -> bool {
        arc.is_self() || self.share(arc.from, arc.to)
    }

    /// The cycle that the function is in as a whole, or the function alone.
    pub fn group(&self, function: FunctionId) -> GroupId {
        GroupId::new(match self.of[function] {
            Some(cycle) => cycle.index(),
            None => self.members.len() + function.index(),
        })
    }

    /// The group that a cycle is.
    pub fn group_of_cycle(&self, cycle: CycleId) -> GroupId {
        GroupId::new(cycle.index())
    }

    /// How many rows a column of groups has: cycles first, then one for every function, which is
    /// not used where the function is a member of a cycle.
    pub fn groups(&self) -> usize {
        self.members.len() + self.of.len()
    }

    /// The functions of a group: one, or the members of a cycle.
    pub fn functions_of(&self, group: GroupId) -> impl Iterator<Item = FunctionId> {
        let members = self.members.get(CycleId::new(group.index()));
        let alone = group.index().checked_sub(self.members.len());
        let members = members.into_iter().flatten().copied();
        members.chain(alone.map(FunctionId::new))
    }

    /// All groups in an order in which an arc that counted when the cycles were found leads from a
    /// later group to an earlier one, or stays within its group: callees before callers.
    pub fn callees_first(&self) -> impl DoubleEndedIterator<Item = GroupId> + ExactSizeIterator {
        self.order.iter().copied()
    }
}
