//! gprof's listing: each function with those that called it and those that it called, and what of
//! its weight is on whose account.
//!
//! ```text
//!   index  total %     self  children  samples  function
//!             28.8   0.12 s    0.02 s       32  ← main [1]              callers, the heaviest last
//!   [3]       34.1   0.20 s    0.02 s       40  parse <cycle 1> [3]     the function
//!              9.0        –         –       14  → eval <cycle 1> [5]    callees, the heaviest first
//! ```
//!
//! A cycle has an entry as a whole: who called it from outside, its members, and what they called
//! outside. Between members there is no weight to account for, only how often the arc was seen.
//!
//! The figures are those of one [`Model`]; the column of samples has numbers of samples, and only
//! where calls were counted there is one of calls. What the model cannot tell stays empty.

mod draw;
mod entry;
mod errors;
mod page;
mod table;

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::Subject;
use super::label::Labels;
use crate::analysis::attribution::{self, Attribution, Portion};
use crate::analysis::cut::{self, AtMost, Hidden};
use crate::analysis::error::{self, Comparison, Errors};
use crate::analysis::flow::Flow;
use crate::analysis::inclusive::{self, FunctionWeights};
use crate::analysis::{estimated, fonseca, measured, propagation};
use crate::base::IdVec;
use crate::callgraph::{Arc, CallGraph, Calls, CycleId, Cycles};
use crate::profile::{FunctionId, FunctionKind, Profile, Selection};

pub use self::draw::Pruning;
pub use self::table::EntryRows;

/// How weight is put on the account of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// As whole stacks show it.
    Measured,
    /// As gprof estimates it, by numbers of calls.
    Propagated,
    /// As gprof estimates it, carried on inside of cycles.
    Fonseca,
}

impl Model {
    /// Its name, as formats have it.
    pub fn name(self) -> &'static str {
        match self {
            Model::Measured => "measured",
            Model::Propagated => "propagated",
            Model::Fonseca => "fonseca",
        }
    }

    /// What can be said of the samples: by their stacks, where there are some, else by counts.
    pub fn of(profile: &Profile, selection: &Selection) -> Model {
        match estimated::is_needed(profile, selection) {
            true => Model::Propagated,
            false => Model::Measured,
        }
    }
}

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How weight is accounted for; `None` for what fits the profile.
    pub model: Option<Model>,
    /// At most so many entries; `None` for all.
    pub limit: Option<usize>,
    /// Only entries with at least this share of the weight, in percent.
    pub min: f64,
    /// Only the entries of these functions; empty for all.
    pub functions: Vec<FunctionId>,
    /// Whether calls that only the code has count when cycles are formed.
    pub code_makes_cycles: bool,
    /// Arcs that are left out as if nobody had seen them.
    pub without: Vec<Between>,
    /// Arcs with less than this part of the weight, in percent, form no cycles.
    pub cycle_cut: f64,
}

/// The arcs from any of some functions to any of others: a name may be that of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Between {
    from: FxHashSet<FunctionId>,
    to: FxHashSet<FunctionId>,
}

impl Between {
    /// The arcs from these functions to those.
    pub fn new(
        from: impl IntoIterator<Item = FunctionId>,
        to: impl IntoIterator<Item = FunctionId>,
    ) -> Between {
        Between {
            from: from.into_iter().collect(),
            to: to.into_iter().collect(),
        }
    }

    /// Whether the arc between these two is one of them.
    pub fn has(&self, from: FunctionId, to: FunctionId) -> bool {
        self.from.contains(&from) && self.to.contains(&to)
    }
}

/// An entry of the listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A function.
    Function(FunctionId),
    /// A cycle as a whole.
    Cycle(CycleId),
}

/// The listing.
#[derive(Clone, Debug)]
pub struct GraphView {
    /// Which figures these are.
    pub model: Model,
    /// The arcs that are not left out.
    pub graph: CallGraph,
    /// Its cycles.
    pub cycles: Cycles,
    /// The cycles in order of their numbers, which begin with 1.
    pub cycle_order: Vec<CycleId>,
    /// The figures.
    pub attribution: Attribution,
    /// The numbers of calls, where they were counted.
    pub calls: Option<Calls>,
    /// What gprof's estimate has wrong, where stacks and counts are there.
    pub errors: Option<Errors>,
    /// All functions that were seen and all cycles, by decreasing total.
    pub ranked: Vec<Entry>,
    /// What was measured of functions.
    pub weights: FunctionWeights,
    /// What of totals is hidden by stacks that were cut, by all calls that are known, whatever is
    /// left out of the graph here.
    pub hidden: Hidden,
    /// The number of samples that began in each function.
    pub root_samples: IdVec<FunctionId, u64>,
    /// What gprof would estimate, beside what was measured.
    propagated: Option<Attribution>,
    /// What the estimates begin with: the weight of each function itself, and what came over arcs.
    self_weights: IdVec<FunctionId, f64>,
    flow: Flow,
    /// The marks of stacks that are not whole: nothing is known of what is outside of them.
    marks: FxHashSet<FunctionId>,
    /// Whether arcs can have weights: whether there are stacks at all.
    has_stacks: bool,
    /// The entries that a page lists, in order.
    listed: Vec<Entry>,
    /// How many entries are not listed.
    unlisted: usize,
    /// Whether all neighbours are named.
    in_full: bool,
    numbers: IdVec<CycleId, usize>,
    /// The place of functions and cycles in the order of totals, from 1; 0 for those not in it.
    places: (IdVec<FunctionId, u32>, IdVec<CycleId, u32>),
    labels: Labels,
    ranks: IdVec<FunctionId, u32>,
    left_out: Vec<Arc>,
}

/// Accounts for the weight, chooses, orders and names.
pub fn arrange(subject: &Subject, graph: CallGraph, options: &Options) -> GraphView {
    let (profile, selection) = (subject.profile, subject.selection);
    let is_left_out = |arc: &Arc| {
        options
            .without
            .iter()
            .any(|these| these.has(arc.from, arc.to))
    };
    let hidden = cut::by_function(profile, selection);
    let left_out: Vec<Arc> = graph.arcs.iter().copied().filter(is_left_out).collect();
    // Where stacks were cut, the code was looked at beyond what was sampled, to tell who may be
    // outside of a cut; unless it was asked for, that is not shown.
    let beyond = beyond_samples(profile).filter(|_| !options.code_makes_cycles);
    let is_beyond = |arc: &Arc| {
        let beyond = beyond.as_ref();
        !arc.is_observed() && beyond.is_some_and(|beyond| beyond[arc.from] || beyond[arc.to])
    };
    let graph = graph.without(|arc| is_left_out(arc) || !arc.is_call() || is_beyond(arc));
    let weights = inclusive::by_function(profile, selection);
    let counts = profile.counts.as_ref();
    let chosen = Model::of(profile, selection);
    let model = options.model.unwrap_or(chosen);
    let has_stacks = chosen == Model::Measured;

    let forms_cycles = |arc: &Arc| options.code_makes_cycles || arc.is_observed();
    let least = options.cycle_cut / 100.0 * selection.total as f64;
    let of_callee = callee_calls(&graph);
    let weak = |arc: &Arc| match arc.calls {
        _ if arc.is_interrupt => true,
        Some(calls) if !has_stacks => {
            (calls as f64) < options.cycle_cut / 100.0 * of_callee[arc.to] as f64
        }
        _ => (arc.weight as f64) < least,
    };
    let mut cycles = Cycles::find_strong(&graph, forms_cycles, weak);

    let self_weights: Vec<f64> = weights.self_weight.iter().map(|&w| w as f64).collect();
    let self_weights: IdVec<FunctionId, f64> = self_weights.into();
    let measured = measured::attribute(profile, selection, &graph, &cycles);
    let flow = match counts {
        Some(counts) => Flow::of_calls(&graph, Some(counts)),
        None => Flow {
            arcs: graph
                .arcs
                .iter()
                .map(|arc| arc.weight as f64)
                .collect::<Vec<_>>()
                .into(),
            ..Flow::of_weight(&measured)
        },
    };
    let propagated = || propagation::propagate(&graph, &cycles, &self_weights, &flow);
    let mut beside = None;
    let mut errors = None;
    let attribution = match model {
        Model::Measured => {
            if counts.is_some() && has_stacks {
                let propagated = beside.insert(propagated());
                errors = Some(error::errors(&Comparison {
                    profile,
                    selection,
                    graph: &graph,
                    cycles: &cycles,
                    flow: &flow,
                    measured: &measured,
                    propagated,
                }));
            }
            measured
        }
        Model::Propagated if counts.is_some() => {
            estimated::attribute(&graph, &cycles, &self_weights, &flow)
        }
        Model::Propagated => propagated(),
        Model::Fonseca => {
            let made = fonseca::estimate(&graph, &self_weights, &flow, fonseca::Rule::Sound);
            cycles = made.cycles;
            made.attribution
        }
    };

    let calls = counts.map(|counts| Calls::of(&graph, &cycles, counts));
    let ranks = inclusive::name_ranks(profile);
    let cycle_order = attribution::cycle_order(&attribution, &cycles, &ranks);
    let mut numbers = IdVec::filled(0, cycles.members.len());
    for (number, &cycle) in (1..).zip(&cycle_order) {
        numbers[cycle] = number;
    }
    let mut root_samples = IdVec::filled(0, graph.functions());
    for row in &selection.rows {
        if let Some(root) = profile.paths.outwards(row.path).last() {
            root_samples[root.function] += row.samples;
        }
    }
    let marks = profile.functions.enumerate();
    let marks = marks.filter(|(_, function)| function.kind == FunctionKind::Mark);
    let mut view = GraphView {
        model,
        marks: marks.map(|(id, _)| id).collect(),
        cycle_order,
        numbers,
        calls,
        errors,
        propagated: beside,
        self_weights,
        flow,
        has_stacks,
        ranked: Vec::new(),
        listed: Vec::new(),
        unlisted: 0,
        in_full: options.limit.is_none() || !options.functions.is_empty(),
        places: Default::default(),
        labels: Labels::default(),
        graph,
        cycles,
        attribution,
        weights,
        hidden,
        root_samples,
        ranks,
        left_out,
    };
    view.rank();
    view.choose(subject, options);
    view.labels = Labels::new(subject, view.functions());
    view
}

/// Which functions only the code has, in a profile with cut stacks.
fn beyond_samples(profile: &Profile) -> Option<IdVec<FunctionId, bool>> {
    cut::is_any(profile).then(|| {
        let mut beyond = IdVec::filled(true, profile.functions.len());
        for (_, path) in profile.paths.enumerate() {
            beyond[path.function] = false;
        }
        beyond
    })
}

/// For each function how often it was called.
fn callee_calls(graph: &CallGraph) -> IdVec<FunctionId, u64> {
    let mut sums = IdVec::filled(0u64, graph.functions());
    for arc in &graph.arcs {
        sums[arc.to] = sums[arc.to].saturating_add(arc.calls.unwrap_or(0));
    }
    sums
}

impl GraphView {
    /// What Fonseca's method gives for the same graph.
    pub(super) fn fonseca(&self) -> fonseca::Estimate {
        let rule = fonseca::Rule::Sound;
        fonseca::estimate(&self.graph, &self.self_weights, &self.flow, rule)
    }

    /// Orders functions and cycles: the largest total first, of equals cycles, then by name.
    fn rank(&mut self) {
        let mut is_seen = IdVec::filled(false, self.graph.functions());
        for id in is_seen.ids() {
            is_seen[id] = self.weights.samples[id] > 0 || self.weights.total[id] > 0;
        }
        for arc in &self.graph.arcs {
            is_seen[arc.from] = true;
            is_seen[arc.to] = true;
        }
        let functions = is_seen.ids().filter(|&id| is_seen[id]);
        let cycles = self.cycles.members.ids();
        let mut ranked: Vec<Entry> = cycles
            .map(Entry::Cycle)
            .chain(functions.map(Entry::Function))
            .collect();
        // Totals are never negative, and then their bits are in their order.
        ranked.sort_unstable_by_key(|&entry| {
            let total = Reverse(self.total(entry).max(0.0).to_bits());
            match entry {
                Entry::Cycle(cycle) => (total, false, self.numbers[cycle] as u64),
                Entry::Function(id) => (total, true, u64::from(self.ranks[id])),
            }
        });
        let functions = IdVec::filled(0, self.graph.functions());
        self.places = (functions, IdVec::filled(0, self.cycles.members.len()));
        for (&entry, place) in ranked.iter().zip(1..) {
            match entry {
                Entry::Function(id) => self.places.0[id] = place,
                Entry::Cycle(cycle) => self.places.1[cycle] = place,
            }
        }
        self.ranked = ranked;
    }

    fn choose(&mut self, subject: &Subject, options: &Options) {
        let whole = subject.selection.total as f64;
        let about = |entry: Entry| match entry {
            _ if options.functions.is_empty() => true,
            Entry::Function(id) => options.functions.contains(&id),
            Entry::Cycle(_) => false,
        };
        let has_weight = |entry: Entry| {
            let share = self.total(entry) * 100.0;
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
        let limit = match options.functions.is_empty() {
            true => options.limit.unwrap_or(usize::MAX),
            false => usize::MAX,
        };
        let shown = wanted.len().min(limit);
        self.unlisted = match options.functions.is_empty() {
            true => self
                .ranked
                .iter()
                .filter(|&&entry| self.total(entry) > 0.0 || self.has_calls(entry))
                .count()
                .saturating_sub(shown),
            false => 0,
        };
        self.listed = wanted.into_iter().take(limit).collect();
    }

    fn has_calls(&self, entry: Entry) -> bool {
        let Some(calls) = &self.calls else {
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

    /// The total of an entry: of a function that of all samples with it, where that is known.
    pub fn total(&self, entry: Entry) -> f64 {
        match entry {
            Entry::Function(id) => self.attribution.total(id),
            Entry::Cycle(cycle) => self.attribution.cycles[cycle].portion.total(),
        }
    }

    /// What the total of an entry is at most: more than the total where stacks were cut and it may
    /// be among the callers that they lack. `None` where totals are estimates.
    pub fn total_max(&self, entry: Entry) -> Option<AtMost> {
        let hidden = |id: FunctionId| self.hidden.at_most[id];
        let more = match entry {
            Entry::Function(id) => hidden(id),
            // A sample that may hide all of a cycle may hide each member: they all reach each other.
            Entry::Cycle(cycle) => {
                let members = self.cycles.members[cycle].iter();
                let members = members.map(|&id| hidden(id));
                members
                    .min_by_key(|hidden| hidden.weight)
                    .unwrap_or_default()
            }
        };
        (self.model == Model::Measured)
            .then(|| more.plus(crate::view::number::rounded(self.total(entry))))
    }

    /// Its self weight and what came up from its callees.
    pub fn portion(&self, entry: Entry) -> Portion {
        match entry {
            Entry::Function(id) => self.attribution.functions[id],
            Entry::Cycle(cycle) => self.attribution.cycles[cycle].portion,
        }
    }

    /// Whether there are stacks: else arcs have numbers of calls, but no weights of their own.
    pub fn has_stacks(&self) -> bool {
        self.has_stacks
    }

    /// The number of a cycle, from 1.
    pub fn number(&self, cycle: CycleId) -> usize {
        self.numbers[cycle]
    }

    /// Whether it is no function but a mark: nothing is known of what is outside of it.
    pub fn is_mark(&self, function: FunctionId) -> bool {
        self.marks.contains(&function)
    }

    /// What a function is called.
    pub fn name(&self, function: FunctionId) -> &str {
        self.labels.of(function)
    }

    /// The weight of an arc, and how it is shared; inside of cycles what was seen, if anything
    /// was, and nothing to share.
    pub fn weight(&self, arc: crate::callgraph::ArcId) -> (Option<f64>, Option<Portion>) {
        let portion = self.attribution.arcs[arc];
        let seen = self
            .has_stacks
            .then_some(self.graph.arcs[arc].weight as f64);
        match self.model {
            Model::Measured => (seen, portion),
            _ => (portion.map(Portion::total).or(seen), portion),
        }
    }
}
