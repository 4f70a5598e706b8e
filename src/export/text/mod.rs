//! Pages as text for a terminal or a file.
//!
//! Tables are aligned: figures to the right, texts to the left. Where the width does not
//! suffice, asides are shortened and then left out, then figures from the right. Names are
//! shortened so that their last segments stay, and so that different names of a page stay
//! different. Rows are never wrapped, sentences are.

mod commands;
mod table;

use std::collections::BTreeSet;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::base::printable;
use crate::export::Advice;
use crate::export::sentences::{self, Kind};
use crate::export::shown::{self, ARROW, Shown};
use crate::names::{Label, display_width};
use crate::view::doctor::Status;
use crate::view::number;
use crate::view::page::{Block, Page};
use table::Sheet;

/// How text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The width that lines should keep to, in columns of a terminal.
    pub width: usize,
    /// Whether colours may be used.
    pub color: bool,
}

/// What a call in a sentence has at least, if the line is as long.
const MIN_CALL: usize = 40;
/// In place of what a bound means, where there is no room for bounds.
const ABOUT_LOWER_BOUNDS: &str =
    "≥: at least, as stacks are incomplete. A wider page has what it is at most.";

const HEADING: Style = Style::new().bold();
const TITLE: Style = Style::new().dimmed();
const HOT: Style = AnsiColor::Red.on_default();
const WARM: Style = AnsiColor::Yellow.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// Returns the number of lines that a page takes.
pub fn height(page: &Page, options: &Options, advice: &dyn Advice) -> usize {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = write(&mut text, page, options, advice);
    text.iter().filter(|&&byte| byte == b'\n').count()
}

/// Writes a page.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    page: &Page,
    options: &Options,
    advice: &dyn Advice,
) -> io::Result<()> {
    let (sheets, calls_shown) = with_names(page, options.width);
    let mut in_sentences = calls_shown.into_iter();
    let mut next_sheet = sheets.iter();
    // What a hint has said need not be said again on the same screen.
    let mut said = BTreeSet::new();
    for block in &page.blocks {
        match block {
            Block::Space => writeln!(out)?,
            Block::Heading(text) => {
                for line in wrapped(&printable(text), 0, options.width) {
                    styled(out, options, HEADING, &line)?;
                    writeln!(out)?;
                }
            }
            Block::Calls {
                before,
                calls,
                after,
            } => {
                let calls: Vec<String> = in_sentences.by_ref().take(calls.len()).collect();
                let text = shown::sentence(before, &calls, after);
                write_sentence(out, options, "", Style::new(), &text)?;
            }
            Block::Legend { key, .. } if !is_column_shown(&sheets, key) => {
                let is_bound = sheets.iter().any(|sheet| sheet.is_bound(key));
                if is_bound {
                    write_sentence(out, options, "", Style::new(), ABOUT_LOWER_BOUNDS)?;
                }
            }
            Block::Brief(caveat) => {
                let text = format!("note: {caveat}");
                let line = cut(&printable(&text), options.width);
                styled(out, options, NOTE, &line)?;
                writeln!(out)?;
            }
            Block::Line(_)
            | Block::Legend { .. }
            | Block::Caveat(_)
            | Block::Meaning(_)
            | Block::Hidden(_)
            | Block::OtherEvents(_)
            | Block::BetterStacks(_)
            | Block::RemedyOf(_) => {
                for sentence in sentences::of(block, advice, &mut said) {
                    let (mark, style) = match sentence.kind {
                        Kind::Plain => ("", Style::new()),
                        Kind::Note => ("note: ", NOTE),
                        Kind::Hint => ("hint: ", TITLE),
                    };
                    write_sentence(out, options, mark, style, &sentence.text)?;
                }
            }
            Block::Check {
                status,
                text,
                remedy,
            } => {
                let style = match status {
                    Status::Ok | Status::Note => Style::new(),
                    Status::Warn => WARM,
                    Status::Bad => HOT,
                };
                let mark = format!("{:<6}", status.name());
                write_sentence(out, options, &mark, style, text)?;
                if let Some(remedy) = remedy {
                    write_sentence(out, options, "      → ", TITLE, remedy)?;
                }
            }
            Block::Next(questions) => commands::write_next(out, questions, options, advice)?,
            Block::NextInBrief(questions) => {
                commands::write_in_brief(out, questions, options, advice)?;
            }
            Block::Path {
                title,
                steps,
                whole,
            } => {
                for line in path_lines(title, steps, *whole, options.width) {
                    writeln!(out, "{line}")?;
                }
            }
            Block::Table(_) => {
                if let Some(sheet) = next_sheet.next() {
                    sheet.write(out, options)?;
                }
            }
        }
    }
    Ok(())
}

/// The tables of a page, and the calls in its sentences, with names that fit into a width. All are
/// shortened together, so that different names stay different on the whole page.
fn with_names(page: &Page, width: usize) -> (Vec<Sheet<'_>>, Vec<String>) {
    let mut sheets: Vec<Sheet> = (page.blocks.iter())
        .filter_map(|block| match block {
            Block::Table(table) => Some(Sheet::new(table, &page.unit, width)),
            _ => None,
        })
        .collect();
    let mut calls_shown: Vec<(Shown, usize)> = Vec::new();
    for block in &page.blocks {
        if let Block::Calls { before, calls, .. } = block {
            let room = width.saturating_sub(display_width(before) + 1);
            // The rest of the line may be too short for a call, which then begins on the next one.
            let room = room.max(width.min(MIN_CALL));
            calls_shown.extend(calls.iter().map(|call| (Shown::call(call), room)));
        }
    }
    let mut names: Vec<(&Shown, usize)> = sheets.iter().flat_map(Sheet::names).collect();
    let in_tables = names.len();
    names.extend(calls_shown.iter().map(|(call, room)| (call, *room)));
    let mut fitted = shown::fitted(&names);
    let in_sentences = fitted.split_off(in_tables);
    let mut in_tables = fitted.into_iter();
    for sheet in &mut sheets {
        sheet.set_names(&mut in_tables);
    }
    (sheets, in_sentences)
}

/// A chain of calls in at most two lines: its steps from the outermost on, as far as there is room.
fn path_lines(title: &str, steps: &[(Label, u64)], whole: u64, width: usize) -> Vec<String> {
    /// The most columns of a name.
    const NAME: usize = 34;
    let indent = display_width(title) + 2;
    let mut lines = vec![format!("{title}: ")];
    for (place, (name, part)) in steps.iter().enumerate() {
        let share = number::percent(*part, whole, 1);
        let room = width.saturating_sub(indent + ARROW.len() + share.len());
        let name = shown::written(name);
        let step = format!("{} {share}", name.shortened(room.min(NAME)));
        let step = if place == 0 {
            step
        } else {
            format!("{}{step}", ARROW.trim_start())
        };
        let line = lines.last_mut().expect("the first line");
        if place == 0 {
            line.push_str(&step);
        } else if display_width(line) + 1 + display_width(&step) <= width {
            line.push(' ');
            line.push_str(&step);
        } else if lines.len() == 1 {
            lines.push(format!("{:indent$}{step}", ""));
        } else {
            break;
        }
    }
    lines
}

/// The start of a text, in at most `width` columns.
fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut line = wrapped(text, 0, width.saturating_sub(2)).swap_remove(0);
    line.push_str(" …");
    line
}

/// Whether a table has room for the column with this key, or no table has the column.
fn is_column_shown(sheets: &[Sheet], key: &str) -> bool {
    let mut shown = sheets
        .iter()
        .filter_map(|sheet| sheet.shows(key))
        .peekable();
    shown.peek().is_none() || shown.any(|is_shown| is_shown)
}

/// Writes a sentence after a mark; words that do not fit on the line stand on the next one.
fn write_sentence(
    out: &mut dyn Write,
    options: &Options,
    mark: &str,
    style: Style,
    text: &str,
) -> io::Result<()> {
    styled(out, options, style, mark)?;
    let indent = display_width(mark);
    let lines = wrapped(&printable(text), indent, options.width);
    let separator = format!("\n{:indent$}", "");
    writeln!(out, "{}", lines.join(&separator))
}

/// Breaks a text into lines that fit, with an indent, into `width` columns; longer words stand
/// alone.
pub(in crate::export) fn wrapped(text: &str, indent: usize, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for (i, word) in text.split(' ').enumerate() {
        let is_full = indent + display_width(&line) + 1 + display_width(word) > width;
        if i > 0 && is_full {
            lines.push(std::mem::take(&mut line));
        } else if i > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

fn styled(out: &mut dyn Write, options: &Options, style: Style, text: &str) -> io::Result<()> {
    if options.color && !style.is_plain() && !text.is_empty() {
        write!(out, "{style}{text}{style:#}")
    } else {
        out.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Unit;
    use crate::view::table::{Call, Cell, Column, Role, Table};

    struct Silent;

    impl Advice for Silent {}

    #[test]
    fn names_differ_on_all_of_a_page() {
        let name =
            |of: &str| format!("parser::{of}::expression::Operators<Left>::reduce_all_of_them");
        let names = ["additive", "assignment"].map(name);
        let table = |name: &String| {
            let mut table = Table::new(vec![Column::new("name", "function", Role::Name)]);
            table.rows.push(vec![Cell::Text(name.clone())]);
            Block::Table(table)
        };
        let mut blocks: Vec<Block> = names.iter().map(table).collect();
        blocks.push(Block::Calls {
            before: "removing".into(),
            calls: { names.iter() }
                .map(|name| Call::new(name.clone().into(), "f".into()))
                .collect(),
            after: String::new(),
        });
        for width in [40, 50, 60] {
            let page = Page {
                unit: Unit::Samples,
                blocks: blocks.clone(),
            };
            let mut out = Vec::new();
            let options = Options {
                width,
                color: false,
            };
            write(&mut out, &page, &options, &Silent).unwrap();
            let text = String::from_utf8(out).unwrap();
            let [first, second] = [1, 3].map(|line| text.lines().nth(line).unwrap());
            assert!(first != second && first.contains('…'), "{text}");
            let sentence = text.lines().skip(4).collect::<Vec<_>>().join(" ");
            let sentence = sentence.strip_prefix("removing ").unwrap();
            let (one, other) = sentence.split_once(", ").unwrap();
            assert!(one != other && one.ends_with(" → f"), "{text}");
        }
    }

    #[test]
    fn figures_that_repeat_a_share_make_room_for_names() {
        let mut table = Table::new(vec![
            Column::new("percent", "total %", Role::Heat),
            Column::new("weight", "total", Role::Spare),
            Column::new("name", "function", Role::Name),
        ]);
        let name = "a_name_of_so_many_characters";
        let share = Cell::Share { part: 1, whole: 2 };
        table.rows.push(vec![
            share,
            Cell::Weight(1_234_567),
            Cell::Text(name.into()),
        ]);
        let text = |width| {
            let mut out = Vec::new();
            let options = Options {
                width,
                color: false,
            };
            let sheet = Sheet::new(&table, &Unit::Samples, width);
            sheet.write(&mut out, &options).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(48),
            "total %      total  function\n  50.00  1,234,567  a_name_of_so_many_characters\n"
        );
        assert_eq!(
            text(47),
            "total %  function\n  50.00  a_name_of_so_many_characters\n"
        );
    }
}
