//! `proftool export`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use proftool::analysis::flat;
use proftool::analysis::graph::{self as calls, Summary};
use proftool::analysis::tree::{Collapse as Degree, Stacks};
use proftool::export::{dot, folded};
use proftool::input::StaticCalls;
use proftool::view::graph::{self, Pruning};
use proftool::view::{Figures, Subject, tree};

use super::answer;
use super::in_code::InCode;
use super::look::Naming;
use super::query::Query;
use super::tree::Collapse;

/// The arguments of `proftool export`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Format,
    /// Recursion collapsing. Folded stacks become the paths of the collapsed tree; in a drawing, a
    /// collapsed call becomes a dashed arrow back, with the share of its samples.
    #[arg(long, value_name = "DEGREE", value_enum, default_value_t = Collapse::None)]
    collapse: Collapse,
    /// Output file [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Which calls in the code are added to the sampled ones, as dashed arrows. Folded stacks and
    /// collapsed drawings never have them.
    #[arg(long = "static", value_enum, value_name = "WHEN", default_value_t = InCode::Auto)]
    in_code: InCode,
    /// Form of function names.
    #[arg(long, value_enum, default_value_t = Naming::Full)]
    names: Naming,
    /// Exit 1 if the result is incomplete.
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  proftool export --to folded -o stacks.folded
  proftool export --to folded other.data | flamegraph.pl > flames.svg
  proftool export --to folded --collapse full | flamegraph.pl > flat-recursion.svg
  proftool export --to dot | dot -Tsvg > graph.svg
  proftool export --to dot --collapse full | dot -Tsvg > recursion.svg";

/// The formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each stack: main;parse;lex 12
    Folded,
    /// The call graph for Graphviz, as gprof2dot draws it.
    Dot,
}

/// Answers.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let degree = args.collapse.degree();
    let calls = match (args.to, degree) {
        (Format::Dot, Degree::None) => args.in_code.calls(),
        _ => StaticCalls::Off,
    };
    let profile = match args.to {
        Format::Folded => args.query.open(calls)?,
        Format::Dot => args.query.open_for_totals(calls)?,
    };
    match (args.to, degree) {
        (Format::Dot, Degree::None) => args.query.refuse_without_calls(&profile, "--to dot")?,
        (Format::Dot, _) => args.query.refuse_without_stacks(&profile, "--collapse")?,
        (Format::Folded, _) => args.query.refuse_without_stacks(&profile, "--to folded")?,
    }
    let selection = args.query.select(&profile)?;
    let subject = Subject {
        profile: &profile,
        selection: &selection,
        names: args.names.names(),
        figures: Figures::All,
    };
    match (args.to, degree) {
        (Format::Folded, _) => {
            let stacks = Stacks::new(&profile, &selection);
            let calls = stacks.top_down(degree);
            let write = |out: &mut dyn std::io::Write| folded::write(out, &subject, &calls);
            answer::write_file(args.output.as_deref(), write)?;
        }
        (Format::Dot, Degree::None) => {
            let counting = calls::Options {
                code_makes_cycles: args.in_code == InCode::On,
                ..calls::Options::default()
            };
            let summary = Summary::of(&profile, &selection, &counting);
            let view = graph::arrange(&subject, &summary, &graph::Options::default());
            let drawing = view.drawing(&subject, Pruning::default());
            let write = |out: &mut dyn std::io::Write| dot::write(out, &drawing);
            answer::write_file(args.output.as_deref(), write)?;
        }
        (Format::Dot, _) => {
            let stacks = Stacks::new(&profile, &selection);
            let (flat, arcs) = (flat::Summary::of(&profile, &selection), stacks.arcs(degree));
            let drawing = tree::drawing(&subject, &flat, &arcs, Pruning::default());
            let write = |out: &mut dyn std::io::Write| dot::write(out, &drawing);
            answer::write_file(args.output.as_deref(), write)?;
        }
    }
    answer::warn(&profile.caveats, &args.query.shown_by("export"));
    answer::strictly(args.strict, &profile.caveats)
}
