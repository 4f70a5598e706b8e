//! Tables in aligned columns.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;

use super::shorten::{display_width, shortened_call, without_end};
use super::{HOT, Options, TITLE, WARM, styled};
use crate::base::{Unit, printable};
use crate::view::number;
use crate::view::table::{Cell, Column, Role, Table};

/// The space between columns.
const GAP: usize = 2;
/// Names get at least this width, even where the line becomes too long by it.
const MIN_NAME: usize = 16;
/// Where names have less than this and need more, figures that repeat others have to go.
const GOOD_NAME: usize = 60;
/// Where names have less than this, asides have to go.
const FAIR_NAME: usize = 40;
/// Where names have less than this, all figures but the first ones have to go.
const POOR_NAME: usize = 20;
/// The number of figures that a table always has: a share, and what it is a share of or by.
const MIN_FIGURES: usize = 2;
/// The width that asides have at most where it is narrow.
const MAX_ASIDE: usize = 20;

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

/// A table ready to be written.
pub(super) struct Sheet<'t> {
    columns: &'t [Column],
    rows: Vec<Vec<Piece<'t>>>,
    /// The width of each column; 0 for one that is left out.
    widths: Vec<usize>,
}

impl<'t> Sheet<'t> {
    /// The table in lines of this width.
    pub fn new(table: &'t Table, unit: &Unit, width: usize) -> Sheet<'t> {
        let columns = &table.columns[..];
        let rows: Vec<Vec<Piece>> = table
            .rows
            .iter()
            .map(|row| {
                row.iter()
                    .zip(columns)
                    .map(|(cell, column)| piece(cell, column.role, unit))
                    .collect()
            })
            .collect();
        let natural: Vec<usize> = (0..columns.len())
            .map(|i| {
                let widest = rows.iter().map(|row| row[i].width()).max().unwrap_or(0);
                widest.max(display_width(columns[i].title))
            })
            .collect();
        let roles: Vec<Role> = columns.iter().map(|column| column.role).collect();
        let widths = fit(&roles, &natural, width);
        Sheet {
            columns,
            rows,
            widths,
        }
    }

    /// The places of columns with names.
    fn named(&self) -> impl Iterator<Item = usize> + use<> {
        let is_named = |column: &Column| column.role == Role::Name;
        let shown = self.columns.iter().zip(&self.widths).enumerate();
        let named: Vec<usize> = shown
            .filter(|(_, (column, width))| is_named(column) && **width > 0)
            .map(|(place, _)| place)
            .collect();
        named.into_iter()
    }

    /// The names, each with the columns that there are for it.
    pub fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        self.named().flat_map(move |place| {
            self.rows.iter().map(move |row| {
                let piece = &row[place];
                let room = self.widths[place]
                    .saturating_sub(display_width(piece.guide))
                    .max(MIN_NAME.min(display_width(&piece.text)));
                (&*piece.text, room)
            })
        })
    }

    /// Takes as many names from `shown`, in the same order, to be written in place of those.
    pub fn set_names(&mut self, shown: &mut impl Iterator<Item = String>) {
        for place in self.named() {
            for (row, name) in self.rows.iter_mut().zip(&mut *shown) {
                row[place].text = Cow::Owned(name);
            }
        }
    }

    /// Writes the titles and the rows.
    pub fn write(&self, out: &mut dyn Write, options: &Options) -> io::Result<()> {
        let title = |column: &'t Column| Piece {
            guide: "",
            text: Cow::Borrowed(column.title),
            style: TITLE,
        };
        let titles: Vec<Piece> = self.columns.iter().map(title).collect();
        let roles: Vec<Role> = self.columns.iter().map(|column| column.role).collect();
        for row in std::iter::once(&titles).chain(&self.rows) {
            write_row(out, row, &roles, &self.widths, options)?;
        }
        Ok(())
    }
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
pub(in crate::export) fn cell_text<'a>(cell: &'a Cell, unit: &Unit) -> Cow<'a, str> {
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
    for i in of_role(Role::Spare).rev() {
        if others(&widths) + all_names.min(GOOD_NAME) > width {
            widths[i] = 0;
        }
    }
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
        let right = matches!(role, Role::Figure | Role::Spare | Role::Heat);
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
