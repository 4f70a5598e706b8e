//! gprof's listing: `model`, `functions [{name, module, self, children, total, total_max|null, root, cycle|null,
//! calls|null, recursive_calls|null, samples|null, root_samples|null, inferred, label, linkage_name, address|null,
//! decl_file|null, decl_line|null}]` by decreasing total, `arcs [{from, to, total|null,
//! self|null, children|null, calls|null, samples|null, inferred, across_gaps, sites, origin, in_cycle}]`, `cycles [{members [index], self,
//! children, total, total_max|null, root, calls|null, internal_calls|null}]` by their numbers, `cut [{from, to}]`.
//!
//! `from`, `to` and `members` are places in `functions`; `cycle` is one in `cycles`. An arc's `total`
//! is the weight of the samples with it, each once; where there are no stacks, the model's figure. Its
//! `self` and `children` say how that is shared: null inside of a cycle and where a function calls
//! itself; `across_gaps` is the part of the weight for which frames are missing between the two, so that the
//! caller called something else there. Calls are what was counted: without direct recursion, which is apart; those of a cycle by
//! callers outside of it and, `internal_calls`, between its members. Numbers of samples are null without
//! stacks. There a member of a cycle has a `total` by Fonseca's rule, which gprof has not.
//!
//! Where totals are estimates `total_max` is null, without a reason.
//!
//! Where counts and stacks are both there, arcs have `error {one_step, propagated, share_by_calls,
//! share_measured, standard_error, significant}|null` and functions `error
//! {propagated_total, misattributed}`; weights in the event's unit, shares from 0 to 1.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::{identity, list, string, total_max, view_head};
use crate::callgraph::{Arc, ArcId};
use crate::export::Advice;
use crate::profile::FunctionId;
use crate::view::Subject;
use crate::view::graph::{Entry, GraphView};

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &GraphView,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "graph", subject, advice)?;
    write!(
        out,
        "\"model\":{},\n\"functions\":",
        string(view.model.name())
    )?;
    let functions: Vec<FunctionId> = view.functions().collect();
    let place: FxHashMap<FunctionId, usize> = functions.iter().copied().zip(0..).collect();
    let place = |id: FunctionId| place.get(&id).copied().unwrap_or(0);
    list(out, functions.iter(), |out, &id| {
        function(out, subject, view, id)
    })?;
    out.write_all(b",\n\"arcs\":")?;
    list(out, view.graph.arcs.enumerate(), |out, (id, row)| {
        write!(
            out,
            "{{\"from\":{},\"to\":{},",
            place(row.from),
            place(row.to)
        )?;
        arc(out, view, id, row)
    })?;
    out.write_all(b",\n\"cycles\":")?;
    list(out, view.cycle_order.iter(), |out, &cycle| {
        out.write_all(b"{\"members\":[")?;
        for (i, &member) in view.cycles.members[cycle].iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(out, "{comma}{}", place(member))?;
        }
        let weight = &view.attribution.cycles[cycle];
        let calls = view.calls.as_ref().map(|calls| &calls.cycles[cycle]);
        write!(
            out,
            "],\"self\":{},\"children\":{},\"total\":{},\"total_max\":{},\"root\":{},\"calls\":{},\"internal_calls\":{}}}",
            weight.portion.self_weight,
            weight.portion.children,
            weight.portion.total(),
            total_max(view.total_max(Entry::Cycle(cycle))),
            weight.root.total(),
            nullable(calls.map(|calls| calls.outside)),
            nullable(calls.map(|calls| calls.inside))
        )
    })?;
    out.write_all(b",\n\"cut\":")?;
    list(out, view.cycles.cut.iter(), |out, &id| {
        let arc = &view.graph.arcs[id];
        write!(
            out,
            "{{\"from\":{},\"to\":{}}}",
            place(arc.from),
            place(arc.to)
        )
    })?;
    out.write_all(b"}\n")
}

fn function(
    out: &mut dyn Write,
    subject: &Subject,
    view: &GraphView,
    id: FunctionId,
) -> io::Result<()> {
    let entry = Entry::Function(id);
    let portion = view.portion(entry);
    let calls = view.calls.as_ref().map(|calls| &calls.functions[id]);
    let samples = |number: u64| view.has_stacks().then_some(number);
    write!(
        out,
        "{{\"name\":{},\"module\":{},\"self\":{},\"children\":{},\"total\":{},\"total_max\":{},\"root\":{},\"cycle\":{},\
         \"calls\":{},\"recursive_calls\":{},\"samples\":{},\"root_samples\":{},\"inferred\":{}",
        string(&subject.plain_name(id)),
        string(subject.module(id)),
        portion.self_weight,
        portion.children,
        view.total(entry),
        total_max(view.total_max(entry)),
        view.attribution.roots[id].total(),
        nullable(view.cycles.of[id].map(|cycle| view.number(cycle) - 1)),
        nullable(calls.map(|calls| calls.by_others())),
        nullable(calls.map(|calls| calls.recursive)),
        nullable(samples(view.weights.samples[id])),
        nullable(samples(view.root_samples[id])),
        view.weights.inferred[id]
    )?;
    identity(out, subject, id, view.name(id))?;
    if let Some(errors) = &view.errors {
        let propagated = errors.totals[id].map(|wrong| view.total(entry) + wrong);
        let misattributed = view.cycles.of[id].is_none();
        let misattributed = misattributed.then_some(errors.functions[id].misattributed);
        write!(
            out,
            ",\"error\":{{\"propagated_total\":{},\"misattributed\":{}}}",
            nullable(propagated),
            nullable(misattributed)
        )?;
    }
    out.write_all(b"}")
}

fn arc(out: &mut dyn Write, view: &GraphView, id: ArcId, arc: &Arc) -> io::Result<()> {
    let (total, portion) = view.weight(id);
    let portion = portion.filter(|_| !arc.is_self());
    write!(
        out,
        "\"total\":{},\"self\":{},\"children\":{},\"calls\":{},\"samples\":{},\"inferred\":{},\"across_gaps\":{},\"sites\":{},\"origin\":{},\"in_cycle\":{}",
        nullable(total),
        nullable(portion.map(|portion| portion.self_weight)),
        nullable(portion.map(|portion| portion.children)),
        nullable(arc.calls),
        nullable(view.has_stacks().then_some(arc.samples)),
        arc.inferred,
        arc.across_gaps,
        arc.sites(),
        string(arc.origin().name()),
        view.cycles.share(arc.from, arc.to)
    )?;
    if let Some(errors) = &view.errors {
        match &errors.arcs[id] {
            None => out.write_all(b",\"error\":null")?,
            Some(error) => write!(
                out,
                ",\"error\":{{\"one_step\":{},\"propagated\":{},\"share_by_calls\":{},\"share_measured\":{},\
                 \"standard_error\":{},\"significant\":{}}}",
                error.one_step,
                error.propagated,
                error.share_by_calls,
                error.share_measured,
                view.standard_error(id, error),
                error.is_significant()
            )?,
        }
    }
    out.write_all(b"}")
}

fn nullable(value: Option<impl Display>) -> Cow<'static, str> {
    value.map_or(Cow::Borrowed("null"), |value| Cow::Owned(value.to_string()))
}
