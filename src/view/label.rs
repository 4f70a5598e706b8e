//! Marks of functions and calls, and columns that identify functions.

use super::Subject;
use super::page::Block;
use super::table::{Cell, Column, Role, Table};
use crate::callgraph::CallArc;
use crate::names::INFERRED;
use crate::profile::{FunctionId, FunctionKind};

/// What stands behind a call that no stack was recorded with.
pub(super) const BY_CODE: &str = " (inferred)";

/// What that means.
pub(super) const LEGEND_OF_CALLS: &str =
    "(inferred): few or no stacks were recorded with this call; it was restored from the code.";

/// What stands behind a caller and a callee between which frames are missing.
pub(super) const ACROSS_GAP: &str = " (frames missing)";

/// What that means.
pub(super) const LEGEND_OF_GAPS: &str = "(frames missing): frames between the two were not recorded; the caller called another function, \
    which led to this one.";

/// What stands behind a callee that is next on the stack where its caller calls through a pointer.
pub(super) const THROUGH_POINTER: &str = " (through a pointer)";

/// What that means.
pub(super) const LEGEND_OF_POINTERS: &str = "(through a pointer): next on the stack; the function that was called may have jumped on to this one.";

/// Returns a call as text, with what is to be said of it.
pub(super) fn call(text: &str, arc: &CallArc) -> String {
    let mark = if arc.is_gap() {
        ACROSS_GAP
    } else if arc.is_through_pointer() {
        THROUGH_POINTER
    } else if is_inferred(arc.inferred, arc.weight) {
        BY_CODE
    } else {
        ""
    };
    format!("{text}{mark}")
}

/// The legends of the marks behind these calls.
pub(super) fn legends<'a>(
    arcs: impl Iterator<Item = &'a CallArc> + Clone,
) -> impl Iterator<Item = Block> {
    let is_marked = |arc: &CallArc| {
        !arc.is_gap() && !arc.is_through_pointer() && is_inferred(arc.inferred, arc.weight)
    };
    let by_code = arcs
        .clone()
        .any(is_marked)
        .then(|| Block::Restored(LEGEND_OF_CALLS.into()));
    let line = |is_said: bool, text: &str| is_said.then(|| Block::Line(text.into()));
    let gaps = line(arcs.clone().any(|arc| arc.is_gap()), LEGEND_OF_GAPS);
    let pointers = arcs.clone().any(|arc| arc.is_through_pointer());
    let pointers = line(pointers, LEGEND_OF_POINTERS);
    by_code.into_iter().chain(gaps).chain(pointers)
}

/// Whether something with this weight is marked: at least half of it rests on restored frames.
pub fn is_inferred(inferred: u64, weight: u64) -> bool {
    inferred > 0 && inferred >= weight.saturating_sub(inferred)
}

/// The name of a function, marked if it [is inferred](is_inferred).
pub(super) fn cell(name: &str, inferred: u64, weight: u64) -> Cell {
    let text = name.to_owned();
    if is_inferred(inferred, weight) {
        Cell::Branch {
            guide: INFERRED.into(),
            text,
        }
    } else {
        Cell::Text(text)
    }
}

/// A text, with the mark before it if what it tells of [is inferred](is_inferred).
pub(super) fn marked(text: &str, inferred: u64, weight: u64) -> String {
    let mark = if is_inferred(inferred, weight) {
        INFERRED
    } else {
        ""
    };
    format!("{mark}{text}")
}

/// What the mark means, where there are any.
pub(super) fn legend(is_marked: bool) -> Option<Block> {
    let text = "≈f: in most samples here, f was not recorded; it was restored because every path through \
                the code leads through it.";
    is_marked.then(|| Block::Restored(text.into()))
}

/// The label of a function in a table for machines, where its plain name has a column of its own.
pub(super) fn column() -> Column {
    Column::new("label", "label", Role::Aside)
}

/// That of the caller, in a row on a call.
pub(super) fn column_of_caller() -> Column {
    Column::new("caller_label", "caller's label", Role::Aside)
}

/// A table for machines with, behind its columns, what the linker calls the functions of each row and where they
/// begin: of the caller, if the rows have `of_callers`, then of the function.
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

/// A table of functions for machines: the plain name in the column `name`, and behind the others what
/// tells functions of one name apart. `rows` are the function and the label of each row.
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
