//! Marks of functions and calls, and columns that identify functions.

use super::Subject;
use super::page::{Block, Meaning};
use super::table::{Cell, Column, Role, Table};
use crate::callgraph::CallArc;
use crate::names::{Label, Mark};
use crate::profile::{FunctionId, FunctionKind};

/// What is to be said of a call.
pub(super) fn mark(arc: &CallArc) -> Option<Mark> {
    if arc.is_gap() {
        Some(Mark::AcrossGap)
    } else if arc.is_through_pointer() {
        Some(Mark::ThroughPointer)
    } else {
        is_inferred(arc.inferred, arc.weight).then_some(Mark::ByCode)
    }
}

/// The legends of the marks behind these calls.
pub(super) fn legends<'a>(arcs: impl Iterator<Item = &'a CallArc>) -> impl Iterator<Item = Block> {
    let marks: Vec<Mark> = arcs.filter_map(mark).collect();
    let meanings = [
        (Mark::ByCode, Meaning::ByCode),
        (Mark::AcrossGap, Meaning::AcrossGap),
        (Mark::ThroughPointer, Meaning::ThroughPointer),
    ];
    let shown = meanings
        .into_iter()
        .filter(move |(mark, _)| marks.contains(mark));
    shown.map(|(_, meaning)| Block::Meaning(meaning))
}

/// Whether something with this weight is marked: at least half of it rests on restored frames.
pub fn is_inferred(inferred: u64, weight: u64) -> bool {
    inferred > 0 && inferred >= weight.saturating_sub(inferred)
}

/// The label of a function, marked if it [is inferred](is_inferred).
pub fn marked(label: Label, inferred: u64, weight: u64) -> Label {
    Label {
        is_restored: is_inferred(inferred, weight),
        ..label
    }
}

/// What the mark means, where there are any.
pub(super) fn legend(is_marked: bool) -> Option<Block> {
    is_marked.then_some(Block::Meaning(Meaning::Restored))
}

/// The label of a function in a table for machines, where its plain name has a column of its own.
pub(super) fn column() -> Column {
    Column::new("label", "label", Role::Aside)
}

/// That of the caller, in a row on a call.
pub(super) fn column_of_caller() -> Column {
    Column::new("caller_label", "caller's label", Role::Aside)
}

/// A table for machines with, behind its columns, what the linker calls the functions of each row
/// and where they begin: of the caller, if the rows have `of_callers`, then of the function.
pub(super) fn with_addresses(
    mut table: Table,
    subject: &Subject,
    of_callers: OfCallers,
    rows: impl IntoIterator<Item = [Option<FunctionId>; 2]>,
) -> Table {
    let keys = [
        "caller_linkage_name",
        "caller_address",
        "linkage_name",
        "address",
    ];
    let left_out = match of_callers {
        OfCallers::Shown => 0,
        OfCallers::None => 2,
    };
    let aside = keys.map(|key| Column::new(key, key, Role::Aside));
    table.columns.extend(aside.into_iter().skip(left_out));
    for (row, functions) in table.rows.iter_mut().zip(rows) {
        let cells = functions.into_iter().flat_map(|id| {
            let function = id.map(|id| &subject.profile.functions[id]);
            let name = function.map(|it| it.linkage_name.as_deref().unwrap_or(&it.name));
            let address = function.and_then(|it| it.address);
            [
                name.map_or(Cell::Nothing, |name| Cell::Text(name.to_owned())),
                address.map_or(Cell::Nothing, |it| Cell::Text(format!("{it:#x}"))),
            ]
        });
        row.extend(cells.skip(left_out));
    }
    table
}

/// Whether rows are about calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfCallers {
    /// Each row has a caller and a function.
    Shown,
    /// Each row has only a function.
    None,
}

/// A table of functions for machines: the plain name in the column `name`, and behind the others
/// what tells functions of one name apart. `rows` are the function and the label of each row.
pub(super) fn with_identities<'a>(
    mut table: Table,
    subject: &Subject,
    rows: impl Iterator<Item = (FunctionId, &'a str)>,
) -> Table {
    let place = table.columns.iter().position(|column| column.key == "name");
    table.columns.push(column());
    let keys = ["linkage_name", "address", "decl_file", "decl_line"];
    let aside = keys.map(|key| Column::new(key, key, Role::Aside));
    table.columns.extend(aside);
    for (row, (id, label)) in table.rows.iter_mut().zip(rows) {
        let function = &subject.profile.functions[id];
        if let Some(place) = place {
            row[place] = Cell::Text(subject.plain_name(id).into_owned());
        }
        let text = |text: &str| Cell::Text(text.to_owned());
        let is_function = function.kind != FunctionKind::Row;
        let line = function.declared_at.as_ref().filter(|_| is_function);
        row.extend([
            text(label),
            text(function.linkage_name.as_deref().unwrap_or(&function.name)),
            (function.address).map_or(Cell::Nothing, |address| text(&format!("{address:#x}"))),
            line.map_or(Cell::Nothing, |line| text(&line.file)),
            line.map_or(Cell::Nothing, |line| Cell::Count(line.line.into())),
        ]);
    }
    table
}
