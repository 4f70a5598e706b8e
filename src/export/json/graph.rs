//! gprof's listing: `model`, `functions [{name, module, self, children, total, total_max|null,
//! root, cycle|null, calls|null, recursive_calls|null, samples|null, root_samples|null, inferred,
//! label, linkage_name|null, address|null, decl_file|null, decl_line|null}]` by decreasing total,
//! `arcs [{from, to, total|null, self|null, children|null, calls|null, samples|null, inferred,
//! across_gaps, through_pointer, sites, origin, in_cycle}]`, `cycles [{members [index], self,
//! children, total, total_max|null, root, calls|null, internal_calls|null}]` by their numbers, `cut
//! [{from, to}]`.
//!
//! `from`, `to` and `members` are places in `functions`; `cycle` is one in `cycles`. An arc's
//! `total` is the weight of the samples with it, each once; where there are no stacks, the model's
//! figure. Its `self` and `children` say how that is shared: null inside of a cycle and where a
//! function calls itself; `across_gaps` is the part of the weight for which frames are missing
//! between the two, so that the caller called something else there, and `through_pointer` that for
//! which the caller calls through a pointer, so that what it called may have jumped on to the
//! callee (`origin` is `pointer` where that is all). Calls are what was counted: without direct
//! recursion, which is apart; those of a cycle by callers outside of it and, `internal_calls`,
//! between its members. `calls_at_least` is there, and true, where there may have been more calls;
//! an arc whose calls were not counted has null. Numbers of samples are null without stacks. There
//! a member of a cycle has a `total` by Fonseca's rule, which gprof has not.
//!
//! Where totals are estimates `total_max` is null, without a reason.
//!
//! Where counts and stacks are both there, arcs have `error {one_step, propagated, share_by_calls,
//! share_measured, standard_error, significant}|null` and functions `error
//! {propagated_total, misattributed}`; weights in the event's unit, shares from 0 to 1.

use std::borrow::Cow;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::layout::list;
use super::{Identity, TotalMax, view_head};
use crate::analysis::graph::{Entry, Summary};
use crate::callgraph::{ArcId, CallArc};
use crate::export::Advice;
use crate::profile::FunctionId;
use crate::view::Subject;
use crate::view::graph::GraphView;

#[derive(Serialize)]
struct FunctionItem<'a> {
    name: Cow<'a, str>,
    module: &'a str,
    #[serde(rename = "self")]
    self_weight: f64,
    children: f64,
    total: f64,
    #[serde(flatten)]
    total_max: TotalMax,
    root: f64,
    cycle: Option<usize>,
    calls: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    calls_at_least: bool,
    recursive_calls: Option<u64>,
    samples: Option<u64>,
    root_samples: Option<u64>,
    inferred: u64,
    #[serde(flatten)]
    identity: Identity<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FunctionError>,
}

#[derive(Serialize)]
struct FunctionError {
    propagated_total: Option<f64>,
    misattributed: Option<f64>,
}

#[derive(Serialize)]
struct ArcItem {
    from: usize,
    to: usize,
    total: Option<f64>,
    #[serde(rename = "self")]
    self_weight: Option<f64>,
    children: Option<f64>,
    calls: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    calls_at_least: bool,
    samples: Option<u64>,
    inferred: u64,
    across_gaps: u64,
    through_pointer: u64,
    sites: u64,
    origin: &'static str,
    in_cycle: bool,
    // Not there without errors; null for an arc without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Option<ArcErrorFields>>,
}

#[derive(Serialize)]
struct ArcErrorFields {
    one_step: f64,
    propagated: f64,
    share_by_calls: f64,
    share_measured: f64,
    standard_error: f64,
    significant: bool,
}

#[derive(Serialize)]
struct CycleItem {
    members: Vec<usize>,
    #[serde(rename = "self")]
    self_weight: f64,
    children: f64,
    total: f64,
    #[serde(flatten)]
    total_max: TotalMax,
    root: f64,
    calls: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    calls_at_least: bool,
    internal_calls: Option<u64>,
}

#[derive(Serialize)]
struct CutItem {
    from: usize,
    to: usize,
}

/// Writes the document.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &GraphView<'_>,
    advice: &dyn Advice,
) -> io::Result<()> {
    let summary = view.summary;
    view_head(out, "graph", subject, advice)?;
    write!(
        out,
        "\"model\":\"{}\",\n\"functions\":",
        summary.model.name()
    )?;
    let functions: Vec<FunctionId> = view.functions().collect();
    let place: FxHashMap<FunctionId, usize> = functions.iter().copied().zip(0..).collect();
    let place = |id: FunctionId| place.get(&id).copied().unwrap_or(0);
    list(out, functions.iter().map(|&id| function(subject, view, id)))?;
    out.write_all(b",\n\"arcs\":")?;
    let arcs = summary
        .graph
        .arcs()
        .enumerate()
        .map(|(id, row)| arc(summary, id, row, place(row.from), place(row.to)));
    list(out, arcs)?;
    out.write_all(b",\n\"cycles\":")?;
    let cycles = summary.cycle_order.iter().map(|&cycle| {
        let members = summary.cycles.members()[cycle].iter();
        let weight = &summary.attribution.cycles[cycle];
        let calls = summary.calls.as_ref().map(|calls| &calls.cycles[cycle]);
        CycleItem {
            members: members.map(|&member| place(member)).collect(),
            self_weight: weight.portion.self_weight,
            children: weight.portion.children,
            total: weight.portion.total(),
            total_max: summary.total_max(Entry::Cycle(cycle)).into(),
            root: weight.root.total(),
            calls: calls
                .filter(|calls| !calls.is_least || calls.outside > 0)
                .map(|calls| calls.outside),
            calls_at_least: calls.is_some_and(|calls| calls.is_least && calls.outside > 0),
            internal_calls: calls.map(|calls| calls.inside),
        }
    });
    list(out, cycles)?;
    out.write_all(b",\n\"cut\":")?;
    let cut = summary.cycles.cut().iter().map(|&id| {
        let arc = &summary.graph.arcs()[id];
        CutItem {
            from: place(arc.from),
            to: place(arc.to),
        }
    });
    list(out, cut)?;
    out.write_all(b"}\n")
}

fn function<'a>(
    subject: &Subject<'a>,
    view: &'a GraphView<'_>,
    id: FunctionId,
) -> FunctionItem<'a> {
    let (entry, summary) = (Entry::Function(id), view.summary);
    let portion = summary.portion(entry);
    let calls = summary.calls.as_ref().map(|calls| &calls.functions[id]);
    let samples = |number: u64| summary.has_stacks().then_some(number);
    let error = summary.errors.as_ref().map(|errors| {
        let misattributed = summary.cycles.of()[id].is_none();
        FunctionError {
            propagated_total: errors.totals[id].map(|wrong| summary.total(entry) + wrong),
            misattributed: misattributed.then_some(errors.functions[id].misattributed),
        }
    });
    FunctionItem {
        name: subject.plain_name(id),
        module: subject.module(id),
        self_weight: portion.self_weight,
        children: portion.children,
        total: summary.total(entry),
        total_max: summary.total_max(entry).into(),
        root: summary.attribution.roots[id].total(),
        cycle: summary.cycles.of()[id].map(|cycle| summary.number(cycle) - 1),
        calls: calls.and_then(|calls| calls.known()),
        calls_at_least: calls.is_some_and(|calls| calls.is_least && calls.known().is_some()),
        recursive_calls: calls.and_then(|calls| calls.known_recursive()),
        samples: samples(summary.weights.samples[id]),
        root_samples: samples(summary.root_samples[id]),
        inferred: summary.weights.inferred[id],
        identity: Identity::of(subject, id, view.name(id)),
        error,
    }
}

fn arc(summary: &Summary, id: ArcId, arc: &CallArc, from: usize, to: usize) -> ArcItem {
    let (total, portion) = summary.weight(id);
    let portion = portion.filter(|_| !arc.is_self());
    let error = summary.errors.as_ref().map(|errors| {
        let error = errors.arcs[id].as_ref();
        error.map(|error| ArcErrorFields {
            one_step: error.one_step,
            propagated: error.propagated,
            share_by_calls: error.share_by_calls,
            share_measured: error.share_measured,
            standard_error: summary.standard_error(id, error),
            significant: error.is_significant(),
        })
    });
    ArcItem {
        from,
        to,
        total,
        self_weight: portion.map(|portion| portion.self_weight),
        children: portion.map(|portion| portion.children),
        calls: arc.calls,
        calls_at_least: arc.calls_are_least,
        samples: summary.has_stacks().then_some(arc.samples),
        inferred: arc.inferred,
        across_gaps: arc.across_gaps,
        through_pointer: arc.through_pointer,
        sites: arc.sites(),
        origin: arc.origin().name(),
        in_cycle: summary.cycles.share(arc.from, arc.to),
        error,
    }
}
