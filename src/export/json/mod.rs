//! JSON, schema `proftool/1`: one document a view.
//!
//! Every document has `schema`, `view`, `event {name, unit, unit_assumed}`, `total`, `samples` and
//! `caveats [{kind, count, text, hint|null}]`, where `hint` is the caller's [`Advice`].
//! `unit_assumed` is true for folded stacks whose unit is not stated; they count as samples. For
//! folded stacks of time or bytes, `samples` is the number of lines, as the number of samples is
//! not stated. The views' own fields stand in [`flat`], [`tree`], [`graph`], [`cycles`],
//! [`detail`], [`annotate`], [`report`], [`owners`], [`doctor`] and [`callgraph`]. Fields are
//! added, never renamed. `total_max` is what a total is at most: more than the total where stacks
//! were cut and the function may be among the callers that they lack. It is null where it is
//! unknown whether the total can be larger; then, and only then, `total_max_reason` has the reason,
//! and `total_limit` an upper bound that holds in any case. Weights are in the event's unit; a
//! function's identity is its index, never its name.
//!
//! A function's `name` is as it is demangled, and others may have it too. Its `label` is distinct,
//! and the same in every view and format of one recording: use it to find callers, callees and
//! nodes among `functions`. There, `linkage_name`, `address|null`, `decl_file|null` and
//! `decl_line|null` distinguish functions of one name as well. Code without a name
//! has no declaration in [`flat`], [`graph`] and [`cycles`], and its `linkage_name` is null.
//!
//! Where rows are no functions, the document has `by`: `module`, `file`, `line`, `address`,
//! `thread`, `command` or `event`, and each row among `functions` and each node has `kind` and
//! `file|null`, `line|null`. `kind` is the value of `by`; `mark` for marks such as `[truncated]`,
//! `unknown` where the row of a frame is not known, and `function` for functions under threads,
//! commands and events. `file` is the path of a module or a source file.
//!
//! Documents are streamed: a tree of any depth is written without recursion and without a copy.
//! What stands on a line is a struct that serde_json writes; only lines that hold lists are put
//! together here. Strings are escaped by serde_json, and beyond it every character that is not safe
//! to print (DEL, C1, marks that reorder text) is written `\uNNNN`.

pub mod annotate;
pub mod callgraph;
#[cfg(feature = "compare")]
pub mod check;
#[cfg(feature = "compare")]
pub mod compare;
pub mod cycles;
pub mod detail;
pub mod doctor;
pub mod flat;
pub mod graph;
pub mod info;
mod layout;
pub mod owners;
pub mod report;
pub mod tree;

use std::io::{self, Write};

use serde::Serialize;

use self::layout::list;
pub(super) use self::layout::value;
use crate::analysis::cut::AtMost;
use crate::base::{Caveats, Event, Sampling};
use crate::export::Advice;
use crate::profile::{Function, FunctionId, FunctionKind, RowKind};
use crate::view::{Subject, rows};

#[derive(Serialize)]
struct EventFields<'a> {
    name: &'a str,
    unit: String,
    unit_assumed: bool,
}

impl EventFields<'_> {
    fn of(event: &Event, sampling: Sampling) -> EventFields<'_> {
        EventFields {
            name: &event.name,
            unit: event.unit.to_string(),
            unit_assumed: sampling.assumes(&event.unit),
        }
    }
}

#[derive(Serialize)]
struct CaveatItem<'a> {
    kind: &'a str,
    count: u64,
    text: String,
    hint: Option<String>,
}

// The fields that every document has, from the opening brace to a comma.
fn head(
    out: &mut dyn Write,
    view: &str,
    event: &Event,
    sampling: Sampling,
    total: u64,
    samples: u64,
    (caveats, advice): (&Caveats, &dyn Advice),
) -> io::Result<()> {
    writeln!(out, "{{\"schema\":\"proftool/1\",\"view\":\"{view}\",")?;
    out.write_all(b"\"event\":")?;
    value(out, &EventFields::of(event, sampling))?;
    writeln!(out, ",\"total\":{total},\"samples\":{samples},")?;
    out.write_all(b"\"caveats\":")?;
    let items = caveats.iter().map(|caveat| CaveatItem {
        kind: caveat.kind.name(),
        count: caveat.count,
        text: caveat.to_string(),
        hint: advice.on_caveat(caveat),
    });
    list(out, items)?;
    out.write_all(b",\n")
}

fn view_head(
    out: &mut dyn Write,
    view: &str,
    subject: &Subject,
    advice: &dyn Advice,
) -> io::Result<()> {
    let selection = subject.selection;
    head(
        out,
        view,
        selection.event(),
        selection.sampling(),
        selection.total(),
        selection.samples(),
        (&subject.profile.caveats, advice),
    )?;
    match subject.profile.rows {
        RowKind::Function => Ok(()),
        rows => writeln!(out, "\"by\":\"{}\",", rows.name()),
    }
}

// What tells functions of one name apart; `label` is what the function is called so that no other
// is called the same.
#[derive(Serialize)]
struct Identity<'a> {
    label: &'a str,
    linkage_name: Option<&'a str>,
    address: Option<u64>,
    #[serde(flatten)]
    declaration: Option<Declaration<'a>>,
    #[serde(flatten)]
    row: Option<RowFields<'a>>,
}

// What a row is that is no function, or stands among such rows.
#[derive(Serialize)]
struct RowFields<'a> {
    kind: &'static str,
    file: Option<&'a str>,
    line: Option<u32>,
}

impl<'a> RowFields<'a> {
    fn of(subject: &Subject<'a>, function: FunctionId) -> Option<RowFields<'a>> {
        let (file, line) = rows::position(subject, function);
        let kind = subject.profile.row_name(function);
        let is_told = subject.profile.rows != RowKind::Function;
        is_told.then_some(RowFields { kind, file, line })
    }
}

impl<'a> Identity<'a> {
    fn of(subject: &Subject<'a>, id: FunctionId, label: &'a str) -> Identity<'a> {
        let function = &subject.profile.functions[id];
        // Of the others there may be one for each address.
        let is_named = function.kind != FunctionKind::Unknown;
        Identity {
            label,
            linkage_name: is_named.then(|| linkage_name(function)),
            address: function.address,
            declaration: is_named.then(|| Declaration::of(function)),
            row: RowFields::of(subject, id),
        }
    }
}

// Its plain name where the linker has no other.
fn linkage_name(function: &Function) -> &str {
    function.linkage_name.as_deref().unwrap_or(&function.name)
}

#[derive(Serialize)]
struct Declaration<'a> {
    decl_file: Option<&'a str>,
    decl_line: Option<u32>,
}

impl Declaration<'_> {
    fn of(function: &Function) -> Declaration<'_> {
        let is_function = function.kind != FunctionKind::Row;
        let line = function.declared_at.as_deref().filter(|_| is_function);
        Declaration {
            decl_file: line.map(|line| &*line.file),
            decl_line: line.map(|line| line.line),
        }
    }
}

// The calls of one function by another, where calls were counted.
#[derive(Serialize)]
struct CountedCalls {
    calls: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    calls_at_least: bool,
}

impl CountedCalls {
    fn between(subject: &Subject, from: FunctionId, to: FunctionId) -> Option<CountedCalls> {
        let counts = subject.profile.counts.as_ref()?;
        let counted = counts.between(Some(from), to);
        Some(CountedCalls {
            calls: counted.map(|counted| counted.calls),
            calls_at_least: counted.is_some_and(|counted| counted.is_least),
        })
    }
}

// What a measured total is at most, with the reason where that is not known.
#[derive(Serialize)]
struct TotalMax {
    total_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_max_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_limit: Option<u64>,
}

impl From<Option<AtMost>> for TotalMax {
    fn from(most: Option<AtMost>) -> TotalMax {
        let reason = most.and_then(|most| most.unknown);
        TotalMax {
            total_max: most.and_then(|most| most.known()),
            total_max_reason: reason.map(|reason| reason.name()),
            total_limit: reason.and(most).map(|most| most.weight),
        }
    }
}
