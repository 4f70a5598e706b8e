//! `proftool cycles`.

use std::process::ExitCode;

use proftool::callgraph::CallGraph;
use proftool::export::json;
use proftool::view::cycles;
use proftool::view::graph::Options;

use super::answer::{self, Forms};
use super::graph::Arcs;
use super::in_code::InCode;
use super::look::Look;
use super::query::Query;

/// The cycles that a text has when nothing is asked for.
const CYCLES: usize = 5;

/// The arguments of `proftool cycles`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    arcs: Arcs,
    #[command(flatten)]
    look: Look,
}

const EXAMPLES: &str = "\
A cycle is a group of functions that all reach each other by calls. For each: who is in it, over
which calls it is entered, the calls inside, and the lightest calls without which it would be none;
leaving them out with proftool graph -k FROM/TO shows it from inside. An interrupt or a
page fault of the kernel is no call and forms no cycle.

Examples:
  proftool cycles                        the recursion that was seen
  proftool cycles --static on            with calls that the code has and nobody saw
  proftool cycles --cycle-cut 0.5        what is left when calls below 0.5 % form no cycles
  proftool cycles gmon.out --binary app  by counted calls
  proftool cycles --format json | jq '.cycles[0].cut'";

/// Answers.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.arcs.in_code.open(&args.query)?;
    args.query.refuse_without_calls(&profile, "cycles")?;
    let without = args.arcs.without(&profile)?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let options = Options {
        limit: args.look.limit(CYCLES),
        min: args.look.min(0.0),
        code_makes_cycles: args.arcs.in_code == InCode::On,
        without,
        cycle_cut: args.arcs.cycle_cut(),
        ..Options::default()
    };
    let view = cycles::arrange(&subject, &CallGraph::of(&profile, &selection), &options);
    let forms = Forms {
        page: &|| view.page(&subject),
        table: &|| view.table(&subject),
        json: &|out| json::cycles::write(out, &subject, &view),
        dot: None,
    };
    answer::give(&args.look, &profile.caveats, &forms)
}
