//! Functions with their self and total weights.

use proftool::analysis::flat::Summary;
use proftool::profile::RowKind;
use proftool::view::Subject;
use proftool::view::flat::{self, Options, Sort};
use proftool::view::number;

use super::listing::{Line, Listing, Look, key_of};
use super::wish::Search;

// The functions, as `proftool flat` lists them: up to a limit, or all that match a search.
pub fn listing(subject: &Subject, sort: Sort, limit: Option<usize>, search: &Search) -> Listing {
    let summary = Summary::of(subject.profile, subject.selection);
    let options = Options {
        sort,
        // A search also finds functions that the limit would hide.
        limit: limit.filter(|_| !search.is_on()),
        ..Options::default()
    };
    let mut flat = flat::arrange(subject, &summary, &options);
    let all = flat.rows.len() + flat.hidden;
    let found = search.among(subject);
    flat.rows.retain(|row| found.has(row.function));
    let mut left_out = vec!["samples", "inferred", "total_max"];
    left_out.extend(flat::CALLS_IN_ONE);
    if flat.rows.iter().all(|row| row.module.is_empty()) {
        left_out.push("module");
    }
    if subject.profile.rows == RowKind::Module && !left_out.contains(&"module") {
        left_out.push("module");
    }
    let table = flat.with_ranges(subject).without(&left_out);
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
