//! Recursion, in one value: cycles from within, and functions that call themselves.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::breaking::{self, Breaking};
use super::cut::Cut;
use super::fonseca::Estimate;
use super::graph;
use super::recursion::{self, Depths};
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallArc, CycleId, Cycles};
use crate::profile::{FunctionId, Profile, Selection};

// The heaviest cycles, for which the best answer is searched for thoroughly.
const IN_EXACT: usize = 16;
// The other cycles are searched if they have at most this many members: milliseconds altogether.
const QUICK: usize = 8;

/// The figures of all cycles, and of functions that call themselves.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The graph with its cycles and figures.
    pub graph: graph::Summary,
    /// How deep recursion goes, in cycles and in functions that call themselves.
    pub depths: Depths,
    /// The totals of the members by Fonseca's rule; empty if there are no cycles.
    pub estimate: Estimate,
    /// For each cycle, arcs whose removal breaks it.
    pub breaking: IdVec<CycleId, Breaking>,
    /// For each cycle, the weight of the samples with at least one of these arcs, each counted
    /// once; without stacks, the sum of the calls.
    pub broken_weight: IdVec<CycleId, u64>,
    /// For each cycle whether it falls apart without the arcs that are [only calls through
    /// pointers](CallArc::is_through_pointer).
    pub only_through_pointer: IdVec<CycleId, bool>,
    /// The functions that call themselves, in order of id. Among them are those outside of cycles
    /// that [recurse through missing frames](Summary::recurses_across_gap).
    pub recursive: Vec<FunctionId>,
}

impl Summary {
    /// Computes all figures. Linear in rows, paths, functions and arcs, apart from sorting, for
    /// [Fonseca's model](super::fonseca::estimate), and for [what breaks a cycle](breaking).
    ///
    /// ```
    /// use proftool::analysis::cycles::Summary;
    /// use proftool::analysis::graph::Options;
    /// use proftool::base::Id;
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter};
    ///
    /// let text = "main;even;odd;even 7\nmain;fib;fib 2\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let summary = Summary::of(&profile, &selection, &Options::default());
    /// let cycle = summary.graph.cycle_order[0];
    /// assert_eq!(summary.depths.cycles[cycle].deepest(), 3);
    /// assert_eq!((summary.entries(cycle).len(), summary.inside(cycle).len()), (1, 2));
    /// assert_eq!(summary.broken_weight[cycle], 7);
    /// // fib calls itself.
    /// assert_eq!(summary.recursive.len(), 1);
    /// ```
    pub fn of(profile: &Profile, selection: &Selection, options: &graph::Options) -> Summary {
        let graph = graph::Summary::of(profile, selection, options);
        let breaking = arcs_that_break(&graph, options);
        let broken_weight = if graph.has_stacks() {
            let sets: Vec<&[ArcId]> = breaking.iter().map(|b| &*b.arcs).collect();
            breaking::passing(profile, selection, &graph.graph, &sets)
        } else {
            let calls = breaking.iter().map(|b| b.weight);
            calls.map(|n| n.try_into().unwrap_or(u64::MAX)).collect()
        };
        Summary {
            depths: recursion::depths_with(&graph.weights.total, profile, selection, &graph.cycles),
            estimate: if graph.cycles.members().is_empty() {
                Estimate::default()
            } else {
                graph.fonseca()
            },
            breaking,
            broken_weight: broken_weight.into(),
            only_through_pointer: only_through_pointer(&graph, options),
            recursive: recursive(&graph),
            graph,
        }
    }

    /// The weight of an arc: that of its samples; where there are no stacks, its calls.
    pub fn weight(&self, arc: ArcId) -> u64 {
        weight(&self.graph, &self.graph.graph.arcs()[arc])
    }

    /// Whether a function leads to itself only by way of functions whose frames are missing.
    pub fn recurses_across_gap(&self, function: FunctionId) -> bool {
        let graph = &self.graph.graph;
        let itself = graph.arc_between(function, function);
        itself.is_some_and(|id| graph.arcs()[id].is_gap())
    }

    /// Whether a function calls itself only if what it called through pointers was itself.
    pub fn recurses_through_pointer(&self, function: FunctionId) -> bool {
        let graph = &self.graph.graph;
        let itself = graph.arc_between(function, function);
        itself.is_some_and(|id| graph.arcs()[id].is_through_pointer())
    }

    /// The samples whose stacks are cut inside a cycle, so that it is not known who entered it.
    pub fn cut_inside(&self, cycle: CycleId) -> Cut {
        let mut all = Cut::default();
        for &member in &self.graph.cycles.members()[cycle] {
            let cut = self.cut_in(member);
            all.weight += cut.weight;
            all.samples += cut.samples;
        }
        all
    }

    /// The samples with this function as the outermost known one.
    pub fn cut_in(&self, function: FunctionId) -> Cut {
        self.graph.hidden.cut_at[function]
    }

    /// The arcs into a cycle, the heaviest first; those from a mark have no known caller.
    pub fn entries(&self, cycle: CycleId) -> Vec<ArcId> {
        self.sorted(self.arcs_to(cycle).filter(|&id| !self.is_inside(id)))
    }

    /// The arcs between its members, the heaviest first.
    pub fn inside(&self, cycle: CycleId) -> Vec<ArcId> {
        let graph = &self.graph.graph;
        let members = self.graph.cycles.members()[cycle].iter();
        // These are in order of id, which a stable sort keeps: of a million arcs few weights
        // differ.
        let arcs = members.flat_map(|&member| graph.callees(member));
        let arcs = arcs.filter(|&id| !graph.arcs()[id].is_self() && self.is_inside(id));
        let mut keys: Vec<(u64, ArcId)> = arcs.map(|id| (self.weight(id), id)).collect();
        keys.sort_by_key(|&(weight, _)| Reverse(weight));
        keys.into_iter().map(|(_, id)| id).collect()
    }

    /// The arcs to a cycle's members from other functions, also its own, in order of callee.
    pub fn arcs_to(&self, cycle: CycleId) -> impl Iterator<Item = ArcId> + Clone {
        let graph = &self.graph.graph;
        let members = self.graph.cycles.members()[cycle].iter();
        let arcs = members.flat_map(|&member| graph.callers(member));
        arcs.filter(|&id| !graph.arcs()[id].is_self())
    }

    fn sorted(&self, arcs: impl Iterator<Item = ArcId>) -> Vec<ArcId> {
        let mut keys: Vec<(Reverse<u64>, ArcId)> =
            arcs.map(|id| (Reverse(self.weight(id)), id)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, id)| id).collect()
    }

    fn is_inside(&self, arc: ArcId) -> bool {
        let arc = &self.graph.graph.arcs()[arc];
        self.graph.cycles.share(arc.from, arc.to)
    }
}

fn arcs_that_break(summary: &graph::Summary, options: &graph::Options) -> IdVec<CycleId, Breaking> {
    let (graph, cycles) = (&summary.graph, &summary.cycles);
    let cut: FxHashSet<_> = cycles
        .cut()
        .iter()
        .map(|&id| graph.arcs()[id].pair())
        .collect();
    let counts = |arc: &CallArc| {
        (graph::forms_cycles(arc, options) && !cut.contains(&arc.pair()))
            .then(|| weight(summary, arc))
    };
    // What is no call cannot be left out of a program.
    let is_call = |arc: &CallArc| counts(arc).filter(|_| !arc.is_gap());
    let mut breaking = IdVec::filled(Breaking::default(), cycles.members().len());
    let places = breaking::places(cycles);
    for (place, &cycle) in summary.cycle_order.iter().enumerate() {
        let exact = if place < IN_EXACT {
            breaking::EXACT
        } else {
            QUICK
        };
        let calls = breaking::lightest_at(&places, graph, cycles, cycle, exact, is_call);
        breaking[cycle] = if calls.arcs.is_empty() {
            breaking::lightest_at(&places, graph, cycles, cycle, exact, counts)
        } else {
            calls
        };
    }
    breaking
}

fn only_through_pointer(
    summary: &graph::Summary,
    options: &graph::Options,
) -> IdVec<CycleId, bool> {
    let proven = Cycles::find(&summary.graph, |arc| {
        graph::forms_cycles(arc, options) && !arc.is_through_pointer()
    });
    let members = summary.cycles.members().iter();
    let rests = members.map(|members| !members.iter().all(|&it| proven.share(members[0], it)));
    rests.collect::<Vec<_>>().into()
}

fn recursive(summary: &graph::Summary) -> Vec<FunctionId> {
    // Through missing frames a function recurses, but does not call itself: in a cycle that is
    // said.
    let is_in_cycle = |arc: &CallArc| summary.cycles.of()[arc.from].is_some();
    let own = summary
        .graph
        .arcs()
        .iter()
        .filter(|arc| arc.is_self() && arc.is_observed())
        .filter(|arc| !arc.is_gap() || !is_in_cycle(arc));
    own.map(|arc| arc.from).collect()
}

// The weight of its samples; without stacks its calls.
fn weight(summary: &graph::Summary, arc: &CallArc) -> u64 {
    if summary.has_stacks() {
        arc.weight
    } else {
        arc.calls.unwrap_or(0)
    }
}
