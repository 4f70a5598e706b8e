//! Takes an answer to where it belongs, and says on stderr what is not known about it.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::Context;
use proftool::base::Caveats;
use proftool::export::{csv, text};
use proftool::view::page::Page;
use proftool::view::table::Table;

use super::failure;
use super::look::{Format, Look};

/// The forms that an answer can take; only the one that is asked for is made.
pub struct Forms<'a> {
    /// For people.
    pub page: &'a dyn Fn() -> Page,
    /// For spreadsheets.
    pub table: &'a dyn Fn() -> Table,
    /// For programs.
    pub json: &'a dyn Fn(&mut dyn Write) -> io::Result<()>,
}

/// Writes the answer of a view in the form that is asked for.
pub fn give(look: &Look, caveats: &Caveats, forms: &Forms) -> anyhow::Result<ExitCode> {
    match look.format {
        Format::Text => {
            let (page, options) = ((forms.page)(), look.text());
            let mut pager = if look.no_pager { None } else { pager() };
            let written = match pager.as_mut().and_then(|pager| pager.stdin.take()) {
                Some(stdin) => write_to(stdin, |out| text::write(out, &page, &options)),
                None => write_to(io::stdout().lock(), |out| text::write(out, &page, &options)),
            };
            if let Some(mut pager) = pager {
                pager.wait().context("could not wait for the pager")?;
            }
            written?;
            // On a terminal the page's foot has said it.
            if !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
                warn(caveats);
            }
        }
        Format::Csv => {
            let table = (forms.table)();
            write_to(io::stdout().lock(), |out| csv::write(out, &table))?;
            warn(caveats);
        }
        Format::Json => {
            write_to(io::stdout().lock(), forms.json)?;
            warn(caveats);
        }
    }
    strictly(look.strict, caveats)
}

/// Writes into a file that is made anew, or to standard output.
pub fn write_file(
    path: Option<&Path>,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else {
        return write_to(io::stdout().lock(), write);
    };
    let name = path.display();
    let file = File::create(path).with_context(|| format!("could not write {name}"))?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out).and_then(|()| out.flush());
    written.with_context(|| format!("could not write {name}"))
}

/// The exit status where caveats may be asked to be failures.
pub fn strictly(strict: bool, caveats: &Caveats) -> anyhow::Result<ExitCode> {
    if strict && !caveats.is_empty() {
        anyhow::bail!("not everything is known (--strict)");
    }
    Ok(ExitCode::SUCCESS)
}

/// Says each caveat on stderr.
pub fn warn(caveats: &Caveats) {
    for caveat in caveats.iter() {
        failure::line("warning", &caveat.text());
        if let Some(hint) = caveat.hint() {
            failure::line("hint", hint);
        }
    }
}

/// Writes all of it. Who closes the pipe has read enough.
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

/// The pager, started, if standard output is a terminal and there is one.
fn pager() -> Option<Child> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let named = ["PROFTOOL_PAGER", "PAGER"];
    let command = named.iter().find_map(std::env::var_os);
    let command = command.unwrap_or_else(|| "less -FRX".into());
    if command.is_empty() || command == "cat" {
        return None;
    }
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped());
    shell.spawn().ok()
}
