//! The manual in the program: the help of each command, and topics that belong to several.
//!
//! A topic is a text of at most 79 columns: lines that begin with `# ` are headings, indented lines
//! are shown as they are. [`generate`] makes manual pages of the same texts.

pub mod generate;
pub mod version;

use std::io::IsTerminal;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use super::answer;
use super::failure::Misused;

#[derive(Clone, Copy, Debug)]
pub struct Topic {
    pub name: &'static str,
    pub about: &'static str,
    pub text: &'static str,
}

// All topics, in the order of the list that `proftool help` prints.
pub const TOPICS: &[Topic] = &[
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
        about: "How call stacks are recorded, their marks, restored frames",
        text: include_str!("topics/stacks.txt"),
    },
    Topic {
        name: "recursion",
        about: "Cycles, collapsed calls, totals that are ranges",
        text: include_str!("topics/recursion.txt"),
    },
    Topic {
        name: "counts",
        about: "Exact call counts of unmodified programs",
        text: include_str!("topics/counts.txt"),
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
        None => grammar.render_long_help(),
        Some(word) => {
            if let Some(topic) = TOPICS.iter().find(|topic| topic.name == word) {
                answer::print(&shown(topic, std::io::stdout().is_terminal()))?;
                return Ok(ExitCode::SUCCESS);
            }
            let Some(command) = grammar.find_subcommand_mut(word) else {
                return Err(Misused(unknown(word, &grammar)).into());
            };
            command.render_long_help()
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
        "record" => &["recording", "events", "stacks", "off-cpu", "permissions"],
        "top" => &["events", "stacks", "off-cpu", "permissions"],
        "report" | "flat" => &["stacks", "off-cpu", "formats"],
        "tree" | "cycles" | "detail" => &["recursion", "stacks", "formats"],
        "annotate" | "browse" => &["recursion", "formats"],
        "graph" => &["gprof", "recursion", "formats"],
        "callgraph" | "info" | "export" => &["formats"],
        "doctor" => &["permissions", "stacks"],
        _ => &[],
    }
}

// The command with its topics at the end of its long help.
pub fn with_topics(command: clap::Command) -> clap::Command {
    let topics = topics(command.get_name());
    if topics.is_empty() {
        return command;
    }
    let mut text = command
        .get_after_help()
        .map_or_else(String::new, |text| format!("{text}\n\n"));
    text += "See also:\n";
    for topic in TOPICS.iter().filter(|topic| topics.contains(&topic.name)) {
        text += &format!("  proftool help {:<11}  {}\n", topic.name, topic.about);
    }
    command.after_long_help(text)
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
    topic.text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_fit_eighty_columns_and_begin_with_a_heading() {
        for topic in TOPICS {
            assert!(topic.text.starts_with("# "), "{}", topic.name);
            let mut lines = topic.text.lines();
            let long = lines.find(|line| line.chars().count() > 79);
            assert_eq!(long, None, "{}", topic.name);
            // The marks of the views are as they are on the screen; groff knows them.
            let safe = |c: char| c == '\n' || (' '..='~').contains(&c) || "≈≥".contains(c);
            assert!(topic.text.chars().all(safe), "{}", topic.name);
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
        // Of other programs: perf record, callgrind_annotate, ld, and any command that is recorded.
        let others = ["switch-events", "inclusive", "emit-relocs", "its-option"];
        for topic in TOPICS {
            for word in topic.text.split([' ', '\n', '(', ')', ':', ',', '.', ';']) {
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
