//! The report: `command|null`, `duration|null` (ns), `functions` and `by_total` as in the flat
//! profile, the former with `line {file, line, weight}|null`, the latter with `folded [name]`, the
//! functions with exactly the same samples that the row stands for as well; `commands [{name, weight}]`,
//! `threads [{pid, tid, name, weight}]`, `sampling_error {points, confidence, effective_samples}|null`
//! (percentage points around a share of one half, for independent samples), `census {complete, lost,
//! throttled, intervals}|null` where every event was recorded or should have been, `quality {stacks, calls {KEY: number}, KEY: {samples, text, remedy|null}, …}|null`
//! with the keys of [`quality::lines`], of the whole file also where filters leave samples out, `waits [{function, module, caller|null, weight}]`
//! (where threads leave the processor; empty for events of running threads), `next [{command|null, shows}]`. Remedies and
//! commands are the caller's [`Advice`].

use std::borrow::Cow;
use std::io::{self, Write};

use super::flat::fields;
use super::{list, or_null, string, view_head};
use crate::analysis::sampling_error::{CONFIDENCE, SamplingError};
use crate::export::Advice;
use crate::view::Subject;
use crate::view::quality;
use crate::view::report::Report;

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report,
    advice: &dyn Advice,
) -> io::Result<()> {
    view_head(out, "report", subject, advice)?;
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
    let by_total = report.by_total.rows.iter().zip(&report.folded);
    list(out, by_total, |out, (row, folded)| {
        fields(out, subject, row)?;
        out.write_all(b",\"folded\":")?;
        names(out, folded)?;
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
                    or_null(line.gap.and_then(|gap| advice.on_stacks(gap)))
                )?;
            }
            out.write_all(b"}")?;
        }
    }
    out.write_all(b",\n\"waits\":")?;
    list(out, report.waits.iter(), |out, &(wait, weight)| {
        write!(
            out,
            "{{\"function\":{},\"module\":{},\"caller\":{},\"weight\":{weight}}}",
            string(subject.name(wait.function)),
            string(subject.module(wait.function)),
            wait.caller
                .map_or(Cow::Borrowed("null"), |caller| string(subject.name(caller)))
        )
    })?;
    sampling_error(out, &report.sampling_error)?;
    out.write_all(b",\n\"next\":")?;
    list(out, report.next.iter(), |out, question| {
        write!(
            out,
            "{{\"command\":{},\"shows\":{}}}",
            or_null(advice.command(question)),
            string(question.shows())
        )
    })?;
    out.write_all(b"}\n")
}

/// What can be said of the error of shares: an error, a census, or neither.
fn sampling_error(out: &mut dyn Write, error: &SamplingError) -> io::Result<()> {
    let (mut sampled, mut census) = ("null".to_owned(), "null".to_owned());
    match *error {
        SamplingError::Unknown => {}
        SamplingError::Sampled {
            effective_samples,
            half_width,
        } => {
            sampled = format!(
                "{{\"points\":{},\"confidence\":{CONFIDENCE},\"effective_samples\":{effective_samples}}}",
                half_width * 100.0
            );
        }
        SamplingError::Census => {
            census = "{\"complete\":true,\"lost\":0,\"throttled\":0,\"intervals\":0}".to_owned();
        }
        SamplingError::IncompleteCensus {
            lost,
            throttled,
            intervals,
        } => {
            census = format!(
                "{{\"complete\":false,\"lost\":{lost},\"throttled\":{throttled},\"intervals\":{intervals}}}"
            );
        }
    }
    write!(out, ",\n\"sampling_error\":{sampled},\"census\":{census}")
}

/// Writes names on one line.
fn names(out: &mut dyn Write, names: &[String]) -> io::Result<()> {
    let quoted: Vec<_> = names.iter().map(|name| string(name)).collect();
    write!(out, "[{}]", quoted.join(","))
}
