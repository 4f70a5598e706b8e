//! The heaviest paths of a call tree as a few lines of it.

use rustc_hash::FxHashMap;

use super::folds::{self, Fold};
use super::{Hidden, Options, Tree};
use crate::analysis::owners::{OwnerKind, Owners};
use crate::analysis::tree::{CallTree, Collapse, HotPaths, Node, NodeId, Rest};
use crate::base::IdVec;
use crate::view::table::{Cell, Column, Role, Table};
use crate::view::{Subject, number};

/// The most lines of a path.
const PATH: usize = 10;
/// Lines with a smaller part of all samples can be left out.
const HEAVY: f64 = 0.1;

/// The paths, with the lines chosen that are shown.
#[derive(Clone, Debug)]
pub struct HotLines<'a> {
    tree: Tree<'a>,
    /// The number of nodes of the first path.
    first: usize,
    /// For each line the callees that are on no other line.
    rest: FxHashMap<NodeId, Rest>,
}

impl<'a> HotLines<'a> {
    /// Chooses at most this number of lines, and names them. Chains of calls outside of the user's
    /// own code are one line each. Where there is no room for all heavy lines then, so are chains
    /// of other functions. Where there still are too many, the innermost are left out.
    pub fn new(
        subject: &Subject,
        paths: &'a HotPaths,
        owners: &Owners,
        lines: usize,
    ) -> HotLines<'a> {
        let calls = &paths.tree.calls;
        let all: Vec<NodeId> = calls.nodes.ids().collect();
        let is_joined = |caller: &Node, callee: &Node| folds::is_joined(subject, caller, callee);
        let is_any = |node: &Node| owners.of(node.function).kind != OwnerKind::Mark;
        let total = subject.selection.total();
        let mut folds = folds::foreign_chains(subject, calls, &all, owners);
        let mut shown = choose(paths, &all, &folds, lines, total);
        if shown.is_cut {
            folds = folds::chains(calls, &all, owners, is_any, is_joined);
            shown = choose(paths, &all, &folds, lines, total);
        }
        let mut rest: FxHashMap<NodeId, Rest> = FxHashMap::default();
        for id in calls.nodes.ids().filter(|&id| shown.lines[id]) {
            let mut left = paths.rest[id];
            for callee in calls.children(id).filter(|&id| !shown.on_page[id]) {
                left.add(&calls.nodes.at(callee));
            }
            rest.insert(id, left);
        }
        let functions = calls
            .nodes
            .ids()
            .filter(|&id| shown.lines[id])
            .map(|id| calls.nodes.at(id).function);
        let labels = subject.labels(functions);
        folds.retain(|&last, _| shown.lines[last]);
        let tree = Tree {
            summary: &paths.tree,
            shown: shown.lines,
            hidden: 0,
            reasons: Hidden::default(),
            folds,
            options: Options::default(),
            labels,
        };
        let first = paths.first;
        HotLines { tree, first, rest }
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.tree.nodes().count()
    }

    /// Whether there are lines of a second path.
    pub fn has_second(&self) -> bool {
        let second = self.tree.summary.calls.nodes.ids().skip(self.first);
        second.into_iter().any(|id| self.tree.shown[id])
    }

    /// Whether recursion is collapsed.
    pub fn is_collapsed(&self) -> bool {
        self.tree.summary.calls.collapse != Collapse::None
    }

    /// Whether it has no paths.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lines, each with what its function calls besides.
    pub fn table(&self, subject: &Subject) -> Table {
        // How much came through collapsed calls is for the tree to show.
        let mut table = self
            .tree
            .drawing(subject)
            .without(&["via_collapsed_percent"]);
        let whole = subject.selection.total();
        let name = table.columns.iter().position(|column| column.key == "name");
        let place = name.unwrap_or(table.columns.len());
        let column = Column::new("other_callees", "other callees", Role::Figure);
        table.columns.insert(place, column);
        for (id, row) in self.tree.nodes().zip(&mut table.rows) {
            let node = self.tree.node(id);
            let rest = self.rest.get(&id).copied().unwrap_or_default();
            // No more than what does not end in it.
            let weight = rest.weight.min(node.weight().saturating_sub(node.in_only));
            let limit = if rest.is_limit { "≤ " } else { "" };
            let text = format!(
                "{} ({limit}{} %)",
                number::grouped(rest.callees as u64),
                number::percent(weight, whole, 2)
            );
            let cell = match rest.callees {
                0 => Cell::Nothing,
                _ => Cell::Text(text),
            };
            row.insert(place, cell);
        }
        table
    }
}

/// Which nodes of paths are lines.
struct Chosen {
    /// Those that are a line.
    lines: IdVec<NodeId, bool>,
    /// And those that are folded into one.
    on_page: IdVec<NodeId, bool>,
    /// Whether there was no room for a heavy one.
    is_cut: bool,
}

fn choose(
    paths: &HotPaths,
    all: &[NodeId],
    folds: &FxHashMap<NodeId, Fold>,
    lines: usize,
    total: u64,
) -> Chosen {
    let calls = &paths.tree.calls;
    let mut is_folded: IdVec<NodeId, bool> = IdVec::filled(false, all.len());
    for (&last, fold) in folds {
        for id in fold.others(calls, last) {
            is_folded[id] = true;
        }
    }
    let (first, second) = all.split_at(paths.first);
    // The second path has a third of the lines if there are enough for two, or what the first one
    // leaves.
    let length = |path: &[NodeId]| path.iter().filter(|&&id| !is_folded[id]).count();
    let needed = [first, second].map(length);
    let third = if lines < PATH { 0 } else { lines / 3 };
    let room_of_second = needed[1].min(third.max(lines.saturating_sub(needed[0])));
    let filled = |of_second: usize| {
        let room = [lines.saturating_sub(of_second), of_second];
        let paths = [first, second].into_iter().zip(room.map(|it| it.min(PATH)));
        filled(calls, paths, &is_folded, total)
    };
    let chosen = filled(room_of_second);
    // It cannot be shown where it leaves the first one further in than there is room for.
    match second.iter().any(|&id| chosen.lines[id]) {
        true => chosen,
        false => filled(0),
    }
}

/// The lines of paths, each with its room.
fn filled<'a>(
    calls: &CallTree,
    paths: impl Iterator<Item = (&'a [NodeId], usize)>,
    is_folded: &IdVec<NodeId, bool>,
    total: u64,
) -> Chosen {
    let mut chosen = Chosen {
        lines: IdVec::filled(false, is_folded.len()),
        on_page: IdVec::filled(false, is_folded.len()),
        is_cut: false,
    };
    for (path, room) in paths {
        // The nodes of a chain are on the page if its last one is.
        let mut waiting: Vec<NodeId> = Vec::new();
        let mut lines = 0;
        // The second path starts at a node of the first that is a line.
        let start = path.first().and_then(|&id| calls.nodes.at(id).parent);
        if start.is_some_and(|start| !chosen.lines[start]) {
            continue;
        }
        for &id in path {
            waiting.push(id);
            if is_folded[id] {
                continue;
            }
            if lines == room {
                let weight = calls.nodes.at(id).weight() as f64;
                chosen.is_cut |= weight >= total as f64 * HEAVY;
                break;
            }
            lines += 1;
            chosen.lines[id] = true;
            for id in waiting.drain(..) {
                chosen.on_page[id] = true;
            }
        }
    }
    chosen
}
