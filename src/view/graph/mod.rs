//! gprof's listing: each function with its callers and callees, and how its weight is shared among
//! them.
//!
//! ```text
//!   index  total %     self  children  samples  function
//!             28.8   0.12 s    0.02 s       32  ← main [1]             callers, the heaviest last
//!   [3]       34.1   0.20 s    0.02 s       40  parse <cycle 1> [3]    the function
//!              9.0        –         –       14  → eval <cycle 1> [5]   callees, the heaviest first
//! ```
//!
//! A cycle has an entry as a whole: who called it from outside, its members, and what they called
//! outside. Between members there is no weight to account for, only how often the arc was seen.
//!
//! The figures are those of one [`Model`](crate::analysis::graph::Model); the column of samples has
//! numbers of samples, and only where calls were counted there is one of calls. What the model
//! cannot tell stays empty.

mod draw;
mod entry;
mod errors;
mod laid_out;
mod page;
mod table;

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::Subject;
use crate::analysis::graph::{Entry, Summary};
use crate::base::IdVec;
use crate::callgraph::CycleId;
use crate::names::{Label, Labels};
use crate::profile::{FunctionId, FunctionKind};

pub use self::draw::Pruning;
pub use self::entry::{Line, Relation, Who};
pub use self::laid_out::{LaidOut, LaidOutCall, LaidOutCycle};
pub use self::table::EntryRows;

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The maximum number of entries; `None` for all.
    pub limit: Option<usize>,
    /// Only entries with at least this share of the weight, in percent.
    pub min: f64,
    /// Only the entries of these functions; empty for all.
    pub functions: Vec<FunctionId>,
}

/// The listing.
#[derive(Clone, Debug)]
pub struct GraphView<'a> {
    /// The figures.
    pub summary: &'a Summary,
    /// All functions that were seen and all cycles, by decreasing total.
    pub ranked: Vec<Entry>,
    /// The marks of stacks that are not whole: nothing is known of what is outside of them.
    marks: FxHashSet<FunctionId>,
    /// The entries that a page lists, in order.
    listed: Vec<Entry>,
    /// How many entries are not listed.
    unlisted: usize,
    /// Whether all neighbours are named.
    in_full: bool,
    /// The place of functions and cycles in the order of totals, from 1; 0 for those not in it.
    places: (IdVec<FunctionId, u32>, IdVec<CycleId, u32>),
    labels: Labels,
}

/// Chooses, orders and names.
pub fn arrange<'a>(subject: &Subject, summary: &'a Summary, options: &Options) -> GraphView<'a> {
    let marks = subject
        .profile
        .functions
        .enumerate()
        .filter(|(_, function)| function.kind == FunctionKind::Mark);
    let mut view = GraphView {
        summary,
        marks: marks.map(|(id, _)| id).collect(),
        ranked: Vec::new(),
        listed: Vec::new(),
        unlisted: 0,
        in_full: options.limit.is_none() || !options.functions.is_empty(),
        places: Default::default(),
        labels: Labels::default(),
    };
    view.rank();
    view.choose(subject, options);
    view.labels = subject.labels(view.functions());
    view
}

impl GraphView<'_> {
    /// Orders functions and cycles: the largest total first, of equals cycles, then by name.
    fn rank(&mut self) {
        let mut is_seen = IdVec::filled(false, self.summary.graph.functions());
        for id in is_seen.ids() {
            is_seen[id] =
                self.summary.weights.samples[id] > 0 || self.summary.weights.total[id] > 0;
        }
        for arc in self.summary.graph.arcs() {
            is_seen[arc.from] = true;
            is_seen[arc.to] = true;
        }
        let functions = is_seen.ids().filter(|&id| is_seen[id]);
        let cycles = self.summary.cycles.members().ids();
        let mut ranked: Vec<Entry> = cycles
            .map(Entry::Cycle)
            .chain(functions.map(Entry::Function))
            .collect();
        // Totals are never negative, and then their bits are in their order.
        ranked.sort_unstable_by_key(|&entry| {
            let total = Reverse(self.summary.total(entry).max(0.0).to_bits());
            match entry {
                Entry::Cycle(cycle) => (total, false, self.summary.number(cycle) as u64),
                Entry::Function(id) => (total, true, u64::from(self.summary.ranks[id])),
            }
        });
        let functions = IdVec::filled(0, self.summary.graph.functions());
        self.places = (
            functions,
            IdVec::filled(0, self.summary.cycles.members().len()),
        );
        for (&entry, place) in ranked.iter().zip(1..) {
            match entry {
                Entry::Function(id) => self.places.0[id] = place,
                Entry::Cycle(cycle) => self.places.1[cycle] = place,
            }
        }
        self.ranked = ranked;
    }

    fn choose(&mut self, subject: &Subject, options: &Options) {
        let whole = subject.selection.total() as f64;
        let about = |entry: Entry| match entry {
            _ if options.functions.is_empty() => true,
            Entry::Function(id) => options.functions.contains(&id),
            Entry::Cycle(_) => false,
        };
        let has_weight = |entry: Entry| {
            let share = self.summary.total(entry) * 100.0;
            let least = options.min * whole;
            let is_called = || self.has_calls(entry) || options.limit.is_none();
            share >= least && (share > 0.0 || options.min <= 0.0 && is_called())
        };
        let entries = self.ranked.iter().copied();
        let wanted: Vec<Entry> = if options.functions.is_empty() {
            entries.filter(|&entry| has_weight(entry)).collect()
        } else {
            entries.filter(|&entry| about(entry)).collect()
        };
        let limit = if options.functions.is_empty() {
            options.limit.unwrap_or(usize::MAX)
        } else {
            usize::MAX
        };
        let shown = wanted.len().min(limit);
        self.unlisted = if options.functions.is_empty() {
            self.ranked
                .iter()
                .filter(|&&entry| self.summary.total(entry) > 0.0 || self.has_calls(entry))
                .count()
                .saturating_sub(shown)
        } else {
            0
        };
        self.listed = wanted.into_iter().take(limit).collect();
    }

    fn has_calls(&self, entry: Entry) -> bool {
        let Some(calls) = &self.summary.calls else {
            return false;
        };
        match entry {
            Entry::Function(id) => {
                let calls = &calls.functions[id];
                calls.by_others() > 0 || calls.recursive > 0 || calls.unknown > 0
            }
            Entry::Cycle(_) => true,
        }
    }

    /// The functions that were seen, by decreasing total.
    pub fn functions(&self) -> impl Iterator<Item = FunctionId> {
        self.ranked.iter().filter_map(|entry| match entry {
            Entry::Function(id) => Some(*id),
            Entry::Cycle(_) => None,
        })
    }

    /// Whether it is no function but a mark: nothing is known of what is outside of it.
    pub fn is_mark(&self, function: FunctionId) -> bool {
        self.marks.contains(&function)
    }

    /// What a function is called.
    pub fn name(&self, function: FunctionId) -> &str {
        self.labels.of(function)
    }

    /// The same as a value to be shown.
    pub fn label(&self, function: FunctionId) -> Label {
        self.labels.label(function)
    }
}
