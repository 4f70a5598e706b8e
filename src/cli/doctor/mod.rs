//! `proftool doctor`: what prevents a good recording, and what to change.
//!
//! Each file here examines one kind of subject and returns its findings as checks.

mod files;
mod machine;
mod process;
mod recording;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proftool::base::Caveats;
use proftool::export::json;
use proftool::sampler::Command;
use proftool::view::doctor::{self, Check, Findings, Status};

use super::advice::{Situation, inputs};
use super::answer::{self, Forms};
use super::failure::{fragment, hinted};
use super::look::Output;

/// The arguments of `proftool doctor`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    /// A program, a library or a recording [default: the machine]
    #[arg(value_name = "BINARY|FILE")]
    file: Option<PathBuf>,
    /// Check a running process.
    #[arg(short, long, value_name = "PID", conflicts_with = "file",
          value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    #[command(flatten)]
    output: Output,
}

const MANUAL: &str = "\
Without an argument doctor checks what you may record on this machine. It
checks frame pointers, symbols, line tables and debug files of a program and
its libraries, or the stacks, losses and changed files of a recording. Each
problem comes with a fix. The exit status is 0 whatever is found; with --strict
it is 1 if a recording is incomplete.";

const EXAMPLES: &str = "\
Examples:
  proftool doctor            what may I record here?
  proftool doctor ./app      will it have complete stacks and names?
  proftool doctor perf.data  why are names or callers missing?";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let findings = match (args.pid, &args.file) {
        (Some(pid), _) => Findings::of(process::checks(pid)?),
        (None, Some(file)) => of_file(file)?,
        (None, None) => Findings::of(machine::checks()),
    };
    let forms = Forms {
        page: &|| doctor::page(&findings),
        table: &|| doctor::table(&findings),
        json: &|out, advice| json::doctor::write(out, &findings, advice),
        dot: None,
    };
    // What is not known of a recording is among the checks.
    let none = Caveats::default();
    let caveats = if args.output.strict {
        &findings.caveats
    } else {
        &none
    };
    let situation = Situation::Doctor {
        file: String::new(),
    };
    answer::give(&args.output, &situation, caveats, &forms)
}

// What a file is, by its first bytes, decides what is looked at.
fn of_file(named: &Path) -> anyhow::Result<Findings> {
    let path = located(named);
    let refuse = |what: &str| {
        let hint = "proftool doctor checks perf.data files, programs and libraries";
        hinted(
            format!("could not use {}: {what}", named.display()),
            Some(hint.into()),
        )
    };
    let unopened = |error: std::io::Error| {
        let reason = fragment(&error.to_string());
        let is_refused = error.kind() == std::io::ErrorKind::PermissionDenied;
        hinted(
            format!("could not open {}: {reason}", named.display()),
            is_refused
                .then(|| inputs::as_root(named, "proftool doctor"))
                .flatten(),
        )
    };
    if named == Path::new("-") {
        return Err(refuse("a file is needed, not standard input"));
    }
    let metadata = path.metadata().map_err(unopened)?;
    if metadata.is_dir() && !path.join("data").is_file() {
        return Err(refuse("it is a directory"));
    }
    if metadata.is_dir() {
        return recording::findings(&path);
    }
    if !metadata.is_file() {
        return Err(refuse("it is a device, pipe or socket"));
    }
    let mut head = Vec::new();
    let opened = File::open(&path).and_then(|file| file.take(8).read_to_end(&mut head));
    opened.map_err(unopened)?;
    match head.as_slice() {
        [] => Err(refuse("it is empty")),
        [0x7f, b'E', b'L', b'F', ..] => {
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            Ok(Findings::of(files::of_program(&path)?))
        }
        b"PERFILE2" | b"2ELIFREP" | b"PERFFILE" => recording::findings(&path),
        // Of a script, its interpreter is what runs and is sampled.
        [b'#', b'!', ..] => {
            let name = path.as_os_str().to_owned();
            let command =
                Command::find(&[name]).map_err(|error| hinted(error.to_string(), None))?;
            Ok(Findings::of(files::of_program(&command.code_file())?))
        }
        _ => Err(refuse("it is neither a recording nor a program")),
    }
}

// A name that is no file may be that of a command.
fn located(named: &Path) -> PathBuf {
    let is_name = named.components().count() == 1 && !named.exists();
    let words: [OsString; 1] = [named.as_os_str().to_owned()];
    let command = is_name.then(|| Command::find(&words).ok()).flatten();
    command.map_or_else(|| named.to_owned(), |command| command.program().to_owned())
}

fn fine(subject: &str, check: &'static str, found: impl Into<String>) -> Check {
    Check {
        subject: subject.to_owned(),
        check,
        status: Status::Ok,
        found: found.into(),
        remedy: None,
    }
}

// A check after which something may be changed.
fn told(
    subject: &str,
    check: &'static str,
    status: Status,
    found: impl Into<String>,
    remedy: impl Into<String>,
) -> Check {
    Check {
        status,
        remedy: Some(remedy.into()),
        ..fine(subject, check, found)
    }
}
