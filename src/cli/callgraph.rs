//! `proftool callgraph`: the call graph of programs and libraries, from their code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgGroup;
use proftool::analysis::code::{self, Summary};
use proftool::export::json;
use proftool::input::{self, StaticCalls};
use proftool::profile::{Filter, FunctionId, ModuleId, Profile, Selection};
use proftool::view::Subject;
use proftool::view::callgraph::{self, Options, Part};

use super::advice::Situation;
use super::answer::{self, Forms};
use super::failure::hinted;
use super::function;
use super::look::Look;
use super::progress::Meter;

const ROWS: usize = 20;
const SIMILAR: usize = 5;

/// The arguments of `proftool callgraph`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
#[command(group = ArgGroup::new("part").multiple(false))]
pub struct Args {
    /// Programs, libraries, object files, kernel modules.
    ///
    /// Calls between them are resolved.
    #[arg(required_unless_present = "with", value_name = "BINARY")]
    binaries: Vec<PathBuf>,
    /// Only this function, with its callers and callees.
    ///
    /// A name, a part of it, or a regular expression.
    #[arg(long, value_name = "NAME", group = "part")]
    function: Option<String>,
    /// Only what this function can call.
    ///
    /// Directly or through others.
    #[arg(long, value_name = "NAME", group = "part")]
    reachable_from: Option<String>,
    /// Only functions that no direct call reaches.
    ///
    /// With the functions that take their address.
    #[arg(long, group = "part")]
    roots: bool,
    /// Only the recursion that the code allows.
    #[arg(long, group = "part")]
    cycles: bool,
    /// Add the samples of this recording.
    ///
    /// Weights, indirect calls, coverage. Without BINARY all sampled files are read.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// Inlined functions as their own.
    ///
    /// Needs debug information [default with --with].
    #[arg(long, conflicts_with = "no_inline")]
    inline: bool,
    /// Inlined code in the function that contains it.
    #[arg(long)]
    no_inline: bool,
    /// Search programs and libraries here first.
    ///
    /// Then at the recorded path, if they have the recorded build ID there.
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
}

const MANUAL: &str = "\
callgraph reads machine code and does not run it. An arc from A to B is:

  call     A calls B
  tail     A jumps to B, which then returns to A's caller
  import   A calls B by name, through a pointer that the loader fills in
  inlined  A contains a copy of B (--inline)
  pointer  A takes the address of B: what calls B is unknown, so this arc forms
           no cycle

Indirect calls have unknown targets, and are only counted. Functions without
names are called by address (sub_1234).";

const EXAMPLES: &str = "\
Examples:
  proftool callgraph ./app libapp.so --cycles
  proftool callgraph ./app --reachable-from parse --format dot > parse.dot
  proftool callgraph ./app --with perf.data   how much the samples cover";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let options = input::Options {
        symfs: args.symfs.clone(),
        // Samples count for inlined functions as well, so with samples the code has to show them.
        inlines: args.inline || args.with.is_some() && !args.no_inline,
        calls: StaticCalls::All,
        ..input::Options::default()
    };
    let (profile, selection, modules) = match &args.with {
        Some(recording) => with_samples(args, recording, &options)?,
        None => {
            let profile = input::programs(&args.binaries, &options)?;
            (profile, Selection::nothing(), Vec::new())
        }
    };
    let subject = Subject::new(&profile, &selection, args.look.names());
    let (part, from) = part(args, &subject)?;
    let summary = Summary::of(&profile, &selection, &code::Options { modules, from });
    let options = Options {
        limit: args.look.limit(ROWS),
        min: args.look.min(0.0),
        part,
    };
    let view = callgraph::arrange(&subject, &summary, &options);
    let forms = Forms {
        page: &|| view.page(&subject),
        table: &|| view.table(&subject),
        json: &|out, advice| json::callgraph::write(out, &subject, &view, advice),
        dot: Some(&|| view.drawing(&subject)),
    };
    answer::give(
        &args.look.output,
        &Situation::Callgraph,
        &profile.caveats,
        &forms,
    )
}

// Which part is shown, and the functions from which calls are followed for it.
fn part(args: &Args, subject: &Subject) -> anyhow::Result<(Part, Vec<FunctionId>)> {
    let mut from = Vec::new();
    let part = match (&args.function, &args.reachable_from) {
        (Some(name), _) => Part::About(function::all(subject, name)?),
        (_, Some(name)) => {
            from = function::all(subject, name)?;
            Part::Reachable
        }
        _ if args.roots => Part::Roots,
        _ if args.cycles => Part::Cycles,
        _ => Part::Whole,
    };
    Ok((part, from))
}

// The profile of a recording, its samples, and the modules that the binaries are in it.
fn with_samples(
    args: &Args,
    recording: &Path,
    options: &input::Options,
) -> anyhow::Result<(Profile, Selection, Vec<ModuleId>)> {
    let mut meter = Meter::new();
    let opened = input::open_with(recording, options, &mut |done, total| {
        meter.show(done, total)
    });
    let profile = opened?;
    let selection = match profile.main_event() {
        Some(event) => profile.select(event, &Filter::default()),
        None => Selection::nothing(),
    };
    let modules = args
        .binaries
        .iter()
        .map(|binary| module(&profile, binary, recording))
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok((profile, selection, modules))
}

// The module of the file's path, or else the only one of its name.
fn module(profile: &Profile, binary: &Path, recording: &Path) -> anyhow::Result<ModuleId> {
    let full = std::fs::canonicalize(binary).unwrap_or_else(|_| binary.to_owned());
    let name = binary.file_name().unwrap_or_default().to_string_lossy();
    let modules = || profile.modules.enumerate();
    let same = modules().find(|(_, module)| Path::new(&module.path) == full);
    if let Some((id, _)) = same {
        return Ok(id);
    }
    let mut alike = modules().filter(|(_, module)| module.name == name);
    if let (Some((id, _)), None) = (alike.next(), alike.next()) {
        return Ok(id);
    }
    let names: Vec<&str> = modules()
        .filter(|(_, module)| module.path.starts_with('/'))
        .map(|(_, module)| &*module.name)
        .take(SIMILAR)
        .collect();
    let hint = (!names.is_empty()).then(|| format!("it has samples in {}", names.join(", ")));
    let text = format!(
        "{} has no samples in {}",
        recording.display(),
        binary.display()
    );
    Err(hinted(text, hint))
}
