//! The report: `command|null`, `duration|null` (ns), `functions` and `by_total` as in the flat
//! profile, the former with `line {file, line, weight}|null`; `commands [{name, weight}]`,
//! `threads [{pid, tid, name, weight}]`, `quality {stacks, calls {KEY: number}, KEY: {samples, text, remedy|null}, …}|null`
//! with the keys of [`quality::lines`], `next [{command, shows}]`.

use std::borrow::Cow;
use std::io::{self, Write};

use super::flat::fields;
use super::{list, string, view_head};
use crate::view::Subject;
use crate::view::quality;
use crate::view::report::Report;

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, subject: &Subject, report: &Report) -> io::Result<()> {
    view_head(out, "report", subject)?;
    let about = &subject.profile.about;
    let command = about.command.as_deref();
    write!(
        out,
        "\"command\":{},\"duration\":{},\n\"functions\":",
        command.map_or(Cow::Borrowed("null"), string),
        about
            .duration
            .map_or("null".to_owned(), |ns| ns.to_string())
    )?;
    list(out, report.functions.iter(), |out, (row, line)| {
        fields(out, subject, row)?;
        match line {
            None => out.write_all(b",\"line\":null}"),
            Some(line) => write!(
                out,
                ",\"line\":{{\"file\":{},\"line\":{},\"weight\":{}}}}}",
                string(&line.file),
                line.line,
                line.weight
            ),
        }
    })?;
    out.write_all(b",\n\"by_total\":")?;
    list(out, report.by_total.rows.iter(), |out, row| {
        fields(out, subject, row)?;
        out.write_all(b"}")
    })?;
    out.write_all(b",\n\"commands\":")?;
    list(out, report.commands.iter(), |out, (name, weight)| {
        write!(out, "{{\"name\":{},\"weight\":{weight}}}", string(name))
    })?;
    out.write_all(b",\n\"threads\":")?;
    list(out, report.threads.iter(), |out, &(id, weight)| {
        let thread = &subject.profile.threads[id];
        write!(
            out,
            "{{\"pid\":{},\"tid\":{},\"name\":{},\"weight\":{weight}}}",
            thread.pid,
            thread.tid,
            string(&thread.comm)
        )
    })?;
    out.write_all(b",\n\"quality\":")?;
    match &subject.profile.quality {
        None => out.write_all(b"null")?,
        Some(quality) => {
            write!(out, "{{\"stacks\":{}", quality.stacks)?;
            let calls = &quality.calls;
            write!(
                out,
                ",\n\"calls\":{{\"verified\":{},\"unchecked\":{},\"lacking\":{},\"ambiguous\":{},\"contradicted\":{}}}",
                calls.verified, calls.unchecked, calls.lacking, calls.ambiguous, calls.contradicted
            )?;
            for line in quality::lines(subject.profile) {
                write!(
                    out,
                    ",\n\"{}\":{{\"samples\":{},\"text\":{},\"remedy\":{}}}",
                    line.key,
                    line.samples,
                    string(line.what),
                    line.remedy.map_or(Cow::Borrowed("null"), string)
                )?;
            }
            out.write_all(b"}")?;
        }
    }
    out.write_all(b",\n\"next\":")?;
    list(out, report.next.iter(), |out, (command, shows)| {
        write!(
            out,
            "{{\"command\":{},\"shows\":{}}}",
            string(command),
            string(shows)
        )
    })?;
    out.write_all(b"}\n")
}
