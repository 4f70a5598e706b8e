//! Callers and callees, in one value: the calls that count, their cycles, and how each function's
//! weight is shared among its callers.

use rustc_hash::FxHashSet;

use super::attribution::{self, Attribution, Portion};
use super::cut::{self, AtMost, Hidden, IncompleteStacks};
use super::error::{self, ArcError, Comparison, Errors};
use super::flow::Flow;
use super::fonseca::{Estimate, Rule};
use super::inclusive::{self, FunctionWeights};
use super::{estimated, fonseca, measured, propagation};
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallArc, CallGraph, Calls, CycleId, Cycles};
use crate::profile::{FunctionId, Profile, Selection};

/// How weight is charged to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// As whole stacks show it.
    Measured,
    /// As gprof estimates it, by numbers of calls.
    Propagated,
    /// As gprof estimates it, and propagated inside cycles.
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

    /// The model that fits the samples: by their stacks, if there are any, else by counts.
    pub fn of(profile: &Profile, selection: &Selection) -> Model {
        if estimated::is_needed(profile, selection) {
            Model::Propagated
        } else {
            Model::Measured
        }
    }
}

/// Which calls count, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How weight is accounted for; `None` for what fits the profile.
    pub model: Option<Model>,
    /// Whether calls that only the code has count when cycles are formed.
    pub code_makes_cycles: bool,
    /// Arcs that are left out as if they had not been seen.
    pub without: Vec<Between>,
    /// Arcs with less than this part of the weight, in percent, form no cycles.
    pub cycle_cut: f64,
}

/// The arcs from any function of one set to any of another: several functions may share a name.
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

/// What has an entry of its own in a listing of callers and callees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A function.
    Function(FunctionId),
    /// A cycle as a whole.
    Cycle(CycleId),
}

/// The figures of all functions, cycles and arcs.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Which figures these are.
    pub model: Model,
    /// The calls, without arcs that are no calls and without those that are left out.
    pub graph: CallGraph,
    /// The arcs that are left out on request.
    pub left_out: Vec<CallArc>,
    /// The cycles of the graph.
    pub cycles: Cycles,
    /// The cycles in order of their numbers, which begin with 1.
    pub cycle_order: Vec<CycleId>,
    /// The weights of functions and arcs.
    pub attribution: Attribution,
    /// What gprof would estimate, where that can be compared with the measurement.
    pub propagated: Option<Attribution>,
    /// The errors of that estimate, where there are stacks and counts.
    pub errors: Option<Errors>,
    /// The numbers of calls, where they were counted.
    pub calls: Option<Calls>,
    /// What was measured of functions.
    pub weights: FunctionWeights,
    /// What cut stacks hide of totals, by all known calls, also those left out of the graph.
    pub hidden: Hidden,
    // As `hidden`, for cycles.
    hidden_cycles: IdVec<CycleId, AtMost>,
    /// The number of samples that began in each function.
    pub root_samples: IdVec<FunctionId, u64>,
    /// The place of each function in the order of names.
    pub ranks: IdVec<FunctionId, u32>,
    // What the estimates begin with: the weight of each function itself, and what came over arcs.
    self_weights: IdVec<FunctionId, f64>,
    flow: Flow,
    has_stacks: bool,
    numbers: IdVec<CycleId, usize>,
}

impl Summary {
    /// Computes all figures. Linear in rows, paths, functions and arcs, apart from sorting, and for
    /// [Fonseca's model](fonseca::estimate).
    ///
    /// ```
    /// use proftool::analysis::graph::{Entry, Model, Options, Summary};
    /// use proftool::input::folded;
    /// use proftool::profile::{EventId, Filter};
    ///
    /// let text = "main;even;odd;even;print 7\nmain;odd 2\nmain 1\n";
    /// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
    /// let selection = profile.select(EventId::new(0), &Filter::default());
    /// let summary = Summary::of(&profile, &selection, &Options::default());
    /// assert_eq!(summary.model, Model::Measured);
    /// let cycle = summary.cycle_order[0];
    /// assert_eq!(summary.cycles.members()[cycle].len(), 2);
    /// assert_eq!(summary.total(Entry::Cycle(cycle)), 9.0);
    /// ```
    pub fn of(profile: &Profile, selection: &Selection, options: &Options) -> Summary {
        let fitting = Model::of(profile, selection);
        let has_stacks = fitting == Model::Measured;
        let incomplete = IncompleteStacks::of(profile, selection);
        let (graph, left_out) = calls_that_count(profile, selection, options);
        let weights = inclusive::by_function(profile, selection);
        let cycles = cycles(&graph, selection, options, has_stacks);
        let hidden = incomplete.as_ref().map_or_else(
            || Hidden::nothing(profile.functions.len()),
            IncompleteStacks::by_function,
        );
        let of_cycles = cycles.members().iter().map(|members| &members[..]);
        let hidden_cycles = incomplete.map_or_else(
            || vec![AtMost::default(); of_cycles.len()],
            |incomplete| incomplete.by_cycle(of_cycles.clone()),
        );
        let self_weights: Vec<f64> = weights.self_weight.iter().map(|&w| w as f64).collect();
        let self_weights: IdVec<FunctionId, f64> = self_weights.into();
        let measured = measured::attribute(profile, selection, &graph, &cycles);
        let flow = match &profile.counts {
            Some(counts) => Flow::of_calls(&graph, Some(counts)),
            None => flow_of_arcs(&graph, &measured),
        };
        let ranks = inclusive::name_ranks(profile);
        let mut summary = Summary {
            model: options.model.unwrap_or(fitting),
            left_out,
            cycles,
            cycle_order: Vec::new(),
            attribution: Attribution::default(),
            propagated: None,
            errors: None,
            calls: None,
            weights,
            hidden,
            hidden_cycles: hidden_cycles.into(),
            root_samples: root_samples(profile, selection),
            ranks,
            self_weights,
            flow,
            has_stacks,
            numbers: IdVec::default(),
            graph,
        };
        summary.attribute(profile, selection, measured);
        summary.count(profile);
        summary
    }

    fn attribute(&mut self, profile: &Profile, selection: &Selection, measured: Attribution) {
        let is_counted = profile.counts.is_some();
        let (graph, cycles) = (&self.graph, &self.cycles);
        let propagated = || propagation::propagate(graph, cycles, &self.self_weights, &self.flow);
        self.attribution = match self.model {
            Model::Measured => {
                if is_counted && self.has_stacks {
                    let propagated = propagated();
                    let mut errors = error::errors(&Comparison {
                        profile,
                        selection,
                        graph,
                        cycles,
                        flow: &self.flow,
                        measured: &measured,
                        propagated: &propagated,
                    });
                    if let Some(counts) = profile.counts.as_ref().filter(|it| it.are_partial()) {
                        errors.leave_out_uncounted(graph, counts);
                    }
                    self.errors = Some(errors);
                    self.propagated = Some(propagated);
                }
                measured
            }
            Model::Propagated if is_counted => {
                estimated::attribute(graph, cycles, &self.self_weights, &self.flow)
            }
            Model::Propagated => propagated(),
            Model::Fonseca => {
                let made = self.fonseca();
                self.cycles = made.cycles;
                made.attribution
            }
        };
    }

    fn count(&mut self, profile: &Profile) {
        let (graph, cycles) = (&self.graph, &self.cycles);
        let counts = profile.counts.as_ref();
        self.calls = counts.map(|counts| Calls::of(graph, cycles, counts));
        self.cycle_order = attribution::cycle_order(&self.attribution, cycles, &self.ranks);
        self.numbers = IdVec::filled(0, cycles.members().len());
        for (number, &cycle) in (1..).zip(&self.cycle_order) {
            self.numbers[cycle] = number;
        }
    }

    pub(super) fn fonseca(&self) -> Estimate {
        fonseca::estimate(&self.graph, &self.self_weights, &self.flow, Rule::Sound)
    }

    /// Whether there are stacks: else arcs have numbers of calls, but no weights of their own.
    pub fn has_stacks(&self) -> bool {
        self.has_stacks
    }

    /// The number of a cycle, from 1.
    pub fn number(&self, cycle: CycleId) -> usize {
        self.numbers[cycle]
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
        let more = match entry {
            Entry::Function(id) => self.hidden.at_most[id],
            Entry::Cycle(cycle) => self.hidden_cycles[cycle],
        };
        let is_measured = self.model == Model::Measured;
        is_measured.then(|| {
            let total = self.total(entry).round() as u64;
            more.plus(total)
        })
    }

    /// The self weight of an entry and what came up from its callees.
    pub fn portion(&self, entry: Entry) -> Portion {
        match entry {
            Entry::Function(id) => self.attribution.functions[id],
            Entry::Cycle(cycle) => self.attribution.cycles[cycle].portion,
        }
    }

    /// The weight of an arc and how it is shared; inside of cycles what was seen, and no shares.
    pub fn weight(&self, arc: ArcId) -> (Option<f64>, Option<Portion>) {
        let portion = self.attribution.arcs[arc];
        let seen = self
            .has_stacks
            .then_some(self.graph.arcs()[arc].weight as f64);
        match self.model {
            Model::Measured => (seen, portion),
            _ => (portion.map(Portion::total).or(seen), portion),
        }
    }

    /// The standard error of the weight that was measured over an arc.
    pub fn standard_error(&self, arc: ArcId, error: &ArcError) -> f64 {
        let callee = self.graph.arcs()[arc].to;
        let group = self.attribution.of_group(&self.cycles, callee);
        error.standard_error * group.total()
    }
}

fn calls_that_count(
    profile: &Profile,
    selection: &Selection,
    options: &Options,
) -> (CallGraph, Vec<CallArc>) {
    let graph = CallGraph::of(profile, selection);
    let is_left_out = |arc: &CallArc| {
        let mut without = options.without.iter();
        without.any(|these| these.has(arc.from, arc.to))
    };
    let left_out = graph.arcs().iter().copied().filter(is_left_out).collect();
    // The code may have been looked at beyond what is on stacks. Where these were cut, that is
    // shown only if it was asked for.
    let only_sampled = cut::is_any(profile) && !options.code_makes_cycles;
    let on_stacks = only_sampled.then(|| profile.functions_on_stacks());
    let is_beyond = |arc: &CallArc| {
        let on_stacks = on_stacks.as_ref();
        !arc.is_observed() && on_stacks.is_some_and(|on| !on[arc.from] || !on[arc.to])
    };
    let graph = graph.without(|arc| is_left_out(arc) || !arc.is_call() || is_beyond(arc));
    (graph, left_out)
}

pub(super) fn forms_cycles(arc: &CallArc, options: &Options) -> bool {
    options.code_makes_cycles || arc.is_observed()
}

// Without those that only weak arcs hold together.
fn cycles(graph: &CallGraph, selection: &Selection, options: &Options, has_stacks: bool) -> Cycles {
    let least = options.cycle_cut / 100.0 * selection.total() as f64;
    let of_callee = callee_calls(graph);
    let weak = |arc: &CallArc| match arc.calls {
        _ if arc.is_interrupt => true,
        Some(calls) if !has_stacks => {
            (calls as f64) < options.cycle_cut / 100.0 * of_callee[arc.to] as f64
        }
        _ => (arc.weight as f64) < least,
    };
    Cycles::find_strong(graph, |arc| forms_cycles(arc, options), weak)
}

fn callee_calls(graph: &CallGraph) -> IdVec<FunctionId, u64> {
    let mut sums = IdVec::filled(0u64, graph.functions());
    for arc in graph.arcs() {
        sums[arc.to] = sums[arc.to].saturating_add(arc.calls.unwrap_or(0));
    }
    sums
}

// Arcs inside of cycles included.
fn flow_of_arcs(graph: &CallGraph, measured: &Attribution) -> Flow {
    let arcs = graph.arcs().iter().map(|arc| arc.weight as f64);
    Flow {
        arcs: arcs.collect::<Vec<_>>().into(),
        ..Flow::of_weight(measured)
    }
}

fn root_samples(profile: &Profile, selection: &Selection) -> IdVec<FunctionId, u64> {
    let mut samples = IdVec::filled(0, profile.functions.len());
    for row in selection.rows() {
        if let Some(root) = profile.paths.outwards(row.path).last() {
            samples[root.function] += row.samples;
        }
    }
    samples
}
