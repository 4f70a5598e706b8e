//! The recursion of a profile: cycles from within, and functions that call themselves.
//!
//! ```text
//!   main ─ 5 ─▶ expr ─ 4 ─▶ term ─ 4 ─▶ factor        entered: main ─▶ expr
//!                ▲───────── 3 ────────────┘           inside: the three arcs by weight
//!                                                     broken by leaving out: factor ─▶ expr
//! ```
//!
//! Beside what was measured of a member stands what two estimates make of it: gprof's, which gives a
//! member its own weight and that of callees outside, and Fonseca's, which carries on inside.

mod page;

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::Subject;
use super::graph::{self, Entry, GraphView};
use crate::analysis::breaking::{self, Breaking};
use crate::analysis::cut::Cut;
use crate::analysis::fonseca::Estimate;
use crate::analysis::recursion::{self, Depths};
use crate::callgraph::{Arc, ArcId, CallGraph, CycleId};
use crate::profile::FunctionId;

/// The cycles, and what is known of each.
#[derive(Clone, Debug)]
pub struct CyclesView {
    /// The graph with its cycles and figures.
    pub graph: GraphView,
    /// How deep recursion goes, in cycles and in functions that call themselves.
    pub depths: Depths,
    /// What Fonseca's rule makes of the members.
    pub estimate: Estimate,
    /// For each cycle, in the order of their numbers, arcs without which it is none.
    pub breaking: Vec<Breaking>,
    /// For each cycle, in the same order, what has at least one of these arcs: the weight of the
    /// samples, each once; without stacks the sum of the calls.
    pub broken_weight: Vec<u64>,
    /// The functions that call themselves, the largest total first. Among them are those outside of
    /// cycles that [recurse through missing frames](CyclesView::recurses_across_gap).
    pub recursive: Vec<FunctionId>,
    /// At most so many cycles and rows in a page; `None` for all.
    limit: Option<usize>,
}

/// For so many cycles, the heaviest, the best answer is looked for as far as it can be found.
const IN_EXACT: usize = 16;
/// For the others up to so many members: milliseconds altogether.
const QUICK: usize = 8;

/// Finds what there is to say of each cycle. `options` are those of the listing; its limit is one
/// of cycles here.
pub fn arrange(subject: &Subject, graph: CallGraph, options: &graph::Options) -> CyclesView {
    let listing = graph::Options {
        limit: None,
        ..options.clone()
    };
    let mut view = graph::arrange(subject, graph, &listing);
    let mut order = std::mem::take(&mut view.cycle_order);
    order.retain(|&cycle| {
        let total = view.total(Entry::Cycle(cycle)).max(0.0);
        total * 100.0 >= options.min * subject.selection.total as f64
    });
    view.cycle_order = order;
    let weigh = |arc: &Arc| weight(&view, arc);
    let forms = |arc: &Arc| options.code_makes_cycles || arc.is_observed();
    let cut = view.cycles.cut.iter().map(|&id| view.graph.arcs[id].pair());
    let cut: FxHashSet<_> = cut.collect();
    let is_cut = |arc: &Arc| cut.contains(&arc.pair());
    let counts = |arc: &Arc| (forms(arc) && !is_cut(arc)).then(|| weigh(arc));
    // What is no call cannot be left out of a program.
    let is_call = |arc: &Arc| counts(arc).filter(|_| !arc.is_gap());
    let breaking = view.cycle_order.iter().enumerate().map(|(place, &cycle)| {
        let exact = if place < IN_EXACT {
            breaking::EXACT
        } else {
            QUICK
        };
        let (graph, cycles) = (&view.graph, &view.cycles);
        let calls = breaking::lightest(graph, cycles, cycle, exact, is_call);
        match calls.arcs.is_empty() {
            false => calls,
            true => breaking::lightest(graph, cycles, cycle, exact, counts),
        }
    });
    let breaking: Vec<Breaking> = breaking.collect();
    let broken_weight = match view.has_stacks() {
        true => {
            let sets: Vec<&[ArcId]> = breaking.iter().map(|b| &*b.arcs).collect();
            breaking::passing(subject.profile, subject.selection, &view.graph, &sets)
        }
        false => {
            let calls = breaking.iter().map(|b| b.weight);
            calls.map(|n| n.try_into().unwrap_or(u64::MAX)).collect()
        }
    };

    let own = view.graph.arcs.iter();
    // Through missing frames a function recurses, but does not call itself: in a cycle that is said.
    let is_in_cycle = |arc: &Arc| view.cycles.of[arc.from].is_some();
    let own = own.filter(|arc| arc.is_self() && arc.is_observed());
    let own = own.filter(|arc| !arc.is_gap() || !is_in_cycle(arc));
    let mut recursive: Vec<FunctionId> = own.map(|arc| arc.from).collect();
    recursive.sort_by_cached_key(|&id| {
        let total = view.total(Entry::Function(id)).max(0.0);
        (Reverse(total.to_bits()), view.name(id).to_owned(), id)
    });
    CyclesView {
        depths: recursion::depths(subject.profile, subject.selection, &view.cycles),
        // It is shown for members of cycles only.
        estimate: match view.cycles.members.is_empty() {
            true => Estimate::default(),
            false => view.fonseca(),
        },
        breaking,
        broken_weight,
        recursive,
        limit: options.limit,
        graph: view,
    }
}

/// What an arc inside of a cycle counts: the weight of its samples; without stacks its calls.
fn weight(view: &GraphView, arc: &Arc) -> u64 {
    match view.has_stacks() {
        true => arc.weight,
        false => arc.calls.unwrap_or(0),
    }
}

impl CyclesView {
    /// What an arc counts: the weight of its samples; where there are no stacks its calls.
    pub fn weight(&self, arc: ArcId) -> u64 {
        weight(&self.graph, &self.graph.graph.arcs[arc])
    }

    /// Whether a function leads to itself only by way of functions whose frames are missing.
    pub fn recurses_across_gap(&self, function: FunctionId) -> bool {
        let graph = &self.graph.graph;
        let itself = graph.arc_between(function, function);
        itself.is_some_and(|id| graph.arcs[id].is_gap())
    }

    /// The samples whose stacks are cut inside of a cycle: who entered it is not known for these.
    pub fn cut_inside(&self, cycle: CycleId) -> Cut {
        let mut all = Cut::default();
        for &member in &self.graph.cycles.members[cycle] {
            let cut = self.cut_in(member);
            all.weight += cut.weight;
            all.samples += cut.samples;
        }
        all
    }

    /// The samples of whose stacks this function is the outermost that is known.
    pub fn cut_in(&self, function: FunctionId) -> Cut {
        self.graph.hidden.cut_at[function]
    }

    /// The arcs from outside into a cycle, the heaviest first. What comes from a mark was not called
    /// by anything that is known.
    pub fn entries(&self, cycle: CycleId) -> Vec<ArcId> {
        self.arcs(cycle, |inside, is_self| !inside && !is_self)
    }

    /// The arcs between its members, the heaviest first.
    pub fn inside(&self, cycle: CycleId) -> Vec<ArcId> {
        self.arcs(cycle, |inside, is_self| inside && !is_self)
    }

    fn arcs(&self, cycle: CycleId, wanted: impl Fn(bool, bool) -> bool) -> Vec<ArcId> {
        let (graph, cycles) = (&self.graph.graph, &self.graph.cycles);
        let members = cycles.members[cycle].iter();
        let arcs = members.flat_map(|&member| graph.callers(member));
        let mut arcs: Vec<ArcId> = arcs
            .filter(|&id| {
                let arc = &graph.arcs[id];
                wanted(cycles.share(arc.from, arc.to), arc.is_self())
            })
            .collect();
        arcs.sort_by_key(|&id| (Reverse(self.weight(id)), id));
        arcs
    }
}
