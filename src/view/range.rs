//! Totals that are known only as a range: stacks were cut, and the callers outside of the cut are
//! not known. See [`cut`](crate::analysis::cut).

use super::number;
use super::page::Block;
use super::rows;
use super::table::{Cell, Column, Role, Table};
use super::{Ranges, Subject};
use crate::analysis::cut::AtMost;
use crate::profile::RowKind;

/// The key of the column for people.
pub const KEY: &str = "total_max_percent";

/// Narrower ranges are stated in one sentence, in hundredths of a percent of all weight. It is the
/// share of samples from which on their caveats have notes of their own, too.
const NARROW: u128 = 500;

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
pub(super) fn behind(subject: &Subject, most: Cell, sign: &str) -> String {
    match most {
        _ if subject.ranges == Ranges::Hidden => String::new(),
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
            " ?: unknown whether it can be that large (indirect calls, or code that was not read); \
             it cannot be larger."
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
            "at most: the total if the {row} was on every incomplete stack that may lack \
             it.{unknown}"
        ),
    })
}

/// A page without its ranges, where they are not shown.
pub(super) fn settled(subject: &Subject, blocks: Vec<Block>) -> Vec<Block> {
    if subject.ranges == Ranges::Shown {
        return in_brief(blocks);
    }
    let without = |block: Block| match block {
        Block::Legend { key: KEY, .. } => None,
        Block::Table(table) => Some(Block::Table(table.without(&[KEY]))),
        other => Some(other),
    };
    blocks.into_iter().filter_map(without).collect()
}

/// States the ranges of a page in a sentence, in place of the column and its legend, where all of
/// them are narrow: a column of nearly the same figures once more would hide the ones that matter.
fn in_brief(mut blocks: Vec<Block>) -> Vec<Block> {
    let tables = blocks.iter().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    let widest = tables.flat_map(widths).max().unwrap_or(0);
    let legend = { blocks.iter() }.position(|it| matches!(it, Block::Legend { key: KEY, .. }));
    let Some(legend) = legend.filter(|_| widest < NARROW) else {
        return blocks;
    };
    let points = format!("{}.{:02}", widest / 100, widest % 100);
    let text = format!("Incomplete stacks may add up to {points} points to a total.");
    blocks[legend] = Block::Line(text);
    for block in &mut blocks {
        if let Block::Table(table) = block {
            *table = std::mem::take(table).without(&[KEY]);
        }
    }
    blocks
}

/// How wide the ranges of a table are, in hundredths of a percent of all weight, rounded up. A
/// total stands directly before what it is at most.
fn widths(table: &Table) -> impl Iterator<Item = u128> {
    let place = table.columns.iter().position(|column| column.key == KEY);
    let rows = place.map(|place| table.rows.iter().map(move |row| &row[place - 1..=place]));
    rows.into_iter().flatten().filter_map(|cells| match cells {
        [
            Cell::Share { part: total, .. },
            Cell::Share { part, whole } | Cell::Limit { part, whole },
        ] => Some((u128::from(part - total) * 10_000).div_ceil(u128::from(*whole))),
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::{Block, Cell, Column, KEY, Role, Table, column, in_brief};

    /// A page with a total of 200 in 1000, which is at most `most`.
    fn page(most: Cell) -> Vec<Block> {
        let total = Column::new("total_percent", "total %", Role::Figure);
        let mut table = Table::new(vec![total, column()]);
        let share = |part| Cell::Share { part, whole: 1000 };
        table.rows.push(vec![share(200), most]);
        table.rows.push(vec![share(100), Cell::Nothing]);
        let text = "at most: …".into();
        vec![Block::Table(table), Block::Legend { key: KEY, text }]
    }

    #[test]
    fn narrow_ranges_are_one_sentence() {
        let most = |part| Cell::Limit { part, whole: 1000 };
        let blocks = in_brief(page(most(249)));
        let [Block::Table(table), Block::Line(text)] = &blocks[..] else {
            panic!("{blocks:?}");
        };
        assert_eq!(table.columns.len(), 1);
        assert_eq!(
            text,
            "Incomplete stacks may add up to 4.90 points to a total."
        );
        assert_eq!(in_brief(page(most(250))), page(most(250)));
    }

    #[test]
    fn the_sentence_is_rounded_up() {
        let part = 200 * 1000 + 1;
        let mut blocks = page(Cell::Nothing);
        if let Block::Table(table) = &mut blocks[0] {
            let share = |part| Cell::Share {
                part,
                whole: 1_000_000,
            };
            table.rows[0] = vec![share(part - 1), share(part)];
        }
        let sentence = "Incomplete stacks may add up to 0.01 points to a total.".into();
        assert_eq!(in_brief(blocks)[1], Block::Line(sentence));
    }
}
