//! `proftool record`: runs a command and samples it, or samples what already runs.

mod cost;
mod counts;
pub(super) mod target;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, FromArgMatches};
use proftool::base::{CaveatKind, Caveats, printable};
use proftool::export::Advice;
use proftool::input::recorder;
use proftool::sampler::{self, CommandError, End, Error, Options, Recording, Subject, Target};

use self::target::BoundsArgs;
use super::advice::{self, Situation};
use super::failure::tell;
use super::query::open::cache_directory;
use super::sampling::SamplingArgs;
use super::stack_choice;

// When the recording itself failed, as of `env` and `timeout`.
pub(super) const FAILED: u8 = 125;
// When the command cannot be run.
const NOT_EXECUTABLE: u8 = 126;
// When there is no such command.
const NOT_FOUND: u8 = 127;

/// The arguments of `proftool record`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct RecordArgs {
    #[command(flatten)]
    sampling: SamplingArgs,

    /// Compress with zstd: -z1 (fastest) to -z22.
    ///
    /// -z alone is -z1.
    #[arg(short = 'z', long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = clap::value_parser!(u8).range(1..=22))]
    compression_level: Option<u8>,

    /// Count every direct call, too.
    ///
    /// In the program and its own libraries, or only in the =program, in =all files, or in those
    /// whose paths match =REGEX: see proftool help counts.
    #[arg(long, value_name = "FILES", num_args = 0..=1, require_equals = true,
          default_missing_value = "", value_parser = counts::images,
          conflicts_with_all = ["tid", "all_cpus", "cpu", "cgroup"])]
    counts: Option<counts::Files>,

    /// Accepted slowdown, or none.
    ///
    /// Beyond it the most frequent calls are given up, and their counts are lower bounds.
    #[arg(long, value_name = "PERCENT", requires = "counts", default_value = "30",
          value_parser = counts::slowdown)]
    counts_limit: counts::Slowdown,

    /// With --counts: also in programs that it executes.
    ///
    /// A process waits at each exec until its new program is ready.
    #[arg(long, requires = "counts",
          conflicts_with_all = ["pid", "tid", "comm", "all_cpus", "cpu", "cgroup"])]
    follow_exec: bool,

    /// With --counts: use no cache (~/.cache/proftool).
    #[arg(long)]
    no_cache: bool,

    /// Keep copies of stacks, for others to unwind.
    ///
    /// The file is some forty times as large, and holds memory of the program.
    #[arg(long)]
    keep_copies: bool,

    /// The file to write.
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    output: PathBuf,

    #[command(flatten)]
    bounds: BoundsArgs,

    /// Record the command N times, to FILE.1 up to FILE.N.
    ///
    /// For proftool compare. It ends with the first run that fails.
    #[arg(long, value_name = "N", conflicts_with = "TargetArgs",
          value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,

    /// Print only warnings and errors.
    #[arg(short, long)]
    quiet: bool,

    /// Report what the recording cost.
    ///
    /// The recorder's own time, how full buffers were, and how much the program was slowed down.
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,

    /// What to run and record, with its arguments.
    ///
    /// With -p, -t, --comm, -a, -C or --cgroup it is not recorded: the recording lasts as long as
    /// it runs.
    #[arg(
        required_unless_present = "TargetArgs",
        trailing_var_arg = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

const MANUAL: &str = "\
A command is recorded with all that it starts. Running targets (-p, -t, --comm,
-a, -C, --cgroup) are recorded until they end, until Ctrl-C, for --duration, or
while the command runs that is given as well.

The exit status is that of the command; 128 plus the number of the signal that
killed it; 0 without a command. It is 125 if the recording failed or the target
does not exist, 126 if the command cannot be run, 127 if it is not found.

The kernel starts a new period with each thread: those that end before have
almost no samples, but with -a and --cgroup. Every view reports if samples do
not add up to the event's counter.

FILE.part is written, can be read at any time, and becomes FILE at the end. An
earlier recording is kept as FILE.old; no file of another kind is replaced,
unless it is called *.data.
Copies of stacks are unwound as they are recorded, and not kept: proftool help
stacks.";

const EXAMPLES: &str = "\
Examples:
  proftool record ./app --its-option
  proftool record -p 4711 -d 10     a running process, for ten seconds
  proftool record -a -- make -j8    the whole machine, until make ends";

// Passes the command's exit status on. Errors are printed here, since the exit status depends on
// what failed.
pub fn run(mut args: RecordArgs) -> anyhow::Result<ExitCode> {
    let Some(runs) = args.runs else {
        return once(&args);
    };
    let file = args.output.clone();
    for number in 1..=runs {
        args.output = file.clone();
        args.output.as_mut_os_string().push(format!(".{number}"));
        let status = once(&args)?;
        if status != ExitCode::SUCCESS {
            return Ok(status);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn once(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    if args.output.as_os_str() == "-" {
        tell("a recording cannot be written to standard output");
        hint_at("name a file: -o FILE");
        return Ok(ExitCode::from(FAILED));
    }
    Ok(match record(args) {
        Ok((recording, options, was_empty)) => {
            let path = args.output.display().to_string();
            report(&recording, &options, (&path, was_empty), args.quiet);
            if args.verbose {
                let lines = cost::lines(&recording, &options);
                lines.iter().for_each(|line| tell(line));
            }
            let left = recording.left_at.map(sampler::Ending::Signalled);
            ExitCode::from(recording.ending.or(left).map_or(0, sampler::Ending::status))
        }
        Err(error) => {
            let status = failed(&error);
            let is_not_found = matches!(
                &error,
                Error::Command {
                    source: CommandError::NotFound { .. },
                }
            );
            if let Some(hint) = is_not_found.then(|| value_for_command(args)).flatten() {
                hint_at(&hint);
            }
            status
        }
    })
}

/// What was meant where the command that is not there could be the value of an option.
fn value_for_command(args: &RecordArgs) -> Option<String> {
    let word = args.command.first()?.to_str()?;
    let is_level = |level: u8| (1..=22).contains(&level);
    if args.compression_level.is_some() && word.parse().is_ok_and(is_level) {
        return Some(format!("write the level without a space: -z{word}"));
    }
    let words: Vec<OsString> = env::args_os().collect();
    let at = words.iter().position(|it| it == word)?;
    let before = words.get(at.checked_sub(1)?)?;
    (before == "-g").then(|| "ways to record stacks with -g: auto, fp, dwarf, none".to_owned())
}

pub fn failed(error: &Error) -> ExitCode {
    tell(&error.to_string());
    if let Some(hint) = advice::sampling::on_error(error) {
        hint_at(&hint);
    }
    ExitCode::from(match error {
        Error::Command {
            source: CommandError::NotFound { .. },
        } => NOT_FOUND,
        Error::Command { .. } => NOT_EXECUTABLE,
        _ => FAILED,
    })
}

/// Estimates how long a sample takes where a command is recorded with these options; `None` also
/// where calls are counted, which costs more than samples.
pub fn sample_cost(options: &str, command: &[OsString]) -> Option<Duration> {
    let grammar = RecordArgs::augment_args(clap::Command::new("record").no_binary_name(true));
    let options = options.split_whitespace().map(OsString::from);
    let words = options.chain(["--".into()]).chain(command.iter().cloned());
    let matches = grammar.try_get_matches_from(words).ok()?;
    let args = RecordArgs::from_arg_matches(&matches).ok()?;
    if args.counts.is_some() {
        return None;
    }
    let asked = args.sampling.asked(&args.command).ok()?;
    let (options, _) = args
        .sampling
        .options(asked.subject().ok()?, !args.keep_copies);
    sampler::sample_cost(&options)
}

// How it was made, and whether it is of a control group in which there was no process at its start
// and its end.
fn record(args: &RecordArgs) -> Result<(Recording, Options, bool), Error> {
    let asked = args.sampling.asked(&args.command)?;
    let subject = asked.subject()?;
    // Which stubs count calls is known in the end, and stacks lead through them.
    let unwinds = !args.keep_copies && args.counts.is_none();
    let (mut options, why) = args.sampling.options(subject, unwinds);
    options.compression = args.compression_level.or(options.compression);
    // Which program will use the time is known only afterwards: a driver or a script starts others.
    let judged = match subject {
        Subject::Command(command) if why.is_some() && !args.quiet => Some(command.code_file()),
        _ => None,
    };
    if let Some(why) = why.filter(|_| !args.quiet) {
        tell(&why);
    }
    let was_empty = is_empty_group(&asked.target);
    if was_empty && !args.quiet {
        tell(&format!(
            "{} has no processes now; those that enter it are recorded",
            named(&asked.target)
        ));
    }
    let bounds = args.bounds.bounds();
    let endless = asked.command.is_none() && bounds.duration.is_none();
    let mut note = |note: sampler::Note| match note {
        sampler::Note::Begun if endless && !args.quiet => {
            tell(&format!(
                "recording {}; Ctrl-C ends it",
                named(&asked.target)
            ));
        }
        sampler::Note::Begun => {}
        note => {
            if !args.quiet || note.is_essential() {
                tell(&advice::sampling::note(&note));
            }
        }
    };
    let counter = args
        .counts
        .as_ref()
        .map(counts::Files::counter)
        .map(|counter| counter.following_exec(args.follow_exec))
        .map(|counter| counter.keeping_below(args.counts_limit.part()));
    let cache = cache_directory().filter(|_| !args.no_cache);
    let mut counter = counter.map(|counter| counter.keeping_in(cache));
    let recording = recorder::unwinding(options.unwinds, |stage| {
        let planner = counter.as_mut();
        sampler::record(
            &options,
            subject,
            &bounds,
            &args.output,
            planner,
            stage,
            &mut note,
        )
    })?;
    if let Some(counter) = counter.filter(|_| !args.quiet) {
        counts::report(&counter, args.counts_limit);
    }
    let chosen = (&options, args.sampling.time());
    // At a second signal there is no time for it.
    let is_asked = recording.samples > 0 && recording.left_at.is_none();
    if let Some(judged) = judged.filter(|_| is_asked)
        && let Some(line) = stack_choice::after(&args.output, recording.bytes, &judged, chosen)
    {
        tell(&line);
    }
    let is_empty = was_empty && is_empty_group(&asked.target);
    Ok((recording, options, is_empty))
}

fn is_empty_group(target: &Option<Target>) -> bool {
    target.as_ref().is_some_and(Target::is_empty_group)
}

// Describes the recorded processes that run already.
pub fn named(target: &Option<Target>) -> String {
    let list = |what: &str, numbers: &[i32]| match numbers {
        [one] => format!("{what} {one}"),
        many => format!(
            "{} {what}{}",
            many.len(),
            if what == "thread" { "s" } else { "es" }
        ),
    };
    match target {
        Some(Target::Processes(pids)) => list("process", pids),
        Some(Target::Threads(tids)) => list("thread", tids),
        Some(Target::Cgroup(path)) => format!("the control group {}", path.display()),
        Some(Target::Processors(Some(_))) => "these processors".into(),
        _ => "the whole machine".into(),
    }
}

// Reports what was recorded; with `--quiet`, only what was not. With the path comes whether the
// recorded control group was empty.
fn report(recording: &Recording, options: &Options, (path, empty): (&str, bool), quiet: bool) {
    if let Some(ending @ sampler::Ending::Signalled(number)) = recording.ending
        && !recording.interrupted
    {
        match ending.signal_name() {
            Some(name) => tell(&format!(
                "the command was killed by signal {number} ({name})"
            )),
            None => tell(&format!("the command was killed by signal {number}")),
        }
    }
    match recording.end {
        End::Subject if !quiet => tell("all recorded processes have exited"),
        End::Size => tell("the recording ended at --max-size"),
        End::Disk { left } => tell(&format!(
            "the recording ended: {:.1} MB are left on the disk; to set another bound: --max-size",
            left as f64 / 1e6
        )),
        _ => {}
    }
    let situation = Situation::Record {
        stacks: options.stacks,
        off_cpu: options.off_cpu,
        stood: recording.stood,
    };
    if recording.samples == 0 {
        no_samples(recording, &situation, (path, empty));
    }
    let mut caveats = Caveats::default();
    for (kind, count) in [
        (CaveatKind::Lost, recording.lost),
        (CaveatKind::Throttled, recording.throttled),
    ] {
        if count > 0 {
            caveats.add(kind, count);
        }
    }
    caveats.merge(&recording.caveats);
    warn(&caveats, &situation);
    if !quiet && recording.shortened > 0 {
        tell(&format!(
            "{} of {} stack copies were shortened, as more than {} MB came in a second; to keep \
             more of each, sample less often (-F 499), or choose the size: -g dwarf,61440",
            recording.shortened,
            recording.samples,
            Options::COPIED_PER_SECOND / 1_000_000
        ));
    }
    let kept = match recording.kept_copies {
        Some(kept) => kept,
        None if options.stacks.are_copied() => recording.samples,
        None => 0,
    };
    if !quiet && kept > 0 {
        tell(&format!(
            "{kept} of {} samples have copies of the program's stack, without its arguments and \
             environment; see: proftool help recording",
            recording.samples
        ));
    }
    if !quiet && recording.samples > 0 {
        tell(&format!(
            "{} sample{} in {path} ({:.1} MB), {} lost; see: proftool report{}",
            recording.samples,
            if recording.samples == 1 { "" } else { "s" },
            recording.bytes as f64 / 1e6,
            recording.lost,
            if path == "perf.data" {
                String::new()
            } else {
                format!(" {path}")
            },
        ));
    }
}

// Reports why there are no samples, as far as that is known.
fn no_samples(recording: &Recording, situation: &Situation, (path, empty): (&str, bool)) {
    let is_off_cpu = matches!(situation, Situation::Record { off_cpu: true, .. });
    let is_full = matches!(recording.end, End::Size | End::Disk { .. });
    let is_reasoned = recording.stopped_at_exec || empty || is_full;
    if is_off_cpu && !is_reasoned {
        tell(&format!(
            "no thread ran during the recording; to see where they waited: proftool report {path}"
        ));
        return;
    }
    tell(&format!("warning: no samples were recorded in {path}"));
    let kind = if recording.stopped_at_exec {
        CaveatKind::StoppedAtExec
    } else {
        CaveatKind::NoSamples
    };
    let help = |kind: CaveatKind| situation.on_remedy(kind.remedy()?, &BTreeSet::new());
    let hint = if recording.stopped_at_exec {
        help(kind)
    } else if matches!(recording.end, End::Disk { .. }) {
        // Said already.
        None
    } else if recording.end == End::Size {
        Some(format!(
            "--max-size leaves no room for samples: the file needs {} bytes for the machine's \
             description, mappings and build IDs",
            recording.bytes
        ))
    } else if empty {
        let hint = "no process was in the control group when the recording began and when it \
                    ended; start one there, or name another group: cat /proc/PID/cgroup";
        Some(hint.to_owned())
    } else {
        help(kind)
    };
    hint.iter().for_each(|hint| hint_at(hint));
}

fn warn(caveats: &Caveats, situation: &Situation) {
    for (caveat, hint) in situation.told(caveats.iter()) {
        tell(&format!("warning: {caveat}"));
        hint.iter().for_each(|hint| hint_at(hint));
    }
}

fn hint_at(text: &str) {
    let _ = writeln!(io::stderr(), "hint: {}", printable(text));
}
