//! Cycles: `cycles [{members [name], self, children, total, total_max|null, root, entries [{from, to, weight, inferred, across_gaps, from_label, to_label}],
//! arcs [{from, to, weight, inferred, across_gaps, from_label, to_label}], cut [{from, to, weight, inferred, across_gaps, from_label, to_label}], cut_weight, cut_is_best, depth {deepest, mean}|null, cut_inside {samples, weight}, figures [{name,
//! module, self, children, total, total_max|null, fonseca, label, linkage_name, address|null, decl_file|null, decl_line|null}]}]`, `recursive [{name, module, self, total, total_max|null, deepest|null, mean|null, calls|null, only_across_gaps,
//! cut_inside {samples, weight}, and what follows fonseca in figures}]`.
//!
//! `across_gaps` is the part of an arc's weight for which frames are missing between the two, so that
//! the caller called something else there; a recursive function is
//! `only_across_gaps` if it is known to recurse, but not to call itself. Weights of arcs are those of the samples that show them, each counted once; `cut_weight` is
//! that of the samples with at least one arc of `cut`, each counted once. Where there are no
//! stacks, `weights` is `calls` and not `samples`, and they are numbers of calls. `figures` are of the members,
//! in the same order: `total` by whole stacks, `fonseca` as estimated. Without stacks both are that estimate,
//! and there are no depths; `total_max` is then null, without a reason. `cut_inside` are the samples
//! whose stacks were cut with a member, or the function, outermost: who called is not known for these.

use std::io::{self, Write};

use super::{identity, list, string, total_max, view_head};
use crate::callgraph::ArcId;
use crate::export::Advice;
use crate::view::Subject;
use crate::view::cycles::CyclesView;
use crate::view::graph::Entry;

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &CyclesView,
    advice: &dyn Advice,
) -> io::Result<()> {
    let graph = &view.graph;
    view_head(out, "cycles", subject, advice)?;
    let weights = if graph.has_stacks() {
        "samples"
    } else {
        "calls"
    };
    write!(
        out,
        "\"model\":{},\"weights\":{},\n\"cycles\":",
        string(graph.model.name()),
        string(weights)
    )?;
    let breaking = view.breaking.iter().zip(&view.broken_weight);
    let rows = graph.cycle_order.iter().zip(breaking);
    list(out, rows, |out, (&cycle, (breaking, broken_weight))| {
        let weight = &graph.attribution.cycles[cycle];
        let members = &graph.cycles.members[cycle];
        out.write_all(b"{\"members\":")?;
        list(out, members.iter(), |out, &id| {
            out.write_all(string(&subject.plain_name(id)).as_bytes())
        })?;
        write!(
            out,
            ",\n\"self\":{},\"children\":{},\"total\":{},\"total_max\":{},\"root\":{},\n\"entries\":",
            weight.portion.self_weight,
            weight.portion.children,
            weight.portion.total(),
            total_max(graph.total_max(Entry::Cycle(cycle))),
            weight.root.total()
        )?;
        arcs(out, subject, view, &view.entries(cycle))?;
        out.write_all(b",\n\"arcs\":")?;
        arcs(out, subject, view, &view.inside(cycle))?;
        out.write_all(b",\n\"cut\":")?;
        arcs(out, subject, view, &breaking.arcs)?;
        let depth = &view.depths.cycles[cycle];
        let depth = match graph.has_stacks() {
            true => format!(
                "{{\"deepest\":{},\"mean\":{}}}",
                depth.deepest(),
                depth.mean()
            ),
            false => "null".to_owned(),
        };
        let cut = view.cut_inside(cycle);
        write!(
            out,
            ",\"cut_weight\":{broken_weight},\"cut_is_best\":{},\"depth\":{depth},\
             \"cut_inside\":{{\"samples\":{},\"weight\":{}}},\n\"figures\":",
            breaking.is_best, cut.samples, cut.weight
        )?;
        list(out, members.iter(), |out, &id| {
            let portion = graph.portion(Entry::Function(id));
            write!(
                out,
                "{{\"name\":{},\"module\":{},\"self\":{},\"children\":{},\"total\":{},\"total_max\":{},\"fonseca\":{}",
                string(&subject.plain_name(id)),
                string(subject.module(id)),
                portion.self_weight,
                portion.children,
                graph.total(Entry::Function(id)),
                total_max(graph.total_max(Entry::Function(id))),
                view.estimate.attribution.total(id)
            )?;
            identity(out, subject, id, graph.name(id))?;
            out.write_all(b"}")
        })?;
        out.write_all(b"}")
    })?;
    out.write_all(b",\n\"recursive\":")?;
    list(out, view.recursive.iter(), |out, &id| {
        let depth = view.depths.of(id).cloned().unwrap_or_default();
        let (deepest, mean) = match graph.has_stacks() {
            true => (depth.deepest().to_string(), depth.mean().to_string()),
            false => ("null".to_owned(), "null".to_owned()),
        };
        let calls = graph.calls.as_ref();
        let calls = calls.map(|calls| calls.functions[id].recursive.to_string());
        let cut = view.cut_in(id);
        write!(
            out,
            "{{\"name\":{},\"module\":{},\"self\":{},\"total\":{},\"total_max\":{},\"deepest\":{},\"mean\":{},\"calls\":{},\"only_across_gaps\":{},\
             \"cut_inside\":{{\"samples\":{},\"weight\":{}}}",
            string(&subject.plain_name(id)),
            string(subject.module(id)),
            graph.weights.self_weight[id],
            graph.total(Entry::Function(id)),
            total_max(graph.total_max(Entry::Function(id))),
            deepest,
            mean,
            calls.as_deref().unwrap_or("null"),
            view.recurses_across_gap(id),
            cut.samples,
            cut.weight
        )?;
        identity(out, subject, id, graph.name(id))?;
        out.write_all(b"}")
    })?;
    out.write_all(b"}\n")
}

fn arcs(
    out: &mut dyn Write,
    subject: &Subject,
    view: &CyclesView,
    arcs: &[ArcId],
) -> io::Result<()> {
    list(out, arcs.iter(), |out, &id| {
        let arc = &view.graph.graph.arcs[id];
        write!(
            out,
            "{{\"from\":{},\"to\":{},\"weight\":{},\"inferred\":{},\"across_gaps\":{},\"from_label\":{},\"to_label\":{}}}",
            string(&subject.plain_name(arc.from)),
            string(&subject.plain_name(arc.to)),
            view.weight(id),
            arc.inferred,
            arc.across_gaps,
            string(view.graph.name(arc.from)),
            string(view.graph.name(arc.to))
        )
    })
}
