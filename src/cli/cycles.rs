//! `proftool cycles`.

use std::process::ExitCode;

use proftool::analysis::cycles::Summary;
use proftool::analysis::owners;
use proftool::export::json;
use proftool::view::cycles::{self, Options};

use super::answer::{self, Forms};
use super::graph::Arcs;
use super::look::Look;
use super::query::Query;

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
A cycle is a set of functions that all reach each other by calls. For each
cycle the output lists its members, its entry calls, the calls inside it, and
the lightest calls whose removal breaks it. -k FROM/TO leaves a call out. An
interrupt or a page fault is not a call and forms no cycle. A cycle that
disappears without the functions of rayon or tokio is due to their scheduler.
It is one line; --limit 0 lists it.

Examples:
  proftool cycles                        recursion in the samples
  proftool cycles --static on            with calls that are only in the code
  proftool cycles --cycle-cut 0.5        without cycles over calls below 0.5 %
  proftool cycles gmon.out --binary app  from call counts
  proftool cycles --format json | jq '.cycles[0].cut'";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.arcs.in_code.open(&args.query)?;
    args.query.refuse_without_calls(&profile, "cycles")?;
    let without = args.arcs.without(&profile)?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let options = Options {
        limit: args.look.limit(CYCLES),
        min: args.look.min(0.0),
    };
    let summary = Summary::of(&profile, &selection, &args.arcs.options(without));
    let mut view = cycles::arrange(&subject, &summary, &options);
    if options.limit.is_some() {
        let owners = args.query.owners(&profile);
        view = view.with_schedulers(&owners, &owners::scheduled(&summary.graph, &owners));
    }
    let forms = Forms {
        page: &|| view.page(&subject),
        table: &|| view.table(&subject),
        json: &|out, advice| json::cycles::write(out, &subject, &view, advice),
        dot: None,
    };
    answer::give(
        &args.look.output,
        &args.query.shown_by("cycles"),
        &profile.caveats,
        &forms,
    )
}
