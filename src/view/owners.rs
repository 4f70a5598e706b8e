//! Time by crate, library or directory.

use super::page::{Block, HiddenBy, HiddenRows, Page};
use super::table::{Cell, Column, Role, Table};
use super::{Figures, Subject, caveats, number};
use crate::analysis::owners::{Charged, Share};

/// The name of the row of stacks that are cut before any frame of a project or library.
pub const CUT: &str = "[cut before any such frame]";

/// What the charge of a row means.
const LEGEND: &str =
    "Each sample counts for its innermost frame outside of the kernel and of standard libraries.";

/// The name of a row.
pub fn name<'a>(charged: &'a Charged, share: &Share) -> &'a str {
    share
        .owner
        .map_or(CUT, |owner| &charged.owners.owners[owner].name)
}

/// What a row is.
pub fn kind(charged: &Charged, share: &Share) -> &'static str {
    share
        .owner
        .map_or("cut", |owner| charged.owners.owners[owner].kind.name())
}

/// The rows as a table.
pub fn table(subject: &Subject, charged: &Charged, limit: Option<usize>) -> Table {
    let mut table = Table::new(vec![
        Column::new("percent", "%", Role::Heat),
        Column::new("on_stack_percent", "on stack %", Role::Figure),
        Column::new("weight", "weight", Role::Figure),
        Column::new("total", "on stack", Role::Figure),
        Column::new("samples", "samples", Role::Figure),
        Column::new("name", "crate or module", Role::Name),
        Column::new("kind", "kind", Role::Aside),
    ]);
    let whole = subject.selection.total();
    for share in charged.shares.iter().take(limit.unwrap_or(usize::MAX)) {
        let part = |part| Cell::Share { part, whole };
        let of_stacks = |cell: Cell| match share.owner {
            Some(_) => cell,
            None => Cell::Nothing,
        };
        table.rows.push(vec![
            part(share.weight),
            of_stacks(part(share.total)),
            Cell::Weight(share.weight),
            of_stacks(Cell::Weight(share.total)),
            Cell::Count(share.samples),
            Cell::Text(name(charged, share).to_owned()),
            Cell::Text(kind(charged, share).to_owned()),
        ]);
    }
    table
}

/// The table and what is to be said of it, as part of a page.
pub(super) fn blocks(subject: &Subject, charged: &Charged, limit: Option<usize>) -> Vec<Block> {
    let mut left_out = vec!["total", "samples"];
    if subject.figures == Figures::Percent {
        left_out.push("weight");
    }
    let mut blocks = vec![Block::Table(
        table(subject, charged, limit).without(&left_out),
    )];
    let hidden = charged
        .shares
        .len()
        .saturating_sub(limit.unwrap_or(usize::MAX));
    let noun = ("row", "rows");
    blocks.extend(HiddenRows::block(hidden, noun, HiddenBy::Limit));
    let share = number::percent(charged.through_own, subject.selection.total(), 2);
    let through = if charged.owners.has_own() {
        format!(" Through the project's code: {share} %.")
    } else {
        String::new()
    };
    blocks.push(Block::Line(format!("{LEGEND}{through}")));
    blocks
}

/// The page for people.
pub fn page(subject: &Subject, charged: &Charged, limit: Option<usize>) -> Page {
    let mut blocks = vec![Block::Line(subject.headline()), Block::Space];
    blocks.extend(self::blocks(subject, charged, limit));
    blocks.extend(caveats::foot_of(subject));
    Page {
        unit: subject.selection.event().unit.clone(),
        blocks,
    }
}
