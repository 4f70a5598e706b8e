//! The names of rows that are not functions.

use super::Subject;
use super::page::Block;
use super::table::{Cell, Column, Role, Second, Table};
use crate::profile::{FunctionId, FunctionKind, RowKind};

/// The heading of a column of rows.
pub(super) fn title(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Function => "function",
        RowKind::Module => "module",
        RowKind::File => "source file",
        RowKind::Line => "source line",
        RowKind::Address => "address",
        RowKind::Thread => "thread",
        RowKind::Command => "command",
        RowKind::Event => "event",
    }
}

/// One row, and several.
pub(super) fn noun(kind: RowKind) -> (&'static str, &'static str) {
    match kind {
        RowKind::Function => ("function", "functions"),
        RowKind::Module => ("module", "modules"),
        RowKind::File => ("file", "files"),
        RowKind::Line => ("line", "lines"),
        RowKind::Address => ("address", "addresses"),
        RowKind::Thread => ("thread", "threads"),
        RowKind::Command => ("command", "commands"),
        RowKind::Event => ("event", "events"),
    }
}

/// The column with the lines of a tree.
pub(super) fn tree_column(kind: RowKind, is_bottom_up: bool) -> Column {
    let title = match kind {
        RowKind::Thread => "thread, function",
        RowKind::Command => "command, function",
        RowKind::Event => "event, function",
        kind => title(kind),
    };
    let second = Second::Below(if is_bottom_up { "called by" } else { "calls" });
    Column::new("name", title, Role::Name).with(second)
}

/// What a reader has to know of rows that stand for several frames.
pub(super) fn merged(kind: RowKind) -> Option<Block> {
    let text = match kind {
        RowKind::Module => {
            "Calls within a module are not shown: the caller and the callee are one frame."
        }
        RowKind::File => {
            "Calls within a file are not shown: the caller and the callee are one frame."
        }
        _ => return None,
    };
    Some(Block::Line(text.into()))
}

/// What rows without a line are, if some of these are.
pub(super) fn unknown(
    subject: &Subject,
    mut rows: impl Iterator<Item = FunctionId>,
) -> Option<Block> {
    let functions = &subject.profile.functions;
    let is_unknown = |id: FunctionId| functions[id].kind == FunctionKind::Unknown;
    let text = match subject.profile.rows {
        RowKind::File => "[no file: M]: code of M without line information, or restored frames.",
        RowKind::Line => "[no line: M]: code of M without line information, or restored frames.",
        _ => return None,
    };
    rows.any(is_unknown).then(|| Block::Line(text.into()))
}

/// The path of a row's file, and its line.
pub fn position<'a>(subject: &Subject<'a>, id: FunctionId) -> (Option<&'a str>, Option<u32>) {
    let profile = subject.profile;
    let function = &profile.functions[id];
    if function.kind != FunctionKind::Row {
        return (None, None);
    }
    match (profile.rows, &function.declared_at) {
        (RowKind::Module, _) => (Some(&profile.modules[function.module].path), None),
        (RowKind::File, _) => (Some(&function.name), None),
        (RowKind::Line, Some(line)) => (Some(&line.file), Some(line.line)),
        _ => (None, None),
    }
}

/// A table of rows for machines, with what they are behind the other columns, where they are no
/// functions.
pub(super) fn with_kinds(
    mut table: Table,
    subject: &Subject,
    rows: impl Iterator<Item = FunctionId>,
) -> Table {
    if subject.profile.rows == RowKind::Function {
        return table;
    }
    let keys = ["kind", "file", "line"];
    let aside = keys.map(|key| Column::new(key, key, Role::Aside));
    table.columns.extend(aside);
    for (row, id) in table.rows.iter_mut().zip(rows) {
        let (file, line) = position(subject, id);
        row.extend([
            Cell::Text(subject.profile.row_name(id).into()),
            file.map_or(Cell::Nothing, |file| Cell::Text(file.to_owned())),
            line.map_or(Cell::Nothing, |line| Cell::Count(line.into())),
        ]);
    }
    table
}
