//! `proftool tree`.

use std::process::ExitCode;

use proftool::analysis::tree::{self as calls, Collapse, Reach};
use proftool::export::json;
use proftool::input::StaticCalls;
use proftool::view::tree::{self, Direction, Options};

use super::answer::{self, Forms};
use super::look::Look;
use super::query::Query;

/// The lines that a text has when nothing is asked for.
const LINES: usize = 80;
/// The least share of a line of text when nothing is asked for, in percent.
const MIN: f64 = 0.5;
/// How far callers are followed when nothing is asked for.
const DEPTH: u32 = 64;

/// The arguments of `proftool tree`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    /// Go from callees to their callers.
    #[arg(long)]
    bottom_up: bool,
    /// Only so many levels [default: all; bottom up 64].
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    #[command(flatten)]
    look: Look,
}

const EXAMPLES: &str = "\
Each line is a function as it was reached by one chain of calls. Bottom up, each root is a function
that samples were taken in, and what stands under it called it.

Examples:
  proftool tree                                 who calls whom, what has 0.5 % and more
  proftool tree --min 5 --depth 8               only the thick branches
  proftool tree --bottom-up --focus '^memcpy$'  who calls memcpy";

/// Answers.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.query.open(StaticCalls::Off)?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let mut options = Options {
        limit: args.look.limit(LINES),
        min: args.look.min(MIN),
        depth: args.depth,
    };
    let (direction, calls) = if args.bottom_up {
        let reach = Reach {
            depth: args.depth.unwrap_or(DEPTH),
            min: (selection.total as f64 * options.min / 100.0) as u64,
        };
        let calls = calls::bottom_up(&profile, &selection, reach);
        (Direction::BottomUp, calls)
    } else {
        let calls = calls::top_down(&profile, &selection, Collapse::None);
        (Direction::TopDown, calls)
    };
    let mut tree = tree::arrange(&subject, calls, direction, &options);
    if tree.nodes().next().is_none() && !args.look.has_min() {
        // Everything is small: then what there is.
        options.min = 0.0;
        tree = tree::arrange(&subject, tree.calls, direction, &options);
    }
    let forms = Forms {
        page: &|| tree.page(&subject),
        table: &|| tree.table(&subject),
        json: &|out| json::tree::write(out, &subject, &tree),
        dot: None,
    };
    answer::give(&args.look, &profile.caveats, &forms)
}
