//! The command line: arguments, messages and output.
//!
//! Each command is a file with its arguments and a function that runs it. [`query`] has the
//! arguments that choose *what* is shown, [`look`] those that choose *how*. [`answer`] writes the
//! result to the terminal or a file, [`advice`] has the sentences on what a user can do, and
//! [`failure`] prints errors.

mod advice;
mod annotate;
mod answer;
mod browse;
mod callgraph;
mod check;
mod choice;
mod classic;
mod compare;
mod cycles;
mod detail;
mod doctor;
mod export;
mod failure;
mod flat;
mod function;
mod graph;
mod help;
mod html;
mod in_code;
mod info;
mod look;
mod progress;
mod query;
mod record;
mod report;
mod sampling;
mod sources;
mod stack_choice;
mod top;
mod tree;
mod tree_notes;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use self::query::by::RowsOf;
use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use signal_hook::consts::{SIGABRT, SIGXFSZ};

/// A sampling profiler for native Linux programs.
///
/// A sample counts once in a function's total, however often the function is on its stack. So no
/// total exceeds 100 %, even in recursive programs.
#[derive(Parser)]
#[command(name = "proftool", version, long_version = help::version::LONG, max_term_width = 80)]
#[command(after_help = EXAMPLES, disable_help_flag = true, disable_help_subcommand = true)]
struct Cli {
    /// Print help: a summary with -h, the manual with --help.
    #[arg(short, long, global = true, action = ArgAction::Help, display_order = 1000)]
    help: Option<bool>,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
-h after a command lists its options, --help is its manual.

Examples:
  proftool record ./app --its options    record a run to perf.data
  proftool report                        where the time went, and what is next
  proftool flat other.data --sort total  any perf.data, or folded stacks";

#[derive(Subcommand)]
enum Command {
    /// Record a command or running processes.
    Record(record::RecordArgs),
    /// Watch a command or running processes live.
    Top(top::TopArgs),
    /// Show where the time goes, and what to look at next.
    Report(report::Args),
    /// List functions with their self and total weights.
    Flat(flat::Args),
    /// Show each function with its callers and callees, as gprof does.
    Graph(graph::Args),
    /// Show the call tree, top-down or bottom-up.
    Tree(tree::Args),
    /// Explore a recording interactively in the terminal.
    Browse(browse::Args),
    /// Show one function: its callers, descendants and source lines.
    Detail(detail::Args),
    /// Show source lines or machine code of one function with weights.
    Annotate(annotate::Args),
    /// Show recursion: cycles, and functions that call themselves.
    Cycles(cycles::Args),
    /// Compare runs before and after a change.
    Compare(compare::Args),
    /// Check runs against budgets.
    Check(check::Args),
    /// Check the machine, a program, a process or a recording.
    Doctor(doctor::Args),
    /// Show what a recording contains, and how it was made.
    Info(info::Args),
    /// Show the static call graph of programs, from their machine code.
    Callgraph(callgraph::Args),
    /// Export the profile to the format of another tool.
    Export(export::Args),
    /// Show the help of a command or a topic.
    Help(help::Args),
    /// Write manual pages.
    Man(help::generate::ManArgs),
    /// Print completions for a shell.
    Completions(help::generate::CompletionArgs),
}

// The command line, in which each command offers the formats and the rows that it has,
// and long help leads to the topics that belong to the command.
fn grammar() -> clap::Command {
    let top = format!("{EXAMPLES}\n\n{}", help::list());
    let grammar = Cli::command().after_long_help(top);
    grammar.mut_subcommands(|command| {
        let command = help::with_topics(command);
        let rows = RowsOf::command(command.get_name());
        let formats = look::Offered::by(command.get_name());
        let is_view = command.get_arguments().any(|arg| arg.get_id() == "strict");
        // In place: what `mut_arg` changes becomes the last of the list.
        command.mut_args(|arg| match (arg.get_id().as_str(), &rows) {
            ("by", Some(rows)) => arg.value_parser(rows.clone()),
            ("format", _) if is_view => arg.value_parser(formats),
            _ => arg,
        })
    })
}

pub fn run() -> ExitCode {
    let args = words::short::with_equals(std::env::args_os());
    let args = match words::defaults::added(args, &grammar()) {
        Ok(args) => args,
        Err(error) => return failure::say(&error.into(), "proftool report"),
    };
    let matches = match grammar().try_get_matches_from(&args) {
        Ok(matches) => matches,
        // Help is made only where it is asked for.
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            help::displayed(grammar()).get_matches_from(args)
        }
        Err(error) => words::habits::answered(error, &args).exit(),
    };
    let parsed = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let show = command_that_shows(&matches);
    let Some(command) = parsed.command else {
        // Help that nobody reads is no failure.
        let _ = writeln!(io::stdout(), "{}", help::displayed(grammar()).render_help());
        return ExitCode::SUCCESS;
    };
    // A file that reaches the limit of a file's size is an error, not the end of the program. What
    // is started from here does not have the handler.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    // Where memory cannot be had, Rust says so in a line on stderr and aborts. Limits of memory are
    // as usual as those of files: the status is that of an error, and there is no core dump.
    let status = match command {
        Command::Record(_) => record::FAILED,
        _ => 1,
    };
    let always = Arc::new(AtomicBool::new(true));
    let _ = signal_hook::flag::register_conditional_shutdown(SIGABRT, status.into(), always);
    let done = match command {
        Command::Record(args) => record::run(args),
        Command::Top(args) => top::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Flat(args) => flat::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Tree(args) => tree::run(&args),
        Command::Browse(args) => browse::run(&args),
        Command::Detail(args) => detail::run(&args),
        Command::Annotate(args) => annotate::run(&args),
        Command::Cycles(args) => cycles::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Callgraph(args) => callgraph::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Help(args) => help::run(&args, grammar()),
        Command::Man(args) => help::generate::man(&args, grammar()),
        Command::Completions(args) => help::generate::completions(&args, grammar()),
    };
    done.unwrap_or_else(|error| {
        let said = failure::say(&error, &show);
        if let Some((name @ ("detail" | "annotate"), arguments)) = matches.subcommand()
            && let Some(function) = arguments.get_one::<String>("function")
        {
            function::hint_at_order(name, function);
        }
        said
    })
}

// The command that shows a file as the one that runs does, as it was typed up to the file's name.
// Of one that shows none, that is `report`.
fn command_that_shows(matches: &ArgMatches) -> String {
    let other = "proftool report".to_owned();
    let Some((name, arguments)) = matches.subcommand() else {
        return other;
    };
    let grammar = grammar();
    let Some(command) = grammar.find_subcommand(name) else {
        return other;
    };
    if name == "callgraph" && arguments.contains_id("with") {
        // The recording is the option's value, which comes last.
        return "proftool callgraph --with".to_owned();
    }
    let is_file = |arg: &clap::Arg| matches!(arg.get_id().as_str(), "file" | "binaries");
    if !command.get_arguments().any(is_file) {
        return other;
    }
    let given = query::typed::given(command.get_arguments(), arguments);
    let words = query::typed::joined(&given);
    format!("proftool {name} {words}").trim_end().to_owned()
}
