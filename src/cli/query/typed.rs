//! The command as it was typed, for the commands that a user may give next.
//!
//! What is repeated is found by the definitions of the options, so that none can be forgotten.

use std::ffi::OsStr;

use clap::error::Error;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use proftool::base::shell_quoted;

use super::{FILTERS, Query};

// The words of an option or argument, quoted for a shell.
#[derive(Clone, Debug)]
pub struct Given {
    pub id: String,
    // Whether it says which samples are shown.
    pub is_filter: bool,
    value: Option<String>,
    words: String,
}

// Returns what was given of these arguments, in their order. The file that is read is not among
// them: its place and its name depend on the command.
pub fn given<'a>(arguments: impl IntoIterator<Item = &'a Arg>, matches: &ArgMatches) -> Vec<Given> {
    let is_file = |arg: &Arg| matches!(arg.get_id().as_str(), "file" | "input" | "binaries");
    arguments
        .into_iter()
        .filter(|arg| !is_file(arg))
        .filter(|arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine))
        .map(|arg| Given {
            id: arg.get_id().to_string(),
            is_filter: arg.get_help_heading() == Some(FILTERS),
            value: value(arg, matches),
            words: words(arg, matches),
        })
        .collect()
}

fn value(arg: &Arg, matches: &ArgMatches) -> Option<String> {
    let mut values = matches.get_raw(arg.get_id().as_str())?;
    Some(values.next()?.to_string_lossy().into_owned())
}

fn words(arg: &Arg, matches: &ArgMatches) -> String {
    let long = arg.get_long().map(|name| format!("--{name}"));
    let short = || arg.get_short().map(|letter| format!("-{letter}"));
    let option = long.or_else(short);
    if !arg.get_action().takes_values() {
        return option.unwrap_or_default();
    }
    let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
    let values: Vec<_> = values.map(OsStr::to_string_lossy).collect();
    let values = match arg.get_value_delimiter() {
        Some(delimiter) => vec![values.join(&delimiter.to_string()).into()],
        None => values,
    };
    let words = values.iter().map(|value| match &option {
        Some(option) => format!("{option} {}", shell_quoted(value)),
        None => shell_quoted(value),
    });
    words.collect::<Vec<_>>().join(" ")
}

pub fn joined<'a>(given: impl IntoIterator<Item = &'a Given>) -> String {
    let words = given.into_iter().map(|given| given.words.as_str());
    words.collect::<Vec<_>>().join(" ")
}

// What was given of a [`Query`]'s options.
#[derive(Clone, Debug, Default)]
pub struct Typed(pub Vec<Given>);

impl Typed {
    // The value of an option, as it was typed; `None` if it was not given.
    pub fn value(&self, id: &str) -> Option<&str> {
        let given = self.0.iter().find(|given| given.id == id)?;
        given.value.as_deref()
    }
}

impl FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Typed, Error> {
        let options = Query::augment_args(Command::new("query"));
        let mut given = given(options.get_arguments(), matches);
        // It changes no answer.
        given.retain(|given| given.id != "no_cache");
        Ok(Typed(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Typed::from_arg_matches(matches)?;
        Ok(())
    }
}

// It looks at what other options are given, and is none.
impl Args for Typed {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
