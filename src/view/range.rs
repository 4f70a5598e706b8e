//! Totals that are known only as a range: stacks were cut, and who is outside of the cut is not
//! known. See [`cut`](crate::analysis::cut).

use super::page::Block;
use super::table::{Cell, Column, Role};

/// The key of the column for people.
pub(super) const KEY: &str = "total_max_percent";

/// The column for the upper end of a range as a share, where people read it.
pub(super) fn column() -> Column {
    Column::new(KEY, "at most %", Role::Figure)
}

/// The upper end of a range for people: empty where the total is exact.
pub(super) fn cell(total: u64, most: u64, whole: u64) -> Cell {
    match most > total {
        true => Cell::Share { part: most, whole },
        false => Cell::Nothing,
    }
}

/// What the column means, where it is shown.
pub(super) fn legend(is_shown: bool) -> Option<Block> {
    is_shown.then(|| {
        Block::Line(
            "at most: with the samples whose stacks are cut inside of recursion that the function \
             can lead to; whether it stood outside of the cut is not known."
                .into(),
        )
    })
}
