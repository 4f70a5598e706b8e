//! The options in help: a line for each with `-h`, sentences with `--help`.
//!
//! Options that all views share have headings of their own. They are listed once, in a topic.

use anstyle::Style;
use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Args, Command};

use super::super::look::{self, Look};
use super::super::query::{self, Query};

/// The columns of a line of help.
const WIDTH: usize = 80;
/// Those of a narrow terminal's.
const NARROWEST: usize = 40;
/// Those of a line of a topic, whatever the terminal.
const TOPIC: usize = 79;
/// Where texts begin at the latest, unless the option before one is longer.
const COLUMN: usize = 27;
/// As clap shows its own.
const HEADING: Style = Style::new().bold().underline();
/// The shared options that are used most, in this order.
const MOST_USED: [&str; 6] = ["focus", "comm", "time", "event", "limit", "format"];

/// How much is said of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The first sentence, and the names of values.
    Brief,
    /// All, and what each value means.
    Full,
}

/// Lists the arguments of a command, but for those that are shared: of these it names some and the
/// topic.
pub fn of_command(command: &Command, extent: Extent) -> String {
    let width = look::width().clamp(NARROWEST, WIDTH);
    let command = built(command.clone());
    let mut text = String::new();
    let is_own = |arg: &&Arg| !is_shared(arg) && !arg.is_hide_set() && arg.get_id() != "help";
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        { command.get_arguments().filter(is_own) }.partition(|arg| arg.is_positional());
    for (heading, args) in [("Arguments", positional), ("Options", options)] {
        if !args.is_empty() {
            let list = list(&args, extent, width);
            text += &format!("{HEADING}{heading}:{HEADING:#}\n{list}\n");
        }
    }
    text + &shared_in_brief(&command)
}

/// All shared options, below their headings.
pub fn shared() -> String {
    let all = built(Look::augment_args(Query::augment_args(Command::new("all"))));
    let sections = query::HEADINGS.iter().chain(&[look::SHOW]).map(|heading| {
        let is_here = |arg: &&Arg| arg.get_help_heading() == Some(heading) && !arg.is_hide_set();
        let args: Vec<&Arg> = all.get_arguments().filter(is_here).collect();
        format!("\n# {heading}\n\n{}", list(&args, Extent::Full, TOPIC))
    });
    sections.collect()
}

/// The command with what clap completes of its arguments, such as the number of values.
fn built(mut command: Command) -> Command {
    command.build();
    command
}

/// Whether an option is one that all views share.
fn is_shared(arg: &Arg) -> bool {
    let heading = arg.get_help_heading();
    heading.is_some_and(|it| query::HEADINGS.contains(&it) || it == look::SHOW)
}

/// Names the shared options of a command that are used most, and where all are; empty if it has
/// none.
fn shared_in_brief(command: &Command) -> String {
    let shared = command.get_arguments().filter(|arg| is_shared(arg));
    let names: Vec<&str> = shared.filter_map(Arg::get_long).collect();
    let known = MOST_USED.iter().filter(|name| names.contains(name));
    let known: Vec<String> = known.map(|name| format!("--{name}")).collect();
    if known.is_empty() {
        return String::new();
    }
    let known = known.join(", ");
    format!("Shared options: {known};\nmore: proftool help filters\n")
}

/// A line for each, or as many as its text needs.
fn list(args: &[&Arg], extent: Extent, width: usize) -> String {
    let specs = args.iter().map(|arg| spec(arg));
    let longest = specs.clone().map(|spec| spec.chars().count()).max();
    // There is a blank before each word.
    let before = (longest.unwrap_or(0) + 1).min(COLUMN.min(width / 2));
    let mut text = String::new();
    for (arg, spec) in args.iter().zip(specs) {
        let mut line = format!("{spec:before$}");
        if line.len() == spec.len() {
            line.push(' ');
        }
        let room = width.saturating_sub(line.chars().count() + 1);
        for (place, part) in described(arg, extent, room).iter().enumerate() {
            // The names of values stand out.
            let after = before + if place == 0 { 0 } else { 2 };
            for word in part.split_whitespace() {
                if line.chars().count() + 1 + word.chars().count() > width {
                    text += &format!("{}\n", line.trim_end());
                    line = " ".repeat(after);
                }
                line += &format!(" {word}");
            }
            text += &format!("{}\n", line.trim_end());
            line = " ".repeat(before);
        }
    }
    text
}

/// An argument as it is written: `  -F, --freq <HZ>`.
fn spec(arg: &Arg) -> String {
    let short = match (arg.get_short(), arg.get_long()) {
        (Some(letter), Some(_)) => format!("-{letter}, "),
        (None, Some(_)) => "    ".into(),
        (_, None) => String::new(),
    };
    format!("  {short}{arg}")
}

/// What is said of an argument: a sentence or more, then its values, if they need words. In brief,
/// as many values are named as there is room for on the line.
fn described(arg: &Arg, extent: Extent, room: usize) -> Vec<String> {
    let help = |text: Option<&StyledStr>| text.map(StyledStr::to_string);
    let brief = help(arg.get_help()).unwrap_or_default();
    let takes_values = arg.get_action().takes_values();
    let values = match arg.is_hide_possible_values_set() || !takes_values {
        true => Vec::new(),
        false => arg.get_possible_values(),
    };
    let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
    let defaults: Vec<_> = match arg.is_hide_default_value_set() || !takes_values {
        true => Vec::new(),
        false => arg.get_default_values().iter().collect(),
    };
    let defaults: Vec<_> = defaults.iter().map(|it| it.to_string_lossy()).collect();
    let default = match defaults.is_empty() {
        true => String::new(),
        false => format!(" [default: {}]", defaults.join(",")),
    };
    if extent == Extent::Brief {
        return vec![match names.is_empty() {
            true => brief + &default,
            false => named(&brief, &names, &defaults.join(","), room),
        }];
    }
    let mut text = help(arg.get_long_help()).unwrap_or(brief);
    text = text.replace(".\n\n[", " [").replace("\n\n", " ");
    let explains = values.iter().any(|it| it.get_help().is_some());
    if !values.is_empty() && !explains {
        text += &format!(": {}", names.join(", "));
    }
    let mut parts = vec![text + &default];
    if explains {
        // Values that need no words share a line.
        for some in values.chunk_by(|one, two| one.get_help().or(two.get_help()).is_none()) {
            let names: Vec<&str> = some.iter().map(PossibleValue::get_name).collect();
            parts.push(match some[0].get_help() {
                Some(help) => format!("{}: {help}", names.join(", ")),
                None => names.join(", "),
            });
        }
    }
    parts
}

/// A text with the names of values behind it, the default marked.
fn named(text: &str, names: &[&str], default: &str, room: usize) -> String {
    let mut line = format!("{text}:");
    for (place, name) in names.iter().enumerate() {
        let mark = if *name == default { " (default)" } else { "" };
        let comma = if place + 1 < names.len() { "," } else { "" };
        let item = format!(" {name}{mark}{comma}");
        // The last one needs no room for what follows.
        let rest = if comma.is_empty() {
            0
        } else {
            " …".chars().count()
        };
        if line.chars().count() + item.chars().count() + rest > room {
            return line + " …";
        }
        line += &item;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_has_each_option_that_commands_leave_to_it() {
        let grammar = super::super::super::grammar();
        let topic = shared();
        let mut left_out = 0;
        for command in grammar.get_subcommands() {
            let shared = command.get_arguments().filter(|arg| is_shared(arg));
            let shared = shared.filter(|arg| !arg.is_hide_set());
            for name in shared.filter_map(Arg::get_long) {
                left_out += 1;
                assert!(topic.contains(&format!("--{name} ")), "{name}");
                let list = of_command(command, Extent::Full);
                let option = format!("      --{name} ");
                assert!(
                    !list.lines().any(|line| line.starts_with(&option)),
                    "{list}"
                );
                assert!(list.contains("proftool help filters"), "{list}");
            }
        }
        assert!(left_out > 200, "{left_out}");
    }

    #[test]
    fn values_are_named_as_far_as_a_line_has_room() {
        let names = ["function", "module", "line"];
        let text = named("Rows", &names, "module", 80);
        assert_eq!(text, "Rows: function, module (default), line");
        assert_eq!(
            named("Rows", &names, "", 28),
            "Rows: function, module, line"
        );
        assert_eq!(named("Rows", &names, "", 27), "Rows: function, module, …");
    }
}
