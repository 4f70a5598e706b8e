//! `proftool tree`.

use std::io::Write;
use std::process::ExitCode;

use proftool::analysis::tree::{self as calls, Degree, Direction, Reach, Stacks, Summary};
use proftool::export::{json, puma};
use proftool::profile::{RowLevel, Selection};
use proftool::view::tree::{self, Notes, Options};

use super::answer::{self, Forms};
use super::choice;
use super::function;
use super::in_code::InCode;
use super::look::{Format, Look};
use super::query::Query;
use super::query::by::Rows;
use super::query::open::Needs;
use super::tree_notes;

const LINES: usize = 80;
// The least share of a line of text when nothing is asked for, in percent.
const MIN: f64 = 0.5;
// When nothing is asked for.
const DEPTH: u32 = 64;

/// The arguments of `proftool tree`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = MANUAL)]
pub struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    rows: Rows,
    /// Show callers below their callees.
    #[arg(long)]
    bottom_up: bool,
    /// Collapse recursion.
    ///
    /// [default: by the profile]
    #[arg(long, value_name = "DEGREE", value_parser = choice::COLLAPSE)]
    collapse: Option<calls::Collapse>,
    /// Print the table of HP's profiler Puma.
    ///
    /// In or under, in only, level, function; fully collapsed, all rows.
    #[arg(long)]
    classic: bool,
    /// Show every frame of chains of library calls.
    #[arg(long)]
    unfold: bool,
    /// Start at this function; bottom-up, end there.
    #[arg(long, value_name = "FUNCTION")]
    root: Option<String>,
    /// The most levels [default: all; bottom-up: 64]
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Callees only in the code.
    ///
    /// Lines without weight: see --min.
    #[arg(long = "static", value_enum, value_name = "WHEN", default_value_t = InCode::Off)]
    #[arg(conflicts_with = "bottom_up")]
    in_code: InCode,
    #[command(flatten)]
    look: Look,
}

const MANUAL: &str = "\
Each line is a function, reached by one chain of calls. Bottom-up, the roots
are the functions in which samples were taken, with their callers below them.

Collapsed, a call of f below f is the line f..., and what it calls stands under
the outer f. 'via collapsed %' is the part of a total that came through such
calls. By default recursion is collapsed conservatively if more than 20 of the
80 heaviest lines would repeat a function above them, else not.

'⋯ 47 frames: tokio, std → f' is a chain of calls outside of your own code
(--own), with nearly the same total; f, its last, has the figures.

With --by module or file, neighbours of the same one are one line; with --by
line or address, a line is the place of a call; threads, commands and events
are the first level. Lines below 0.5 % are left out (--min). In the table of
--classic, '40 (15)' is 40 by calls, and 15 after a collapsed call.";

const EXAMPLES: &str = "\
Examples:
  proftool tree --min 5 --depth 8               only the thick branches
  proftool tree --root parse                    what parse calls
  proftool tree --bottom-up --focus '^memcpy$'  who calls memcpy";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let by = args.rows.by;
    args.check_rows()?;
    let profile = match args.in_code {
        InCode::Off => args.query.open_for_rows(by)?,
        in_code => args.query.open(Needs {
            calls: in_code.calls(),
            ..Needs::STACKS
        })?,
    };
    args.query.refuse_without_stacks(&profile, "tree")?;
    let level = if args.bottom_up {
        RowLevel::Innermost
    } else {
        RowLevel::Outermost
    };
    let (profile, selection) = args.query.select_rows(profile, by, level)?;
    let subject = args.look.subject(&args.query, &profile, &selection);
    let mut options = Options {
        limit: args
            .look
            .limit(if args.classic { usize::MAX } else { LINES }),
        min: args.look.min(if args.classic { 0.0 } else { MIN }),
        depth: args.depth,
    };
    let stacks = match &args.root {
        None => Stacks::new(&profile, &selection),
        Some(name) => match function::find(&subject, name, &args.query) {
            Err(status) => return Ok(status),
            Ok(function) => Stacks::within(&profile, &selection, function),
        },
    };
    let summary = Summary::of(stacks, &args.options(&selection, options.min));
    let folds = !args.unfold && !args.classic && args.look.output.format == Format::Text;
    let folds = folds && !profile.rows.replaces_functions();
    let owners = folds.then(|| args.query.owners(&profile));
    let arrange = |options| tree::arrange(&subject, &summary, owners.as_ref(), &options);
    let mut tree = arrange(options);
    if tree.nodes().next().is_none() && !args.look.has_min() {
        // Everything is small: then what there is.
        options.min = 0.0;
        tree = arrange(options);
    }
    if args.classic {
        let write = |out: &mut dyn Write| puma::write(out, &subject, &tree);
        return answer::give_text(
            &args.look.output,
            &args.query.shown_by("tree"),
            &profile.caveats,
            &write,
        );
    }
    let forms = Forms {
        page: &|| {
            let reach = args.reach(&selection, options.min);
            let notes = Notes {
                above: tree_notes::recursion(&tree, profile.rows)
                    .into_iter()
                    .collect(),
                below: tree_notes::hidden(&tree, reach).into_iter().collect(),
            };
            tree.page(&subject, &notes)
        },
        table: &|| tree.table(&subject),
        json: &|out, advice| json::tree::write(out, &subject, &tree, advice),
        dot: None,
    };
    answer::to(&args.query, &args.look, "tree", &profile.caveats, &forms)
}

impl Args {
    fn check_rows(&self) -> anyhow::Result<()> {
        let by = self.rows.by;
        by.refuse_crate("tree")?;
        by.refuse_with(&[
            ("--static", self.in_code != InCode::Off),
            ("--classic", self.classic),
            ("--root", self.root.is_some() && by.is_outside_stacks()),
        ])
    }

    fn options(&self, selection: &Selection, min: f64) -> calls::Options {
        calls::Options {
            direction: match self.bottom_up {
                true => Direction::BottomUp,
                false => Direction::TopDown,
            },
            degree: match self.collapse {
                Some(degree) => Degree::Fixed(degree),
                None if self.classic => Degree::OfRecursion(calls::Collapse::Full),
                None => Degree::ByRepeats,
            },
            reach: self.reach(selection, min),
            counted: (!self.classic).then_some(tree_notes::COUNTED),
            with_code: self.in_code != InCode::Off,
        }
    }

    fn reach(&self, selection: &Selection, min: f64) -> Reach {
        Reach {
            depth: self.depth.unwrap_or(DEPTH),
            min: (selection.total() as f64 * min / 100.0) as u64,
        }
    }
}
