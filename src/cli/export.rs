//! `proftool export`.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use proftool::analysis::call_stacks::{CallStacks, OutermostCalls};
use proftool::analysis::flat;
use proftool::analysis::graph::{self as calls, Summary};
use proftool::analysis::sampled_calls::sampled_calls;
use proftool::analysis::tree::{Collapse as Degree, Direction, Reach, Stacks};
use proftool::base::Sampling;
use proftool::export::{
    bolt, callgrind, dot, firefox, folded, otlp, perf_script, pprof, speedscope, svg,
};
use proftool::input::{LinkedProgram, StaticCalls};
use proftool::profile::{Counts, FunctionId, Profile, Selection};
use proftool::view::graph::{self, Pruning};
use proftool::view::tree;
use proftool::view::{Names, Subject};

use super::answer;
use super::choice;
use super::failure;
use super::html;
use super::in_code::InCode;
use super::query::Query;
use super::query::open::Needs;
use super::sources::{self, SourceChoice};

/// The arguments of `proftool export`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    /// Format.
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Format,
    /// Collapse recursion.
    ///
    /// For readers that count a recursive sample several times (pprof -list).
    #[arg(long, value_name = "DEGREE", value_parser = choice::COLLAPSE, default_value = "none")]
    collapse: Degree,
    /// A flame graph of callers.
    #[arg(long)]
    bottom_up: bool,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With --to html: where source files are.
    ///
    /// They are found in DIR by the end of their paths; with all, every file that you can read is
    /// taken.
    #[arg(long, value_name = "DIR|all", value_parser = sources::choice)]
    source: Option<SourceChoice>,
    /// Calls only in the code, as dashed arrows.
    ///
    /// Folded stacks and collapsed drawings never have them.
    #[arg(long = "static", value_enum, value_name = "WHEN", default_value_t = InCode::Auto)]
    in_code: InCode,
    /// Names of functions.
    #[arg(long, value_parser = choice::NAMES, default_value = "full")]
    names: Names,
    /// Exit 1 if the result is incomplete.
    #[arg(long)]
    strict: bool,
}

const MANUAL: &str = "\
A file holds one event (--event) after all filters; html has all of them. The
self and total of every function, as the named tool adds them up, are those of
proftool flat. Equal samples are added up: only html has times, and a time that
is required is 0.

  pprof        Inlined functions are lines of a location. Labels: pid, tid,
               comm, inferred, frames_missing. -list counts a recursive sample
               on each line: use --collapse full for it.
  callgrind    Samples do not count calls: calls= is 1. KCachegrind's totals
               within cycles are its own.
  speedscope   Left Heavy or Sandwich: the horizontal axis is no time.
  firefox      Call tree, no timeline. Weights are milliseconds, or samples.
               Blocked and preempted time are threads of their own.
  perf-script  The Firefox Profiler leaves out functions that begin with a
               parenthesis: use firefox for it.
  parquet      A row for each stack on each thread. For totals:
               SELECT f.function, sum(value) FROM (SELECT value,
               unnest(stack_functions) f FROM 'p.parquet') GROUP BY ALL
  bolt         Calls of the program file with most calls, for the order of
               functions only. Link the program with -Wl,--emit-relocs.
  svg          Frames below 0.1 px, and callers beyond 256 levels, are left out
               and counted. A collapsed call is a dashed outline.
  html         For browsers of 2023 or later. Makes no request. Has names, the
               command line, and source of the eight functions with most self
               weight; at most 4.9 MB, and says what it leaves out. Programs
               should read --format json.

Totals of 2^63 and more are refused by pprof, otlp, parquet and bolt; readers
in JavaScript and Perl round above 2^53. --collapse direct and conservative
keep self and total of all functions; full takes samples from functions between
the calls that it folds.";

const EXAMPLES: &str = "\
Examples:
  proftool export --to svg -o flames.svg
  proftool export --to html -o page.html app.data
  proftool export --to pprof -o p.pb.gz && go tool pprof -top p.pb.gz";

/// The formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A flame graph for browsers.
    Svg,
    /// main;parse;lex 12: flamegraph.pl, inferno.
    Folded,
    /// The call graph for Graphviz.
    Dot,
    /// go tool pprof, Pyroscope, Parca.
    Pprof,
    /// callgrind_annotate --inclusive=yes, KCachegrind.
    Callgrind,
    /// speedscope.app.
    Speedscope,
    /// profiler.firefox.com.
    Firefox,
    /// OpenTelemetry, v1development, proto 1.45.
    Otlp,
    /// The text of perf script.
    PerfScript,
    /// DuckDB, ClickHouse.
    Parquet,
    /// A page for a browser, with all views.
    Html,
    /// llvm-bolt -reorder-functions=cdsort.
    Bolt,
}

impl Format {
    fn option(self) -> &'static str {
        match self {
            Format::Svg => "--to svg",
            Format::Folded => "--to folded",
            Format::Dot => "--to dot",
            Format::Pprof => "--to pprof",
            Format::Callgrind => "--to callgrind",
            Format::Speedscope => "--to speedscope",
            Format::Firefox => "--to firefox",
            Format::Otlp => "--to otlp",
            Format::PerfScript => "--to perf-script",
            Format::Parquet => "--to parquet",
            Format::Html => "--to html",
            Format::Bolt => "--to bolt",
        }
    }

    // The largest total that readers of the format add up exactly.
    fn largest_total(self) -> u64 {
        match self {
            Format::Svg | Format::Folded | Format::Dot | Format::PerfScript => u64::MAX,
            // Signed integers.
            Format::Pprof | Format::Otlp | Format::Parquet | Format::Bolt => i64::MAX as u64,
            // Floating-point numbers: callgrind_annotate is in Perl, the others in JavaScript.
            Format::Callgrind | Format::Speedscope | Format::Firefox | Format::Html => 1 << 53,
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.to == Format::Parquet && cfg!(not(feature = "parquet")) {
        let text = "this proftool was built without Parquet";
        let hint =
            "to have it, in the sources of proftool: cargo install --path . --features parquet";
        return Err(failure::hinted(text.into(), Some(hint.into())));
    }
    if args.bottom_up && args.to != Format::Svg {
        let text = "--bottom-up is for --to svg";
        return Err(failure::Misused(text.into()).into());
    }
    answer::output::check(args.output.as_deref(), &args.query.inputs())?;
    if args.source.is_some() && args.to != Format::Html {
        let text = "--source is for --to html";
        return Err(failure::Misused(text.into()).into());
    }
    let profile = match args.to {
        Format::Dot => return drawing(args),
        Format::Html => {
            let (names, output) = (args.names, args.output.as_deref());
            let rules = (args.source.as_ref(), args.strict);
            return html::write(&args.query, names, output, rules);
        }
        Format::Bolt => return calls_for_bolt(args),
        Format::Pprof | Format::Callgrind | Format::Firefox | Format::Otlp => {
            args.query.open(Needs::LINES)?
        }
        _ => args.query.open(Needs::STACKS)?,
    };
    args.query
        .refuse_without_stacks(&profile, args.to.option())?;
    let selection = args.query.select(&profile)?;
    let subject = subject(args, &profile, &selection);
    check_total(args.to, selection.total())?;
    let degree = args.collapse;
    if args.to == Format::Folded {
        let stacks = Stacks::new(&profile, &selection);
        let calls = stacks.top_down(degree);
        return write(args, &profile, |out| folded::write(out, &subject, &calls));
    }
    if args.to == Format::Svg {
        return flame_graph(args, &subject, degree);
    }
    whole_stacks(args, &profile, &subject)
}

// Those of the Firefox Profiler are also of off-CPU events.
fn whole_stacks(args: &Args, profile: &Profile, subject: &Subject) -> anyhow::Result<ExitCode> {
    let degree = args.collapse;
    let stacks = CallStacks::of(profile, subject.selection, degree);
    let calls = match args.to {
        Format::Callgrind => OutermostCalls::of(profile, &stacks),
        _ => OutermostCalls::default(),
    };
    let others = match args.to {
        Format::Firefox => args.query.off_cpu_events(profile),
        _ => Vec::new(),
    };
    let others: Vec<Selection> = others
        .into_iter()
        .map(|event| args.query.select_event(profile, event))
        .collect::<Result<_, _>>()?;
    let others: Vec<(Subject, CallStacks)> = others
        .iter()
        .map(|selection| {
            let stacks = CallStacks::of(profile, selection, degree);
            (self::subject(args, profile, selection), stacks)
        })
        .collect();
    let tracks: Vec<firefox::Track> = others
        .iter()
        .map(|(subject, stacks)| firefox::Track { subject, stacks })
        .collect();
    let records = match args.to {
        Format::PerfScript => records(args, subject, &stacks),
        _ => perf_script::Records::Samples,
    };
    write(args, profile, |out| match args.to {
        Format::Pprof => pprof::write(out, subject, &stacks),
        Format::Callgrind => callgrind::write(out, subject, &stacks, &calls),
        Format::Speedscope => speedscope::write(out, subject, &stacks),
        Format::Firefox => {
            let stacks = &stacks;
            firefox::write(out, firefox::Track { subject, stacks }, &tracks)
        }
        Format::Otlp => otlp::write(out, subject, &stacks),
        Format::PerfScript => perf_script::write(out, subject, &stacks, records),
        #[cfg(feature = "parquet")]
        Format::Parquet => proftool::export::parquet::write(out, subject, &stacks),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Ok(()),
        Format::Svg | Format::Folded | Format::Dot | Format::Html | Format::Bolt => Ok(()),
    })
}

// perf's script has a record for each sample as long as all have room.
fn records(args: &Args, subject: &Subject, stacks: &CallStacks) -> perf_script::Records {
    let limit = args.query.inputs().limit();
    let records = perf_script::records(subject, stacks, limit);
    let is_merged = subject.selection.sampling() == Sampling::Merged;
    if records == perf_script::Records::Stacks && !is_merged {
        let text = format!(
            "each record is a distinct stack with its whole weight: one for each of {} samples \
             would exceed {} MiB",
            subject.selection.samples(),
            limit >> 20
        );
        failure::line("note", &text);
    }
    records
}

// The counted calls, else those on stacks.
fn calls_for_bolt(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.query.open(Needs::ADDRESSES)?;
    args.query
        .refuse_without_stacks(&profile, args.to.option())?;
    let selection = args.query.select(&profile)?;
    check_total(args.to, selection.total())?;
    // Counted calls are exact. Calls on stacks take their place where nothing was counted, and are
    // never added to them.
    let counts = profile.counts.as_ref();
    let counted = counts
        .into_iter()
        .flat_map(Counts::sites)
        .filter_map(|site| {
            let (caller, callee) = site.between?;
            Some((caller, site.at, callee, site.calls))
        });
    let mut calls: Vec<_> = counted.collect();
    if calls.is_empty() {
        let sampled = sampled_calls(&profile, &selection).into_iter();
        calls.extend(sampled.map(|call| (call.caller, call.at, call.callee, call.weight)));
    }
    // The heaviest first: their program is the one that is written.
    let mut ends: Vec<(u64, FunctionId)> = { calls.iter() }
        .flat_map(|&(caller, _, callee, count)| [(count, caller), (count, callee)])
        .collect();
    ends.sort_unstable_by_key(|&(count, function)| (Reverse(count), function));
    let mut seen = HashSet::new();
    let functions: Vec<FunctionId> = { ends.into_iter() }
        .map(|(_, function)| function)
        .filter(|function| seen.insert(*function))
        .collect();
    let reading = args.query.reading(Needs::STACKS);
    let Some(program) = LinkedProgram::of(&profile, &functions, &reading) else {
        let text = "no program of this recording has symbols, by which llvm-bolt knows functions";
        return Err(failure::hinted(text.into(), None));
    };
    let mut branches: Vec<bolt::Branch> = { calls.iter() }
        .filter_map(|&(caller, at, callee, count)| {
            Some(bolt::Branch {
                caller: program.name(caller)?,
                offset: program.site(caller, at)?,
                callee: program.name(callee)?,
                count,
            })
        })
        .collect();
    branches.sort_unstable();
    write(args, &profile, |out| bolt::write(out, &branches))
}

fn flame_graph(args: &Args, subject: &Subject, degree: Degree) -> anyhow::Result<ExitCode> {
    // More rows than anyone looks at.
    const DEPTH: u32 = 256;
    let stacks = Stacks::new(subject.profile, subject.selection);
    let least = svg::least(subject.selection.total());
    let (direction, depth, tree) = if args.bottom_up {
        let reach = Reach {
            depth: DEPTH,
            min: least,
        };
        let tree = stacks.bottom_up(degree, reach);
        (Direction::BottomUp, Some(DEPTH), tree)
    } else {
        (Direction::TopDown, None, stacks.top_down(degree))
    };
    drop(stacks);
    let layout = tree.flame_layout(least);
    let picture = svg::Picture {
        tree: &tree,
        layout: &layout,
        direction,
        depth,
    };
    write(args, subject.profile, |out| {
        svg::write(out, subject, &picture)
    })
}

fn drawing(args: &Args) -> anyhow::Result<ExitCode> {
    let degree = args.collapse;
    let calls = match degree {
        Degree::None => args.in_code.calls(),
        _ => StaticCalls::Off,
    };
    let profile = args.query.open(Needs {
        calls,
        ..Needs::TOTALS
    })?;
    match degree {
        Degree::None => args.query.refuse_without_calls(&profile, "--to dot")?,
        _ => args.query.refuse_without_stacks(&profile, "--collapse")?,
    }
    let selection = args.query.select(&profile)?;
    let subject = subject(args, &profile, &selection);
    let drawing = if degree == Degree::None {
        let counting = calls::Options {
            code_makes_cycles: args.in_code == InCode::On,
            ..calls::Options::default()
        };
        let summary = Summary::of(&profile, &selection, &counting);
        let view = graph::arrange(&subject, &summary, &graph::Options::default());
        view.drawing(&subject, Pruning::default())
    } else {
        let stacks = Stacks::new(&profile, &selection);
        let (flat, arcs) = (flat::Summary::of(&profile, &selection), stacks.arcs(degree));
        tree::drawing(&subject, &flat, &arcs, Pruning::default())
    };
    write(args, &profile, |out| dot::write(out, &drawing))
}

fn subject<'a>(args: &Args, profile: &'a Profile, selection: &'a Selection) -> Subject<'a> {
    Subject::new(profile, selection, args.names)
}

// Refuses what the format cannot hold, and warns where its readers round.
fn check_total(format: Format, total: u64) -> anyhow::Result<()> {
    if total <= format.largest_total() {
        return Ok(());
    }
    if format.largest_total() == i64::MAX as u64 {
        let text = format!("{} holds totals below 2^63 only", format.option());
        let hint = "select less (--comm, --tid, --time), or count samples: --unit samples";
        return Err(failure::hinted(text, Some(hint.into())));
    }
    let text = format!("readers of {} round totals above 2^53", format.option());
    failure::line("warning", &text);
    Ok(())
}

// Warns of what is not known, too.
fn write(
    args: &Args,
    profile: &Profile,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<ExitCode> {
    let inputs = args.query.inputs();
    answer::output::write_file(args.output.as_deref(), &inputs, write)?;
    answer::warn(&profile.caveats, &args.query.shown_by("export"));
    answer::strictly(args.strict, &profile.caveats)
}
