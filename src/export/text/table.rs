//! Tables in aligned columns.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;

use super::{HOT, Options, TITLE, WARM, styled};
use crate::base::Unit;
use crate::export::shown::{self, Shown};
use crate::names::{display_width, without_end};
use crate::view::table::{Cell, Column, Guide, Role, Table};

const GAP: usize = 2;
// Where names have less than this, all figures but the first go, and what totals are at most.
const MIN_NAME: usize = 16;
// Even where the line becomes too long by it.
const LEAST_NAME: usize = 8;
// What the lines of a tree need where names have little room.
const MIN_GUIDE: usize = 8;
// Where names have less than this and need more, figures that repeat others have to go.
const GOOD_NAME: usize = 60;
// Where names have less than this, asides have to go.
const FAIR_NAME: usize = 40;
// Where names have less than this, all figures but the first ones have to go.
const POOR_NAME: usize = 20;
// The number of figures that a table has unless it is very narrow: a share, and what it is a share
// of or by.
const MIN_FIGURES: usize = 2;
// What stands before a figure that can be larger, where there is no room for the column that says
// how large.
const AT_LEAST: &str = "≥";
// The width that asides have at most where it is narrow.
const MAX_ASIDE: usize = 20;

// What may not be shortened, and what may.
struct Piece<'a> {
    cell: &'a Cell,
    guide: String,
    text: Shown<'a>,
    style: Style,
}

// How wide the cells of a column are.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    // All of a cell, or the title.
    whole: usize,
    // What stands before the text of a cell, as far as it can be shortened.
    guide: usize,
    text: usize,
}

pub(super) struct Sheet<'t> {
    columns: &'t [Column],
    rows: Vec<Vec<Piece<'t>>>,
    // 0 for a column that is left out.
    widths: Vec<usize>,
}

impl<'t> Sheet<'t> {
    pub fn new(table: &'t Table, unit: &Unit, width: usize) -> Sheet<'t> {
        let columns = &table.columns[..];
        let mut rows: Vec<Vec<Piece>> = table
            .rows
            .iter()
            .map(|row| {
                row.iter()
                    .zip(columns)
                    .map(|(cell, column)| piece(cell, column.role, unit))
                    .collect()
            })
            .collect();
        let extents: Vec<Extent> = (0..columns.len())
            .map(|i| {
                let mut extent = Extent {
                    whole: display_width(&shown::title(&columns[i])),
                    ..Extent::default()
                };
                for piece in rows.iter().map(|row| &row[i]) {
                    let guide = display_width(&piece.guide);
                    let text = piece.text.width();
                    extent.whole = extent.whole.max(guide + text);
                    extent.guide = extent
                        .guide
                        .max(if in_tree(piece.cell) { guide } else { 0 });
                    extent.text = extent.text.max(text);
                }
                extent
            })
            .collect();
        let roles: Vec<Role> = columns.iter().map(|column| column.role).collect();
        let widths = fit(&roles, &extents, width);
        for (i, extent) in extents.iter().enumerate().filter(|(_, it)| it.guide > 0) {
            // The same for all rows, so that those of one level stand below each other.
            let room = (widths[i] * 2 / 5).max(widths[i].saturating_sub(extent.text));
            for piece in rows.iter_mut().map(|row| &mut row[i]) {
                piece.guide = shown::before(piece.cell, room);
            }
        }
        mark_lower_bounds(&mut rows, &roles, &widths);
        Sheet {
            columns,
            rows,
            widths,
        }
    }

    // `None` where the table has no such column.
    pub fn shows(&self, key: &str) -> Option<bool> {
        let place = self.columns.iter().position(|column| column.key == key)?;
        Some(self.widths[place] > 0)
    }

    // It says what another column is at most.
    pub fn is_bound(&self, key: &str) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.key == key && column.role == Role::Bound)
    }

    fn named(&self) -> impl Iterator<Item = usize> + use<> {
        let is_named = |column: &Column| column.role == Role::Name;
        let shown = self.columns.iter().zip(&self.widths).enumerate();
        let named: Vec<usize> = shown
            .filter(|(_, (column, width))| is_named(column) && **width > 0)
            .map(|(place, _)| place)
            .collect();
        named.into_iter()
    }

    // Each with the columns that there are for it.
    pub fn names(&self) -> impl Iterator<Item = (&Shown<'t>, usize)> {
        self.named().flat_map(move |place| {
            self.rows.iter().map(move |row| {
                let piece = &row[place];
                let room = self.widths[place].saturating_sub(display_width(&piece.guide));
                (&piece.text, room)
            })
        })
    }

    // Takes as many names from `shown`, in the same order, to be written in place of those.
    pub fn set_names(&mut self, shown: &mut impl Iterator<Item = String>) {
        for place in self.named() {
            for (row, name) in self.rows.iter_mut().zip(&mut *shown) {
                row[place].text = Shown::One(name.into());
            }
        }
    }

    pub fn write(&self, out: &mut dyn Write, options: &Options) -> io::Result<()> {
        let title = |column: &'t Column| Piece {
            cell: &Cell::Nothing,
            guide: String::new(),
            text: Shown::One(shown::title(column).into()),
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
    match cell {
        Cell::Name(name) if name.is_faint => style = TITLE,
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
        cell,
        guide: shown::before(cell, usize::MAX),
        text: Shown::of(cell, unit),
        style,
    }
}

fn in_tree(cell: &Cell) -> bool {
    matches!(cell, Cell::Name(name) if matches!(name.guide, Guide::Tree { .. }))
}

// They can be larger, where the column that says how large is left out.
fn mark_lower_bounds(rows: &mut [Vec<Piece>], roles: &[Role], widths: &[usize]) {
    for bound in (1..roles.len()).filter(|&i| roles[i] == Role::Bound && widths[i] == 0) {
        for row in rows.iter_mut().filter(|row| row[bound].text.width() > 0) {
            let text = format!("{AT_LEAST}{}", row[bound - 1].text.whole());
            row[bound - 1].text = Shown::One(text.into());
        }
    }
}

// 0 for a column that is left out.
fn fit(roles: &[Role], extents: &[Extent], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = extents.iter().map(|extent| extent.whole).collect();
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
    let all_names: usize = names.iter().map(|&i| extents[i].whole).sum();
    let guides: usize = { names.iter() }
        .map(|&i| extents[i].guide.min(MIN_GUIDE))
        .sum();
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
    // A figure goes with what it is at most.
    let drop_figure = |widths: &mut Vec<usize>, i: usize| {
        widths[i] = 0;
        if roles.get(i + 1) == Some(&Role::Bound) {
            widths[i + 1] = 0;
        }
    };
    for i in (1..roles.len()).filter(|&i| roles[i] == Role::Bound) {
        if widths[i - 1] == 0 {
            widths[i] = 0;
        }
    }
    for &i in figures.iter().skip(MIN_FIGURES).rev() {
        if others(&widths) + all_names.min(POOR_NAME + guides) > width {
            drop_figure(&mut widths, i);
        }
    }
    for i in of_role(Role::Bound).rev() {
        if others(&widths) + all_names.min(MIN_NAME + guides) > width && widths[i] > 0 {
            widths[i] = 0;
            widths[i - 1] = widths[i - 1].max(extents[i - 1].text + display_width(AT_LEAST));
        }
    }
    for &i in figures.iter().skip(1).rev() {
        if others(&widths) + all_names.min(MIN_NAME + guides) > width {
            drop_figure(&mut widths, i);
        }
    }
    // What a short name leaves over is for the longer ones.
    let mut room = width.saturating_sub(others(&widths));
    names.sort_by_key(|&i| widths[i]);
    for (place, &i) in names.iter().enumerate() {
        widths[i] = widths[i].min((room / (names.len() - place)).max(LEAST_NAME));
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
        let room = width.saturating_sub(display_width(&piece.guide));
        let text = match role {
            Role::Name => piece.text.whole(),
            Role::Code => Cow::Owned(without_end(&piece.text.whole(), room).into_owned()),
            _ => piece.text.shortened(room),
        };
        let used = display_width(&piece.guide) + display_width(&text);
        let right = matches!(role, Role::Figure | Role::Spare | Role::Bound | Role::Heat);
        let padding = width.saturating_sub(used);
        if right {
            spaces += padding;
        }
        if used > 0 {
            write!(out, "{:spaces$}", "")?;
            spaces = 0;
            styled(out, options, TITLE, &piece.guide)?;
            styled(out, options, piece.style, &text)?;
        }
        if !right {
            spaces += padding;
        }
    }
    writeln!(out)
}
