//! The recursion of a profile: cycles from within, and functions that call themselves.
//!
//! ```text
//!   main ─ 5 ─▶ expr ─ 4 ─▶ term ─ 4 ─▶ factor        entered: main ─▶ expr
//!                ▲───────── 3 ────────────┘           inside: the three arcs by weight
//!                                                     broken by leaving out: factor ─▶ expr
//! ```
//!
//! Next to the measurement of a member are two estimates: gprof's, which gives a member its own
//! weight and that of callees outside, and Fonseca's, which propagates inside the cycle as well.

mod page;
mod table;

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::Subject;
use super::graph::{self, GraphView};
use crate::analysis::cycles::Summary;
use crate::analysis::graph::Entry;
use crate::analysis::owners::{Owners, Scheduled};
use crate::base::IdVec;
use crate::callgraph::CycleId;
use crate::profile::FunctionId;

/// Which cycles are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The maximum number of cycles and of rows in a page; `None` for all.
    pub limit: Option<usize>,
    /// Only cycles with at least this share of the weight, in percent.
    pub min: f64,
}

/// The cycles, and what is known of each.
#[derive(Clone, Debug)]
pub struct CyclesView<'a> {
    /// The figures.
    pub summary: &'a Summary,
    /// The graph that they are in, with names.
    pub graph: GraphView<'a>,
    /// The cycles that are shown, in order of their numbers: the first ones of all.
    pub order: Vec<CycleId>,
    /// The functions that call themselves, the largest total first. Among them are those outside of
    /// cycles that [recurse through missing frames](Summary::recurses_across_gap).
    pub recursive: Vec<FunctionId>,
    /// The maximum number of cycles and of rows in a page; `None` for all.
    limit: Option<usize>,
    /// The cycles that a page says one line of, as they run through the scheduler of a runtime: the
    /// line.
    scheduled: FxHashMap<CycleId, String>,
}

/// Chooses, orders and names.
pub fn arrange<'a>(subject: &Subject, summary: &'a Summary, options: &Options) -> CyclesView<'a> {
    let view = graph::arrange(subject, &summary.graph, &graph::Options::default());
    let total = |entry| summary.graph.total(entry).max(0.0);
    let mut order = summary.graph.cycle_order.clone();
    order.retain(|&cycle| {
        let least = options.min * subject.selection.total() as f64;
        total(Entry::Cycle(cycle)) * 100.0 >= least
    });
    let mut recursive = summary.recursive.clone();
    recursive.sort_by_cached_key(|&id| {
        let total = total(Entry::Function(id));
        (Reverse(total.to_bits()), view.name(id).to_owned(), id)
    });
    CyclesView {
        summary,
        graph: view,
        order,
        recursive,
        limit: options.limit,
        scheduled: FxHashMap::default(),
    }
}

impl CyclesView<'_> {
    /// Shows cycles through the scheduler of a runtime as one line each.
    pub fn with_schedulers(
        mut self,
        owners: &Owners,
        scheduled: &IdVec<CycleId, Option<Scheduled>>,
    ) -> Self {
        /// The number of own functions that a line names.
        const NAMED: usize = 3;
        for (cycle, found) in scheduled.enumerate() {
            let Some(found) = found else { continue };
            let runtimes: Vec<&str> = found
                .runtimes
                .iter()
                .map(|&id| &*owners.owners[id].name)
                .collect();
            let mut text = format!("through the scheduler of {}", runtimes.join(", "));
            let own: Vec<&str> = found
                .own
                .iter()
                .take(NAMED)
                .map(|&id| self.graph.name(id))
                .collect();
            if !own.is_empty() {
                text.push_str(&format!("; of the project: {}", own.join(", ")));
            }
            if let Some(more) = found.own.len().checked_sub(NAMED).filter(|&more| more > 0) {
                text.push_str(&format!(" and {more} more"));
            }
            self.scheduled.insert(cycle, text);
        }
        self
    }
}
