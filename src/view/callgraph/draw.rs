//! The call graph as a drawing.

use super::{CallGraphView, kinds};
use crate::view::Subject;
use crate::view::drawing::{Arrow, Drawing, Node};
use crate::view::number;

impl CallGraphView<'_> {
    /// The functions and arcs of the part. Arcs that no sample shows are dashed where there are
    /// samples, and pointers that are taken everywhere.
    pub fn drawing(&self, subject: &Subject) -> Drawing {
        let whole = subject.selection.total();
        let share = |part: u64| part as f64 / (whole.max(1)) as f64;
        let mut drawing = Drawing::default();
        for &cycle in &self.complete {
            drawing.frames.push(format!("cycle {}", cycle.index() + 1));
        }
        for &id in &self.functions {
            let mut node = Node {
                name: self.label(id),
                tooltip: subject.with_module(subject.name(id), id),
                lines: Vec::new(),
                heat: None,
                frame: self.cycle(id),
            };
            if let Some(measured) = &self.summary.measured {
                let (total, own) = (measured.weights.total[id], measured.weights.self_weight[id]);
                let percent = |part| number::percent(part, whole, 2);
                node.lines.push(format!("{}%", percent(total)));
                node.lines.push(format!("({}%)", percent(own)));
                node.heat = Some(share(total));
            }
            drawing.nodes.push(node);
        }
        for arc in self.arcs.iter().map(|&arc| &self.summary.graph.arcs()[arc]) {
            let (label, heat) = match self.summary.measured {
                Some(_) if arc.is_observed() => {
                    let percent = number::percent(arc.weight, whole, 2);
                    (format!("{percent}%"), Some(share(arc.weight)))
                }
                Some(_) => (String::new(), None),
                None => (kinds(arc), None),
            };
            drawing.arrows.push(Arrow {
                from: self.index(arc.from),
                to: self.index(arc.to),
                label: label.into(),
                calls: None,
                heat,
                dashed: !arc.is_call() || self.summary.measured.is_some() && !arc.is_observed(),
            });
        }
        drawing
    }
}
