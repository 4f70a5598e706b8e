//! The calls as a tree that is opened node by node.

use proftool::analysis::owners::Owners;
use proftool::analysis::tree::{CallTree, Collapse, Node, NodeId, Options, Stacks, Summary};
use proftool::base::IdVec;
use proftool::view::Subject;
use proftool::view::number;
use proftool::view::range;
use proftool::view::table::{Cell, Column, Role};
use proftool::view::tree::{Folds, VIA_COLLAPSED, figures};
use rustc_hash::FxHashSet;

use super::listing::{Branch, Fold, Key, Line, Listing, Look, key, key_of};
use super::wish::{Hot, Opened, Search};

// Levels that are opened along the heaviest path.
const HOT_LEVELS: usize = 256;

// The least share of a line that keeps chains apart, in percent.
const MIN: f64 = 0.5;

// A tree, with all that does not depend on which of its nodes are open.
pub struct Made {
    pub tree: Summary,
    // The chains of library calls that are one line each.
    folds: Folds,
}

// Makes the tree in the degree that is asked for, or in the one that `proftool tree` chooses.
pub fn make(subject: &Subject, degree: Option<Collapse>, owners: &Owners) -> Made {
    let options = degree.map_or(Options::default(), Options::of);
    let tree = Summary::of(Stacks::new(subject.profile, subject.selection), &options);
    Made {
        folds: Folds::new(subject, &tree.calls, owners, MIN),
        tree,
    }
}

pub struct Shown {
    pub listing: Listing,
    // What was opened along the heaviest path, if that was asked for and is there.
    pub hot: Option<HotPath>,
    // The nodes that are no line, as a chain of calls is one.
    pub folded: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotPath {
    pub opened: Vec<Key>,
    // The first node on it that has more than one under it, or else the last one.
    pub fork: Key,
    // The last node on it.
    pub end: Key,
}

// A search shows every frame.
pub fn listing(subject: &Subject, made: &Made, opened: &Opened, search: &Search) -> Shown {
    let Made { tree, folds } = made;
    let calls = &tree.calls;
    let mut walk = Walk {
        subject,
        calls,
        folds: (!search.is_on() && !opened.unfolded).then_some(folds),
        opened: &opened.nodes,
        found: found(subject, calls, search),
        keys: Vec::new(),
        hot: Vec::new(),
        folded: Vec::new(),
        fork: None,
        end: None,
        shown: Vec::new(),
    };
    walk.run(opened.hot);
    let hot = walk.end.map(|end| HotPath {
        opened: std::mem::take(&mut walk.hot),
        fork: walk.fork.unwrap_or(end),
        end,
    });
    let shown = std::mem::take(&mut walk.shown);
    let labels = subject.labels(shown.iter().map(|(_, node, ..)| node.function));
    let whole = subject.selection.total();
    let unfolded = Folds::default();
    let folds = walk.folds.unwrap_or(&unfolded);
    let lines: Vec<Line> = shown
        .iter()
        .map(|&(id, node, key, branch)| {
            let mut cells = figures(tree, id, whole);
            cells.push(Cell::name(folds.what(&node, id, &labels, whole)));
            Line {
                key,
                function: Some(node.function),
                cells,
                look: Look::Plain,
                branch: Some(branch),
            }
        })
        .collect();
    let mut left_out = Vec::new();
    if shown.iter().all(|(_, node, ..)| node.indirect == 0) {
        left_out.push(VIA_COLLAPSED);
    }
    let columns = columns(subject.profile.rows.name());
    let most = columns.iter().position(|column| column.key == range::KEY);
    if most.is_some_and(|most| lines.iter().all(|line| line.cells[most] == Cell::Nothing)) {
        left_out.push(range::KEY);
    }
    let nodes = calls.nodes.len();
    let count = number::grouped(nodes as u64);
    let plural = if nodes == 1 { "" } else { "s" };
    let listing = Listing {
        columns,
        lines,
        hidden: 0,
        about: vec![
            format!("collapse: {}", calls.collapse.name()),
            format!("{count} node{plural}"),
        ],
        first: 0,
    };
    Shown {
        listing: listing.without(&left_out),
        hot,
        folded: walk.folded,
    }
}

// Whether a matching function is in the node or under it; `None` if nothing is looked for.
fn found(subject: &Subject, calls: &CallTree, search: &Search) -> Option<IdVec<NodeId, bool>> {
    if !search.is_on() {
        return None;
    }
    let matches = search.among(subject);
    let mut found = IdVec::filled(false, calls.nodes.len());
    for (id, node) in calls.nodes.enumerate().rev() {
        found[id] |= matches.has(node.function);
        if let (true, Some(parent)) = (found[id], node.parent) {
            found[parent] = true;
        }
    }
    Some(found)
}

struct Walk<'a> {
    subject: &'a Subject<'a>,
    calls: &'a CallTree,
    // The chains that are one line each.
    folds: Option<&'a Folds>,
    opened: &'a FxHashSet<Key>,
    found: Option<IdVec<NodeId, bool>>,
    // The nodes from the root to the last one, with their keys, and whether they are lines.
    keys: Vec<(NodeId, Key, bool)>,
    // What is opened along the heaviest path, where it forks first, and its end.
    hot: Vec<Key>,
    // The nodes within folded chains.
    folded: Vec<Key>,
    fork: Option<Key>,
    end: Option<Key>,
    shown: Vec<(NodeId, Node, Key, Branch)>,
}

impl Walk<'_> {
    fn run(&mut self, hot: Option<Hot>) {
        let mut waiting: Vec<(NodeId, u32, bool)> = Vec::new();
        let calls = self.calls;
        let roots: Vec<NodeId> = calls.roots().filter(|&id| self.is_shown(id)).collect();
        // The node that is the next one of the heaviest path.
        let mut next = match hot {
            Some(Hot::Root) => roots.first().copied(),
            _ => None,
        };
        waiting.extend(roots.iter().rev().map(|&id| (id, 0, true)));
        while let Some((id, steps, is_only)) = waiting.pop() {
            let node = calls.nodes.at(id);
            while self
                .keys
                .last()
                .is_some_and(|&(last, ..)| Some(last) != node.parent)
            {
                self.keys.pop();
            }
            let above = self.keys.last().map(|&(_, key, _)| key);
            let key = self.key(above, &node);
            if hot == Some(Hot::Line(key)) {
                next = Some(id);
            }
            let children: Vec<NodeId> = match node.stub {
                Some(_) => Vec::new(),
                None => calls.children(id).filter(|&id| self.is_shown(id)).collect(),
            };
            let is_hot = next == Some(id);
            if let Some(callee) = self.continued(id) {
                if is_hot {
                    next = Some(callee);
                }
                self.keys.push((id, key, false));
                self.folded.push(key);
                waiting.push((callee, steps, is_only));
                continue;
            }
            if is_hot {
                self.end = Some(key);
                if children.len() > 1 {
                    self.fork = self.fork.or(Some(key));
                }
                next = self.goes_on(&node, &children);
                if next.is_some() {
                    self.hot.push(key);
                }
            }
            let is_open =
                self.opened.contains(&key) || is_hot && next.is_some() || self.found.is_some();
            let fold = match node.stub {
                Some(target) => Fold::Stub(self.key_above(target).unwrap_or(key)),
                None if children.is_empty() => Fold::Leaf,
                None if is_open => Fold::Open,
                None => Fold::Closed,
            };
            let lines = self.keys.iter().rev().filter(|(.., is_line)| *is_line);
            let parent = lines.map(|&(_, key, _)| key).next();
            let branch = Branch {
                steps,
                level: node.level,
                is_only: is_only && parent.is_some(),
                fold,
                parent,
            };
            self.shown.push((id, node, key, branch));
            if node.stub.is_none() {
                self.keys.push((id, key, true));
            }
            if fold == Fold::Open {
                let only = children.len() == 1;
                let steps = if only { steps } else { steps + 1 };
                waiting.extend(children.iter().rev().map(|&id| (id, steps, only)));
            }
        }
    }

    // Where the heaviest path goes on from a node, unless the node itself has more than any child.
    fn goes_on(&self, node: &Node, children: &[NodeId]) -> Option<NodeId> {
        let &first = children.first()?;
        let heaviest = self.calls.nodes.at(first);
        let goes_on = heaviest.stub.is_none()
            && heaviest.weight() > node.in_only
            && self.hot.len() < HOT_LEVELS;
        goes_on.then_some(first)
    }

    fn is_shown(&self, id: NodeId) -> bool {
        self.found.as_ref().is_none_or(|found| found[id])
    }

    // A node is known again by the functions from the root to it.
    fn key(&self, parent: Option<Key>, node: &Node) -> Key {
        let own = key_of("tree", self.subject.profile, node.function);
        key((parent, own, node.stub.is_some()))
    }

    // The line of a node above, or of the chain that it is in.
    fn key_above(&self, target: NodeId) -> Option<Key> {
        let above = self.keys.iter().skip_while(|&&(id, ..)| id != target);
        let mut lines = above.filter(|(.., is_line)| *is_line);
        lines.next().map(|&(_, key, _)| key)
    }

    // The callee with which a folded chain goes on.
    fn continued(&self, id: NodeId) -> Option<NodeId> {
        let folds = self.folds.filter(|folds| folds.hides(id))?;
        let mut callees = self.calls.children(id);
        callees.find(|&callee| folds.continues(id, callee))
    }
}

// Those of `proftool tree`.
fn columns(row: &'static str) -> Vec<Column> {
    vec![
        Column::new("percent", "total %", Role::Heat),
        range::column(),
        Column::new("in_only_percent", "self %", Role::Figure),
        Column::new(VIA_COLLAPSED, "via collapsed %", Role::Figure),
        Column::new("weight", "total", Role::Figure),
        Column::new("name", row, Role::Name),
    ]
}
