//! Writes an answer to the terminal, a pager or a file, and its caveats to stderr.

pub mod output;

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use proftool::base::Caveats;
use proftool::export::{Advice, csv, dot, markdown, text};
use proftool::files;
use proftool::view::drawing::Drawing;
use proftool::view::page::Page;
use proftool::view::table::Table;

use super::advice::Situation;
use super::failure;
use super::look::{Format, Look, Output};
use super::query::Query;

// The forms that an answer can take; only the one that is asked for is made.
pub struct Forms<'a> {
    pub page: &'a dyn Fn() -> Page,
    pub table: &'a dyn Fn() -> Table,
    pub json: &'a dyn Fn(&mut dyn Write, &dyn Advice) -> io::Result<()>,
    // For Graphviz; `None` for what is no graph.
    pub dot: Option<&'a dyn Fn() -> Drawing>,
}

// Gives the answer to the query of the command of this name.
pub fn to(
    query: &Query,
    look: &Look,
    command: &'static str,
    caveats: &Caveats,
    forms: &Forms,
) -> anyhow::Result<ExitCode> {
    give(&look.output, &query.shown_by(command), caveats, forms)
}

pub fn give(
    output: &Output,
    situation: &Situation,
    caveats: &Caveats,
    forms: &Forms,
) -> anyhow::Result<ExitCode> {
    match output.format {
        Format::Text => {
            let (page, options) = ((forms.page)(), output.text());
            let write = |out: &mut dyn Write| text::write(out, &page, &options, situation);
            if output.no_pager || !paged(write)? {
                write_to(standard_output()?, write)?;
            }
            // Who reads both has read it at the page's foot.
            if !go_to_one_place() {
                warn(caveats, situation);
            }
        }
        Format::Csv => {
            let table = (forms.table)();
            write_to(standard_output()?, |out| csv::write(out, &table))?;
            warn(caveats, situation);
        }
        Format::Markdown => {
            let page = (forms.page)();
            write_to(standard_output()?, |out| markdown::write(out, &page))?;
            warn(caveats, situation);
        }
        Format::Json => {
            write_to(standard_output()?, |out| (forms.json)(out, situation))?;
            warn(caveats, situation);
        }
        Format::Dot => {
            let Some(drawing) = forms.dot else {
                let text = "--format dot is supported by graph and callgraph";
                return Err(failure::Misused(text.into()).into());
            };
            let drawing = drawing();
            write_to(standard_output()?, |out| dot::write(out, &drawing))?;
            warn(caveats, situation);
        }
        Format::Svg | Format::Html => {
            let text = "--format svg and html are supported by compare";
            return Err(failure::Misused(text.into()).into());
        }
    }
    strictly(output.strict, caveats)
}

pub fn give_text(
    output: &Output,
    situation: &Situation,
    caveats: &Caveats,
    write: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<ExitCode> {
    if output.format != Format::Text {
        let text = "--classic prints text; leave out --format";
        return Err(failure::Misused(text.into()).into());
    }
    give_written(output, situation, caveats, write)
}

// In a format that the command itself writes.
pub fn give_written(
    output: &Output,
    situation: &Situation,
    caveats: &Caveats,
    write: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<ExitCode> {
    write_to(standard_output()?, write)?;
    warn(caveats, situation);
    strictly(output.strict, caveats)
}

pub fn print(text: &str) -> anyhow::Result<()> {
    let write = |out: &mut dyn Write| out.write_all(text.as_bytes());
    if !paged(write)? {
        write_to(standard_output()?, write)?;
    }
    Ok(())
}

pub fn print_plain(bytes: &[u8]) -> anyhow::Result<()> {
    write_to(standard_output()?, |out| out.write_all(bytes))
}

// The exit status: with `--strict`, caveats are failures.
pub fn strictly(strict: bool, caveats: &Caveats) -> anyhow::Result<ExitCode> {
    if strict && !caveats.is_empty() {
        anyhow::bail!("the result is incomplete (--strict)");
    }
    Ok(ExitCode::SUCCESS)
}

pub fn warn(caveats: &Caveats, situation: &Situation) {
    for (caveat, hint) in situation.told(caveats.notable()) {
        failure::line("warning", &caveat.to_string());
        hint.iter().for_each(|hint| failure::line("hint", hint));
    }
}

// Standard output and standard error may be one terminal, file or pipe.
fn go_to_one_place() -> bool {
    let place = |number: u32| {
        let metadata = std::fs::metadata(format!("/proc/self/fd/{number}")).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    place(1).is_some_and(|out| place(2) == Some(out))
}

// What is appended to a recording destroys it.
fn standard_output() -> anyhow::Result<StdoutLock<'static>> {
    let output = io::stdout().lock();
    let opened = std::fs::metadata("/proc/self/fd/1");
    let is_read = opened.is_ok_and(|it| it.is_file() && files::is_read(&it));
    anyhow::ensure!(
        !is_read,
        "could not write the output: standard output is a file that this command reads"
    );
    Ok(output)
}

// A closed pipe is no error: its reader has read enough.
fn write_to(
    out: impl Write,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let written = write(&mut out).and_then(|()| out.flush());
    // What is still in the buffer after an error must not be tried again.
    let _ = out.into_parts();
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("could not write the output"),
    }
}

// Shows it in a pager, if standard output is a terminal and a pager can be started. Returns whether
// it was shown.
fn paged(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<bool> {
    if !io::stdout().is_terminal() {
        return Ok(false);
    }
    let started = pager().and_then(|mut pager| pager.stdin(Stdio::piped()).spawn().ok());
    let Some(mut pager) = started else {
        return Ok(false);
    };
    let written = pager.stdin.take().map(|stdin| write_to(stdin, write));
    let status = pager.wait().context("could not wait for the pager")?;
    written.transpose()?;
    // The shell's way to say that there is no such program.
    Ok(!matches!(status.code(), Some(126 | 127)))
}

// What the environment names, or less; `None` if the name is empty.
fn pager() -> Option<Command> {
    let named = ["PROFTOOL_PAGER", "PAGER"];
    let Some(command) = named.iter().find_map(std::env::var_os) else {
        let mut less = Command::new("less");
        less.arg("-FRX");
        return Some(less);
    };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(&command);
    (!command.is_empty()).then_some(shell)
}
