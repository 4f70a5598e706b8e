//! The call graph of code: `functions [{name, linkage_name, module, address|null, size, imported,
//! indirect_calls, indirect_jumps, pointers_in_data, cycle|null, label, decl_file|null, decl_line|null}]`, `arcs [{from, to, kind,
//! sites}]` with the kinds `call`, `tail`, `import`, `inlined` and `pointer`, `indirect_sites`,
//! `indirect_jumps`, `cycles [[index]]`.
//!
//! `from`, `to` and the members of cycles index `functions`, `cycle` indexes `cycles`. A
//! function that no file defines has no address, and its module is `[import]`. A `pointer` is an
//! address that is taken: who is called through it is not known, and it makes no cycle.
//! `indirect_sites` counts the calls whose callees are not known; `indirect_jumps`, which are
//! mostly the tables of switches, are not in it.
//!
//! With samples, functions have `self` and `total`, and there are `pairs [{from, to, weight,
//! samples, sites, origin}]`, one for each caller and callee, whatever the kinds: `weight` counts
//! each sample once, `sites` the places that call, and `origin` is `observed`, `code` or `both`.
//! `coverage {functions, touched_functions, arcs, touched_arcs, only_observed}` speaks of what the
//! run could reach.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{declaration, list, string, view_head};
use crate::export::Advice;
use crate::profile::{CallKind, FunctionId};
use crate::view::Subject;
use crate::view::callgraph::{CallGraphView, Measured};

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &CallGraphView,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "callgraph", subject, advice)?;
    out.write_all(b"\"functions\":")?;
    list(out, view.functions.iter(), |out, &id| {
        function(out, subject, view, id)
    })?;
    out.write_all(b",\n\"arcs\":")?;
    let rows = view.arcs.iter().flat_map(|&arc| {
        let arc = &view.graph.arcs[arc];
        let kinds = CallKind::ALL.into_iter();
        let kinds = kinds.filter(|&kind| arc.sites_of(kind) > 0);
        kinds.map(move |kind| (arc, kind))
    });
    list(out, rows, |out, (arc, kind)| {
        write!(
            out,
            "{{\"from\":{},\"to\":{},\"kind\":{},\"sites\":{}}}",
            view.index(arc.from),
            view.index(arc.to),
            string(kind.name()),
            arc.sites_of(kind)
        )
    })?;
    if let Some(measured) = &view.measured {
        samples(out, view, measured)?;
    }
    write!(
        out,
        ",\n\"indirect_sites\":{},\"indirect_jumps\":{},\n\"cycles\":",
        view.indirect_calls(subject),
        view.indirect_jumps(subject)
    )?;
    list(out, view.cycles(), |out, members| {
        out.write_all(b"[")?;
        for (i, member) in members.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(out, "{comma}{}", view.index(*member))?;
        }
        out.write_all(b"]")
    })?;
    out.write_all(b"}\n")
}

fn function(
    out: &mut dyn Write,
    subject: &Subject,
    view: &CallGraphView,
    id: FunctionId,
) -> io::Result<()> {
    let function = &subject.profile.functions[id];
    let code = view.code(subject, id);
    let linkage_name = function.linkage_name.as_deref().unwrap_or(&function.name);
    let nullable = |number: Option<u64>| match number {
        Some(number) => Cow::Owned(number.to_string()),
        None => Cow::Borrowed("null"),
    };
    write!(
        out,
        "{{\"name\":{},\"linkage_name\":{},\"module\":{},\"address\":{},\"size\":{},\"imported\":{},",
        string(&subject.plain_name(id)),
        string(linkage_name),
        string(subject.module(id)),
        nullable(function.address),
        code.size,
        code.imported
    )?;
    if let Some(measured) = &view.measured {
        let weights = &measured.weights;
        let (own, total) = (weights.self_weight[id], weights.total[id]);
        write!(out, "\"self\":{own},\"total\":{total},")?;
    }
    write!(
        out,
        "\"indirect_calls\":{},\"indirect_jumps\":{},\"pointers_in_data\":{},\"cycle\":{},\"label\":{}",
        code.indirect_calls,
        code.indirect_jumps,
        code.pointers_in_data,
        nullable(view.cycle(id).map(|cycle| cycle as u64)),
        string(view.name(id))
    )?;
    declaration(out, function)?;
    out.write_all(b"}")
}

fn samples(out: &mut dyn Write, view: &CallGraphView, measured: &Measured) -> io::Result<()> {
    out.write_all(b",\n\"pairs\":")?;
    list(out, view.arcs.iter(), |out, &arc| {
        let arc = &view.graph.arcs[arc];
        write!(
            out,
            "{{\"from\":{},\"to\":{},\"weight\":{},\"samples\":{},\"sites\":{},\"origin\":{}}}",
            view.index(arc.from),
            view.index(arc.to),
            arc.weight,
            arc.samples,
            arc.sites(),
            string(arc.origin().name())
        )
    })?;
    let coverage = &measured.coverage;
    write!(
        out,
        ",\n\"coverage\":{{\"functions\":{},\"touched_functions\":{},\"arcs\":{},\"touched_arcs\":{},\"only_observed\":{}}}",
        coverage.functions,
        coverage.touched_functions,
        coverage.arcs,
        coverage.touched_arcs,
        coverage.only_observed
    )
}
