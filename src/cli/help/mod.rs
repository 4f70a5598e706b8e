//! The manual in the program: the help of each command, and topics that belong to several.
//!
//! A topic is a text of at most 79 columns: lines that begin with `# ` are headings, indented lines
//! are shown as they are. [`generate`] makes manual pages of the same texts.

pub mod generate;
mod options;
pub mod version;

use std::io::IsTerminal;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::builder::StyledStr;

use self::options::Extent;
use super::answer;
use super::failure::Misused;

#[derive(Clone, Copy, Debug)]
pub struct Topic {
    pub name: &'static str,
    pub about: &'static str,
    // What is made of the definitions of options is missing.
    text: &'static str,
}

impl Topic {
    /// The text, with what is made of the definitions of options.
    pub fn whole(&self) -> String {
        match self.name {
            "filters" => self.text.to_owned() + &options::shared(),
            _ => self.text.to_owned(),
        }
    }
}

// All topics, in the order of the list that `proftool help` prints.
pub const TOPICS: &[Topic] = &[
    Topic {
        name: "reading",
        about: "Columns, marks and notes of all views",
        text: include_str!("topics/reading.txt"),
    },
    Topic {
        name: "filters",
        about: "Options of all views: samples, rows, formats",
        text: include_str!("topics/filters.txt"),
    },
    Topic {
        name: "recording",
        about: "What can be recorded, the file that is written, containers",
        text: include_str!("topics/recording.txt"),
    },
    Topic {
        name: "events",
        about: "Events, sampling rates, groups",
        text: include_str!("topics/events.txt"),
    },
    Topic {
        name: "off-cpu",
        about: "Where threads are blocked or preempted",
        text: include_str!("topics/off-cpu.txt"),
    },
    Topic {
        name: "stacks",
        about: "How call stacks are recorded and repaired",
        text: include_str!("topics/stacks.txt"),
    },
    Topic {
        name: "recursion",
        about: "Cycles and collapsed calls",
        text: include_str!("topics/recursion.txt"),
    },
    Topic {
        name: "counts",
        about: "Exact call counts of unmodified programs",
        text: include_str!("topics/counts.txt"),
    },
    Topic {
        name: "comparing",
        about: "What has changed between runs, and how sure that is",
        text: include_str!("topics/comparing.txt"),
    },
    Topic {
        name: "gprof",
        about: "Call graphs, gmon.out, gprof's own format",
        text: include_str!("topics/gprof.txt"),
    },
    Topic {
        name: "permissions",
        about: "What the kernel lets you record",
        text: include_str!("topics/permissions.txt"),
    },
    Topic {
        name: "formats",
        about: "Inputs, outputs, exit status",
        text: include_str!("topics/formats.txt"),
    },
    Topic {
        name: "config",
        about: "Defaults for options: environment and configuration file",
        text: include_str!("topics/config.txt"),
    },
];

/// The arguments of `proftool help`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A command or a topic.
    word: Option<String>,
}

// Without a word, the list of both. An error if there is no such command or topic.
pub fn run(args: &Args, mut grammar: clap::Command) -> anyhow::Result<ExitCode> {
    // Usage lines then have the whole name of a command.
    grammar.build();
    let styled = match args.word.as_deref() {
        None => displayed(grammar).render_long_help(),
        Some(word) => {
            if let Some(topic) = TOPICS.iter().find(|topic| topic.name == word) {
                answer::print(&shown(topic, std::io::stdout().is_terminal()))?;
                return Ok(ExitCode::SUCCESS);
            }
            if grammar.find_subcommand(word).is_none() {
                return Err(Misused(unknown(word, &grammar)).into());
            }
            let mut grammar = displayed(grammar);
            let command = grammar.find_subcommand_mut(word);
            command.expect("it was found above").render_long_help()
        }
    };
    let text = if std::io::stdout().is_terminal() {
        styled.ansi().to_string()
    } else {
        styled.to_string()
    };
    answer::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn topics(command: &str) -> &'static [&'static str] {
    match command {
        "record" => &[
            "recording",
            "stacks",
            "events",
            "off-cpu",
            "counts",
            "permissions",
        ],
        "top" => &["events", "stacks", "off-cpu", "permissions"],
        "report" => &["reading", "stacks", "formats"],
        "flat" | "annotate" | "browse" => &["reading", "formats"],
        "tree" | "cycles" | "detail" => &["recursion", "reading", "formats"],
        "graph" => &["gprof", "recursion", "reading"],
        "callgraph" | "info" | "export" => &["formats"],
        "compare" | "check" => &["comparing", "counts"],
        "doctor" => &["permissions", "stacks"],
        _ => &[],
    }
}

// The command with its text, its examples and its topics at the end of its long help.
pub fn with_topics(command: clap::Command) -> clap::Command {
    let text = command.get_after_long_help().map(StyledStr::to_string);
    let examples = command.get_after_help().map(StyledStr::to_string);
    let topics = topics(command.get_name());
    let topics =
        (!topics.is_empty()).then(|| format!("See also: proftool help {}", topics.join(", ")));
    let parts: Vec<String> = [text, examples, topics].into_iter().flatten().collect();
    if parts.is_empty() {
        return command;
    }
    command.after_long_help(parts.join("\n\n"))
}

/// The grammar as help shows it. clap lists options with empty lines between them, and the shared
/// ones again for each command: so they are hidden from it, and [listed](options) here.
pub fn displayed(grammar: clap::Command) -> clap::Command {
    let grammar = grammar.mut_arg("help", |arg| arg.hide(true));
    grammar.mut_subcommands(|command| {
        let below = |extent, text: Option<&StyledStr>| {
            let options = options::of_command(&command, extent);
            let text = text.map(StyledStr::to_string).unwrap_or_default();
            format!("{}\n\n{text}", options.trim_end())
                .trim()
                .to_owned()
        };
        let more = format!("More: proftool {} --help", command.get_name());
        let brief = below(Extent::Brief, command.get_after_help());
        let full = below(Extent::Full, command.get_after_long_help());
        // Hidden altogether they would be missing from the line of usage.
        command
            .mut_args(|arg| arg.hide_short_help(true).hide_long_help(true))
            .after_help(format!("{brief}\n\n{more}"))
            .after_long_help(full)
    })
}

// The list of topics, below the list of commands.
pub fn list() -> String {
    let mut list = String::from("Topics (proftool help TOPIC):\n");
    for topic in TOPICS {
        list += &format!("  {:<11}  {}\n", topic.name, topic.about);
    }
    list
}

fn unknown(word: &str, grammar: &clap::Command) -> String {
    let commands: Vec<&str> = grammar
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    let topics: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
    format!(
        "there is no command or topic {word:?}; commands: {}; topics: {}",
        commands.join(", "),
        topics.join(", ")
    )
}

// Its headings are bold on a terminal.
fn shown(topic: &Topic, is_terminal: bool) -> String {
    let bold = Style::new().bold().fg_color(Some(AnsiColor::Green.into()));
    let line = |line: &str| match line.strip_prefix("# ") {
        Some(heading) if is_terminal => format!("{bold}{heading}{bold:#}\n"),
        Some(heading) => format!("{heading}\n"),
        None => format!("{line}\n"),
    };
    topic.whole().lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_fit_eighty_columns_and_begin_with_a_heading() {
        for topic in TOPICS {
            let text = topic.whole();
            assert!(text.starts_with("# "), "{}", topic.name);
            let mut lines = text.lines();
            let long = lines.find(|line| line.chars().count() > 79);
            assert_eq!(long, None, "{}", topic.name);
            // The marks of the views are as they are on the screen; groff knows them.
            let safe = |c: char| c == '\n' || (' '..='~').contains(&c) || "≈≥±⋯↳→·".contains(c);
            assert!(text.chars().all(safe), "{}", topic.name);
        }
    }

    #[test]
    fn texts_of_commands_fit_eighty_columns() {
        let grammar = super::super::grammar();
        for command in grammar.get_subcommands() {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for text in texts.into_iter().flatten().map(StyledStr::to_string) {
                // clap would break the last word off a longer line.
                let long = text.lines().find(|line| line.chars().count() > 79);
                assert_eq!(long, None, "{}", command.get_name());
            }
        }
    }

    #[test]
    fn no_topic_has_the_name_of_a_command() {
        let grammar = super::super::grammar();
        for topic in TOPICS {
            assert!(grammar.find_subcommand(topic.name).is_none());
        }
    }

    #[test]
    fn each_option_that_a_topic_names_exists() {
        let grammar = super::super::grammar();
        let known = |word: &str| {
            let mut commands = grammar.get_subcommands();
            commands.any(|command| {
                command
                    .get_arguments()
                    .any(|arg| arg.get_long() == Some(word))
            })
        };
        // Of perf, of any command that is recorded, and of all commands.
        let others = ["switch-events", "its-option", "help"];
        for topic in TOPICS {
            for word in topic
                .whole()
                .split([' ', '\n', '(', ')', ':', ',', '.', ';'])
            {
                let Some(name) = word.strip_prefix("--") else {
                    continue;
                };
                let name = name.split('=').next().unwrap_or_default();
                let is_known = name.is_empty() || known(name) || others.contains(&name);
                assert!(is_known, "{}: --{name}", topic.name);
            }
        }
    }
}
