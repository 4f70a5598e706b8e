//! The call graph of code: `functions [{name, linkage_name, module, address|null, size, imported,
//! indirect_calls, indirect_jumps, pointers_in_data, cycle|null, label, decl_file|null,
//! decl_line|null}]`, `arcs [{from, to, kind, sites}]` with the kinds `call`, `tail`, `import`,
//! `inlined` and `pointer`, `indirect_sites`, `indirect_jumps`, `cycles [[index]]`.
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
//! Where calls were counted, pairs have `calls|null`, null where they were not counted, and
//! `calls_at_least`, which is there, and true, where there may have been more.
//! `coverage {functions, touched_functions, arcs, touched_arcs, only_observed}` speaks of what the
//! run could reach.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::layout::{list, value};
use super::{CountedCalls, Declaration, linkage_name, view_head};
use crate::analysis::code::Measured;
use crate::export::Advice;
use crate::profile::{CallKind, FunctionId};
use crate::view::Subject;
use crate::view::callgraph::CallGraphView;

#[derive(Serialize)]
struct FunctionItem<'a> {
    name: Cow<'a, str>,
    linkage_name: &'a str,
    module: &'a str,
    address: Option<u64>,
    size: u64,
    imported: bool,
    #[serde(rename = "self", skip_serializing_if = "Option::is_none")]
    self_weight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    indirect_calls: u64,
    indirect_jumps: u64,
    pointers_in_data: u64,
    cycle: Option<usize>,
    label: &'a str,
    #[serde(flatten)]
    declaration: Declaration<'a>,
}

#[derive(Serialize)]
struct ArcItem {
    from: usize,
    to: usize,
    kind: &'static str,
    sites: u64,
}

#[derive(Serialize)]
struct PairItem {
    from: usize,
    to: usize,
    weight: u64,
    samples: u64,
    sites: u64,
    origin: &'static str,
    #[serde(flatten)]
    calls: Option<CountedCalls>,
}

#[derive(Serialize)]
struct CoverageFields {
    functions: u64,
    touched_functions: u64,
    arcs: u64,
    touched_arcs: u64,
    only_observed: u64,
}

/// Writes the document.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &CallGraphView,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "callgraph", subject, advice)?;
    out.write_all(b"\"functions\":")?;
    let functions = view.functions.iter();
    list(out, functions.map(|&id| function(subject, view, id)))?;
    out.write_all(b",\n\"arcs\":")?;
    let arcs = view.arcs.iter().flat_map(|&arc| {
        let arc = &view.summary.graph.arcs()[arc];
        let kinds = CallKind::ALL
            .into_iter()
            .filter(|&kind| arc.sites_of(kind) > 0);
        kinds.map(move |kind| ArcItem {
            from: view.index(arc.from),
            to: view.index(arc.to),
            kind: kind.name(),
            sites: arc.sites_of(kind),
        })
    });
    list(out, arcs)?;
    if let Some(measured) = &view.summary.measured {
        samples(out, subject, view, measured)?;
    }
    write!(
        out,
        ",\n\"indirect_sites\":{},\"indirect_jumps\":{},\n\"cycles\":",
        view.indirect_calls(subject),
        view.indirect_jumps(subject)
    )?;
    let index = |members: &[FunctionId]| -> Vec<usize> {
        members.iter().map(|member| view.index(*member)).collect()
    };
    list(out, view.cycles().map(index))?;
    out.write_all(b"}\n")
}

fn function<'a>(
    subject: &Subject<'a>,
    view: &'a CallGraphView,
    id: FunctionId,
) -> FunctionItem<'a> {
    let function = &subject.profile.functions[id];
    let code = view.code(subject, id);
    let weights = view
        .summary
        .measured
        .as_ref()
        .map(|measured| &measured.weights);
    FunctionItem {
        name: subject.plain_name(id),
        linkage_name: linkage_name(function),
        module: subject.module(id),
        address: function.address,
        size: code.size,
        imported: code.imported,
        self_weight: weights.map(|weights| weights.self_weight[id]),
        total: weights.map(|weights| weights.total[id]),
        indirect_calls: code.indirect_calls,
        indirect_jumps: code.indirect_jumps,
        pointers_in_data: code.pointers_in_data,
        cycle: view.cycle(id),
        label: view.name(id),
        declaration: Declaration::of(function),
    }
}

fn samples(
    out: &mut dyn Write,
    subject: &Subject,
    view: &CallGraphView,
    measured: &Measured,
) -> io::Result<()> {
    out.write_all(b",\n\"pairs\":")?;
    let pairs = view.arcs.iter().map(|&arc| {
        let arc = &view.summary.graph.arcs()[arc];
        PairItem {
            from: view.index(arc.from),
            to: view.index(arc.to),
            weight: arc.weight,
            samples: arc.samples,
            sites: arc.sites(),
            origin: arc.origin().name(),
            calls: CountedCalls::between(subject, arc.from, arc.to),
        }
    });
    list(out, pairs)?;
    out.write_all(b",\n\"coverage\":")?;
    let coverage = &measured.coverage;
    let coverage = CoverageFields {
        functions: coverage.functions,
        touched_functions: coverage.touched_functions,
        arcs: coverage.arcs,
        touched_arcs: coverage.touched_arcs,
        only_observed: coverage.only_observed,
    };
    value(out, &coverage)
}
