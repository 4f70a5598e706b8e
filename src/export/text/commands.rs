//! Commands to copy, in lines that a shell joins again.

use std::io::{self, Write};

use super::{HEADING, Options, styled, wrapped};
use crate::base::printable;
use crate::export::Advice;
use crate::names::display_width;
use crate::view::question::Question;

const INDENT: usize = 2;
const GAP: usize = 2;
// Ends a line whose command continues on the next one.
const CONTINUED: &str = " \\";

// Each after what it shows, under a heading; nothing where there is no command. A command that is
// too long to stand beside what it shows stands below it.
pub(super) fn write_next(
    out: &mut dyn Write,
    questions: &[Question],
    options: &Options,
    advice: &dyn Advice,
) -> io::Result<()> {
    let command = |question: &Question| {
        let command = advice.command(question)?;
        Some((question.shows(), printable(&command).into_owned()))
    };
    let commands: Vec<(&str, String)> = questions.iter().filter_map(command).collect();
    if commands.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    styled(out, options, HEADING, "Next commands")?;
    writeln!(out)?;
    let widest = commands.iter().map(|(shows, _)| display_width(shows));
    let widest = widest.max().unwrap_or(0);
    let [beside, below] = [INDENT + widest + GAP, INDENT + GAP];
    for (shows, command) in &commands {
        if beside + display_width(command) <= options.width {
            let padding = widest + GAP - display_width(shows);
            writeln!(out, "{:INDENT$}{shows}{:padding$}{command}", "", "")?;
            continue;
        }
        for line in wrapped(shows, INDENT, options.width) {
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
        for line in continued(command, options.width.saturating_sub(below)) {
            writeln!(out, "{:below$}{line}", "")?;
        }
    }
    Ok(())
}

/// Writes the commands alone, below each other; nothing where there is no command.
pub(super) fn write_in_brief(
    out: &mut dyn Write,
    questions: &[Question],
    options: &Options,
    advice: &dyn Advice,
) -> io::Result<()> {
    const TITLE: &str = "next: ";
    let mut title = TITLE;
    for command in questions.iter().filter_map(|it| advice.command(it)) {
        let command = printable(&command).into_owned();
        let width = options.width.saturating_sub(TITLE.len());
        for line in continued(&command, width) {
            styled(
                out,
                options,
                HEADING,
                &format!("{title:<width$}", width = TITLE.len()),
            )?;
            writeln!(out, "{line}")?;
            title = "";
        }
    }
    Ok(())
}

// Broken between words so that a shell reads the lines as one. An option keeps its value beside it
// where that fits. A longer word stands alone.
fn continued(command: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let is_long = |part: &str| GAP + display_width(part) + CONTINUED.len() > width;
    let parts = parts(command).into_iter().flat_map(|part| {
        match part.split_once(' ').filter(|_| is_long(part)) {
            Some((option, value)) => [Some(option), Some(value)],
            None => [Some(part), None],
        }
    });
    for part in parts.flatten() {
        let Some(line) = lines.last_mut() else {
            lines.push(part.to_owned());
            continue;
        };
        // What follows may need a mark behind it; the last part does not, but that costs at most
        // two columns.
        if display_width(line) + 1 + display_width(part) + CONTINUED.len() <= width {
            line.push(' ');
            line.push_str(part);
        } else {
            line.push_str(CONTINUED);
            lines.push(format!("{:GAP$}{part}", ""));
        }
    }
    lines
}

// The words of a command line as [`shell_quoted`](crate::base::shell_quoted) writes them, options
// with their values and the subcommand with the program.
fn parts(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, c) in command.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if !is_quoted => is_escaped = true,
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => {
                words.push((start, at));
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push((start, command.len()));
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let mut takes_next = true;
    for (place, (from, to)) in words.into_iter().enumerate() {
        let is_option = command[from..to].starts_with('-');
        match parts.last_mut() {
            Some(last) if takes_next && !is_option => last.1 = to,
            _ => parts.push((from, to)),
        }
        takes_next = is_option || place == 0;
    }
    parts
        .into_iter()
        .map(|(from, to)| &command[from..to])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_breaks_between_its_words() {
        let command = r"proftool tree a.data --focus '^a b\s'\''$' -o x";
        assert_eq!(
            parts(command),
            ["proftool tree", "a.data", r"--focus '^a b\s'\''$'", "-o x"]
        );
        assert_eq!(
            continued(command, 30),
            [r"proftool tree a.data \", r"  --focus '^a b\s'\''$' -o x"]
        );
        assert_eq!(continued(command, 80), [command]);
    }
}
