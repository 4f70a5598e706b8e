//! Callers and callees in a page: the entries of the listing, and the figures of details.
//!
//! The listing is in two parts, as columns: of each entry what it is about and its number of lines,
//! in the order of the listing, so that the place of an entry is its index; and of each line its
//! figures.

use std::collections::HashMap;
use std::io;

use serde::Serialize;

use crate::analysis::detail::pairs::Pair;
use crate::analysis::graph::Entry;
use crate::callgraph::Origin;
use crate::profile::{Counts, FunctionId};
use crate::view::graph::{GraphView, Line, Relation, Who};

use super::packed::{Columns, maybe};

#[derive(Serialize)]
pub(super) struct Listing {
    // Texts of lines: numbers of calls, evidence.
    texts: Vec<String>,
    // The number of the evidence that says nothing new: samples.
    sampled: Option<u64>,
    columns: String,
}

const COLUMNS: usize = 9;

impl Listing {
    pub fn of(view: &GraphView<'_>, place: &dyn Fn(FunctionId) -> u64) -> io::Result<Listing> {
        let mut texts = Texts::default();
        let mut entries: Vec<(u64, u64)> = Vec::new();
        let mut rows: Vec<[u64; COLUMNS]> = Vec::new();
        let code = |entry: Entry| match entry {
            Entry::Function(id) => 2 * place(id),
            Entry::Cycle(cycle) => 2 * view.summary.number(cycle) as u64 + 1,
        };
        for &entry in &view.ranked {
            let lines = view.lines(entry);
            entries.push((code(entry), lines.len() as u64));
            rows.extend(lines.iter().map(|line| row(line, &code, &mut texts)));
        }
        let mut columns = Columns::new();
        columns.number(entries.len() as u64)?;
        columns.column(entries.iter().map(|entry| entry.0))?;
        columns.column(entries.iter().map(|entry| entry.1))?;
        for column in 0..COLUMNS {
            columns.column(rows.iter().map(|row| row[column]))?;
        }
        Ok(Listing {
            sampled: texts.sampled,
            texts: texts.texts,
            columns: columns.finish()?,
        })
    }
}

fn row(line: &Line, code: &dyn Fn(Entry) -> u64, texts: &mut Texts) -> [u64; COLUMNS] {
    let relation = match line.relation {
        Relation::Caller => 0,
        Relation::Primary => 1,
        Relation::Member => 2,
        Relation::Callee => 3,
    };
    let who = match line.who {
        Who::Spontaneous => 0,
        Who::Unknown | Who::More(_) => 1,
        Who::Entry(entry) => 2 + code(entry),
    };
    // What no stack shows has no weight.
    let is_seen = line.origin != Some(Origin::Code);
    let whole = |part: f64| part.round() as u64;
    let portion = line.portion.filter(|_| is_seen);
    [
        relation,
        who,
        maybe(line.total.filter(|_| is_seen).map(whole)),
        maybe(portion.map(|portion| whole(portion.self_weight))),
        portion.map_or(0, |portion| whole(portion.children)),
        maybe(line.samples),
        { line.called.as_ref() }.map_or(0, |called| texts.number(&called.text)),
        line.evidence.map_or(0, |text| texts.evidence(text, line)),
        u64::from(line.is_inferred),
    ]
}

#[derive(Default)]
struct Texts {
    texts: Vec<String>,
    numbers: HashMap<String, u64>,
    sampled: Option<u64>,
}

impl Texts {
    fn evidence(&mut self, text: &str, line: &Line) -> u64 {
        let number = self.number(text);
        if line.origin == Some(Origin::Observed) && line.samples.is_some_and(|it| it > 0) {
            self.sampled = Some(number);
        }
        number
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.texts.push(text.to_owned());
        let number = self.texts.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

// The number of pairs, callers, callees, weights, marks (1 the caller is called by the callee
// again, 2 the callee calls the caller again, 4 restored from the code, 8 inlined), and where calls
// were counted, the number of calls: 0 where it is not known, or twice the number and 1, and 1 more
// where there may have been more calls.
pub(super) fn pairs(
    pairs: &[Pair],
    counts: Option<&Counts>,
    place: &dyn Fn(FunctionId) -> u64,
) -> io::Result<String> {
    let mut columns = Columns::new();
    columns.number(pairs.len() as u64)?;
    columns.column(pairs.iter().map(|pair| place(pair.caller)))?;
    columns.column(pairs.iter().map(|pair| place(pair.callee)))?;
    columns.column(pairs.iter().map(|pair| pair.weight))?;
    columns.column(pairs.iter().map(|pair| {
        u64::from(pair.caller_recurses)
            | u64::from(pair.callee_recurses) << 1
            | u64::from(pair.inferred) << 2
            | u64::from(pair.inlined) << 3
    }))?;
    if let Some(counts) = counts {
        columns.column(pairs.iter().map(|pair| {
            let counted = counts.between(Some(pair.caller), pair.callee);
            counted.map_or(0, |row| row.calls * 2 + 1 + u64::from(row.is_least))
        }))?;
    }
    columns.finish()
}
