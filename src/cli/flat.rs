//! `proftool flat`.

use std::process::ExitCode;

use proftool::analysis::flat::Summary;
use proftool::analysis::owners::Charged;
use proftool::export::{gprof, json};
use proftool::input::StaticCalls;
use proftool::profile::RowLevel;
use proftool::view::flat::{self, Options};
use proftool::view::{Subject, owners};

use super::answer::{self, Forms};
use super::classic::Classic;
use super::failure::Misused;
use super::look::{Look, Shown};
use super::query::Query;
use super::query::by::{By, Order, OrderParser, Rows};
use super::query::open::Needs;

const ROWS: usize = 40;

/// The arguments of `proftool flat`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    /// Order.
    #[arg(long, default_value = "self", value_parser = OrderParser::new())]
    sort: Order,
    #[command(flatten)]
    rows: Rows,
    /// Show 95 % intervals, by runs or blocks of time.
    #[arg(long)]
    ci: bool,
    #[command(flatten)]
    shown: Shown,
    #[command(flatten)]
    classic: Classic,
    #[command(flatten)]
    look: Look,
}

const MANUAL: &str = "\
A sample counts for the function that it was taken in (self), and once for each
function on its stack (total). So it is with modules, files, lines and
addresses: a module's total is that of the samples with a frame in it. Inlined
code has its own file and line; by address it belongs to the function around
it. Frames without lines are [no line: MODULE]. For threads, commands and
events self and total are the same. By crate a sample counts once. perf's
--sort dso, comm, tid, srcline and srcfile are --by.";

const EXAMPLES: &str = "\
Examples:
  proftool flat --sort total --limit 10      the ten largest totals
  proftool flat --focus '^parse' --comm app  stacks of app through parse…
  proftool flat --by line --module app       source lines";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.classic.is_asked_for() {
        let read = args.query.open_as_gprof(StaticCalls::Off)?;
        let write = gprof::write_flat;
        return (args.classic).give(&args.query, &args.look, "flat", &read, write);
    }
    let by = args.by()?;
    if by == By::Crate {
        let profile = args.query.open_for_rows(by)?;
        let selection = args.query.select(&profile)?;
        let subject = args.look.subject(&args.query, &profile, &selection);
        return by_crate(args, &subject);
    }
    if args.ci && by.is_other() {
        return Err(Misused("--ci is of functions; leave out --by".into()).into());
    }
    let profile = match args.ci {
        true => args.query.open(Needs {
            times: true,
            ..Needs::TOTALS
        })?,
        false => args.query.open_for_rows(by)?,
    };
    let (profile, selection) = args.query.select_rows(profile, by, RowLevel::Alone)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let mut summary = Summary::of(&profile, &selection);
    if args.ci {
        summary.intervals = Some(args.query.intervals(&profile, &selection)?);
    }
    if let Some(shown) = args.shown.of(&profile)? {
        summary.ran.retain(|id| shown.binary_search(id).is_ok());
    }
    let options = Options {
        sort: args.sort.key,
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
    answer::to(&args.query, &args.look, "flat", &profile.caveats, &forms)
}

impl Args {
    // What a row is, by either option.
    fn by(&self) -> anyhow::Result<By> {
        match self.sort.by {
            Some(by) if self.rows.by.is_other() && by != self.rows.by => {
                let text = format!(
                    "--sort asks for {}; leave out {}",
                    by.option(),
                    self.rows.by.option()
                );
                Err(Misused(text).into())
            }
            Some(by) => Ok(by),
            None => Ok(self.rows.by),
        }
    }
}

fn by_crate(args: &Args, subject: &Subject) -> anyhow::Result<ExitCode> {
    let (profile, selection) = (subject.profile, subject.selection);
    let mut charged = Charged::of(profile, selection, args.query.owners(profile));
    let mut shares = std::mem::take(&mut charged.shares);
    shares.retain(|share| args.shown.has(owners::name(&charged, share)));
    charged.shares = shares;
    let forms = Forms {
        page: &|| owners::page(subject, &charged, args.look.limit(ROWS)),
        table: &|| owners::table(subject, &charged, args.look.limit(ROWS)),
        json: &|out, advice| json::owners::write(out, subject, &charged, advice),
        dot: None,
    };
    answer::to(&args.query, &args.look, "flat", &profile.caveats, &forms)
}
