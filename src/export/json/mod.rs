//! JSON, schema `proftool/1`: one document a view.
//!
//! Every document has `schema`, `view`, `event {name, unit, unit_assumed}`, `total`, `samples` and
//! `caveats [{kind, count, text, hint|null}]`, where `hint` is the caller's [`Advice`]. `unit_assumed` is true for folded stacks whose unit is
//! not stated; they count as samples. For folded stacks of time or bytes, `samples` is the number of lines,
//! as the number of samples is not stated. The views' own fields stand in [`flat`],
//! [`tree`], [`graph`], [`cycles`], [`detail`], [`report`], [`doctor`] and [`callgraph`]. Fields are added, never
//! renamed. `total_max` is what a total is at most: more than the total where stacks were cut and the
//! function may be among the callers that they lack. It is null where it is not known whether it can
//! be; then `total_max_reason` has the reason, and `total_limit` what the total cannot pass all the
//! same; these two fields are there only then. Weights are in the event's unit; a
//! function's identity is its index, never its name.
//!
//! A function's `name` is as it is demangled, and others may have it too. Its `label` is distinct, and the
//! same in every view and format of one recording: callers, callees and nodes are found by it among
//! `functions`. There, `linkage_name`, `address|null`, `decl_file|null` and `decl_line|null` say what
//! else tells functions of one name apart.
//!
//! Documents are streamed: a tree of any depth is written without recursion and without a copy.
//! Strings are escaped by serde_json, and beyond it every character that is not safe to print
//! (DEL, C1, marks that reorder text) is written `\uNNNN`.

pub mod callgraph;
pub mod cycles;
pub mod detail;
pub mod doctor;
pub mod flat;
pub mod graph;
pub mod info;
pub mod report;
pub mod tree;

use std::borrow::Cow;
use std::io::{self, Write};

use crate::analysis::cut::AtMost;
use crate::base::{Caveats, Event, Sampling, is_unsafe_char};
use crate::export::Advice;
use crate::profile::{Function, FunctionId};
use crate::view::Subject;

/// Writes the fields that every document has, from the opening brace to a comma.
fn head(
    out: &mut dyn Write,
    view: &str,
    event: &Event,
    sampling: Sampling,
    total: u64,
    samples: u64,
    (caveats, advice): (&Caveats, &dyn Advice),
) -> io::Result<()> {
    writeln!(
        out,
        "{{\"schema\":\"proftool/1\",\"view\":{},",
        string(view)
    )?;
    writeln!(
        out,
        "\"event\":{{\"name\":{},\"unit\":{},\"unit_assumed\":{}}},\"total\":{total},\"samples\":{samples},",
        string(&event.name),
        string(&event.unit.to_string()),
        sampling.assumes(&event.unit),
    )?;
    out.write_all(b"\"caveats\":")?;
    list(out, caveats.iter(), |out, caveat| {
        write!(
            out,
            "{{\"kind\":{},\"count\":{},\"text\":{},\"hint\":{}}}",
            string(caveat.kind.name()),
            caveat.count,
            string(&caveat.to_string()),
            or_null(advice.on_caveat(caveat))
        )
    })?;
    out.write_all(b",\n")
}

/// Writes the [`head`] of a view of a profile.
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
        &selection.event,
        selection.sampling,
        selection.total,
        selection.samples,
        (&subject.profile.caveats, advice),
    )
}

/// Writes what tells functions of one name apart, from a comma on; `label` is what the function is called
/// so that no other is called the same.
fn identity(
    out: &mut dyn Write,
    subject: &Subject,
    function: FunctionId,
    label: &str,
) -> io::Result<()> {
    let function = &subject.profile.functions[function];
    let linkage_name = function.linkage_name.as_deref().unwrap_or(&function.name);
    write!(
        out,
        ",\"label\":{},\"linkage_name\":{},\"address\":",
        string(label),
        string(linkage_name)
    )?;
    match function.address {
        Some(address) => write!(out, "{address}")?,
        None => out.write_all(b"null")?,
    }
    declaration(out, function)
}

/// Writes where a function is declared, from a comma on.
fn declaration(out: &mut dyn Write, function: &Function) -> io::Result<()> {
    match &function.declared_at {
        None => out.write_all(b",\"decl_file\":null,\"decl_line\":null"),
        Some(line) => write!(
            out,
            ",\"decl_file\":{},\"decl_line\":{}",
            string(&line.file),
            line.line
        ),
    }
}

/// Writes an array with an item a line.
fn list<T>(
    out: &mut dyn Write,
    items: impl Iterator<Item = T>,
    mut item: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    for (i, it) in items.enumerate() {
        out.write_all(if i > 0 { b",\n" } else { b"\n" })?;
        item(out, it)?;
    }
    out.write_all(b"]")
}

/// What a measured total is at most, as the value of `total_max` and what belongs to it.
fn total_max(most: Option<AtMost>) -> String {
    let Some(most) = most else {
        return "null".to_owned();
    };
    match most.unknown {
        None => most.weight.to_string(),
        Some(reason) => format!(
            "null,\"total_max_reason\":{},\"total_limit\":{}",
            string(reason.name()),
            most.weight
        ),
    }
}

/// A text as a JSON string, or `null`.
fn or_null(text: Option<String>) -> String {
    text.map_or("null".to_owned(), |text| string(&text).into_owned())
}

/// A text as a JSON string, with its quotes.
///
/// ```
/// use proftool::export::json::string;
/// assert_eq!(string("a\"\x1b\u{202e}"), r#""a\"\u001b\u202e""#);
/// assert_eq!(string("\u{e0041}"), r#""\udb40\udc41""#);
/// ```
pub fn string(text: &str) -> Cow<'_, str> {
    let quoted = serde_json::Value::from(text).to_string();
    if !quoted.contains(is_unsafe_char) {
        return Cow::Owned(quoted);
    }
    let mut out = String::with_capacity(quoted.len() + 16);
    for c in quoted.chars() {
        if is_unsafe_char(c) {
            // Beyond 16 bits as a pair of surrogates (RFC 8259, section 7).
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}
