//! The call tree, as lines with guides.
//!
//! A function that is the only callee of its caller is under it without indentation, so that a long
//! chain stays readable:
//!
//! ```text
//!   main
//!   ↳ run
//!   ↳ parse
//!     ├ lex
//!     └ eval
//!       ↳ apply
//! ```
//!
//! Where recursion is collapsed, a total still counts each sample once. A column of its own has the
//! part that arrived through collapsed calls. After the name of a collapsed call, a stub, is the
//! share of the samples that took it:
//!
//! ```text
//!   total %  self %  via collapsed %  total  function ↳ calls
//!    100.00    0.00                       6  main
//!    100.00   50.00                       6  ↳ r
//!     50.00   50.00            33.33      3    ├ s
//!                                              └ r... (66.67 %)
//! ```

mod draw;
mod folds;
mod guides;
mod hot;

pub use self::draw::drawing;
pub use self::folds::Folds;
use self::guides::Guides;
pub use self::hot::HotLines;
use super::flat::reaches;
use super::page::{Block, Meaning, Page};
use super::table::{Cell, Column, Role, Table, What};
use super::{Figures, Subject, caveats, label, number, range, rows};
use rustc_hash::FxHashMap;

use self::folds::Fold;
use crate::analysis::owners::Owners;
use crate::analysis::tree::{Direction, Node, NodeId, Summary};
use crate::base::IdVec;
use crate::names::{Labels, Mark};

/// The key of the column for what came through collapsed calls.
pub const VIA_COLLAPSED: &str = "via_collapsed_percent";

/// Which nodes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The maximum number of lines, the heaviest ones; `None` for all.
    pub limit: Option<usize>,
    /// Only those with at least this share, in percent.
    pub min: f64,
    /// The maximum number of levels; `None` for all.
    pub depth: Option<u32>,
}

/// Why nodes are not shown. One node may be counted for several reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// How many are deeper than was asked for.
    pub deeper: usize,
    /// The deepest level of all nodes.
    pub deepest: u32,
    /// How many have a lesser share than was asked for.
    pub lighter: usize,
    /// How many there are beyond the number that was asked for.
    pub beyond: usize,
}

/// Sentences that the caller adds to a page: the view does not know the options that show more.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Above the table.
    pub above: Vec<String>,
    /// Below it.
    pub below: Vec<String>,
}

/// A call tree with the nodes chosen that are shown. With a node its parent is shown too.
#[derive(Clone, Debug)]
pub struct Tree<'a> {
    /// The figures.
    pub summary: &'a Summary,
    /// Which of its nodes are shown.
    pub shown: IdVec<NodeId, bool>,
    /// How many are not.
    pub hidden: usize,
    /// And why.
    pub reasons: Hidden,
    /// The chains of calls that are shown as one line, by the last node of each; the others of a
    /// chain are not shown.
    folds: FxHashMap<NodeId, Fold>,
    /// What was asked for.
    pub options: Options,
    labels: Labels,
}

/// Chooses and names the nodes. Where there are `owners`, chains of calls outside of the user's own
/// code are one line each, and the heaviest function of that code is shown.
pub fn arrange<'a>(
    subject: &Subject,
    summary: &'a Summary,
    owners: Option<&Owners>,
    options: &Options,
) -> Tree<'a> {
    let Summary {
        calls, direction, ..
    } = summary;
    let whole = subject.selection.total();
    let mut reasons = Hidden::default();
    let mut chosen: Vec<NodeId> = Vec::new();
    for (id, node) in calls.nodes.enumerate() {
        let is_deeper = options.depth.is_some_and(|depth| node.level > depth);
        let is_lighter = !reaches(node.standing(), whole, options.min);
        reasons.deeper += usize::from(is_deeper);
        reasons.lighter += usize::from(is_lighter);
        reasons.deepest = reasons.deepest.max(node.level);
        if !is_deeper && !is_lighter {
            chosen.push(id);
        }
    }
    let folds = owners.map_or_else(FxHashMap::default, |owners| {
        // Upside down, a root is the hot function itself, and the figures are its own.
        let is_inner = |id: &NodeId| calls.nodes.at(*id).parent.is_some();
        let inner = chosen.iter().copied();
        let inner = inner.filter(|id| *direction == Direction::TopDown || is_inner(id));
        folds::foreign_chains(subject, calls, &inner.collect::<Vec<_>>(), owners)
    });
    let mut is_folded: IdVec<NodeId, bool> = IdVec::filled(false, calls.nodes.len());
    for (&last, fold) in &folds {
        for id in fold.others(calls, last) {
            is_folded[id] = true;
        }
    }
    chosen.retain(|&id| !is_folded[id]);
    let folded = is_folded.iter().filter(|&&it| it).count();
    reasons.beyond =
        (calls.nodes.len() - folded).saturating_sub(options.limit.unwrap_or(usize::MAX));
    if let Some(limit) = options.limit {
        // A parent is at least as heavy as its child and comes first among equals.
        chosen.sort_by_key(|&id| std::cmp::Reverse(calls.nodes.at(id).standing()));
        chosen.truncate(limit);
    }
    let mut shown = IdVec::filled(false, calls.nodes.len());
    for &id in &chosen {
        shown[id] = true;
    }
    if options.depth.is_none()
        && let Some(heaviest) =
            owners.and_then(|owners| folds::heaviest_own(subject, calls, owners))
    {
        let callers = |&id: &NodeId| calls.nodes.at(id).parent;
        for id in std::iter::successors(Some(heaviest), callers) {
            if !shown[id] && !is_folded[id] {
                shown[id] = true;
                chosen.push(id);
            }
        }
    }
    let root = summary.root.map(|(function, _)| function);
    let functions = chosen.iter().map(|&id| calls.nodes.at(id).function);
    let labels = subject.labels(functions.chain(root));
    Tree {
        hidden: calls.nodes.len() - chosen.len() - folded,
        reasons,
        summary,
        shown,
        folds,
        options: *options,
        labels,
    }
}

impl Tree<'_> {
    /// The nodes that are shown, each before its children.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.shown
            .enumerate()
            .filter(|(_, shown)| **shown)
            .map(|(id, _)| id)
    }

    /// A node of the whole tree.
    pub fn node(&self, id: NodeId) -> Node {
        self.summary.calls.nodes.at(id)
    }

    /// The number of nodes that are folded into lines of others.
    pub fn folded(&self) -> usize {
        self.folds.values().map(|fold| fold.frames - 1).sum()
    }

    /// The nearest node around a node that is shown.
    fn parent(&self, node: NodeId) -> Option<NodeId> {
        let callers = |&id: &NodeId| self.node(id).parent;
        let mut around = std::iter::successors(callers(&node), callers);
        around.find(|&id| self.shown[id])
    }

    /// What a node's function is called.
    pub fn name(&self, node: NodeId) -> &str {
        self.labels.of(self.node(node).function)
    }

    /// What the function is called that the stacks begin at, where one was asked for.
    pub fn root(&self) -> Option<&str> {
        let (function, _) = self.summary.root?;
        Some(self.labels.of(function))
    }

    /// Returns the weight of the parent of a node, or the total for a root.
    fn whole(&self, subject: &Subject, node: &Node) -> u64 {
        let parent = node.parent.map(|parent| self.node(parent));
        parent.map_or(subject.selection.total(), |parent| parent.weight())
    }

    /// The nodes as records.
    pub fn table(&self, subject: &Subject) -> Table {
        let figure = |key| Column::new(key, key, Role::Figure);
        let mut table = Table::new(vec![
            figure("id"),
            figure("parent"),
            figure("level"),
            figure("percent"),
            figure("total"),
            figure("direct"),
            figure("indirect"),
            figure("in_only"),
            Column::new("name", rows::title(subject.profile.rows), Role::Name),
            Column::new("module", "module", Role::Aside),
            figure("parent_percent"),
            figure("in_only_percent"),
            figure("to_level"),
            figure("passes"),
            figure("total_max"),
        ]);
        for id in self.nodes() {
            let node = self.node(id);
            let target = node.stub.map(|target| self.node(target).level);
            // A stub has no counts.
            let of_node = |cell| {
                if target.is_some() {
                    Cell::Nothing
                } else {
                    cell
                }
            };
            let share = |part, whole| of_node(Cell::Share { part, whole });
            let whole = subject.selection.total();
            table.rows.push(vec![
                Cell::Count(id.index() as u64),
                node.parent
                    .map_or(Cell::Nothing, |p| Cell::Count(p.index() as u64)),
                Cell::Count(u64::from(node.level)),
                share(node.weight(), whole),
                of_node(Cell::Weight(node.weight())),
                of_node(Cell::Weight(node.direct)),
                of_node(Cell::Weight(node.indirect)),
                of_node(Cell::Weight(node.in_only)),
                Cell::Nothing,
                Cell::Text(subject.module(node.function).to_owned()),
                share(node.weight(), self.whole(subject, &node)),
                share(node.in_only, whole),
                target.map_or(Cell::Nothing, |level| Cell::Count(u64::from(level))),
                target.map_or(Cell::Nothing, |_| Cell::Weight(node.passes)),
                of_node(range::weight(self.summary.at_most(id))),
            ]);
        }
        let nodes = self.nodes();
        let labels = nodes.map(|id| (self.node(id).function, self.name(id)));
        let table = label::with_identities(table, subject, labels);
        let functions = self.nodes().map(|id| self.node(id).function);
        rows::with_kinds(table, subject, functions)
    }

    /// The page for people.
    pub fn page(&self, subject: &Subject, notes: &Notes) -> Page {
        let line = |text: &String| Block::Line(text.clone());
        let mut blocks = vec![Block::Line(subject.headline())];
        let mut legend = None;
        blocks.extend(self.part(subject).map(Block::Line));
        blocks.extend(notes.above.iter().map(line));
        if self.hidden < self.summary.calls.nodes.len() {
            let drawing = self.drawing(subject);
            legend = range::legend(subject.profile.rows, range::cells(&drawing));
            blocks.push(Block::Space);
            blocks.push(Block::Table(drawing));
        }
        blocks.extend(notes.below.iter().map(line));
        blocks.extend(self.stub_legends());
        blocks.extend((!self.folds.is_empty()).then_some(Block::Meaning(Meaning::Fold)));
        blocks.extend(legend);
        blocks.extend(rows::merged(subject.profile.rows));
        let shown = self.nodes().map(|id| self.node(id).function);
        blocks.extend(rows::unknown(subject, shown));
        let nodes = || self.nodes().map(|id| self.node(id));
        blocks.extend(label::legend(
            nodes().any(|node| label::is_inferred(node.inferred, node.weight())),
        ));
        blocks.extend(caveats::foot_of(subject));
        Page {
            unit: subject.selection.event().unit.clone(),
            blocks: range::settled(subject, blocks),
        }
    }

    /// A line on the part of the stacks that is shown, where it is one.
    fn part(&self, subject: &Subject) -> Option<String> {
        let (_, weight) = self.summary.root?;
        let share = number::percent(weight, subject.selection.total(), 2);
        let name = self.root()?;
        Some(match self.summary.direction {
            Direction::TopDown => format!("Calls from {name}: {share} % of all"),
            Direction::BottomUp => format!("Callers up to {name}: {share} % of all"),
        })
    }

    /// What collapsed calls and their column mean, where there are any.
    fn stub_legends(&self) -> impl Iterator<Item = Block> {
        let nodes = || self.nodes().map(|id| self.node(id));
        let has_stubs = nodes().any(|node| node.stub.is_some());
        let stubs = has_stubs.then_some(Block::Meaning(Meaning::Collapsed));
        let column = nodes()
            .any(|node| node.indirect > 0)
            .then(|| Block::Legend {
                key: VIA_COLLAPSED,
                text: "via collapsed %: the part of total % that came through such calls.".into(),
            });
        stubs.into_iter().chain(column)
    }

    fn drawing(&self, subject: &Subject) -> Table {
        let bottom_up = self.summary.direction == Direction::BottomUp;
        let (percent, weight) = if bottom_up {
            ("self %", "self")
        } else {
            ("total %", "total")
        };
        let mut table = Table::new(vec![
            Column::new("percent", percent, Role::Heat),
            range::column(),
            Column::new("in_only_percent", "self %", Role::Figure),
            Column::new(VIA_COLLAPSED, "via collapsed %", Role::Figure),
            Column::new("weight", weight, Role::Spare),
            rows::tree_column(subject.profile.rows, bottom_up),
        ]);
        let whole = subject.selection.total();
        let mut guides = Guides::new(self);
        for id in self.nodes() {
            let node = self.node(id);
            let what = what(&node, &self.labels, self.folds.get(&id), whole);
            let mut cells = figures(self.summary, id, whole);
            cells.push(Cell::beside(guides.next(self, id), what));
            table.rows.push(cells);
        }
        let mut left_out = Vec::new();
        if self.nodes().all(|id| self.node(id).indirect == 0) {
            left_out.push(VIA_COLLAPSED);
        }
        if bottom_up {
            left_out.push("in_only_percent");
        }
        if subject.figures == Figures::Percent {
            left_out.push("weight");
        }
        range::if_filled(table.without(&left_out))
    }
}

/// What a line of a tree is about: a node, or the chain that it is the last of.
fn what(node: &Node, labels: &Labels, fold: Option<&Fold>, whole: u64) -> What {
    let passes = |_| Mark::Collapsed {
        part: node.passes,
        whole,
    };
    let label = labels.label(node.function);
    let label = label::marked(label, node.inferred, node.weight())
        .with((node.inlined && fold.is_none()).then_some(Mark::Inlined))
        .with(node.in_code.then_some(Mark::InCode))
        .with(node.stub.map(passes));
    match fold {
        None => label.into(),
        Some(fold) => What::Fold {
            frames: fold.frames,
            owners: fold.owners.clone(),
            to: label,
        },
    }
}

/// The figures of a node, in the order of the columns before its name: its share and the most that
/// this may be, what ends in it, what had gone through a collapsed call before it first came there
/// (a part of its share, empty where there is none), and its weight. A stub has none.
pub fn figures(summary: &Summary, id: NodeId, whole: u64) -> Vec<Cell> {
    let node = summary.calls.nodes.at(id);
    if node.stub.is_some() {
        return vec![Cell::Nothing; 5];
    }
    let share = |part| Cell::Share { part, whole };
    vec![
        share(node.weight()),
        range::cell(node.weight(), summary.at_most(id), whole),
        share(node.in_only),
        match node.indirect {
            0 => Cell::Nothing,
            part => share(part),
        },
        Cell::Weight(node.weight()),
    ]
}
