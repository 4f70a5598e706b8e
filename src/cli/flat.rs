//! `proftool flat`.

use std::process::ExitCode;

use clap::ValueEnum;
use proftool::analysis::flat::Summary;
use proftool::analysis::owners::Charged;
use proftool::export::{gprof, json};
use proftool::input::StaticCalls;
use proftool::profile::{Profile, Selection};
use proftool::view::flat::{self, Options};
use proftool::view::{Subject, owners};

use super::answer::{self, Forms};
use super::classic::Classic;
use super::look::{Look, SortKey, SortKeyParser};
use super::query::Query;

/// The rows that a text has when nothing is asked for.
const ROWS: usize = 40;

/// The arguments of `proftool flat`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    /// Sort order.
    #[arg(long, default_value = "self", value_parser = SortKeyParser::new())]
    sort: SortKey,
    /// What a row is.
    #[arg(long, value_enum, default_value_t = By::Function)]
    by: By,
    #[command(flatten)]
    classic: Classic,
    #[command(flatten)]
    look: Look,
}

const EXAMPLES: &str = "\
A sample counts for the function that it was taken in (self), and once for each
function on its stack (total), however often the function is there. With
--by crate it counts once: for its innermost frame outside of the kernel and of
standard libraries.

Examples:
  proftool flat                              the hottest functions of perf.data
  proftool flat --sort total --limit 10      the ten largest totals
  proftool flat --focus '^parse' --comm app  stacks of app through parse…
  proftool flat --by crate                   time by crate, library or directory
  proftool flat --format json | jq '.functions[0]'";

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// A function.
    Function,
    /// A crate, a library, or a directory of the project. A sample counts for its innermost frame outside of
    /// the kernel and of standard libraries.
    Crate,
}

/// Answers.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.classic.is_asked_for() {
        let read = args.query.open_as_gprof(StaticCalls::Off)?;
        let write = gprof::write_flat;
        return (args.classic).give(&args.query, &args.look, "flat", &read, write);
    }
    let profile = args.query.open_for_totals(StaticCalls::Off)?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    if args.by == By::Crate {
        return by_crate(args, &profile, &selection, &subject);
    }
    let summary = Summary::of(&profile, &selection);
    let options = Options {
        sort: args.sort.sort(),
        limit: args.look.limit(ROWS),
        min: args.look.min(0.0),
    };
    let flat = flat::arrange(&subject, &summary, &options);
    let forms = Forms {
        page: &|| flat.page(&subject),
        table: &|| flat.table(&subject),
        json: &|out, advice| json::flat::write(out, &subject, &flat, advice),
        dot: None,
    };
    answer::give(
        &args.look.output,
        &args.query.shown_by("flat"),
        &profile.caveats,
        &forms,
    )
}

fn by_crate(
    args: &Args,
    profile: &Profile,
    selection: &Selection,
    subject: &Subject,
) -> anyhow::Result<ExitCode> {
    args.query.refuse_without_stacks(profile, "--by crate")?;
    let charged = Charged::of(profile, selection, args.query.owners(profile));
    let forms = Forms {
        page: &|| owners::page(subject, &charged, args.look.limit(ROWS)),
        table: &|| owners::table(subject, &charged, args.look.limit(ROWS)),
        json: &|out, advice| json::owners::write(out, subject, &charged, advice),
        dot: None,
    };
    answer::give(
        &args.look.output,
        &args.query.shown_by("flat"),
        &profile.caveats,
        &forms,
    )
}
