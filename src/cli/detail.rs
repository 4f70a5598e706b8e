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
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The function: its full or short name, its label or symbol, a unique part of the name, or a
    /// regular expression.
    function: String,
    #[command(flatten)]
    query: Query,
    /// Contribution of descendants if the function recurses.
    #[arg(long, value_parser = choice::RULE, default_value = "strict")]
    rule: Rule,
    #[command(flatten)]
    look: Look,
}

const EXAMPLES: &str = "\
'Distribution to callers' splits the function's total by its callers,
'Contributions from descendants' by its callees. Both are shares of the
function's total. A function is not its own descendant: its self time in
recursive calls counts only in its own line. An asterisk marks recursion, where
the lines can add up to more than 100 %. With debug info, the source lines of
its calls are listed as well, and the lines in its callers that call it. Each
line counts a sample once. Inlined functions count as called functions, and are
marked.

Examples:
  proftool detail parse                    the function parse in perf.data
  proftool detail parse other.data         in another file: the function comes first
  proftool detail 'Trie::insert' --min 1   by its short name; rows of 1 % and more
  proftool detail '^sum$' --rule whole     all time below a call, as in PurifyPlus 7";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = args.query.open(Needs {
        ranges: true,
        ..Needs::LINES
    })?;
    args.query.refuse_without_calls(&profile, "detail")?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let function = match function::find(&subject, &args.function) {
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
    answer::give(
        &args.look.output,
        &args.query.shown_by("detail"),
        &profile.caveats,
        &forms,
    )
}
