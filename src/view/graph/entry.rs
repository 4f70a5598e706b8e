//! The lines of one entry, independent of columns.

use std::cmp::Ordering;

use super::GraphView;
use crate::analysis::attribution::Portion;
use crate::analysis::cut::AtMost;
use crate::analysis::graph::Entry;
use crate::callgraph::{ArcId, CallArc, CycleId, Origin};
use crate::profile::FunctionId;
use crate::view::label;
use crate::view::number::rounded;
use rustc_hash::FxHashMap;

/// How many callers or callees an entry names where not all were asked for.
const NEIGHBOURS: usize = 10;
/// How many members of a cycle it names then.
const MEMBERS: usize = 20;

/// The relation of a line to the entry that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It calls the entry.
    Caller,
    /// What the entry is about.
    Primary,
    /// A member, in the entry of its cycle.
    Member,
    /// The entry calls it.
    Callee,
}

/// The subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A function or a cycle.
    Entry(Entry),
    /// No caller: where stacks begin.
    Spontaneous,
    /// No caller that is known: where stacks are not whole.
    Unknown,
    /// This number of others, without names.
    More(usize),
}

/// A line of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its relation to the entry.
    pub relation: Relation,
    /// Its subject.
    pub who: Who,
    /// The weight of all samples that the line is about.
    pub total: Option<f64>,
    /// What it may be at most, where more than that is possible.
    pub at_most: Option<AtMost>,
    /// How it is shared.
    pub portion: Option<Portion>,
    /// The number of samples.
    pub samples: Option<u64>,
    /// The numbers of calls.
    pub called: Option<Called>,
    /// The evidence for an arc.
    pub origin: Option<Origin>,
    /// The same as text.
    pub evidence: Option<&'static str>,
    /// Whether most of the weight rests on restored frames.
    pub is_inferred: bool,
}

/// Numbers of calls, as gprof has them: `2/3`, `5+1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The numbers.
    pub text: String,
    /// Whether there may have been more.
    pub is_least: bool,
}

impl Line {
    fn more(relation: Relation, number: usize) -> Line {
        Line {
            relation,
            who: Who::More(number),
            total: None,
            at_most: None,
            portion: None,
            samples: None,
            called: None,
            origin: None,
            evidence: None,
            is_inferred: false,
        }
    }
}

/// A neighbour of an entry: one arc, or of a cycle all arcs to or from one function.
struct Neighbour {
    end: FunctionId,
    /// Whether the arc stays within the function, or within its cycle.
    is_self: bool,
    is_inside: bool,
    total: Option<f64>,
    portion: Option<Portion>,
    arc: CallArc,
    called: Option<Called>,
}

/// Numbers of calls, marked where there may have been more.
fn at_least(is_least: bool, calls: &dyn std::fmt::Display) -> Called {
    let mark = if is_least { "≥" } else { "" };
    Called {
        text: format!("{mark}{calls}"),
        is_least,
    }
}

impl Called {
    /// A part of these.
    fn of(self, all: Called) -> Called {
        Called {
            text: format!("{}/{}", self.text, all.text),
            is_least: self.is_least || all.is_least,
        }
    }
}

/// Calls of a cycle or of a member: `outside+inside`, the unknown callers counted as outside.
fn outside_and_inside(outside: u64, unknown: u64, inside: u64, is_least: bool) -> Called {
    let outside = outside.saturating_add(unknown);
    at_least(is_least, &format!("{outside}+{inside}"))
}

impl GraphView<'_> {
    /// The lines of an entry, from the first caller to the last callee.
    pub fn lines(&self, entry: Entry) -> Vec<Line> {
        match entry {
            Entry::Function(function) => self.function_lines(function),
            Entry::Cycle(cycle) => self.cycle_lines(cycle),
        }
    }

    fn function_lines(&self, function: FunctionId) -> Vec<Line> {
        let caller = |id: ArcId| self.neighbour(id, self.summary.graph.arcs()[id].from);
        let callee = |id: ArcId| self.neighbour(id, self.summary.graph.arcs()[id].to);
        let root = self.summary.attribution.roots[function];
        let mut lines = Vec::new();
        let mut callers = self.summary.graph.callers(function);
        let nobody = callers.all(|id| self.summary.graph.arcs()[id].is_self());
        if root.total() > 0.0 || nobody && self.summary.cycles.of()[function].is_none() {
            let line = self.spontaneous(root, self.summary.root_samples[function]);
            lines.push(if self.is_mark(function) {
                Line {
                    who: Who::Unknown,
                    ..line
                }
            } else {
                line
            });
        }
        let callers = self.summary.graph.callers(function).map(caller);
        self.add(&mut lines, Relation::Caller, callers);
        let entry = Entry::Function(function);
        lines.push(Line {
            samples: self.samples(function),
            called: self.called(function),
            is_inferred: self.is_inferred(function),
            ..self.line_of(entry, Relation::Primary)
        });
        let callees = self.summary.graph.callees(function).map(callee);
        self.add(&mut lines, Relation::Callee, callees);
        lines
    }

    fn cycle_lines(&self, cycle: CycleId) -> Vec<Line> {
        let members = &self.summary.cycles.members()[cycle];
        let arcs = |from_outside: bool| -> Vec<Neighbour> {
            let mut merged: FxHashMap<FunctionId, Neighbour> = FxHashMap::default();
            let mut order = Vec::new();
            for &member in members {
                let ids: Vec<ArcId> = if from_outside {
                    self.summary.graph.callers(member).collect()
                } else {
                    self.summary.graph.callees(member).collect()
                };
                for id in ids {
                    let arc = &self.summary.graph.arcs()[id];
                    let end = if from_outside { arc.from } else { arc.to };
                    if self.summary.cycles.of()[end] == Some(cycle) {
                        continue;
                    }
                    let other = self.neighbour(id, end);
                    match merged.get_mut(&end) {
                        Some(sum) => self.merge(sum, &other),
                        None => {
                            order.push(end);
                            merged.insert(end, other);
                        }
                    }
                }
            }
            order.iter().filter_map(|end| merged.remove(end)).collect()
        };
        let (callers, callees) = (arcs(true), arcs(false));
        let root = self.summary.attribution.cycles[cycle].root;
        let began = members
            .iter()
            .map(|&member| self.summary.root_samples[member])
            .sum();
        let entered: u64 = callers.iter().map(|caller| caller.arc.samples).sum();
        let mut lines = Vec::new();
        if root.total() > 0.0 || callers.is_empty() {
            lines.push(self.spontaneous(root, began));
        }
        self.add(&mut lines, Relation::Caller, callers);
        let entry = Entry::Cycle(cycle);
        let called = self.summary.calls.as_ref().map(|calls| {
            let calls = &calls.cycles[cycle];
            outside_and_inside(calls.outside, calls.unknown, calls.inside, calls.is_least)
        });
        lines.push(Line {
            // A stack enters a cycle once; where cycles were cut, it may enter again.
            samples: (self.summary.has_stacks() && self.summary.cycles.cut().is_empty())
                .then_some(began + entered),
            called,
            ..self.line_of(entry, Relation::Primary)
        });
        self.add_members(&mut lines, members);
        self.add(&mut lines, Relation::Callee, callees);
        lines
    }

    fn add_members(&self, lines: &mut Vec<Line>, members: &[FunctionId]) {
        let mut members = members.to_vec();
        let weight = |id: FunctionId| {
            let samples = self.summary.weights.total[id];
            (self.summary.portion(Entry::Function(id)).total(), samples)
        };
        members.sort_by(|&a, &b| {
            let ((a_weight, a_total), (b_weight, b_total)) = (weight(a), weight(b));
            (b_weight.total_cmp(&a_weight))
                .then(b_total.cmp(&a_total))
                .then(self.summary.ranks[a].cmp(&self.summary.ranks[b]))
        });
        let shown = if self.in_full { members.len() } else { MEMBERS };
        for &member in members.iter().take(shown) {
            let entry = Entry::Function(member);
            let called = self.summary.calls.as_ref().map(|calls| {
                let calls = &calls.functions[member];
                outside_and_inside(calls.outside, calls.unknown, calls.inside, calls.is_least)
            });
            lines.push(Line {
                samples: self.samples(member),
                called,
                is_inferred: self.is_inferred(member),
                ..self.line_of(entry, Relation::Member)
            });
        }
        if members.len() > shown {
            lines.push(Line::more(Relation::Member, members.len() - shown));
        }
    }

    /// The line of a function or a cycle itself, without what differs between the two.
    fn line_of(&self, entry: Entry, relation: Relation) -> Line {
        Line {
            relation,
            who: Who::Entry(entry),
            total: Some(self.summary.total(entry)),
            at_most: self.at_most(entry),
            portion: Some(self.summary.portion(entry)),
            samples: None,
            called: None,
            origin: None,
            evidence: None,
            is_inferred: false,
        }
    }

    /// The number of samples with a function on the stack; `None` without stacks.
    fn samples(&self, function: FunctionId) -> Option<u64> {
        let samples = self.summary.weights.samples[function];
        self.summary.has_stacks().then_some(samples)
    }

    fn spontaneous(&self, root: Portion, samples: u64) -> Line {
        Line {
            relation: Relation::Caller,
            who: Who::Spontaneous,
            total: Some(root.total()),
            at_most: None,
            portion: Some(root),
            samples: self.summary.has_stacks().then_some(samples),
            called: None,
            origin: None,
            evidence: None,
            is_inferred: false,
        }
    }

    /// What the total of an entry is at most, if that is more than it.
    fn at_most(&self, entry: Entry) -> Option<AtMost> {
        self.summary
            .total_max(entry)
            .filter(|most| most.weight > rounded(self.summary.total(entry)))
    }

    fn is_inferred(&self, function: FunctionId) -> bool {
        label::is_inferred(
            self.summary.weights.inferred[function],
            self.summary.weights.total[function],
        )
    }

    fn neighbour(&self, id: ArcId, end: FunctionId) -> Neighbour {
        let arc = self.summary.graph.arcs()[id];
        let (total, portion) = self.summary.weight(id);
        let is_inside = self.summary.cycles.share(arc.from, arc.to);
        let within = arc.is_self() || is_inside;
        // Where nothing was counted, as in the kernel, there is nothing to say.
        let counted =
            |&calls: &u64| calls > 0 || self.calls_into(arc.to) > 0 || !self.summary.has_stacks();
        let called = arc.calls.filter(counted).map(|calls| {
            let calls = at_least(arc.calls_are_least, &calls);
            if within {
                calls
            } else {
                calls.of(self.shown_calls_into(arc.to))
            }
        });
        Neighbour {
            end,
            is_self: arc.is_self(),
            is_inside,
            total,
            portion: portion.filter(|_| !arc.is_self()),
            arc,
            called,
        }
    }

    /// Adds another arc to or from the same function outside of a cycle.
    fn merge(&self, sum: &mut Neighbour, other: &Neighbour) {
        sum.total = sum.total.zip(other.total).map(|(a, b)| a + b);
        sum.portion = sum.portion.zip(other.portion).map(|(a, b)| a + b);
        sum.arc.samples = sum.arc.samples.saturating_add(other.arc.samples);
        sum.arc.weight = sum.arc.weight.saturating_add(other.arc.weight);
        sum.arc.inferred = sum.arc.inferred.saturating_add(other.arc.inferred);
        let calls = sum.arc.calls.zip(other.arc.calls);
        sum.arc.calls = calls.map(|(a, b)| a.saturating_add(b));
        sum.arc.calls_are_least |= other.arc.calls_are_least;
        sum.called = None;
        if let Some((calls, _)) = sum.arc.calls.zip(self.summary.calls.as_ref()) {
            // Of the callee's group: the same for all, or of callees, each of its own.
            let calls = at_least(sum.arc.calls_are_least, &calls);
            sum.called = Some(calls.of(self.shown_calls_into(other.arc.to)));
        }
    }

    /// The calls by which a function is divided: those from outside of its group.
    fn calls_into(&self, function: FunctionId) -> u64 {
        let Some(calls) = &self.summary.calls else {
            return 0;
        };
        let (outside, unknown) = match self.summary.cycles.of()[function] {
            Some(cycle) => (calls.cycles[cycle].outside, calls.cycles[cycle].unknown),
            None => {
                let calls = &calls.functions[function];
                (calls.outside, calls.unknown)
            }
        };
        outside.saturating_add(unknown)
    }

    /// The same as it is shown.
    fn shown_calls_into(&self, function: FunctionId) -> Called {
        let is_least = self.summary.calls.as_ref().is_some_and(|calls| {
            match self.summary.cycles.of()[function] {
                Some(cycle) => calls.cycles[cycle].is_least,
                None => calls.functions[function].is_least,
            }
        });
        at_least(is_least, &self.calls_into(function))
    }

    fn called(&self, function: FunctionId) -> Option<Called> {
        let calls = &self.summary.calls.as_ref()?.functions[function];
        let others = calls.by_others().saturating_add(calls.unknown);
        let all = match (others, calls.recursive) {
            (0, 0) => return None,
            (others, 0) => others.to_string(),
            (others, recursive) => format!("{others}+{recursive}"),
        };
        Some(at_least(calls.is_least, &all))
    }

    /// Adds lines for neighbours: callers with the heaviest last, callees with the heaviest first.
    /// Calls of itself and calls within the cycle stand farthest away.
    fn add(
        &self,
        lines: &mut Vec<Line>,
        relation: Relation,
        neighbours: impl IntoIterator<Item = Neighbour>,
    ) {
        let limit = if self.in_full { usize::MAX } else { NEIGHBOURS };
        let mut shown = Vec::new();
        let mut hidden = 0;
        let keep_heaviest = |shown: &mut Vec<Neighbour>| {
            shown.sort_by(|a, b| self.lighter(a, b));
            let lightest = shown.len().saturating_sub(limit);
            shown.drain(..lightest).len()
        };
        // A mark can have a million callees, and a neighbour takes 160 bytes.
        for neighbour in neighbours {
            shown.push(neighbour);
            if shown.len() > limit.saturating_mul(2) {
                hidden += keep_heaviest(&mut shown);
            }
        }
        hidden += keep_heaviest(&mut shown);
        let rows = shown.into_iter().map(|neighbour| Line {
            relation,
            who: Who::Entry(Entry::Function(neighbour.end)),
            total: neighbour.total,
            at_most: None,
            portion: neighbour.portion,
            samples: self.summary.has_stacks().then_some(neighbour.arc.samples),
            called: neighbour.called,
            origin: Some(neighbour.arc.origin()),
            evidence: Some(neighbour.arc.evidence()),
            // What is known of the arc stands in a column of its own.
            is_inferred: false,
        });
        let mut rows: Vec<Line> = rows.collect();
        if hidden > 0 {
            rows.insert(0, Line::more(relation, hidden));
        }
        if relation == Relation::Callee {
            rows.reverse();
        }
        lines.extend(rows);
    }

    fn lighter(&self, a: &Neighbour, b: &Neighbour) -> Ordering {
        let kind = |n: &Neighbour| (!n.is_self, !n.is_inside);
        let total = |n: &Neighbour| n.total.unwrap_or(0.0);
        let rest = |n: &Neighbour| (n.arc.calls, n.arc.sites());
        // Who is seen only in the code stands behind everybody else.
        (a.arc.is_observed().cmp(&b.arc.is_observed()))
            .then(kind(a).cmp(&kind(b)))
            .then(total(a).total_cmp(&total(b)))
            .then(rest(a).cmp(&rest(b)))
            .then(self.summary.ranks[b.end].cmp(&self.summary.ranks[a.end]))
    }
}
