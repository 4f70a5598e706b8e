//! `proftool graph`.

use std::path::PathBuf;
use std::process::ExitCode;

use proftool::analysis;
use proftool::analysis::graph::{Between, Model, Summary};
use proftool::export::{gprof, json};
use proftool::input::{self, StaticCalls};
use proftool::profile::{Profile, RowLevel};
use proftool::view::graph::{self, Options, Pruning};

use super::answer::{self, Forms};
use super::choice;
use super::classic::Classic;
use super::failure::hinted;
use super::function;
use super::in_code::InCode;
use super::look::{Look, Shown, share};
use super::query::Query;
use super::query::by::{By, Rows};
use super::query::open::Needs;

const ENTRIES: usize = 20;
// The least share of an entry of a text when nothing is asked for, in percent.
const MIN: f64 = 0.5;

/// The arguments of `proftool graph`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    rows: Rows,
    /// Only this function, with all callers and callees.
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    #[command(flatten)]
    shown: Shown,
    /// Weights of callers.
    ///
    /// [default: measured if there are stacks, else propagated]
    #[arg(long, value_parser = choice::MODEL)]
    model: Option<Model>,
    #[command(flatten)]
    arcs: Arcs,
    #[command(flatten)]
    counts: Counts,
    #[command(flatten)]
    pruning: Prune,
    #[command(flatten)]
    classic: Classic,
    #[command(flatten)]
    look: Look,
}

/// Which arcs count.
#[derive(clap::Args)]
pub struct Arcs {
    /// Calls only in the code.
    #[arg(long = "static", value_enum, value_name = "WHEN", default_value_t = InCode::Auto)]
    pub in_code: InCode,
    /// Leave out this call.
    #[arg(short = 'k', value_name = "FROM/TO")]
    without: Vec<String>,
    /// Find cycles without calls below this percentage.
    ///
    /// The output lists those calls.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    cycle_cut: Option<f64>,
}

/// Exact numbers of calls beside samples.
#[derive(clap::Args)]
struct Counts {
    /// Add the counts of gmon.out files of the program.
    ///
    /// --binary names the program if the recording has several.
    #[arg(long, value_name = "GMON", value_delimiter = ',')]
    counts: Vec<PathBuf>,
    /// Compare gprof's estimates with the samples.
    #[arg(long, conflicts_with_all = ["classic", "model"])]
    errors: bool,
}

/// What is too small to be drawn with `--format dot`.
#[derive(clap::Args)]
pub struct Prune {
    /// Draw functions from this percentage on [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    node_min: Option<f64>,
    /// Draw calls from this percentage on [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    edge_min: Option<f64>,
}

impl Prune {
    pub fn pruning(&self) -> Pruning {
        let usual = Pruning::default();
        Pruning {
            node: self.node_min.unwrap_or(usual.node),
            edge: self.edge_min.unwrap_or(usual.edge),
        }
    }
}

const MANUAL: &str = "\
Each entry lists a function's callers above it and its callees below it, each
with its part of the weight. A cycle has an entry of its own. With call stacks
all figures are measured; those of a gmon.out are gprof's estimates.

With --by module or file, a call leads from one to another; with --by line or
address, from the place of the call to the place that was reached. Threads,
commands and events do not call each other: use flat or tree. Entries below
0.5 % are left out (--min).";

const EXAMPLES: &str = "\
Examples:
  proftool graph --function parse --function lex
  proftool graph --format dot | dot -Tsvg > g.svg   drawn, as by gprof2dot
  proftool graph gmon.out --binary ./app            gprof's estimates";

impl Arcs {
    // `without` are those that are to be [left out](Arcs::without).
    pub fn options(&self, without: Vec<Between>) -> analysis::graph::Options {
        analysis::graph::Options {
            model: None,
            code_makes_cycles: self.in_code == InCode::On,
            without,
            cycle_cut: self.cycle_cut(),
        }
    }

    // The least share of an arc that forms cycles, in percent.
    fn cycle_cut(&self) -> f64 {
        self.cycle_cut.unwrap_or(0.0)
    }

    // The functions at the ends of the arcs that are to be left out. A name may have a `/` in it.
    pub fn without(&self, profile: &Profile) -> anyhow::Result<Vec<Between>> {
        let mut left_out = Vec::new();
        for text in &self.without {
            let places = text.match_indices('/').map(|(at, _)| at);
            let ends = places.map(|at| {
                (
                    function::exactly(profile, &text[..at]),
                    function::exactly(profile, &text[at + 1..]),
                )
            });
            let mut first = None;
            let mut found = None;
            for ends in ends {
                match ends {
                    (Ok(from), Ok(to)) => found = found.or(Some((from, to))),
                    (Err(error), _) | (_, Err(error)) => first = first.or(Some(error)),
                }
            }
            let Some((from, to)) = found else {
                let text = format!("-k {text}: expected CALLER/CALLEE");
                return Err(first.unwrap_or_else(|| super::failure::Misused(text).into()));
            };
            left_out.push(Between::new(from, to));
        }
        Ok(left_out)
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.model == Some(Model::Fonseca) && args.arcs.cycle_cut() > 0.0 {
        let text = "--model fonseca finds cycles of its own: leave --cycle-cut out";
        return Err(super::failure::Misused(text.into()).into());
    }
    args.check_rows()?;
    if args.classic.is_asked_for() {
        return classic(args);
    }
    let by = args.rows.by;
    let mut profile = match by {
        // Only functions have arcs in the code.
        By::Function => args.arcs.in_code.open(&args.query)?,
        by => args.query.open_for_rows(by)?,
    };
    join(args, &mut profile)?;
    args.query.refuse_without_calls(&profile, "graph")?;
    let (profile, selection) = args.query.select_rows(profile, by, RowLevel::Alone)?;
    let without = args.arcs.without(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let mut functions = Vec::new();
    for name in &args.function {
        functions.extend(function::all(&subject, name)?);
    }
    functions.extend(args.shown.of(&profile)?.into_iter().flatten());
    let counting = analysis::graph::Options {
        model: args.model,
        ..args.arcs.options(without)
    };
    let summary = Summary::of(&profile, &selection, &counting);
    if args.counts.errors && summary.errors.is_none() {
        let text = "--errors compares stacks with counted calls, and one of them is missing";
        let both = args.query.command("graph --counts gmon.out --errors");
        return Err(hinted(text.into(), Some(format!("give both: {both}"))));
    }
    let options = Options {
        limit: args.look.limit(ENTRIES),
        min: args.look.min(MIN),
        functions,
    };
    let view = graph::arrange(&subject, &summary, &options);
    let page = || match view.error_page(&subject) {
        Some(page) if args.counts.errors => page,
        _ => view.page(&subject),
    };
    let table = || {
        if args.counts.errors {
            view.arc_errors(&subject)
        } else {
            view.table(&subject)
        }
    };
    let forms = Forms {
        page: &page,
        table: &table,
        json: &|out, advice| json::graph::write(out, &subject, &view, advice),
        dot: Some(&|| view.drawing(&subject, args.pruning.pruning())),
    };
    answer::to(&args.query, &args.look, "graph", &profile.caveats, &forms)
}

impl Args {
    // Rows that do not call each other, and options that are about functions.
    fn check_rows(&self) -> anyhow::Result<()> {
        let by = self.rows.by;
        by.refuse_crate("graph")?;
        if by.is_outside_stacks() {
            let option = by.option();
            let text = format!(
                "graph shows calls, and those of {option} do not call each other; use flat or tree \
                 {option}"
            );
            return Err(super::failure::Misused(text).into());
        }
        by.refuse_with(&[
            ("--static on", self.arcs.in_code == InCode::On),
            ("--counts", !self.counts.counts.is_empty()),
            ("--classic", self.classic.is_asked_for()),
        ])
    }
}

fn classic(args: &Args) -> anyhow::Result<ExitCode> {
    // gprof adds calls of the code only when it is asked to.
    let calls = match args.arcs.in_code {
        InCode::Auto => StaticCalls::Off,
        in_code => in_code.calls(),
    };
    let mut read = args.query.open_as_gprof(calls)?;
    join(args, &mut read.profile)?;
    let without = args.arcs.without(&read.profile)?;
    forget(&mut read.profile, &without);
    let write = gprof::write_graph;
    (args.classic).give(&args.query, &args.look, "graph", &read, write)
}

fn join(args: &Args, profile: &mut Profile) -> anyhow::Result<()> {
    if args.counts.counts.is_empty() {
        return Ok(());
    }
    let options = args.query.reading(Needs::STACKS);
    let files = &args.counts.counts;
    Ok(input::join_counts(profile, files, &options)?)
}

// Leaves counts out, as gprof's `-k` does: the arcs of the code stay.
fn forget(profile: &mut Profile, without: &[Between]) {
    if let Some(counts) = &mut profile.counts {
        let is_left_out = |from, to| without.iter().any(|these| these.has(from, to));
        counts.retain(|count| !count.from.is_some_and(|from| is_left_out(from, count.to)));
    }
}
