//! `proftool detail`.

use std::process::ExitCode;

use clap::ValueEnum;
use proftool::analysis::{call_sites, detail as analysis, lines};
use proftool::export::json;
use proftool::view::detail::{self, Options};

use super::answer::{self, Forms};
use super::look::Look;
use super::query::Query;
use super::{failure, function};

/// The rows of each list when nothing is asked for.
const ROWS: usize = 15;

/// The arguments of `proftool detail`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The function: its name, in full, short or as in the symbol table; or a part of it that no
    /// other has, or a regular expression.
    function: String,
    #[command(flatten)]
    query: Query,
    /// What a descendant contributes where the function recurses.
    #[arg(long, value_enum, default_value_t = Rule::Strict)]
    rule: Rule,
    #[command(flatten)]
    look: Look,
}

const EXAMPLES: &str = "\
Distribution to callers says on whose behalf the function and what it calls ran; contributions from
descendants say where its time comes from. Both are shares of function and descendants. A function
is not its own descendant: what it takes itself further in is in its own line and in no
contribution. An asterisk marks where it recurses; there the lines may add up to more than 100 %.
Where debug information tells the lines, it says from which of its lines the function calls what,
and from which lines of its callers it is called: with all that is under the call, each sample once
for a line and a function. What was inlined counts as called there, and is marked.

Examples:
  proftool detail parse                    the function parse in perf.data
  proftool detail parse other.data         in another file: the function comes first
  proftool detail 'Trie::insert' --min 1   by its short name; what has 1 % of it and more
  proftool detail '^sum$' --rule whole     all of what is under a call, as PurifyPlus 7 counts it";

/// What a descendant contributes where the function recurses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rule {
    /// What is under the call without what the function itself takes there.
    Strict,
    /// All that is under the call.
    Whole,
}

/// Answers.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = match args.query.open_with_call_lines() {
        Ok(profile) => profile,
        Err(error) => {
            let said = failure::say(&error);
            if std::path::Path::new(&args.function).is_file() {
                let order = "the function comes first: proftool detail FUNCTION FILE";
                failure::line("hint", order);
            }
            return Ok(said);
        }
    };
    args.query.refuse_without_calls(&profile, "detail")?;
    let selection = args.query.select(&profile)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let function = match function::find(&subject, &args.function) {
        Ok(function) => function,
        Err(status) => return Ok(status),
    };
    let rule = match args.rule {
        Rule::Strict => analysis::Rule::Strict,
        Rule::Whole => analysis::Rule::Whole,
    };
    let options = Options {
        limit: args.look.limit(ROWS),
        min: args.look.min(0.0),
    };
    let lines = lines::by_function(&profile, &selection);
    let figures = analysis::of(&profile, &selection, function, rule);
    let sites = call_sites::of(&profile, &selection, function);
    let view = detail::arrange(&subject, figures, sites.as_ref(), &lines, &options);
    let forms = Forms {
        page: &|| view.page(&subject),
        table: &|| view.table(&subject),
        json: &|out| json::detail::write(out, &subject, &view),
        dot: None,
    };
    answer::give(&args.look, &profile.caveats, &forms)
}
