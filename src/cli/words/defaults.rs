//! Defaults for options: from the environment and from a configuration file.
//!
//! They become options of the command line, before those that are there, so each is checked as if
//! it had been typed. One that is on the command line itself, or that contradicts what is there, is
//! left out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use toml::{Table, Value};

use crate::cli::failure::Misused;

// Names the file; empty for no file.
const FILE_VARIABLE: &str = "PROFTOOL_CONFIG";

// Where a default comes from, and the words that it is on the command line.
struct Setting {
    from: String,
    words: Vec<OsString>,
}

// An error if the file cannot be read, or a default is not one that the command accepts.
pub fn added(args: Vec<OsString>, grammar: &Command) -> Result<Vec<OsString>, Misused> {
    let name = args.get(1).and_then(|word| word.to_str());
    let Some(command) = name.and_then(|name| grammar.find_subcommand(name)) else {
        return Ok(args);
    };
    let mut settings = BTreeMap::new();
    if let Some(path) = file() {
        from_file(&path, command, grammar, &mut settings)?;
    }
    from_environment(command, &mut settings)?;
    // The caller parses the command line again, and reports what is wrong on it.
    let Ok(matches) = grammar.clone().try_get_matches_from(&args) else {
        return Ok(args);
    };
    if settings.is_empty() {
        return Ok(args);
    }
    let Some((_, given)) = matches.subcommand() else {
        return Ok(args);
    };
    // The groups of a command list their arguments once it is built.
    let mut command = command.clone();
    command.build();
    settings.retain(|id, _| !is_decided(id, &command, given));
    let mut all = args[..2].to_vec();
    all.extend(settings.values().flat_map(|it| it.words.iter().cloned()));
    all.extend_from_slice(&args[2..]);
    match grammar.clone().try_get_matches_from(&all) {
        Ok(_) => Ok(all),
        Err(error) => {
            let from: Vec<&str> = settings.values().map(|it| it.from.as_str()).collect();
            let text = error.render().to_string();
            let reason = text.lines().next().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            let from = from.join(", ");
            Err(Misused(format!("{reason} (defaults: {from})")))
        }
    }
}

fn file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = std::env::var_os(FILE_VARIABLE) {
        return (!path.is_empty()).then(|| path.into());
    }
    let base = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&set("HOME")?).join(".config")))?;
    Some(base.join("proftool/config.toml")).filter(|path| path.is_file())
}

fn from_file(
    path: &Path,
    command: &Command,
    grammar: &Command,
    settings: &mut BTreeMap<String, Setting>,
) -> Result<(), Misused> {
    let file = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Misused(format!("could not read {file}: {error}")))?;
    // No output replaces it.
    if let Ok(metadata) = std::fs::metadata(path) {
        proftool::files::note_read(&metadata);
    }
    let table: Table = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            1 + text
                .bytes()
                .take(span.start)
                .filter(|b| *b == b'\n')
                .count()
        });
        Misused(format!("{file}:{line}: {}", error.message()))
    })?;
    for (key, value) in &table {
        let Value::Table(section) = value else {
            let everywhere = grammar.get_subcommands();
            if !{ everywhere }.any(|command| option(command, key).is_some()) {
                let text = format!("{file}: {key} is no option of any command");
                return Err(Misused(text));
            }
            continue;
        };
        let Some(command) = grammar.find_subcommand(key) else {
            return Err(Misused(format!("{file}: [{key}] is no command")));
        };
        if let Some(key) = section.keys().find(|key| option(command, key).is_none()) {
            let text = format!(
                "{file}: {key} is no option of proftool {}",
                command.get_name()
            );
            return Err(Misused(text));
        }
    }
    let section = table.get(command.get_name()).and_then(Value::as_table);
    // The section of the command comes last, and wins.
    for (key, value) in table.iter().chain(section.into_iter().flatten()) {
        if let (Some(arg), false) = (option(command, key), value.is_table()) {
            let from = format!("{key} in {file}");
            let words = words(arg, value).map_err(|reason| Misused(format!("{from}: {reason}")))?;
            settings.insert(arg.get_id().to_string(), Setting { from, words });
        }
    }
    Ok(())
}

fn from_environment(
    command: &Command,
    settings: &mut BTreeMap<String, Setting>,
) -> Result<(), Misused> {
    for arg in command.get_arguments() {
        let Some(name) = arg
            .get_long()
            .filter(|name| option(command, name).is_some())
        else {
            continue;
        };
        let variable = format!("PROFTOOL_{}", name.to_uppercase().replace('-', "_"));
        let Some(value) = std::env::var_os(&variable) else {
            continue;
        };
        let words = if takes_value(arg) {
            let mut word = OsString::from(format!("--{name}="));
            word.push(value);
            vec![word]
        } else {
            match value.to_str() {
                Some("1" | "true") => vec![format!("--{name}").into()],
                Some("" | "0" | "false") => Vec::new(),
                _ => return Err(Misused(format!("{variable} must be 1 or 0"))),
            }
        };
        let from = variable;
        settings.insert(arg.get_id().to_string(), Setting { from, words });
    }
    Ok(())
}

// The option of this long name that can have a default.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut arguments = command.get_arguments();
    arguments.find(|arg| arg.get_long() == Some(name) && !matches!(name, "help" | "version"))
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

// The words of the command line that a value of the file stands for.
fn words(arg: &Arg, value: &Value) -> Result<Vec<OsString>, &'static str> {
    let name = arg.get_long().unwrap_or_default();
    let word = |value: &Value| match value {
        Value::String(text) => Ok(format!("--{name}={text}").into()),
        Value::Integer(value) => Ok(format!("--{name}={value}").into()),
        Value::Float(value) => Ok(format!("--{name}={value}").into()),
        _ => Err("a number or a text is expected"),
    };
    match (takes_value(arg), value) {
        (false, Value::Boolean(true)) => Ok(vec![format!("--{name}").into()]),
        (false, Value::Boolean(false)) => Ok(Vec::new()),
        (false, _) => Err("true or false is expected"),
        (true, Value::Array(values)) => values.iter().map(word).collect(),
        (true, value) => Ok(vec![word(value)?]),
    }
}

// It, or another one that excludes it, is on the command line.
fn is_decided(id: &str, command: &Command, given: &ArgMatches) -> bool {
    let is_given = |id: &str| {
        given
            .value_source(id)
            .is_some_and(|it| it == ValueSource::CommandLine)
    };
    let of_one_group = |one: &Arg, other: &Arg| {
        let mut groups = command.get_groups().cloned();
        groups.any(|mut group| {
            let has = |arg: &Arg| group.get_args().any(|id| id == arg.get_id());
            let has_both = one.get_id() != other.get_id() && has(one) && has(other);
            has_both && !group.is_multiple()
        })
    };
    let excludes = |one: &Arg, other: &Arg| {
        let mut conflicts = command.get_arg_conflicts_with(one).into_iter();
        conflicts.any(|arg| arg.get_id() == other.get_id()) || of_one_group(one, other)
    };
    let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == id) else {
        return true;
    };
    is_given(id)
        || command.get_arguments().any(|other| {
            let id = other.get_id().as_str();
            is_given(id) && (excludes(arg, other) || excludes(other, arg))
        })
}
