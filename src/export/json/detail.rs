//! One function: `rule|null`, `function {name, linkage_name, module, self, total, total_max|null,
//! root, recursive, model, label, address|null, decl_file|null, decl_line|null}`, `callers [{name,
//! module, weight, recursive, inferred, label}]`, `descendants [{name, module, weight, recursive,
//! inferred, label}]`, `call_sites [{callee, module, file|null, line|null, weight, inlined,
//! label}]|null`, `called_from [{caller, module, file|null, line|null, weight, inlined,
//! label}]|null`, `lines [{file, line, weight}]`, `depths [{depth, weight}]`.
//!
//! `model` is there only without stacks: `propagated`, as total, root, callers and descendants are
//! estimated by gprof's propagation from counted calls. Then `rule` and `total_max` are null,
//! `recursive` says whether counted calls lead back, and there are no depths.
//!
//! Where calls were counted, callers and descendants have `calls|null`, null where they were not
//! counted, and `calls_at_least`, which is there, and true, where there may have been more.
//!
//! `root` is the weight of the stacks on which the function is outermost, which no caller has. A
//! descendant is `recursive` if some stack leads from it back to the function, a caller if some
//! stack leads from the function to it; either is `inferred` if no stack was recorded with the
//! call, but missing frames restored from the code have it. `depths` tells how often the function
//! stands on a stack; their weights add up to the total.
//!
//! `call_sites` are the calls in the function by line, `called_from` the calls of it by line of the
//! caller; null where the input has no lines of calls, as folded stacks. A sample counts once for a
//! line and the function at the other end, with all that is further in. `inlined` are those whose
//! calls on that line were all inlined.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::layout::{list, value};
use super::{CountedCalls, Declaration, TotalMax, linkage_name, view_head};
use crate::analysis::call_sites::CallSite;
use crate::analysis::detail::{Basis, Neighbour};
use crate::export::Advice;
use crate::view::Subject;
use crate::view::detail::{DetailView, Listed};

#[derive(Serialize)]
struct FunctionFields<'a> {
    name: Cow<'a, str>,
    linkage_name: &'a str,
    module: &'a str,
    #[serde(rename = "self")]
    self_weight: u64,
    total: u64,
    #[serde(flatten)]
    total_max: TotalMax,
    root: u64,
    recursive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'static str>,
    label: &'a str,
    address: Option<u64>,
    #[serde(flatten)]
    declaration: Declaration<'a>,
}

#[derive(Serialize)]
struct NeighbourItem<'a> {
    name: Cow<'a, str>,
    module: &'a str,
    weight: u64,
    recursive: bool,
    inferred: bool,
    #[serde(flatten)]
    calls: Option<CountedCalls>,
    label: &'a str,
}

// A call by line, with the function at its other end under the name of its role.
#[derive(Serialize)]
struct SiteItem<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    callee: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<Cow<'a, str>>,
    module: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    weight: u64,
    inlined: bool,
    label: &'a str,
}

#[derive(Serialize)]
struct LineItem<'a> {
    file: &'a str,
    line: u32,
    weight: u64,
}

#[derive(Serialize)]
struct DepthItem {
    depth: u32,
    weight: u64,
}

/// Writes the document.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &DetailView,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "detail", subject, advice)?;
    let detail = &view.detail;
    let measured = detail.basis == Basis::Stacks;
    out.write_all(b"\"rule\":")?;
    value(out, &measured.then(|| detail.rule.name()))?;
    out.write_all(b",\n\"function\":")?;
    let function = &subject.profile.functions[detail.function];
    let function = FunctionFields {
        name: subject.plain_name(detail.function),
        linkage_name: linkage_name(function),
        module: subject.module(detail.function),
        self_weight: detail.self_weight,
        total: detail.total,
        total_max: view.total_max.into(),
        root: detail.outermost,
        recursive: detail.recurses(),
        model: (!measured).then_some("propagated"),
        label: view.name(detail.function),
        address: function.address,
        declaration: Declaration::of(function),
    };
    value(out, &function)?;
    let neighbour = |other: &Neighbour, calls: Option<CountedCalls>| NeighbourItem {
        calls,
        name: subject.plain_name(other.function),
        module: subject.module(other.function),
        weight: other.weight,
        recursive: other.recursive,
        inferred: other.inferred,
        label: view.name(other.function),
    };
    out.write_all(b",\n\"callers\":")?;
    let callers = view.callers.iter().map(|other| {
        let calls = CountedCalls::between(subject, other.function, detail.function);
        neighbour(other, calls)
    });
    list(out, callers)?;
    out.write_all(b",\n\"descendants\":")?;
    let descendants = view.descendants.iter().map(|other| {
        let calls = CountedCalls::between(subject, detail.function, other.function);
        neighbour(other, calls)
    });
    list(out, descendants)?;
    let site = |site: &CallSite| {
        let line = site.line.map(|line| &subject.profile.lines[line]);
        SiteItem {
            callee: None,
            caller: None,
            module: subject.module(site.function),
            file: line.map(|line| &*line.file),
            line: line.map(|line| line.line),
            weight: site.weight,
            inlined: site.inlined,
            label: view.name(site.function),
        }
    };
    out.write_all(b",\n\"call_sites\":")?;
    list_if_known(out, &view.call_sites, |call| SiteItem {
        callee: Some(subject.plain_name(call.function)),
        ..site(call)
    })?;
    out.write_all(b",\n\"called_from\":")?;
    list_if_known(out, &view.called_from, |call| SiteItem {
        caller: Some(subject.plain_name(call.function)),
        ..site(call)
    })?;
    out.write_all(b",\n\"lines\":")?;
    let lines = view.lines.iter().map(|row| {
        let line = &subject.profile.lines[row.line];
        LineItem {
            file: &line.file,
            line: line.line,
            weight: row.weight,
        }
    });
    list(out, lines)?;
    out.write_all(b",\n\"depths\":")?;
    let depths = detail.depths.iter();
    list(
        out,
        depths.map(|&(depth, weight)| DepthItem { depth, weight }),
    )?;
    out.write_all(b"}\n")
}

// Null where the input has no lines of calls.
fn list_if_known<'a>(
    out: &mut dyn Write,
    listed: &Option<Listed>,
    item: impl Fn(&CallSite) -> SiteItem<'a>,
) -> io::Result<()> {
    match listed {
        None => out.write_all(b"null"),
        Some(listed) => list(out, listed.sites.iter().map(item)),
    }
}
