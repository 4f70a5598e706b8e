//! Pages as text for a terminal or a file.
//!
//! Tables are aligned: figures to the right, texts to the left. Where the width does not
//! suffice, asides are shortened and then left out, then figures from the right. Names are shortened
//! so that their last segments stay, and so that different names of a table stay different. Rows are
//! never wrapped, sentences are.

mod distinct;
mod shorten;

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

pub use shorten::{display_width, last_columns, shortened, shortened_call};

use crate::base::{Unit, printable};
use crate::export::Advice;
use crate::export::sentences::{self, Kind};
use crate::view::doctor::Status;
use crate::view::number;
use crate::view::page::{Block, Page};
use crate::view::question::Question;
use crate::view::table::{Cell, Role, Table};
use shorten::without_end;

/// How text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The width that lines should keep to, in columns of a terminal.
    pub width: usize,
    /// Whether colours may be used.
    pub color: bool,
}

/// The space between columns.
const GAP: usize = 2;
/// Names get at least this width, even where the line becomes too long by it.
const MIN_NAME: usize = 16;
/// Where names have less than this, asides have to go.
const FAIR_NAME: usize = 28;
/// Where names have less than this, all figures but the first ones have to go.
const POOR_NAME: usize = 20;
/// The number of figures that a table always has: a share, and what it is a share of or by.
const MIN_FIGURES: usize = 2;
/// What a call in a sentence has at least, if the line is as long.
const MIN_CALL: usize = 30;
/// The width that asides have at most where it is narrow.
const MAX_ASIDE: usize = 20;

const HEADING: Style = Style::new().bold();
const TITLE: Style = Style::new().dimmed();
const HOT: Style = AnsiColor::Red.on_default();
const WARM: Style = AnsiColor::Yellow.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

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
    let mut hints: Vec<String> = Vec::new();
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
                let room = options.width.saturating_sub(display_width(before) + 1);
                // The rest of the line may be too short for a call, which then begins on the next one.
                let room = room.max(options.width.min(MIN_CALL));
                let calls: Vec<_> = calls
                    .iter()
                    .map(|call| shortened_call(call, room))
                    .collect();
                let text = format!("{before} {}{after}", calls.join(", "));
                write_sentence(out, options, "", Style::new(), &text)?;
            }
            Block::Line(_)
            | Block::Caveat(_)
            | Block::Restored(_)
            | Block::Hidden(_)
            | Block::OtherEvents(_)
            | Block::StackGap(_) => {
                // What a hint has said need not be said again on the same screen.
                if let Block::StackGap(gap) = block
                    && let Some(remedy) = advice.on_stacks(*gap)
                    && hints.iter().any(|hint| hint.contains(&remedy))
                {
                    continue;
                }
                for sentence in sentences::of(block, advice) {
                    if sentence.kind == Kind::Hint {
                        hints.push(sentence.text.clone());
                    }
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
                    Status::Ok => Style::new(),
                    Status::Warn => WARM,
                    Status::Bad => HOT,
                };
                let mark = format!("{:<6}", status.name());
                write_sentence(out, options, &mark, style, text)?;
                if let Some(remedy) = remedy {
                    write_sentence(out, options, "      → ", TITLE, remedy)?;
                }
            }
            Block::Next(questions) => write_next(out, questions, options, advice)?,
            Block::Table(table) => write_table(out, table, &page.unit, options)?,
        }
    }
    Ok(())
}

/// Writes the commands that answer these questions, each after what it shows, under a heading;
/// nothing where there is no command.
fn write_next(
    out: &mut dyn Write,
    questions: &[Question],
    options: &Options,
    advice: &dyn Advice,
) -> io::Result<()> {
    let command = |question: &Question| Some((question.shows(), advice.command(question)?));
    let commands: Vec<_> = questions.iter().filter_map(command).collect();
    if commands.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    styled(out, options, HEADING, "Next commands")?;
    writeln!(out)?;
    let widest = commands.iter().map(|(shows, _)| display_width(shows));
    let widest = widest.max().unwrap_or(0);
    for (shows, command) in &commands {
        let padding = widest - display_width(shows);
        writeln!(out, "  {shows}{:padding$}  {}", "", printable(command))?;
    }
    Ok(())
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

/// Breaks a text into lines that fit, with an indent, into `width` columns; longer words stand alone.
fn wrapped(text: &str, indent: usize, width: usize) -> Vec<String> {
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

/// A cell ready to be written: what may not be shortened, and what may.
struct Piece<'a> {
    guide: &'a str,
    text: Cow<'a, str>,
    style: Style,
}

impl Piece<'_> {
    fn width(&self) -> usize {
        display_width(self.guide) + display_width(&self.text)
    }
}

fn write_table(
    out: &mut dyn Write,
    table: &Table,
    unit: &Unit,
    options: &Options,
) -> io::Result<()> {
    let roles: Vec<Role> = table.columns.iter().map(|column| column.role).collect();
    let rows: Vec<Vec<Piece>> = table
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(&roles)
                .map(|(c, role)| piece(c, *role, unit))
                .collect()
        })
        .collect();
    let natural: Vec<usize> = (0..roles.len())
        .map(|i| {
            let widest = rows.iter().map(|row| row[i].width()).max().unwrap_or(0);
            widest.max(display_width(table.columns[i].title))
        })
        .collect();
    let widths = fit(&roles, &natural, options.width);
    let mut rows = rows;
    for column in (0..roles.len()).filter(|&i| roles[i] == Role::Name && widths[i] > 0) {
        let room = |row: &Vec<Piece>| {
            let room = widths[column].saturating_sub(display_width(row[column].guide));
            room.max(MIN_NAME.min(display_width(&row[column].text)))
        };
        let texts: Vec<(&str, usize)> = rows
            .iter()
            .map(|row| (&*row[column].text, room(row)))
            .collect();
        let texts: Vec<String> = distinct::fitted(&texts)
            .into_iter()
            .map(Cow::into_owned)
            .collect();
        for (row, text) in rows.iter_mut().zip(texts) {
            row[column].text = Cow::Owned(text);
        }
    }
    let titles: Vec<Piece> = table
        .columns
        .iter()
        .map(|column| Piece {
            guide: "",
            text: Cow::Borrowed(column.title),
            style: TITLE,
        })
        .collect();
    for row in std::iter::once(&titles).chain(&rows) {
        write_row(out, row, &roles, &widths, options)?;
    }
    Ok(())
}

fn piece<'a>(cell: &'a Cell, role: Role, unit: &Unit) -> Piece<'a> {
    let mut style = Style::new();
    let mut guide = "";
    match cell {
        Cell::Branch { guide: lines, .. } => guide = lines,
        Cell::Faint { guide: lines, .. } => {
            guide = lines;
            style = TITLE;
        }
        Cell::Share { part, whole } => {
            let share = *part as f64 / (*whole).max(1) as f64;
            if role == Role::Heat && share >= 0.10 {
                style = HOT;
            } else if role == Role::Heat && share >= 0.03 {
                style = WARM;
            }
        }
        _ => {}
    }
    Piece {
        guide,
        text: cell_text(cell, unit),
        style,
    }
}

/// The text of a cell without the lines of a tree; safe to print.
pub(super) fn cell_text<'a>(cell: &'a Cell, unit: &Unit) -> Cow<'a, str> {
    match cell {
        Cell::Nothing => Cow::Borrowed(""),
        Cell::Text(text) | Cell::Branch { text, .. } | Cell::Faint { text, .. } => printable(text),
        Cell::Weight(value) => Cow::Owned(number::weight(*value, unit)),
        Cell::Count(value) => Cow::Owned(number::grouped(*value)),
        Cell::Share { part, whole } => Cow::Owned(number::percent(*part, *whole, 2)),
        Cell::Limit { part, whole } => Cow::Owned(number::limit(*part, *whole)),
        Cell::PerCall { weight, calls } => Cow::Owned(number::weight_per(*weight, *calls, unit)),
    }
}

/// The width of each column; 0 for one that is left out.
fn fit(roles: &[Role], natural: &[usize], width: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let line = |widths: &[usize]| {
        let shown = widths.iter().filter(|w| **w > 0).count();
        widths.iter().sum::<usize>() + GAP * shown.saturating_sub(1)
    };
    let of_role = |role: Role| (0..roles.len()).filter(move |&i| roles[i] == role);
    if line(&widths) > width {
        for i in of_role(Role::Aside) {
            widths[i] = widths[i].min(MAX_ASIDE);
        }
    }
    let mut names: Vec<usize> = of_role(Role::Name).chain(of_role(Role::Code)).collect();
    let others = |widths: &[usize]| {
        let names: usize = names.iter().map(|&i| widths[i]).sum();
        line(widths) - names
    };
    let all_names: usize = names.iter().map(|&i| natural[i]).sum();
    for i in of_role(Role::Aside).rev() {
        if others(&widths) + all_names.min(FAIR_NAME) > width {
            widths[i] = 0;
        }
    }
    let is_figure = |&i: &usize| matches!(roles[i], Role::Figure | Role::Heat);
    let figures: Vec<usize> = (0..roles.len()).filter(is_figure).collect();
    for &i in figures.iter().skip(MIN_FIGURES).rev() {
        if others(&widths) + all_names.min(POOR_NAME) > width {
            widths[i] = 0;
        }
    }
    // What a short name leaves over is for the longer ones.
    let mut room = width.saturating_sub(others(&widths));
    names.sort_by_key(|&i| widths[i]);
    for (place, &i) in names.iter().enumerate() {
        widths[i] = widths[i].min((room / (names.len() - place)).max(MIN_NAME));
        room = room.saturating_sub(widths[i]);
    }
    widths
}

fn write_row(
    out: &mut dyn Write,
    row: &[Piece],
    roles: &[Role],
    widths: &[usize],
    options: &Options,
) -> io::Result<()> {
    // Spaces are held back until something follows, so that no line ends with them.
    let mut spaces = 0;
    let mut first = true;
    for ((piece, role), &width) in row.iter().zip(roles).zip(widths) {
        if width == 0 {
            continue;
        }
        if !first {
            spaces += GAP;
        }
        first = false;
        let room = width.saturating_sub(display_width(piece.guide));
        let text = match role {
            Role::Name => Cow::Borrowed(&*piece.text),
            Role::Code => without_end(&piece.text, room),
            _ => shortened_call(
                &piece.text,
                room.max(MIN_NAME.min(display_width(&piece.text))),
            ),
        };
        let used = display_width(piece.guide) + display_width(&text);
        let right = matches!(role, Role::Figure | Role::Heat);
        let padding = width.saturating_sub(used);
        if right {
            spaces += padding;
        }
        if used > 0 {
            write!(out, "{:spaces$}", "")?;
            spaces = 0;
            styled(out, options, TITLE, piece.guide)?;
            styled(out, options, piece.style, &text)?;
        }
        if !right {
            spaces += padding;
        }
    }
    writeln!(out)
}

fn styled(out: &mut dyn Write, options: &Options, style: Style, text: &str) -> io::Result<()> {
    if options.color && !style.is_plain() && !text.is_empty() {
        write!(out, "{style}{text}{style:#}")
    } else {
        out.write_all(text.as_bytes())
    }
}
