//! Cycles: `cycles [{members [name], self, children, total, total_max|null, root, entries [{from,
//! to, weight, inferred, across_gaps, through_pointer, from_label, to_label}], arcs [{from, to,
//! weight, inferred, across_gaps, through_pointer, from_label, to_label}], cut [{from, to, weight,
//! inferred, across_gaps, through_pointer, from_label, to_label}], cut_weight, cut_is_best,
//! only_through_pointer, depth {deepest, mean}|null, cut_inside {samples, weight}, figures [{name,
//! module, self, children, total, total_max|null, fonseca, label, linkage_name, address|null,
//! decl_file|null, decl_line|null}]}]`, `recursive [{name, module, self, total, total_max|null,
//! deepest|null, mean|null, calls|null, only_across_gaps, only_through_pointer, cut_inside
//! {samples, weight}, and what follows fonseca in figures}]`.
//!
//! `across_gaps` is the part of an arc's weight for which frames are missing between the two, so
//! that the caller called something else there; a recursive function is `only_across_gaps` if it is
//! known to recurse, but not to call itself. `through_pointer` is the part for which the caller
//! calls through a pointer, so that what it called may have jumped on to the callee; what is
//! `only_through_pointer` rests on such arcs. Weights of arcs are those of the samples that show
//! them, each counted once; `cut_weight` is that of the samples with at least one arc of `cut`,
//! each counted once. Where there are no stacks, `weights` is `calls` and not `samples`, and they
//! are numbers of calls. `figures` are of the members, in the same order: `total` by whole stacks,
//! `fonseca` as estimated. Without stacks both are that estimate, and there are no depths; where
//! the estimate was made from a sample of what enters the cycle, the largest standard error of a
//! member follows it as `fonseca_standard_error`; `total_max` is then null, without a reason.
//! `cut_inside` are the samples whose stacks were cut with a member, or the function, outermost:
//! who called is not known for these.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::layout::{fields, list, list_with};
use super::{Identity, TotalMax, view_head};
use crate::analysis::cut::Cut;
use crate::analysis::graph::Entry;
use crate::callgraph::ArcId;
use crate::export::Advice;
use crate::profile::FunctionId;
use crate::view::Subject;
use crate::view::cycles::CyclesView;

#[derive(Serialize)]
struct ArcItem<'a> {
    from: Cow<'a, str>,
    to: Cow<'a, str>,
    weight: u64,
    inferred: u64,
    across_gaps: u64,
    through_pointer: u64,
    from_label: &'a str,
    to_label: &'a str,
}

#[derive(Serialize)]
struct CycleWeight {
    #[serde(rename = "self")]
    self_weight: f64,
    children: f64,
    total: f64,
    #[serde(flatten)]
    total_max: TotalMax,
    root: f64,
}

// What removing arcs does to a cycle, and how it was seen.
#[derive(Serialize)]
struct Broken {
    cut_weight: u64,
    cut_is_best: bool,
    only_through_pointer: bool,
    depth: Option<Depth>,
    cut_inside: CutInside,
}

#[derive(Serialize)]
struct Depth {
    deepest: usize,
    mean: f64,
}

#[derive(Serialize)]
struct CutInside {
    samples: u64,
    weight: u64,
}

impl From<Cut> for CutInside {
    fn from(cut: Cut) -> CutInside {
        CutInside {
            samples: cut.samples,
            weight: cut.weight,
        }
    }
}

#[derive(Serialize)]
struct Figures<'a> {
    name: Cow<'a, str>,
    module: &'a str,
    #[serde(rename = "self")]
    self_weight: f64,
    children: f64,
    total: f64,
    #[serde(flatten)]
    total_max: TotalMax,
    fonseca: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fonseca_standard_error: Option<f64>,
    #[serde(flatten)]
    identity: Identity<'a>,
}

#[derive(Serialize)]
struct Recursive<'a> {
    name: Cow<'a, str>,
    module: &'a str,
    #[serde(rename = "self")]
    self_weight: u64,
    total: f64,
    #[serde(flatten)]
    total_max: TotalMax,
    deepest: Option<usize>,
    mean: Option<f64>,
    calls: Option<u64>,
    only_across_gaps: bool,
    only_through_pointer: bool,
    cut_inside: CutInside,
    #[serde(flatten)]
    identity: Identity<'a>,
}

/// Writes the document.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &CyclesView<'_>,
    advice: &dyn Advice,
) -> io::Result<()> {
    let summary = view.summary;
    let graph = &summary.graph;
    view_head(out, "cycles", subject, advice)?;
    let weights = if graph.has_stacks() {
        "samples"
    } else {
        "calls"
    };
    write!(
        out,
        "\"model\":\"{}\",\"weights\":\"{weights}\",\n\"cycles\":",
        graph.model.name()
    )?;
    list_with(out, view.order.iter(), |out, &cycle| {
        let breaking = &summary.breaking[cycle];
        let weight = &graph.attribution.cycles[cycle];
        let members = &graph.cycles.members()[cycle];
        out.write_all(b"{\"members\":")?;
        list(out, members.iter().map(|&id| subject.plain_name(id)))?;
        out.write_all(b",\n")?;
        let own = CycleWeight {
            self_weight: weight.portion.self_weight,
            children: weight.portion.children,
            total: weight.portion.total(),
            total_max: graph.total_max(Entry::Cycle(cycle)).into(),
            root: weight.root.total(),
        };
        fields(out, &own)?;
        out.write_all(b",\n\"entries\":")?;
        arcs(out, subject, view, &summary.entries(cycle))?;
        out.write_all(b",\n\"arcs\":")?;
        arcs(out, subject, view, &summary.inside(cycle))?;
        out.write_all(b",\n\"cut\":")?;
        arcs(out, subject, view, &breaking.arcs)?;
        out.write_all(b",")?;
        let depth = &summary.depths.cycles[cycle];
        let broken = Broken {
            cut_weight: summary.broken_weight[cycle],
            cut_is_best: breaking.is_best,
            only_through_pointer: summary.only_through_pointer[cycle],
            depth: graph.has_stacks().then(|| Depth {
                deepest: depth.deepest(),
                mean: depth.mean(),
            }),
            cut_inside: summary.cut_inside(cycle).into(),
        };
        fields(out, &broken)?;
        out.write_all(b",\n\"figures\":")?;
        list(out, members.iter().map(|&id| figures(subject, view, id)))?;
        out.write_all(b"}")
    })?;
    out.write_all(b",\n\"recursive\":")?;
    let functions = view.recursive.iter();
    list(out, functions.map(|&id| recursive(subject, view, id)))?;
    out.write_all(b"}\n")
}

fn figures<'a>(subject: &Subject<'a>, view: &'a CyclesView<'_>, id: FunctionId) -> Figures<'a> {
    let graph = &view.summary.graph;
    let portion = graph.portion(Entry::Function(id));
    Figures {
        name: subject.plain_name(id),
        module: subject.module(id),
        self_weight: portion.self_weight,
        children: portion.children,
        total: graph.total(Entry::Function(id)),
        total_max: graph.total_max(Entry::Function(id)).into(),
        fonseca: view.summary.estimate.attribution.total(id),
        fonseca_standard_error: view.summary.estimate.standard_error(id),
        identity: Identity::of(subject, id, view.graph.name(id)),
    }
}

fn recursive<'a>(subject: &Subject<'a>, view: &'a CyclesView<'_>, id: FunctionId) -> Recursive<'a> {
    let graph = &view.summary.graph;
    let depth = view.summary.depths.of(id).cloned().unwrap_or_default();
    let calls = graph.calls.as_ref();
    Recursive {
        name: subject.plain_name(id),
        module: subject.module(id),
        self_weight: graph.weights.self_weight[id],
        total: graph.total(Entry::Function(id)),
        total_max: graph.total_max(Entry::Function(id)).into(),
        deepest: graph.has_stacks().then(|| depth.deepest()),
        mean: graph.has_stacks().then(|| depth.mean()),
        calls: calls.and_then(|calls| calls.functions[id].known_recursive()),
        only_across_gaps: view.summary.recurses_across_gap(id),
        only_through_pointer: view.summary.recurses_through_pointer(id),
        cut_inside: view.summary.cut_in(id).into(),
        identity: Identity::of(subject, id, view.graph.name(id)),
    }
}

fn arcs(
    out: &mut dyn Write,
    subject: &Subject,
    view: &CyclesView<'_>,
    arcs: &[ArcId],
) -> io::Result<()> {
    let items = arcs.iter().map(|&id| {
        let arc = &view.summary.graph.graph.arcs()[id];
        ArcItem {
            from: subject.plain_name(arc.from),
            to: subject.plain_name(arc.to),
            weight: view.summary.weight(id),
            inferred: arc.inferred,
            across_gaps: arc.across_gaps,
            through_pointer: arc.through_pointer,
            from_label: view.graph.name(arc.from),
            to_label: view.graph.name(arc.to),
        }
    });
    list(out, items)
}
