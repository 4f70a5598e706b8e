//! Functions with their self and total weights.

use proftool::analysis::flat::Summary;
use proftool::compare::Change;
use proftool::profile::RowKind;
use proftool::view::Subject;
use proftool::view::flat::{self, Options};
use proftool::view::number;
use proftool::view::table::{Cell, Column, Role, Table};

use super::changes::Changes;
use super::listing::{Line, Listing, Look, key_of};
use super::wish::Wish;

// The functions, as `proftool flat` lists them: up to a limit, or all that match a search.
pub fn listing(subject: &Subject, wish: &Wish) -> Listing {
    let Wish { sort, search, .. } = wish;
    // A search also finds functions that the limit would hide.
    let limit = wish.limit.filter(|_| !search.is_on());
    let event = subject.selection.event();
    let changes = wish.changes.as_deref();
    let changes = changes.filter(|it| it.comparison.event == *event);
    let ordered = changes.filter(|_| wish.by_change);
    let summary = Summary::of(subject.profile, subject.selection);
    let options = Options {
        sort: *sort,
        limit: limit.filter(|_| ordered.is_none()),
        ..Options::default()
    };
    let mut flat = flat::arrange(subject, &summary, &options);
    let all = flat.rows.len() + flat.hidden;
    let found = search.among(subject);
    flat.rows.retain(|row| found.has(row.function));
    if let Some(changes) = ordered {
        // A comparison has changes first, the largest first.
        let place = |row: &flat::Row| changes.places[row.function].unwrap_or(usize::MAX);
        flat.rows.sort_by_key(place);
        let hidden = flat.rows.len().saturating_sub(limit.unwrap_or(usize::MAX));
        flat.rows.truncate(flat.rows.len() - hidden);
        flat.hidden = hidden;
    }
    let mut left_out = vec!["samples", "inferred", "total_max"];
    left_out.extend(flat::CALLS_IN_ONE);
    if flat.rows.iter().all(|row| row.module.is_empty()) {
        left_out.push("module");
    }
    if subject.profile.rows == RowKind::Module && !left_out.contains(&"module") {
        left_out.push("module");
    }
    let mut table = flat.with_ranges(subject).without(&left_out);
    if let Some(changes) = changes {
        add_changes(&mut table, &flat.rows, changes);
    }
    let lines: Vec<Line> = flat
        .rows
        .iter()
        .zip(table.rows)
        .map(|(row, cells)| Line {
            key: key_of("flat", subject.profile, row.function),
            function: Some(row.function),
            cells,
            look: Look::Plain,
            branch: None,
        })
        .collect();
    let count = |n: usize| number::grouped(n as u64);
    let (one, several) = subject.noun();
    let noun = if all == 1 { one } else { several };
    Listing {
        columns: table.columns,
        about: vec![if search.is_on() {
            format!("{} of {} {noun}", count(lines.len()), count(all))
        } else {
            format!("{} {noun}", count(all))
        }],
        lines,
        hidden: flat.hidden,
        first: 0,
    }
}

// Both means and the verdict, before the names.
fn add_changes(table: &mut Table, rows: &[flat::Row], changes: &Changes) {
    let is_name = |column: &Column| column.role == Role::Name;
    let at = table.columns.iter().position(is_name).unwrap_or_default();
    let columns = [
        Column::new("base", "base/run", Role::Figure),
        Column::new("new", "new/run", Role::Figure),
        // A word as narrow as a figure.
        Column::new("verdict", "verdict", Role::Figure),
    ];
    table.columns.splice(at..at, columns);
    for (cells, row) in table.rows.iter_mut().zip(rows) {
        let change = changes.of(row.function);
        let weight = |mean: f64| Cell::Weight(mean.max(0.0).round() as u64);
        let verdict = |change: &Change| Cell::Text(change.verdict.name().to_owned());
        let of_change = [
            change.map(|it| weight(it.base)),
            change.map(|it| weight(it.new)),
            change.map(verdict),
        ];
        cells.splice(at..at, of_change.map(|cell| cell.unwrap_or(Cell::Nothing)));
    }
}
