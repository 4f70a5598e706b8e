//! Time inside of cycles, estimated from numbers of calls (José Fonseca's propagation).
//!
//! gprof's rule says what flows into a cycle and out of it, and leaves the members without totals.
//! Time being additive, the cycle can be taken once for each member that is called from outside,
//! with that member's part of the calls, and followed from there only away from it:
//!
//! ```text
//!   main ─1▶ a         entry a        a 60 ─▶ b 50       a ⇄ b: the arc back carries nothing
//!            a ⇄ b     level 0  a     10      └ 30 own, 20 of c
//!            b ─▶ c          1  b             a: 10 own, 50 of b
//! ```
//!
//! The levels are distances from the entry; arcs to the next level carry time back, all others do
//! not. So a member that is mostly called on its own level or from below gets too little, and an
//! entry gets all that its calls started: it is an estimate, and where stacks are there they know
//! better.
//!
//! After J. Fonseca, "Gprof2dot: time propagation inside cycles", 2008, which gives the idea, and
//! `_integrate_cycle` of gprof2dot, which decides the rest.

use super::attribution::{Attribution, CycleWeight, Portion};
use super::flow::Flow;
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallArc, CallGraph, CycleId, Cycles, GroupId};
use crate::profile::FunctionId;

/// How many members and arcs may be visited in a cycle: entries times its size. Where it would be
/// more, the entries with most calls stand for the others.
const WORK: usize = 1 << 28;

/// What is done where the idea leaves a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Arcs without flow form no cycle and carry nothing; roots are callers; a cycle that nobody is
    /// known to enter is entered at all members alike. Then what arrives at the entries is the time
    /// of the cycle, and no member has more.
    #[default]
    Sound,
    /// As gprof2dot does it: any arc forms cycles, nothing divided by nothing is all, and a cycle
    /// that nobody enters gives its members nothing. For comparison.
    Gprof2dot,
}

/// Where a cycle is entered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// The members with the parts of the cycle's time that begin there, in order of id.
    pub members: Vec<(FunctionId, f64)>,
    /// Whether these are known: otherwise nothing tells how the cycle was entered.
    pub are_known: bool,
    /// How many more members are entered, for which these stand.
    pub left_out: usize,
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

/// Estimates times by the functions' own weights and `flow`. All arcs of the graph are taken for
/// calls: [`CallGraph::without`] leaves others out. Linear in functions and arcs outside of cycles;
/// in a cycle by the number of its entries.
pub fn estimate(
    graph: &CallGraph,
    self_weights: &IdVec<FunctionId, f64>,
    flow: &Flow,
    rule: Rule,
) -> Estimate {
    let flows = |arc: &CallArc| {
        rule == Rule::Gprof2dot
            || graph
                .arc_between(arc.from, arc.to)
                .is_some_and(|id| flow.arcs[id] > 0.0)
    };
    let cycles = Cycles::find(graph, flows);
    let mut model = Model::new(graph, &cycles, self_weights, flow, rule);
    let mut entries = IdVec::filled(Entries::default(), cycles.members().len());
    for group in cycles.callees_first() {
        for function in cycles.functions_of(group) {
            model.add_callees_outside(function, group);
        }
        let cycle = (cycles.functions_of(group).next()).and_then(|function| cycles.of()[function]);
        match cycle {
            Some(cycle) => entries[cycle] = model.divide(cycle),
            None => {
                for function in cycles.functions_of(group) {
                    model.totals[function] = model.groups[group].total();
                }
            }
        }
    }
    let attribution = model.finish();
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
    /// What came into each group from outside, and into each function from all others.
    into_group: IdVec<GroupId, f64>,
    into_function: IdVec<FunctionId, f64>,
    functions: IdVec<FunctionId, Portion>,
    totals: IdVec<FunctionId, f64>,
    groups: IdVec<GroupId, Portion>,
    arcs: IdVec<ArcId, Option<Portion>>,
    /// Of the entry at hand: distances, what the arcs from the level before add up to in parts and
    /// number, and the part of each member.
    level: IdVec<FunctionId, Option<u32>>,
    shared: IdVec<FunctionId, (f64, u32)>,
    part: IdVec<FunctionId, f64>,
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
            arcs: IdVec::filled(None, graph.arcs.len()),
            level: IdVec::filled(None, functions),
            shared: IdVec::filled((0.0, 0), functions),
            part: IdVec::filled(0.0, functions),
        };
        for (id, arc) in graph.arcs.enumerate().filter(|(_, arc)| !arc.is_self()) {
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
            if rule == Rule::Sound {
                model.into_function[function] += flow.roots[function];
                model.into_group[group] += flow.roots[function];
            }
        }
        model
    }

    fn share(&self, part: f64, of: f64) -> f64 {
        match (of > 0.0, self.rule) {
            (true, _) => (part / of).clamp(0.0, 1.0),
            (false, Rule::Sound) => 0.0,
            (false, Rule::Gprof2dot) => 1.0,
        }
    }

    /// The part of its callee that an arc stands for.
    fn ratio(&self, arc: ArcId) -> f64 {
        let to = self.graph.arcs[arc].to;
        let into = if self.cycles.is_within(&self.graph.arcs[arc]) {
            self.into_function[to]
        } else {
            self.into_group[self.cycles.group(to)]
        };
        self.share(self.flow.arcs[arc], into)
    }

    /// Whether an arc is there at all.
    fn flows(&self, arc: ArcId) -> bool {
        self.rule == Rule::Gprof2dot || self.flow.arcs[arc] > 0.0
    }

    /// Gives a function what comes from callees outside of its group, which are done.
    fn add_callees_outside(&mut self, function: FunctionId, group: GroupId) {
        for id in self.graph.callees(function) {
            let arc = &self.graph.arcs[id];
            if !self.cycles.is_within(arc) {
                let portion = self.groups[self.cycles.group(arc.to)] * self.ratio(id);
                self.arcs[id] = Some(portion);
                self.functions[function].children += portion.total();
                self.groups[group].children += portion.total();
            }
        }
    }

    /// Divides the time of a cycle among its members.
    fn divide(&mut self, cycle: CycleId) -> Entries {
        let members = &self.cycles.members()[cycle];
        let graph = self.graph;
        let inside = members.iter().flat_map(|&member| graph.callees(member));
        let size = members.len() + inside.count();
        let entries = self.entries(cycle, (WORK / size).max(1));
        for &(entry, part) in &entries.members {
            self.divide_from(entry, part);
        }
        entries
    }

    /// The members at which a cycle is entered; the first `most` by their parts.
    fn entries(&self, cycle: CycleId, most: usize) -> Entries {
        let members = &self.cycles.members()[cycle];
        let into = self.into_group[self.cycles.group_of_cycle(cycle)];
        let mut entries: Vec<(FunctionId, f64)> = Vec::new();
        for &member in members {
            let outside = self.graph.callers(member);
            let outside = outside.filter(|&id| !self.cycles.is_within(&self.graph.arcs[id]));
            let mut ratios = outside.map(|id| self.ratio(id)).peekable();
            let is_called = ratios.peek().is_some();
            let called: f64 = ratios.sum();
            match self.rule {
                Rule::Gprof2dot if is_called => entries.push((member, called)),
                Rule::Gprof2dot => {}
                Rule::Sound => {
                    let part = called + self.share(self.flow.roots[member], into);
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
        let left_out = entries.len().saturating_sub(most);
        if left_out > 0 {
            let all: f64 = entries.iter().map(|entry| entry.1).sum();
            entries.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            entries.truncate(most);
            let kept: f64 = entries.iter().map(|entry| entry.1).sum();
            if kept > 0.0 {
                entries.iter_mut().for_each(|entry| entry.1 *= all / kept);
            }
            entries.sort_by_key(|entry| entry.0);
        }
        Entries {
            members: entries,
            are_known,
            left_out,
        }
    }

    /// Adds what begins at one entry: `part` of the time of its cycle.
    fn divide_from(&mut self, entry: FunctionId, part: f64) {
        let graph = self.graph;
        let mut order = vec![entry];
        self.level[entry] = Some(0);
        let mut next = 0;
        while let Some(&member) = order.get(next) {
            next += 1;
            let below = self.level[member].map(|level| level + 1);
            for id in graph.callees(member) {
                let to = graph.arcs[id].to;
                if self.cycles.share(member, to) && self.flows(id) {
                    if self.level[to].is_none() {
                        self.level[to] = below;
                        order.push(to);
                    }
                    if self.level[to] == below {
                        self.shared[to].0 += self.ratio(id);
                        self.shared[to].1 += 1;
                    }
                }
            }
        }
        for &member in order.iter().rev() {
            let below = self.level[member].map(|level| level + 1);
            let mut total = part * self.functions[member].total();
            for id in graph.callees(member) {
                let to = graph.arcs[id].to;
                if !self.cycles.share(member, to) || !self.flows(id) || self.level[to] != below {
                    continue;
                }
                let (ratios, number) = self.shared[to];
                let share = match self.rule {
                    Rule::Sound if ratios <= 0.0 => 1.0 / f64::from(number.max(1)),
                    _ => self.share(self.ratio(id), ratios),
                };
                let time = share * self.part[to];
                let own = share * part * self.functions[to].self_weight;
                total += time;
                let portion = Portion {
                    self_weight: own,
                    children: (time - own).max(0.0),
                };
                self.arcs[id] = Some(self.arcs[id].unwrap_or_default() + portion);
            }
            self.part[member] = total;
            self.totals[member] += total;
        }
        for member in order {
            self.level[member] = None;
            self.shared[member] = (0.0, 0);
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
                root: match self.into_group[group] > 0.0 {
                    true => root,
                    false => self.groups[group],
                },
            }
        });
        Attribution {
            cycles: cycles.collect::<Vec<_>>().into(),
            functions: self.functions,
            roots,
            totals: Some(self.totals),
            arcs: self.arcs,
        }
    }
}
