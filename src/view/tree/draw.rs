//! Collapsed stacks as a drawing: the tree's nodes merged to functions, its stubs as dashed arrows.

use rustc_hash::FxHashMap;

use crate::analysis::flat::Summary;
use crate::analysis::tree::TreeArc;
use crate::profile::FunctionId;
use crate::view::drawing::{Arrow, Drawing, Node};
use crate::view::graph::Pruning;
use crate::view::{Subject, label, number, range};

/// Functions coloured by their totals and arcs by their weights, each sample counted once. What is
/// folded is a dashed arrow to the function that the call leads back to, with the share of the
/// samples that took it. What is too small is left out. `arcs` are those of the collapsed stacks.
pub fn drawing(
    subject: &Subject,
    Summary {
        weights, hidden, ..
    }: &Summary,
    arcs: &[TreeArc],
    pruning: Pruning,
) -> Drawing {
    let whole = subject.selection.total();
    let share = |part: u64| part as f64 / whole.max(1) as f64;
    let percent = |part: u64| format!("{}%", number::percent(part, whole, 2));
    let total_of = |id: FunctionId| {
        let total = weights.total[id];
        let most = range::cell(total, hidden.at_most[id].plus(total), whole);
        format!("{}{}", percent(total), range::behind(subject, most, "%"))
    };
    let shown: Vec<FunctionId> = weights
        .present()
        .filter(|&id| share(weights.total[id]) * 100.0 >= pruning.node)
        .collect();
    let labels = subject.labels(shown.iter().copied());
    let nodes = shown.iter().map(|&id| Node {
        name: label::marked(labels.label(id), weights.inferred[id], weights.total[id]),
        lines: vec![
            total_of(id),
            format!("({})", percent(weights.self_weight[id])),
        ],
        tooltip: subject.with_module(subject.name(id), id),
        heat: Some(share(weights.total[id])),
        frame: None,
    });
    let place: FxHashMap<FunctionId, usize> = shown.iter().copied().zip(0..).collect();
    let arrows = arcs.iter().filter_map(|arc| {
        let (&from, &to) = (place.get(&arc.from)?, place.get(&arc.to)?);
        let again = if arc.folded { "again " } else { "" };
        (share(arc.weight) * 100.0 >= pruning.edge).then(|| Arrow {
            from,
            to,
            label: format!("{again}{}", percent(arc.weight)).into(),
            calls: None,
            heat: Some(share(arc.weight)),
            dashed: arc.folded,
        })
    });
    Drawing {
        nodes: nodes.collect(),
        arrows: arrows.collect(),
        frames: Vec::new(),
    }
}
