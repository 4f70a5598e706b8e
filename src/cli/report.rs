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
use super::look::{Look, Shown};
use super::query::Query;
use super::query::open::Needs;
use super::sources::{self, SourceChoice};

/// The rows of each list when nothing is asked for.
const ROWS: usize = 10;

/// The arguments of `proftool report`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = SCREEN)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    /// Print all that is known, not only one screen.
    #[arg(long)]
    full: bool,
    /// Show 95 % intervals, by runs or blocks of time.
    #[arg(long, conflicts_with = "html")]
    ci: bool,
    /// Print how much code was reached.
    ///
    /// The samples' part of the code's call graph, with on or auto.
    #[arg(long = "static", value_enum, value_name = "WHEN", default_value_t = InCode::Off)]
    #[arg(hide_possible_values = true)]
    in_code: InCode,
    /// Write a page for a browser, as export --to html.
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["format", "in_code"])]
    html: Option<PathBuf>,
    /// With --html: where source files are.
    ///
    /// They are found in DIR by the end of their paths; with all, every file that you can read is
    /// taken.
    #[arg(long, value_name = "DIR|all", value_parser = sources::choice, requires = "html")]
    source: Option<SourceChoice>,
    #[command(flatten)]
    shown: Shown,
    #[command(flatten)]
    look: Look,
}

const SCREEN: &str = "\
The first screen, from the answer to what to do next:

  g++ -O2 -c shapes.cpp                       what was run
  1,080 samples of cpu-clock, 1.083 s in all  weight of the samples: CPU time

  self %  total %  hottest functions          self: in the function itself
    3.70     3.70  push_to_top_level          total: it is on the stack

  total %  self %  your code, by total        what you can change
    40.83    0.00  c_parse_file

  heaviest path: main 98.2 → c_parse_file 40.8    totals, outermost first
  where: cc1plus 80.2 %, kernel 13.3 %, …         self time, adds up to 100 %
  stacks: 99.9 % complete; ±3.0 (hottest ±1.1)    how far to trust
  note: …                                         what is not known
  next: proftool tree …                           commands about this result

Busy commands come first, if several have work. Rows fill 23 lines. With --full
(or --limit, --min) every list is long, with threads, crates, the quality of
stacks and all notes.";

const EXAMPLES: &str = "\
Examples:
  proftool report app.data --comm app --time 2..4
  proftool report --full                     all that is known
  proftool report --html page.html app.data  a page to send";

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
        times: args.ci,
        ..Needs::TOTALS
    })?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let options = Options {
        limit: args.look.limit(ROWS),
        min: args.look.min(0.0),
        shown: args.shown.of(&profile)?,
    };
    let owners = args.query.owners(&profile);
    let mut summary = Summary::of(&profile, &selection, owners, args.in_code != InCode::Off);
    if args.ci {
        summary.flat.intervals = Some(args.query.intervals(&profile, &selection)?);
    }
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
