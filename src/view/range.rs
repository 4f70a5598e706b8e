//! Totals that are known only as a range: stacks were cut, and the callers outside of the cut are
//! not known. See [`cut`](crate::analysis::cut).

use super::number;
use super::page::Block;
use super::rows;
use super::table::{Cell, Column, Role, Table};
use crate::analysis::cut::AtMost;
use crate::profile::RowKind;

/// The key of the column for people.
pub const KEY: &str = "total_max_percent";

/// The column for the upper end of a range as a share, where people read it.
pub fn column() -> Column {
    Column::new(KEY, "at most %", Role::Bound)
}

/// The upper end of a range for people: empty where the total is exact, as far as its digits show.
pub fn cell(total: u64, most: AtMost, whole: u64) -> Cell {
    let part = most.weight;
    let digits = |part| number::percent(part, whole, 2);
    match most.unknown {
        _ if part <= total || digits(part) == digits(total) => Cell::Nothing,
        None => Cell::Share { part, whole },
        Some(_) => Cell::Limit { part, whole },
    }
}

/// The upper end of a range behind a share, with this percent sign; empty where the total is exact.
pub(super) fn behind(most: Cell, sign: &str) -> String {
    match most {
        Cell::Share { part, whole } => {
            format!(", at most {}{sign}", number::percent(part, whole, 2))
        }
        Cell::Limit { part, whole } => format!(", at most {}{sign}", number::limit(part, whole)),
        _ => String::new(),
    }
}

/// The upper end of a range for machines: empty where it is not known.
pub(super) fn weight(most: AtMost) -> Cell {
    most.known().map_or(Cell::Nothing, Cell::Weight)
}

/// What the column means in one line, where it is shown.
pub(super) fn short_legend<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Option<Block> {
    let cells: Vec<&Cell> = cells.into_iter().collect();
    let is_unknown = { cells.iter() }.any(|cell| matches!(cell, Cell::Limit { .. }));
    let unknown = if is_unknown { "; ?: unsure" } else { "" };
    legend(RowKind::Function, cells).map(|_| Block::Legend {
        key: KEY,
        text: format!(
            "at most: if every incomplete stack that may lack a function had it{unknown}."
        ),
    })
}

/// What the column means, where these of its cells are shown.
pub(super) fn legend<'a>(
    kind: RowKind,
    cells: impl IntoIterator<Item = &'a Cell>,
) -> Option<Block> {
    let (mut is_shown, mut is_unknown) = (false, false);
    for cell in cells {
        is_shown |= matches!(cell, Cell::Share { .. } | Cell::Limit { .. });
        is_unknown |= matches!(cell, Cell::Limit { .. });
    }
    let unknown = match (is_unknown, kind.replaces_functions()) {
        (true, false) => {
            " ?: unknown whether it can be that large (indirect calls, or code that was not read); it \
             cannot be larger."
        }
        (true, true) => " ?: unknown whether it can be that large; it cannot be larger.",
        (false, _) => "",
    };
    let row = if kind.replaces_functions() {
        rows::noun(kind).0
    } else {
        "function"
    };
    is_shown.then(|| Block::Legend {
        key: KEY,
        text: format!(
            "at most: the total if the {row} was on every incomplete stack that may lack it.{unknown}"
        ),
    })
}

/// The cells of the column in a table that has it.
pub(super) fn cells(table: &Table) -> impl Iterator<Item = &Cell> {
    let place = table.columns.iter().position(|column| column.key == KEY);
    let rows = table.rows.iter();
    rows.filter_map(move |row| row.get(place?))
}

/// The table without the column, if no cell of it is filled.
pub fn if_filled(table: Table) -> Table {
    let is_filled = cells(&table).any(|cell| *cell != Cell::Nothing);
    if is_filled {
        table
    } else {
        table.without(&[KEY])
    }
}
