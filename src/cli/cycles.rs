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
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    arcs: Arcs,
    #[command(flatten)]
    look: Look,
}

const MANUAL: &str = "\
A cycle is a set of functions that all reach each other by calls. Each is
listed with its members, its entry calls, the calls inside it, and the lightest
calls whose removal breaks it. Interrupts and page faults are no calls. A cycle
that only the scheduler of rayon or tokio makes is one line (--limit 0 lists
it).";

const EXAMPLES: &str = "\
Examples:
  proftool cycles --static on            with calls that only the code has
  proftool cycles --cycle-cut 0.5        without cycles over rare calls
  proftool cycles gmon.out --binary app  from call counts";

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
    answer::to(&args.query, &args.look, "cycles", &profile.caveats, &forms)
}
