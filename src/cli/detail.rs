//! `proftool detail`.

use std::process::ExitCode;

use proftool::analysis::detail::Rule;
use proftool::analysis::function::Summary;
use proftool::export::json;
use proftool::view::detail::{self, Options};

use super::answer::{self, Forms};
use super::choice;
use super::function;
use super::look::Look;
use super::query::Query;
use super::query::open::Needs;

const ROWS: usize = 15;

/// The arguments of `proftool detail`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    /// Its name, label or symbol, a unique part, or a regular expression.
    function: String,
    #[command(flatten)]
    query: Query,
    /// What descendants contribute under recursion.
    #[arg(long, value_parser = choice::RULE, default_value = "strict")]
    rule: Rule,
    #[command(flatten)]
    look: Look,
}

const MANUAL: &str = "\
'Distribution to callers' divides the function's total among its callers,
'Contributions from descendants' among its callees, both in percent of that
total. Self time of recursive calls counts only in the function's own line. An
asterisk marks recursion, under which lines can add up to more than 100 %.
Inlined functions are marked, and count as called. With debug information, the
source lines of its calls and of its callers follow.";

const EXAMPLES: &str = "\
Examples:
  proftool detail parse                    the function parse in perf.data
  proftool detail parse other.data         another file comes second
  proftool detail 'Trie::insert' --min 1   rows of 1 % and more";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.query.open(Needs {
        ranges: true,
        ..Needs::LINES
    })?;
    args.query.refuse_without_calls(&profile, "detail")?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let function = match function::find(&subject, &args.function, &args.query) {
        Ok(function) => function,
        Err(status) => return Ok(status),
    };
    let options = Options {
        limit: args.look.limit(ROWS),
        min: args.look.min(0.0),
    };
    let summary = Summary::of(&profile, &selection, function, args.rule);
    let view = detail::arrange(&subject, summary, &options);
    let forms = Forms {
        page: &|| view.page(&subject),
        table: &|| view.table(&subject),
        json: &|out, advice| json::detail::write(out, &subject, &view, advice),
        dot: None,
    };
    answer::to(&args.query, &args.look, "detail", &profile.caveats, &forms)
}
