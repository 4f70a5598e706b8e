//! The error of gprof's assumption, where there are both stacks and counts.
//!
//! gprof assumes that all calls of a function take the same time. With stacks, this can be compared
//! with the measurement:
//!
//! ```text
//!               calls   share by calls   measured   error
//!   a ─▶ sort       9              90 %        5 %   + 85 %    many short sorts
//!   b ─▶ sort       1              10 %       95 %   - 85 %    one long one; 85 % off
//! ```
//!
//! *One step* applies the assumption once, to measured time, so its error is that of the assumption
//! at this arc. The propagated figure also contains the errors of all callees.
//!
//! A share that samples measure is itself uncertain. Of n samples in a callee a part p came from
//! one caller with a standard error of √(p (1 - p) / n): see
//! [`sampling_error`](super::sampling_error). If every event was recorded, there is no error.

use super::attribution::Attribution;
use super::flow::Flow;
use super::propagation::carrying;
use super::sampling_error::{effective_number, standard_error};
use crate::base::{IdVec, Sampling};
use crate::callgraph::{ArcId, CallArc, CallGraph, CycleId, Cycles, GroupId};
use crate::profile::{Counts, FunctionId, Links, PathId, Profile, Selection, Step};

/// The number of standard errors by which a share by calls may be off before it counts as wrong.
pub const SIGNIFICANT: f64 = 3.0;

/// The error of one arc between two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArcError {
    /// The weight that came over it, measured.
    pub measured: f64,
    /// The callee's measured weight times the arc's part of the calls.
    pub one_step: f64,
    /// The weight that propagation gives it.
    pub propagated: f64,
    /// Its part of the callee's calls, 0 to 1.
    pub share_by_calls: f64,
    /// Its part of the callee's weight, 0 to 1.
    pub share_measured: f64,
    /// The standard error of the measured part.
    pub standard_error: f64,
}

impl ArcError {
    /// The error of the assumption, applied once.
    pub fn of_one_step(&self) -> f64 {
        self.one_step - self.measured
    }

    /// The error of the propagated figure.
    pub fn of_propagated(&self) -> f64 {
        self.propagated - self.measured
    }

    /// Whether the difference is more than chance explains.
    pub fn is_significant(&self) -> bool {
        let difference = (self.share_by_calls - self.share_measured).abs();
        // Equal shares computed on two ways are not equal bit by bit.
        difference > SIGNIFICANT * self.standard_error && difference > 1e-9
    }
}

/// The error of a function or cycle: weight charged to the wrong caller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupError {
    /// The misattributed weight: half the sum of the arcs' one-step errors, as each is missing at
    /// another arc.
    pub misattributed: f64,
    /// The measured total.
    pub total: f64,
}

impl GroupError {
    /// The misattributed part, 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total > 0.0 {
            self.misattributed / self.total
        } else {
            0.0
        }
    }
}

/// The errors of gprof's figures for a profile.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    /// By arc; `None` inside of cycles, and where the callee has no samples or no counted calls.
    pub arcs: IdVec<ArcId, Option<ArcError>>,
    /// By function, for those outside of cycles.
    pub functions: IdVec<FunctionId, GroupError>,
    /// By cycle.
    pub cycles: IdVec<CycleId, GroupError>,
    /// By function: propagated minus measured total; `None` in cycles: gprof has no total there.
    pub totals: IdVec<FunctionId, Option<f64>>,
    /// All groups together.
    pub overall: GroupError,
}

impl Errors {
    // What says nothing of gprof's assumption, as calls are missing: arcs to functions of which not
    // all calls were counted, and the totals of functions that lead to such arcs.
    pub(super) fn leave_out_uncounted(&mut self, graph: &CallGraph, counts: &Counts) {
        let is_whole = |arc: &CallArc| arc.calls.is_some() && counts.has_all_of(arc.to);
        let mut is_known = IdVec::filled(true, graph.functions());
        let mut waiting: Vec<FunctionId> = Vec::new();
        for (id, arc) in graph.arcs().enumerate() {
            if is_whole(arc) {
                continue;
            }
            self.arcs[id] = None;
            waiting.push(arc.from);
        }
        while let Some(function) = waiting.pop() {
            if std::mem::replace(&mut is_known[function], false) {
                waiting.extend(graph.arcs_to(function).map(|arc| arc.from));
            }
        }
        for (id, total) in self.totals.iter_mut().enumerate() {
            let id = FunctionId::new(id);
            if !is_known[id] {
                *total = None;
            }
        }
    }
}

/// The inputs of the comparison, all of one profile.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The samples.
    pub selection: &'a Selection,
    /// Their graph.
    pub graph: &'a CallGraph,
    /// Its cycles.
    pub cycles: &'a Cycles,
    /// The flow along which was propagated.
    pub flow: &'a Flow,
    /// What stacks show.
    pub measured: &'a Attribution,
    /// What gprof's rule gives.
    pub propagated: &'a Attribution,
}

/// The errors of the propagated figures. Linear in rows, paths, functions and arcs.
pub fn errors(comparison: &Comparison<'_>) -> Errors {
    let &Comparison {
        profile,
        selection,
        graph,
        cycles,
        flow,
        measured,
        propagated,
    } = comparison;
    let carries = carrying(graph, cycles, flow);
    let calls_over = |arc: ArcId| if carries[arc] { flow.arcs[arc] } else { 0.0 };
    let numbers = effective_numbers(profile, selection, cycles);
    let mut calls = IdVec::filled(0.0, cycles.groups());
    for (id, arc) in graph.arcs().enumerate() {
        calls[cycles.group(arc.to)] += calls_over(id);
    }
    for (function, root) in flow.roots.enumerate() {
        calls[cycles.group(function)] += root;
    }
    let mut wrong = IdVec::filled(0.0, cycles.groups());
    for function in graph.function_ids() {
        let all = calls[cycles.group(function)];
        if all > 0.0 {
            let total = measured.of_group(cycles, function).total();
            let by_calls = total * (flow.roots[function] / all);
            wrong[cycles.group(function)] += (by_calls - measured.roots[function].total()).abs();
        }
    }
    let arcs = graph.arcs().enumerate().map(|(id, arc)| {
        let group = cycles.group(arc.to);
        let total = measured.of_group(cycles, arc.to).total();
        let weight = measured.arcs[id]?.total();
        let share_by_calls = calls_over(id) / Some(calls[group]).filter(|&calls| calls > 0.0)?;
        let one_step = total * share_by_calls;
        wrong[group] += (one_step - weight).abs();
        let share_measured = weight / Some(total).filter(|&total| total > 0.0)?;
        Some(ArcError {
            measured: weight,
            one_step,
            propagated: propagated.arcs[id].map_or(0.0, |arc| arc.total()),
            share_by_calls,
            share_measured,
            // Where every event was recorded nothing is left to chance.
            standard_error: match selection.sampling() {
                Sampling::Census => 0.0,
                _ => standard_error(share_measured, numbers[group]),
            },
        })
    });
    let arcs: Vec<Option<ArcError>> = arcs.collect();
    let error = |group, total: f64| GroupError {
        misattributed: wrong[group] / 2.0,
        total,
    };
    let alone = |id: FunctionId| cycles.of()[id].is_none();
    let functions: Vec<GroupError> = graph
        .function_ids()
        .map(|id| {
            if alone(id) {
                error(cycles.group(id), measured.functions[id].total())
            } else {
                GroupError::default()
            }
        })
        .collect();
    let of_cycles = measured
        .cycles
        .enumerate()
        .map(|(id, cycle)| error(cycles.group_of_cycle(id), cycle.portion.total()))
        .collect::<Vec<GroupError>>();
    let mut overall = GroupError::default();
    for error in functions.iter().chain(&of_cycles) {
        overall.misattributed += error.misattributed;
        overall.total += error.total;
    }
    let totals = graph
        .function_ids()
        .map(|id| alone(id).then(|| propagated.total(id) - measured.total(id)));
    Errors {
        arcs: arcs.into(),
        totals: totals.collect::<Vec<_>>().into(),
        functions: functions.into(),
        cycles: of_cycles.into(),
        overall,
    }
}

fn effective_numbers(
    profile: &Profile,
    selection: &Selection,
    cycles: &Cycles,
) -> IdVec<GroupId, f64> {
    // Sums of weights and of their squares, first at the end of each path, then for all through it.
    let mut sums: IdVec<PathId, (f64, f64)> = IdVec::filled((0.0, 0.0), profile.paths.len());
    for row in selection.rows() {
        let weight = row.weight as f64;
        sums[row.path].0 += weight;
        sums[row.path].1 += row.squares as f64;
    }
    for (id, path) in profile.paths.enumerate().rev() {
        if let Some(caller) = path.caller {
            let (weight, squares) = sums[id];
            sums[caller].0 += weight;
            sums[caller].1 += squares;
        }
    }
    let mut of_group: IdVec<GroupId, (f64, f64)> = IdVec::filled((0.0, 0.0), cycles.groups());
    let mut depth = IdVec::filled(0u32, cycles.groups());
    let taken = |path| sums[path].0 > 0.0;
    Links::through(&profile.paths, taken).walk(&profile.paths, |step| match step {
        Step::Enter(path) => {
            let group = cycles.group(profile.paths[path].function);
            if depth[group] == 0 {
                of_group[group].0 += sums[path].0;
                of_group[group].1 += sums[path].1;
            }
            depth[group] += 1;
        }
        Step::Leave(path) => depth[cycles.group(profile.paths[path].function)] -= 1,
    });
    let number = |&(weight, squares): &(f64, f64)| effective_number(weight, squares);
    of_group.iter().map(number).collect::<Vec<_>>().into()
}
