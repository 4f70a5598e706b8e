//! The call graph with its weights as a drawing, after gprof2dot.

use rustc_hash::FxHashMap;

use super::GraphView;
use crate::analysis::graph::Entry;
use crate::names::Label;
use crate::profile::FunctionId;
use crate::view::drawing::{Arrow, Drawing, Node};
use crate::view::number::rounded;
use crate::view::table::Cell;
use crate::view::{Subject, label, number, range};

/// What is too small to be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pruning {
    /// The least total of a function, in percent.
    pub node: f64,
    /// The least weight of an arc, in percent.
    pub edge: f64,
}

impl Default for Pruning {
    /// What gprof2dot leaves out when nothing is asked for.
    fn default() -> Pruning {
        Pruning {
            node: 0.5,
            edge: 0.1,
        }
    }
}

impl GraphView<'_> {
    /// Functions coloured by their totals and arcs by their weights, each cycle in a frame; arcs
    /// that only the code has are dashed. What is too small is left out.
    pub fn drawing(&self, subject: &Subject, pruning: Pruning) -> Drawing {
        let whole = subject.selection.total();
        let share = |part: f64| part / whole.max(1) as f64;
        let percent = |part: f64| format!("{}%", number::percent(rounded(part), whole, 2));
        let total_of = |entry| {
            let total = self.summary.total(entry);
            let most = self.summary.total_max(entry).map_or(Cell::Nothing, |most| {
                range::cell(rounded(total), most, whole)
            });
            format!("{}{}", percent(total), range::behind(subject, most, "%"))
        };
        let reaches = |part: f64, least: f64| share(part) * 100.0 >= least;
        let shown: Vec<FunctionId> = self
            .functions()
            .filter(|&id| reaches(self.summary.total(Entry::Function(id)), pruning.node))
            .collect();
        let place: FxHashMap<FunctionId, usize> = shown.iter().copied().zip(0..).collect();
        let mut drawing = Drawing::default();
        let mut frames = FxHashMap::default();
        for &cycle in &self.summary.cycle_order {
            let members = &self.summary.cycles.members()[cycle];
            if members.iter().any(|member| place.contains_key(member)) {
                frames.insert(cycle, drawing.frames.len());
                let total = total_of(Entry::Cycle(cycle));
                let number = self.summary.number(cycle);
                drawing.frames.push(format!("cycle {number}: {total}"));
            }
        }
        for &id in &shown {
            let (total, own) = (
                self.summary.total(Entry::Function(id)),
                self.summary.portion(Entry::Function(id)).self_weight,
            );
            let mut lines = vec![total_of(Entry::Function(id)), format!("({})", percent(own))];
            if let Some(calls) = &self.summary.calls {
                let calls = &calls.functions[id];
                let mark = if calls.is_least { "≥" } else { "" };
                lines.extend(calls.known().map(|calls| format!("{mark}{calls}×")));
            }
            let weights = &self.summary.weights;
            drawing.nodes.push(Node {
                name: label::marked(self.label(id), weights.inferred[id], weights.total[id]),
                lines,
                tooltip: subject.with_module(subject.name(id), id),
                heat: Some(share(total)),
                frame: self.summary.cycles.of()[id].and_then(|cycle| frames.get(&cycle).copied()),
            });
        }
        for (id, arc) in self.summary.graph.arcs().enumerate() {
            let (Some(&from), Some(&to)) = (place.get(&arc.from), place.get(&arc.to)) else {
                continue;
            };
            let weight = self.summary.weight(id).0;
            let within = self.summary.cycles.is_within(arc);
            let is_small = weight.is_some_and(|weight| !reaches(weight, pruning.edge));
            if arc.is_observed() && is_small && !within {
                continue;
            }
            let weight = weight.filter(|_| arc.is_observed());
            let calls = arc.calls.filter(|&calls| calls > 0).map(|calls| {
                let mark = if arc.calls_are_least { "≥" } else { "" };
                format!("{mark}{calls}×")
            });
            drawing.arrows.push(Arrow {
                from,
                to,
                label: weight.map_or_else(Label::default, |weight| {
                    Label::from(percent(weight)).with(label::mark(arc))
                }),
                calls,
                heat: weight.map(share),
                dashed: !arc.is_observed(),
            });
        }
        drawing
    }
}
