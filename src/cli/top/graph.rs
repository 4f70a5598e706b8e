//! One function: its callers above it, its callees below.

use proftool::analysis::graph::{self as calls, Summary};
use proftool::profile::FunctionId;
use proftool::view::Subject;
use proftool::view::graph::{self, Options};
use proftool::view::number;

use super::listing::{Key, Line, Listing, Look, key, key_of};
use super::wish::Search;

// The key of the line of the function itself.
pub fn itself() -> Key {
    key("itself")
}

// The function's entry, as `proftool graph --function` lists it.
pub fn listing(subject: &Subject, function: FunctionId, search: &Search) -> Listing {
    let options = Options {
        functions: vec![function],
        ..Options::default()
    };
    let counting = calls::Options::default();
    let summary = Summary::of(subject.profile, subject.selection, &counting);
    let view = graph::arrange(subject, &summary, &options);
    let entry = view.entry(subject, function);
    let table = entry.table;
    let (callers, callees) = (entry.itself, table.rows.len() - entry.itself - 1);
    let found = search.among(subject);
    let mut lines = Vec::new();
    let mut first = 0;
    for (at, (cells, function)) in table.rows.into_iter().zip(entry.functions).enumerate() {
        let is_itself = at == entry.itself;
        let is_found = match function {
            Some(function) => found.has(function),
            None => !search.is_on(),
        };
        // The page is about the function itself, so it stays whatever is searched for.
        if !is_itself && !is_found {
            continue;
        }
        let side = (at > entry.itself, "graph");
        let key = match function {
            _ if is_itself => itself(),
            Some(function) => key_of(side, subject.profile, function),
            None => key((side, at)),
        };
        if is_itself {
            first = lines.len();
        }
        lines.push(Line {
            key,
            function,
            cells,
            look: if is_itself { Look::Chosen } else { Look::Plain },
            branch: None,
        });
    }
    let counted = |n: usize, what: &str| {
        let plural = if n == 1 { "" } else { "s" };
        format!("{} {what}{plural}", number::grouped(n as u64))
    };
    let about = format!(
        "{}, {}",
        counted(callers, "caller"),
        counted(callees, "callee")
    );
    Listing {
        columns: table.columns,
        about: vec![
            view.name(function).to_owned(),
            if lines.len() == callers + callees + 1 {
                about
            } else {
                format!("{} of {about}", lines.len() - 1)
            },
        ],
        lines,
        hidden: 0,
        first,
    }
}
