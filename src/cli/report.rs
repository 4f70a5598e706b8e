//! `proftool report`.

use std::path::PathBuf;
use std::process::ExitCode;

use proftool::analysis::report::Summary;
use proftool::export::{json, text};
use proftool::input::{SourceLines, StaticCalls};
use proftool::view::Names;
use proftool::view::report::{self, Options};

use super::answer::{self, Forms};
use super::html;
use super::in_code::InCode;
use super::look::Look;
use super::query::Query;
use super::query::open::Needs;
use super::sources::{self, SourceChoice};

/// The rows of each list when nothing is asked for.
const ROWS: usize = 10;

/// The arguments of `proftool report`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    /// Print all that is known, not only what fits on one screen.
    #[arg(long)]
    full: bool,
    /// Also report how much of the code's call graph the samples reached: on, auto (the same), or off.
    #[arg(long = "static", value_enum, value_name = "WHEN", default_value_t = InCode::Off, hide_possible_values = true)]
    in_code: InCode,
    /// Write a page for a browser to this file instead, as export --to html does.
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["format", "in_code"])]
    html: Option<PathBuf>,
    /// With --html, directory of the source files, which are found in it by the end of their recorded
    /// paths; or all, to take every file that you can read.
    #[arg(long, value_name = "DIR|all", value_parser = sources::choice, requires = "html")]
    source: Option<SourceChoice>,
    #[command(flatten)]
    look: Look,
}

const EXAMPLES: &str = "\
Examples:
  proftool report                  perf.data in this directory
  proftool report --full           all that is known of the stacks, threads, libraries
  proftool report stacks.folded    folded stacks
  proftool report --comm app --time 2..4
  proftool report --html page.html app.data   a page to send";

/// Answers.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.html {
        let names = args.look.names_or(Names::Full);
        let rules = (args.source.as_ref(), args.look.output.strict);
        return html::write(&args.query, names, Some(path), rules);
    }
    let profile = args.query.open(Needs {
        calls: match args.in_code {
            // What was not sampled counts, too.
            InCode::Auto | InCode::On => StaticCalls::All,
            InCode::Off => StaticCalls::Off,
        },
        lines: SourceLines::OfSamples,
        ..Needs::TOTALS
    })?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let options = Options {
        limit: args.look.limit(ROWS),
        min: args.look.min(0.0),
    };
    let owners = args.query.owners(&profile);
    let summary = Summary::of(&profile, &selection, owners, args.in_code != InCode::Off);
    let report = report::arrange(&subject, &summary, &options);
    let (written, situation) = (args.look.output.text(), args.query.shown_by("report"));
    let forms = Forms {
        page: &|| {
            let is_full = args.full || args.in_code != InCode::Off;
            if is_full || args.look.has_limit() || args.look.has_min() {
                report.page(&subject)
            } else {
                report.first_screen(&subject, &|page| text::height(page, &written, &situation))
            }
        },
        table: &|| report.table(&subject),
        json: &|out, advice| json::report::write(out, &subject, &report, advice),
        dot: None,
    };
    answer::give(&args.look.output, &situation, &profile.caveats, &forms)
}
