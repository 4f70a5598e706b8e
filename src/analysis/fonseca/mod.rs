//! Time inside of cycles, estimated from numbers of calls (José Fonseca's propagation).
//!
//! gprof's rule gives what flows into a cycle and out of it, and leaves the members without totals.
//! Time is additive. So the cycle can be followed once for each member that is called from outside,
//! with that member's share of the calls, and only away from it:
//!
//! ```text
//!   main ─1▶ a         entry a        a 60 ─▶ b 50       a ⇄ b: the arc back carries nothing
//!            a ⇄ b     level 0  a     10      └ 30 own, 20 of c
//!            b ─▶ c          1  b             a: 10 own, 50 of b
//! ```
//!
//! The levels are distances from the entry; arcs to the next level carry time back, all others do
//! not. So a member that is mostly called on its own level or from below gets too little, and an
//! entry gets all that its calls started. This is an estimate; where there are stacks, they are
//! more accurate.
//!
//! Where a cycle has so many entries that following all of them takes too long, it is followed from
//! a sample of them, and the standard error that this leaves is part of the answer
//! ([`Entries::standard_error`]).
//!
//! After J. Fonseca, "Gprof2dot: time propagation inside cycles", 2008, which gives the idea, and
//! `_integrate_cycle` of gprof2dot, which decides the rest.

mod followed;
mod inside;

use self::followed::Followed;
use self::inside::{Inside, Walks};
use super::attribution::{Attribution, CycleWeight, Portion};
use super::flow::Flow;
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallArc, CallGraph, CycleId, Cycles, GroupId};
use crate::profile::FunctionId;

/// How the choices are made that the idea leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Arcs without flow form no cycle and carry nothing; roots are callers; a cycle without a
    /// known entry is entered at all members equally. Then the entries together get the time of the
    /// cycle, and no member gets more.
    #[default]
    Sound,
    /// As gprof2dot does it, for comparison: any arc forms cycles, 0 divided by 0 is 1, and a cycle
    /// that nobody enters gives its members nothing.
    Gprof2dot,
}

impl Rule {
    fn share(self, part: f64, of: f64) -> f64 {
        match (of > 0.0, self) {
            (true, _) => (part / of).clamp(0.0, 1.0),
            (false, Rule::Sound) => 0.0,
            (false, Rule::Gprof2dot) => 1.0,
        }
    }
}

/// Where a cycle is entered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// The members with the parts of the cycle's time that begin there, in order of id.
    pub members: Vec<(FunctionId, f64)>,
    /// Whether these are known; if not, it is not known how the cycle was entered.
    pub are_known: bool,
    /// From how many members time was followed: not from all where the cycle is too large.
    pub followed: usize,
    /// The largest standard error of a member's total; 0 where all members were followed.
    pub standard_error: f64,
}

/// The estimate.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    /// The cycles: those of the rule.
    pub cycles: Cycles,
    /// The times. Totals are estimates, arcs inside of cycles have values.
    pub attribution: Attribution,
    /// Where each cycle is entered.
    pub entries: IdVec<CycleId, Entries>,
}

impl Estimate {
    /// The largest standard error in a function's cycle; `None` where all entries were followed.
    pub fn standard_error(&self, function: FunctionId) -> Option<f64> {
        let cycle = (*self.cycles.of().get(function)?)?;
        let error = self.entries[cycle].standard_error;
        (error > 0.0).then_some(error)
    }
}

/// Estimates times by the functions' own weights and `flow`. All arcs of the graph are taken for
/// calls: [`CallGraph::without`] leaves others out. Linear in functions and arcs; in small cycles
/// also in the number of entries, of which large ones follow no more than time allows.
pub fn estimate(
    graph: &CallGraph,
    self_weights: &IdVec<FunctionId, f64>,
    flow: &Flow,
    rule: Rule,
) -> Estimate {
    estimate_within(followed::WORK, graph, self_weights, flow, rule)
}

// `work` is the number of members and arcs that may be visited in cycles.
fn estimate_within(
    work: usize,
    graph: &CallGraph,
    self_weights: &IdVec<FunctionId, f64>,
    flow: &Flow,
    rule: Rule,
) -> Estimate {
    let flows = |id: ArcId, _: &CallArc| rule == Rule::Gprof2dot || flow.arcs[id] > 0.0;
    let cycles = Cycles::find_over(graph, flows);
    let mut model = Model::new(graph, &cycles, self_weights, flow, rule);
    let ids = cycles.members().ids();
    let mut entries: IdVec<CycleId, Entries> =
        (ids.map(|id| model.entries(id))).collect::<Vec<_>>().into();
    // A cycle costs its entries times its members and arcs; how many entries are followed is
    // settled before any of them is, so that the first cycles do not use up the work of the
    // others.
    let sizes = entries.enumerate().map(|(id, entries)| {
        let members = &cycles.members()[id];
        let callees = members.iter().map(|&id| graph.callees(id).len());
        (
            entries.members.len(),
            members.len() + callees.sum::<usize>(),
        )
    });
    let most = followed::most(&sizes.collect::<Vec<_>>(), work);
    for group in cycles.callees_first() {
        for function in cycles.functions_of(group) {
            model.add_callees_outside(function, group);
        }
        let cycle = (cycles.functions_of(group).next()).and_then(|function| cycles.of()[function]);
        match cycle {
            Some(cycle) => model.divide(cycle, &mut entries[cycle], most),
            None => {
                for function in cycles.functions_of(group) {
                    model.totals[function] = model.groups[group].total();
                }
            }
        }
    }
    let mut attribution = model.finish();
    let errors = entries.iter().map(|entries| entries.standard_error);
    attribution.standard_error = errors.fold(0.0, f64::max);
    Estimate {
        cycles,
        attribution,
        entries,
    }
}

struct Model<'a> {
    graph: &'a CallGraph,
    cycles: &'a Cycles,
    flow: &'a Flow,
    rule: Rule,
    // What came into each group from outside, and into each function from all others.
    into_group: IdVec<GroupId, f64>,
    into_function: IdVec<FunctionId, f64>,
    functions: IdVec<FunctionId, Portion>,
    totals: IdVec<FunctionId, f64>,
    groups: IdVec<GroupId, Portion>,
    arcs: IdVec<ArcId, Option<Portion>>,
    place: IdVec<FunctionId, u32>,
}

impl<'a> Model<'a> {
    fn new(
        graph: &'a CallGraph,
        cycles: &'a Cycles,
        self_weights: &IdVec<FunctionId, f64>,
        flow: &'a Flow,
        rule: Rule,
    ) -> Self {
        let functions = graph.functions();
        let mut model = Model {
            graph,
            cycles,
            flow,
            rule,
            into_group: IdVec::filled(0.0, cycles.groups()),
            into_function: IdVec::filled(0.0, functions),
            functions: IdVec::filled(Portion::default(), functions),
            totals: IdVec::filled(0.0, functions),
            groups: IdVec::filled(Portion::default(), cycles.groups()),
            arcs: IdVec::filled(None, graph.arcs().len()),
            place: IdVec::filled(0, functions),
        };
        for members in cycles.members() {
            for (place, &member) in (0..).zip(members) {
                model.place[member] = place;
            }
        }
        for (id, arc) in graph.arcs().enumerate().filter(|(_, arc)| !arc.is_self()) {
            model.arcs[id] = Some(Portion::default());
            model.into_function[arc.to] += flow.arcs[id];
            if !cycles.is_within(arc) {
                model.into_group[cycles.group(arc.to)] += flow.arcs[id];
            }
        }
        for function in graph.function_ids() {
            let group = cycles.group(function);
            model.functions[function].self_weight = self_weights[function];
            model.groups[group].self_weight += self_weights[function];
            // gprof2dot divides by the calls between functions only; what was called from outside
            // of the profile has a share as well.
            if rule == Rule::Sound {
                model.into_function[function] += flow.roots[function];
                model.into_group[group] += flow.roots[function];
            }
        }
        model
    }

    // The part of its callee that an arc stands for.
    fn ratio(&self, arc: ArcId) -> f64 {
        let to = self.graph.arcs()[arc].to;
        let into = if self.cycles.is_within(&self.graph.arcs()[arc]) {
            self.into_function[to]
        } else {
            self.into_group[self.cycles.group(to)]
        };
        self.rule.share(self.flow.arcs[arc], into)
    }

    // The part of its callee that an arc inside of a cycle stands for. What is too little for a
    // number still flows: alone it carries everything.
    fn inner_ratio(&self, arc: ArcId) -> f64 {
        match self.rule {
            Rule::Sound => self.ratio(arc).max(f64::MIN_POSITIVE),
            Rule::Gprof2dot => self.ratio(arc),
        }
    }

    fn flows(&self, arc: ArcId) -> bool {
        self.rule == Rule::Gprof2dot || self.flow.arcs[arc] > 0.0
    }

    // Callees outside of its group, which are done.
    fn add_callees_outside(&mut self, function: FunctionId, group: GroupId) {
        for id in self.graph.callees(function) {
            let arc = &self.graph.arcs()[id];
            if !self.cycles.is_within(arc) {
                let portion = self.groups[self.cycles.group(arc.to)] * self.ratio(id);
                self.arcs[id] = Some(portion);
                self.functions[function].children += portion.total();
                self.groups[group].children += portion.total();
            }
        }
    }

    // Divides the time of a cycle among its members, from at most `most` of its entries.
    fn divide(&mut self, cycle: CycleId, entries: &mut Entries, most: usize) {
        let chosen = followed::choose(&entries.members, most);
        entries.followed = chosen.len();
        let mut walks = Walks::through(self.inside(cycle), self.rule);
        if chosen.len() == entries.members.len() {
            let members = &self.cycles.members()[cycle];
            let totals = &mut self.totals;
            for entry in chosen {
                walks.follow(self.place[entry.entry], entry.part, |place, part| {
                    totals[members[place as usize]] += part;
                });
            }
            for (id, _, over) in walks.over() {
                self.arcs[id] = Some(over);
            }
        } else {
            entries.standard_error = self.divide_sampled(cycle, entries, &chosen, walks);
        }
    }

    // By a sample of the entries; returns the largest standard error. What begins at a member is
    // known: its part of the whole cycle. The sample tells what arrives from the other entries, and
    // stands for those only.
    fn divide_sampled(
        &mut self,
        cycle: CycleId,
        entries: &Entries,
        chosen: &[Followed],
        mut walks: Walks,
    ) -> f64 {
        let members = &self.cycles.members()[cycle];
        let mut arrived = vec![Arrived::default(); members.len()];
        for followed in chosen {
            let entry = self.place[followed.entry];
            walks.follow(entry, followed.part, |place, part| {
                if place != entry {
                    arrived[place as usize].add(part, followed.draws);
                }
            });
        }
        // For how much of other entries each member's sample has to stand, and stands so far.
        let all: f64 = entries.members.iter().map(|entry| entry.1).sum();
        let sampled: f64 = chosen.iter().map(|followed| followed.part).sum();
        let mut others = vec![(all, sampled); members.len()];
        let whole = self.groups[self.cycles.group_of_cycle(cycle)].total();
        for &(entry, part) in &entries.members {
            others[self.place[entry] as usize].0 -= part;
            self.totals[entry] += part * whole;
        }
        for followed in chosen {
            others[self.place[followed.entry] as usize].1 -= followed.part;
        }
        let factor = |place: u32| {
            let (all, sampled) = others[place as usize];
            if sampled > 0.0 {
                (all / sampled).max(0.0)
            } else {
                0.0
            }
        };
        let draws = chosen.iter().map(|followed| followed.draws).sum();
        let mut largest = 0.0f64;
        for ((place, &member), arrived) in (0..).zip(members).zip(&arrived) {
            self.totals[member] += factor(place) * (arrived.certain + arrived.drawn);
            largest = largest.max(factor(place) * arrived.standard_error(draws));
        }
        for (id, to, over) in walks.over() {
            self.arcs[id] = Some(over * factor(to));
        }
        largest
    }

    // The arcs of a cycle that time can be followed along.
    fn inside(&self, cycle: CycleId) -> Inside {
        let mut inside = Inside::default();
        for &member in &self.cycles.members()[cycle] {
            let arcs = self.graph.callees(member).filter_map(|id| {
                let to = self.graph.arcs()[id].to;
                let is_inside = to != member && self.cycles.share(member, to) && self.flows(id);
                is_inside.then(|| (self.place[to], id, self.inner_ratio(id)))
            });
            inside.push(self.functions[member], arcs);
        }
        inside
    }

    fn entries(&self, cycle: CycleId) -> Entries {
        let members = &self.cycles.members()[cycle];
        let into = self.into_group[self.cycles.group_of_cycle(cycle)];
        let mut entries: Vec<(FunctionId, f64)> = Vec::new();
        for &member in members {
            let outside = self
                .graph
                .callers(member)
                .filter(|&id| !self.cycles.is_within(&self.graph.arcs()[id]));
            let mut ratios = outside.map(|id| self.ratio(id)).peekable();
            let is_called = ratios.peek().is_some();
            let called: f64 = ratios.sum();
            match self.rule {
                Rule::Gprof2dot if is_called => entries.push((member, called)),
                Rule::Gprof2dot => {}
                Rule::Sound => {
                    let part = called + self.rule.share(self.flow.roots[member], into);
                    if part > 0.0 {
                        entries.push((member, part));
                    }
                }
            }
        }
        let are_known = !entries.is_empty();
        if !are_known && self.rule == Rule::Sound {
            let part = 1.0 / members.len() as f64;
            entries.extend(members.iter().map(|&member| (member, part)));
        }
        Entries {
            followed: entries.len(),
            members: entries,
            are_known,
            standard_error: 0.0,
        }
    }

    fn finish(self) -> Attribution {
        let mut roots = IdVec::filled(Portion::default(), self.graph.functions());
        for function in self.graph.function_ids() {
            let group = self.cycles.group(function);
            let into = self.into_group[group];
            roots[function] = if into > 0.0 && self.rule == Rule::Sound {
                self.groups[group] * (self.flow.roots[function] / into)
            } else if into > 0.0 || self.cycles.of()[function].is_some() {
                Portion::default()
            } else {
                self.groups[group]
            };
        }
        let cycles = self.cycles.members().enumerate().map(|(id, members)| {
            let group = self.cycles.group_of_cycle(id);
            let mut root = Portion::default();
            members.iter().for_each(|&member| root += roots[member]);
            CycleWeight {
                portion: self.groups[group],
                root: if self.into_group[group] > 0.0 {
                    root
                } else {
                    self.groups[group]
                },
            }
        });
        Attribution {
            standard_error: 0.0,
            cycles: cycles.collect::<Vec<_>>().into(),
            functions: self.functions,
            roots,
            totals: Some(self.totals),
            arcs: self.arcs,
        }
    }
}

// What arrived at a member of a cycle from other entries than itself.
#[derive(Clone, Copy, Default)]
struct Arrived {
    // From entries that stand for themselves.
    certain: f64,
    // From those that were drawn, and the sum of the squares of what each draw gave.
    drawn: f64,
    squares: f64,
}

impl Arrived {
    fn add(&mut self, part: f64, draws: u32) {
        if draws == 0 {
            self.certain += part;
        } else {
            self.drawn += part;
            self.squares += part * part / f64::from(draws);
        }
    }

    // The standard error of the sum of what was drawn, as of independent draws.
    fn standard_error(&self, draws: u32) -> f64 {
        let draws = f64::from(draws);
        let spread = self.squares - self.drawn * self.drawn / draws;
        (spread.max(0.0) * draws / (draws - 1.0)).sqrt()
    }
}
