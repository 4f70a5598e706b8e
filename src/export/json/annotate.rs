//! One function from within: `function {name, linkage_name, module, self, total, label,
//! address|null, decl_file|null, decl_line|null}`, `files [{file, found|null, embedded, newer,
//! lines [{line, self, total|null, text|null}]}]`, `unknown_line {self, total|null}|null`, `code
//! {file, origin, self, total, outside, inlined_elsewhere, cut, instructions [{address, length,
//! text, self, total, file|null, line|null, inlined|null, jump|null, callee|null}]}|null`, `copies
//! [{inlined_into, code}]`, `no_code|null`.
//!
//! A line of `files` has weight or code of the function; `text` is there where the source was
//! `found`, which is a program if the text is `embedded` in its debug information, and `newer`
//! tells that it was written after the program. `unknown_line` has the weight whose line is not
//! known, so that the self weights of all lines and it add up to that of the function. `code` is
//! the machine code with all that is inlined into it: its `self` is that of its instructions and of
//! `outside`, addresses that are in none. `inlined_elsewhere` is the self weight of the function in
//! the machine code of others; with `--asm`, `copies` has the instructions there, also those of
//! what is inlined into the function. `file`, `line` and `inlined` are the source position of an
//! instruction and the inlined function that has it; `jump` is the address of the instruction that
//! it leads to, `callee` what it calls. Where calls were counted, instructions and lines have
//! `calls|null`, how often they called, and `calls_at_least`, which is there, and true, where there
//! may have been more; the calls of a line are its own, not those of code that is inlined into it.
//! Without code, `no_code` has the reason. `origin` of code is `mapped` (a program or library),
//! `kernel-memory`, `kernel-file` (a vmlinux: as it was built) or `jitdump` (addresses are offsets
//! in that file).

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::layout::{list, list_with, value};
use super::{Identity, view_head};
use crate::export::Advice;
use crate::profile::{MadeCalls, Origin};
use crate::view::Subject;
use crate::view::annotate::{AnnotateView, CodeLine, CodeView, FileView};

#[derive(Serialize)]
struct FunctionFields<'a> {
    name: Cow<'a, str>,
    module: &'a str,
    #[serde(rename = "self")]
    self_weight: u64,
    total: u64,
    #[serde(flatten)]
    identity: Identity<'a>,
}

#[derive(Serialize)]
struct Weights {
    #[serde(rename = "self")]
    self_weight: u64,
    total: Option<u64>,
}

// Where calls were counted.
#[derive(Serialize)]
struct CallsItem {
    calls: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    calls_at_least: bool,
}

impl CallsItem {
    fn of(subject: &Subject, made: Option<MadeCalls>) -> Option<CallsItem> {
        let counts = subject.profile.counts.as_ref();
        counts.filter(|counts| counts.have_sites())?;
        Some(CallsItem {
            calls: made.map(|made| made.calls),
            calls_at_least: made.is_some_and(|made| made.is_least),
        })
    }
}

#[derive(Serialize)]
struct LineItem<'a> {
    line: u32,
    #[serde(flatten)]
    weights: Weights,
    #[serde(flatten)]
    calls: Option<CallsItem>,
    text: Option<&'a str>,
}

#[derive(Serialize)]
struct InstructionItem<'a> {
    address: u64,
    length: u8,
    text: &'a str,
    #[serde(rename = "self")]
    self_weight: u64,
    total: u64,
    #[serde(flatten)]
    calls: Option<CallsItem>,
    file: Option<&'a str>,
    line: Option<u32>,
    inlined: Option<&'a str>,
    jump: Option<u64>,
    callee: Option<String>,
}

/// Writes the document.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    view: &AnnotateView,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "annotate", subject, advice)?;
    let summary = &view.summary;
    out.write_all(b"\"function\":")?;
    let function = FunctionFields {
        name: subject.plain_name(summary.function),
        module: subject.module(summary.function),
        self_weight: summary.self_weight,
        total: summary.total,
        identity: Identity::of(subject, summary.function, view.name()),
    };
    value(out, &function)?;
    out.write_all(b",\n\"files\":")?;
    list_with(out, &view.files, |out, file| {
        write_file(out, subject, view, file)
    })?;
    out.write_all(b",\n\"unknown_line\":")?;
    let unknown = summary
        .lines
        .iter()
        .find(|row| row.line.is_none())
        .map(|row| Weights {
            self_weight: row.self_weight,
            total: row.total,
        });
    value(out, &unknown)?;
    out.write_all(b",\n\"code\":")?;
    match &view.code {
        Some(code) => write_code(out, subject, view, code)?,
        None => value(out, &None::<()>)?,
    }
    out.write_all(b",\n\"copies\":")?;
    list_with(out, &view.copies, |out, copy| {
        out.write_all(b"{\"inlined_into\":")?;
        value(out, &copy.holder_name())?;
        out.write_all(b",\"code\":")?;
        write_code(out, subject, view, &copy.code)?;
        out.write_all(b"}")
    })?;
    out.write_all(b",\n\"no_code\":")?;
    value(out, &view.no_code)?;
    out.write_all(b"}\n")
}

fn write_file(
    out: &mut dyn Write,
    subject: &Subject,
    view: &AnnotateView,
    file: &FileView,
) -> io::Result<()> {
    out.write_all(b"{\"file\":")?;
    value(out, &file.file)?;
    out.write_all(b",\"found\":")?;
    value(out, &file.found)?;
    write!(
        out,
        ",\"embedded\":{},\"newer\":{},\"lines\":",
        file.is_embedded, file.is_newer
    )?;
    let items = view.lines_of(file).map(|line| LineItem {
        line: line.line,
        weights: Weights {
            self_weight: line.self_weight,
            total: line.total,
        },
        calls: CallsItem::of(subject, line.calls),
        text: view.text(&file.file, line.line),
    });
    list(out, items)?;
    out.write_all(b"}")
}

fn write_code(
    out: &mut dyn Write,
    subject: &Subject,
    view: &AnnotateView,
    code: &CodeView,
) -> io::Result<()> {
    out.write_all(b"{\"file\":")?;
    value(out, &code.listing.file)?;
    let origin = match code.listing.origin {
        Origin::Mapped => "mapped",
        Origin::KernelMemory => "kernel-memory",
        Origin::KernelFile => "kernel-file",
        Origin::JitDump { .. } => "jitdump",
    };
    out.write_all(b",\"origin\":")?;
    value(out, origin)?;
    write!(
        out,
        ",\"self\":{},\"total\":{},\"outside\":{},\"inlined_elsewhere\":{},\"cut\":{}",
        code.self_weight, code.total, code.outside, code.inlined_elsewhere, code.listing.is_cut
    )?;
    out.write_all(b",\"instructions\":")?;
    list(
        out,
        view.instructions(code)
            .map(|line| item(subject, code, line)),
    )?;
    out.write_all(b"}")
}

fn item<'a>(subject: &Subject, code: &'a CodeView, line: CodeLine<'a>) -> InstructionItem<'a> {
    let instruction = line.instruction;
    let names = &code.listing.names;
    let position = code.listing.position_of(instruction);
    InstructionItem {
        address: instruction.address,
        length: instruction.length,
        text: &instruction.text,
        self_weight: line.self_weight,
        total: line.total,
        calls: CallsItem::of(subject, instruction.calls),
        file: position.map(|at| &names[at.file]),
        line: position.map(|at| at.line),
        inlined: position.and_then(|at| Some(&names[at.inlined?])),
        jump: instruction.jump,
        callee: code.callee(instruction),
    }
}
