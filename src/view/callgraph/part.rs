//! Which functions and arcs of a call graph are shown.

use std::cmp::Reverse;

use super::Options;
use crate::analysis::code::{Measured, Summary};
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallArc, CallGraph, Cycles};
use crate::profile::FunctionId;
use crate::view::Subject;
use crate::view::flat::reaches;

/// A part of a call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// These functions, with their callers and callees.
    About(Vec<FunctionId>),
    /// What can be reached by calls, from where that was
    /// [asked for](crate::analysis::code::Options::from).
    Reachable,
    /// What nothing calls: where programs and libraries are entered, what is only called through
    /// pointers, what is dead.
    Roots,
    /// The functions that all reach each other by calls, and those that call themselves.
    Cycles,
}

/// What was chosen.
pub(super) struct Chosen {
    /// The functions to list, in order.
    pub(super) listed: Vec<FunctionId>,
    /// How many more would have been listed.
    pub(super) hidden: usize,
    /// The arcs, in order of id.
    pub(super) arcs: Vec<ArcId>,
}

pub(super) fn choose(subject: &Subject, summary: &Summary, options: &Options) -> Chosen {
    let Summary {
        graph,
        cycles,
        modules,
        within,
        reached,
        measured,
    } = summary;
    let measured = measured.as_ref();
    let functions = || subject.profile.functions.ids().filter(|&id| within[id]);
    let is_reached = |id: FunctionId| reached.as_ref().is_some_and(|reached| reached[id]);
    let mut listed: Vec<FunctionId> = match &options.part {
        Part::Whole => {
            let calls = |id: &FunctionId| graph.callees(*id).len() > 0;
            functions().filter(calls).collect()
        }
        Part::About(about) => about.clone(),
        Part::Reachable => {
            let all = subject.profile.functions.ids();
            all.filter(|&id| is_reached(id)).collect()
        }
        Part::Roots => functions()
            .filter(|&id| summary.is_root(subject.profile, id))
            .collect(),
        Part::Cycles => functions()
            .filter(|&id| cycles.of()[id].is_some() || calls_itself(graph, id))
            .collect(),
    };
    if let Some(measured) = measured
        && !matches!(options.part, Part::About(_) | Part::Cycles)
    {
        let whole = subject.selection.total();
        listed.retain(|&id| reaches(measured.weights.total[id], whole, options.min));
    }
    match options.part {
        Part::About(_) => {}
        Part::Cycles => by_cycle(graph, cycles, measured, &mut listed),
        _ => by_importance(subject, graph, measured, &mut listed),
    }
    let limit = match options.part {
        // A limit of functions would cut cycles in pieces.
        Part::About(_) | Part::Cycles => None,
        _ => options.limit,
    };
    let hidden = limit.map_or(0, |limit| listed.len().saturating_sub(limit));
    listed.truncate(listed.len() - hidden);

    let mut is_listed = IdVec::filled(false, graph.functions());
    listed.iter().for_each(|&id| is_listed[id] = true);
    let whole = options.part == Part::Whole && hidden == 0 && options.min <= 0.0;
    let shown = |arc: &CallArc| match &options.part {
        Part::Whole if whole => within[arc.from] || within[arc.to],
        Part::Whole | Part::Roots => is_listed[arc.from],
        Part::About(_) => is_listed[arc.from] || is_listed[arc.to],
        Part::Reachable => is_listed[arc.from] && is_reached(arc.to),
        Part::Cycles => cycles.is_within(arc) && is_listed[arc.from],
    };
    let arcs = graph
        .arcs()
        .enumerate()
        .filter(|(_, arc)| shown(arc))
        .map(|(id, _)| id)
        .collect();
    if whole && modules.is_empty() {
        // Functions that neither call nor are called are part of the whole, too.
        let silent = functions().filter(|&id| graph.callees(id).len() == 0);
        if options.limit.is_none() {
            listed.extend(silent);
        }
    }
    Chosen {
        listed,
        hidden,
        arcs,
    }
}

fn calls_itself(graph: &CallGraph, id: FunctionId) -> bool {
    let arc = graph.arc_between(id, id);
    arc.is_some_and(|arc| graph.arcs()[arc].is_call())
}

/// The largest totals first, where there are samples; else the most calls. Ties by name.
fn by_importance(
    subject: &Subject,
    graph: &CallGraph,
    measured: Option<&Measured>,
    functions: &mut [FunctionId],
) {
    functions.sort_by_cached_key(|&id| {
        let total = measured.map_or(0, |measured| measured.weights.total[id]);
        let arcs = graph.arcs_from(id);
        let sites: u64 = arcs.map(|arc| arc.sites()).sum();
        (Reverse(total), Reverse(sites), subject.name(id), id)
    });
}

/// The heaviest cycles first, then the largest; members in order of id. Behind them those that are
/// in none.
fn by_cycle(
    graph: &CallGraph,
    cycles: &Cycles,
    measured: Option<&Measured>,
    functions: &mut [FunctionId],
) {
    let mut weights = IdVec::filled(0_u64, cycles.members().len());
    if measured.is_some() {
        for arc in graph.arcs() {
            if let Some(cycle) = cycles.of()[arc.from].filter(|_| cycles.share(arc.from, arc.to)) {
                weights[cycle] = weights[cycle].max(arc.weight);
            }
        }
    }
    functions.sort_by_key(|&id| {
        let cycle = cycles.of()[id];
        let key = cycle.map(|cycle| (weights[cycle], cycles.members()[cycle].len()));
        (Reverse(key), cycle, id)
    });
}
