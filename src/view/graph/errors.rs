//! The errors of gprof's estimate: the measurement next to what counts of calls would have given.

use std::cmp::Reverse;

use super::GraphView;
use crate::analysis::error::{ArcError, SIGNIFICANT};
use crate::base::IdVec;
use crate::callgraph::ArcId;
use crate::profile::FunctionId;
use crate::view::number::rounded;
use crate::view::page::{Block, HiddenBy, HiddenRows, Page};
use crate::view::table::{Call, Cell, Column, Role, Second, Table};
use crate::view::{Subject, number};

/// How many rows of each table are shown where not all were asked for.
const ROWS: usize = 20;

impl GraphView<'_> {
    /// The page of errors; `None` where stacks or counts are missing.
    pub fn error_page(&self, subject: &Subject) -> Option<Page> {
        let errors = self.summary.errors.as_ref()?;
        let mut blocks = self.heading(subject);
        let wrong = errors.overall.fraction() * 100.0;
        blocks.push(Block::Line(format!(
            "gprof's estimate attributes {wrong:.1} % of the weight of functions to the wrong \
             caller"
        )));
        let (arcs, functions) = (self.arc_errors(subject), self.function_errors(subject));
        for (title, table) in [
            ("Callers: what of a callee they account for", arcs),
            ("Functions: self and children", functions),
        ] {
            if table.rows.is_empty() {
                continue;
            }
            blocks.push(Block::Space);
            blocks.push(Block::Heading(title.into()));
            let mut table = table;
            let hidden = table.rows.len().saturating_sub(ROWS);
            if !self.in_full {
                table.rows.truncate(ROWS);
            }
            blocks.push(Block::Table(table));
            if !self.in_full {
                let noun = ("row", "rows");
                blocks.extend(HiddenRows::block(hidden, noun, HiddenBy::Limit));
            }
        }
        let flag = format!(
            "* differs from the measurement by more than {SIGNIFICANT} standard errors: not by \
             chance"
        );
        blocks.push(Block::Space);
        blocks.push(Block::Line(flag));
        blocks.extend(crate::view::caveats::foot_of(subject));
        Some(Page {
            unit: subject.selection.event().unit.clone(),
            blocks,
        })
    }

    /// The arcs, the largest difference first.
    pub fn arc_errors(&self, subject: &Subject) -> Table {
        let mut table = Table::new(columns("caller"));
        if let Some(names) = table.columns.last_mut() {
            names.second = Some(Second::Callee("callee"));
        }
        let Some(errors) = &self.summary.errors else {
            return table;
        };
        let errors = errors
            .arcs
            .enumerate()
            .filter_map(|(id, error)| Some((id, (*error)?)));
        let mut rows: Vec<(ArcId, ArcError)> = errors.collect();
        rows.sort_by_key(|(id, error)| (Reverse(rounded(error.of_propagated().abs())), *id));
        for (id, error) in rows {
            let arc = &self.summary.graph.arcs()[id];
            let call = Call::new(self.label(arc.from), self.label(arc.to));
            let deviation = rounded(self.summary.standard_error(id, &error));
            table.rows.push(vec![
                Cell::Weight(rounded(error.measured)),
                Cell::Weight(rounded(error.propagated)),
                difference(subject, error.of_propagated()),
                Cell::Weight(deviation),
                Cell::Text(if error.is_significant() { "*" } else { "" }.into()),
                Cell::name(call),
            ]);
        }
        table
    }

    /// The functions, the largest difference first.
    pub fn function_errors(&self, subject: &Subject) -> Table {
        let columns = columns("function");
        let mut table = Table::new(columns);
        let (Some(errors), Some(propagated)) = (&self.summary.errors, &self.summary.propagated)
        else {
            return table.without(&["deviation", "flag"]);
        };
        // gprof knows nothing of functions in which no calls were counted.
        let mut is_counted = IdVec::filled(false, self.summary.graph.functions());
        for arc in self
            .summary
            .graph
            .arcs()
            .iter()
            .filter(|arc| arc.calls > Some(0))
        {
            is_counted[arc.from] = true;
            is_counted[arc.to] = true;
        }
        let mut rows: Vec<(FunctionId, f64)> = self
            .functions()
            .filter(|&id| is_counted[id])
            .filter_map(|id| Some((id, errors.totals[id]?)))
            .collect();
        rows.sort_by_key(|&(id, wrong)| (Reverse(rounded(wrong.abs())), self.summary.ranks[id]));
        for (id, wrong) in rows {
            table.rows.push(vec![
                Cell::Weight(rounded(self.summary.attribution.total(id))),
                Cell::Weight(rounded(propagated.total(id))),
                difference(subject, wrong),
                Cell::Nothing,
                Cell::Nothing,
                Cell::name(self.label(id)),
            ]);
        }
        table.without(&["deviation", "flag"])
    }
}

fn columns(names: &'static str) -> Vec<Column> {
    vec![
        Column::new("measured", "measured", Role::Figure),
        Column::new("estimate", "by gprof", Role::Figure),
        Column::new("difference", "difference", Role::Figure),
        Column::new("deviation", "std. error", Role::Figure),
        Column::new("flag", "", Role::Figure),
        Column::new("function", names, Role::Name),
    ]
}

/// A difference of weights with its sign.
fn difference(subject: &Subject, weight: f64) -> Cell {
    let sign = match rounded(weight.abs()) {
        0 => "",
        _ if weight < 0.0 => "-",
        _ => "+",
    };
    let size = number::weight(rounded(weight.abs()), &subject.selection.event().unit);
    Cell::Text(format!("{sign}{size}"))
}
