//! The call tree, as lines with guides.
//!
//! A function that is the only thing its caller called stands under it without a step to the
//! side, so that a long chain stays readable:
//!
//! ```text
//!   main
//!   ↳ run
//!   ↳ parse
//!     ├ lex
//!     └ eval
//!       ↳ apply
//! ```

use super::flat::reaches;
use super::label::Labels;
use super::page::{Block, Page};
use super::table::{Cell, Column, Role, Table};
use super::{Figures, Subject, caveats, number};
use crate::analysis::tree::{CallTree, NodeId};
use crate::base::{Id, IdVec};

/// How many steps to the side are drawn; of deeper nodes only the last ones.
const STEPS: usize = 14;
/// How many steps of a deeper node are drawn.
const LAST_STEPS: usize = 6;

/// In which direction a tree is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From callers to callees.
    TopDown,
    /// From callees to callers.
    BottomUp,
}

/// Which nodes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// At most so many, the heaviest; `None` for all.
    pub limit: Option<usize>,
    /// Only those with at least this share, in percent.
    pub min: f64,
    /// Only so many levels; `None` for all.
    pub depth: Option<u32>,
}

/// A call tree with the nodes chosen that are shown. With a node its parent is shown too.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The tree.
    pub calls: CallTree,
    /// Its direction.
    pub direction: Direction,
    /// Which of its nodes are shown.
    pub shown: IdVec<NodeId, bool>,
    /// How many are not.
    pub hidden: usize,
    labels: Labels,
}

/// Chooses and names the nodes.
pub fn arrange(
    subject: &Subject,
    calls: CallTree,
    direction: Direction,
    options: &Options,
) -> Tree {
    let whole = subject.selection.total;
    let mut chosen: Vec<NodeId> = calls
        .nodes
        .enumerate()
        .filter(|(_, node)| {
            options.depth.is_none_or(|depth| node.level <= depth)
                && reaches(node.weight(), whole, options.min)
        })
        .map(|(id, _)| id)
        .collect();
    if let Some(limit) = options.limit {
        // A parent is at least as heavy as its child and comes first among equals.
        chosen.sort_by_key(|&id| std::cmp::Reverse(calls.nodes[id].weight()));
        chosen.truncate(limit);
    }
    let mut shown = IdVec::filled(false, calls.nodes.len());
    for &id in &chosen {
        shown[id] = true;
    }
    let labels = Labels::new(subject, chosen.iter().map(|&id| calls.nodes[id].function));
    Tree {
        hidden: calls.nodes.len() - chosen.len(),
        calls,
        direction,
        shown,
        labels,
    }
}

impl Tree {
    /// The nodes that are shown, each before its children.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.shown
            .enumerate()
            .filter(|(_, shown)| **shown)
            .map(|(id, _)| id)
    }

    /// What a node's function is called.
    pub fn name(&self, node: NodeId) -> &str {
        self.labels.of(self.calls.nodes[node].function)
    }

    /// The nodes as records.
    pub fn table(&self, subject: &Subject) -> Table {
        let figure = |key| Column::new(key, key, Role::Figure);
        let mut table = Table::new(vec![
            figure("id"),
            figure("parent"),
            figure("level"),
            figure("percent"),
            figure("direct"),
            figure("indirect"),
            figure("in_only"),
            Column::new("name", "function", Role::Name),
            Column::new("module", "module", Role::Aside),
        ]);
        for id in self.nodes() {
            let node = &self.calls.nodes[id];
            table.rows.push(vec![
                Cell::Count(id.index() as u64),
                node.parent
                    .map_or(Cell::Nothing, |p| Cell::Count(p.index() as u64)),
                Cell::Count(u64::from(node.level)),
                Cell::Share {
                    part: node.weight(),
                    whole: subject.selection.total,
                },
                Cell::Weight(node.direct),
                Cell::Weight(node.indirect),
                Cell::Weight(node.in_only),
                Cell::Text(self.name(id).to_owned()),
                Cell::Text(subject.module(node.function).to_owned()),
            ]);
        }
        table
    }

    /// The page for people.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = vec![Block::Line(subject.headline())];
        if self.hidden < self.calls.nodes.len() {
            blocks.push(Block::Space);
            blocks.push(Block::Table(self.drawing(subject)));
        }
        if self.hidden > 0 {
            let plural = if self.hidden == 1 { "" } else { "s" };
            let more = number::grouped(self.hidden as u64);
            blocks.push(Block::Line(format!(
                "… {more} more line{plural}; all of them: --limit 0 --min 0"
            )));
        }
        if self.nodes().any(|id| self.calls.nodes[id].cut > 0) {
            let line = "… callers further out were not followed; more of them: --depth N --min 0";
            blocks.push(Block::Line(line.into()));
        }
        blocks.extend(caveats::foot(subject.profile));
        Page {
            unit: subject.selection.event.unit.clone(),
            blocks,
        }
    }

    fn drawing(&self, subject: &Subject) -> Table {
        let bottom_up = self.direction == Direction::BottomUp;
        let mut table = Table::new(vec![
            if bottom_up {
                Column::new("percent", "self %", Role::Heat)
            } else {
                Column::new("percent", "total %", Role::Heat)
            },
            Column::new("in_only_percent", "self %", Role::Figure),
            Column::new(
                "weight",
                if bottom_up { "self" } else { "total" },
                Role::Figure,
            ),
            Column::new(
                "name",
                if bottom_up {
                    "function ↳ called by"
                } else {
                    "function ↳ calls"
                },
                Role::Name,
            ),
        ]);
        let whole = subject.selection.total;
        let mut guides = Guides::new(self);
        for id in self.nodes() {
            let node = &self.calls.nodes[id];
            let mut text = self.name(id).to_owned();
            if node.inlined {
                text.push_str(" (inlined)");
            }
            table.rows.push(vec![
                Cell::Share {
                    part: node.weight(),
                    whole,
                },
                Cell::Share {
                    part: node.in_only,
                    whole,
                },
                Cell::Weight(node.weight()),
                Cell::Branch {
                    guide: guides.next(self, id),
                    text,
                },
            ]);
        }
        let mut left_out = Vec::new();
        if bottom_up {
            left_out.push("in_only_percent");
        }
        if subject.figures == Figures::Percent {
            left_out.push("weight");
        }
        table.without(&left_out)
    }
}

/// Draws the lines before the names.
struct Guides {
    /// For each node, the number of its children that are shown.
    children: IdVec<NodeId, u32>,
    /// How many children are still to come.
    waiting: IdVec<NodeId, u32>,
    /// For each node on the way to the last one, how far to the side its children's lines are.
    column: Vec<usize>,
    /// For each step to the side, whether a sibling is still to come.
    open: Vec<bool>,
}

impl Guides {
    fn new(tree: &Tree) -> Guides {
        let mut children = IdVec::filled(0, tree.calls.nodes.len());
        for id in tree.nodes() {
            if let Some(parent) = tree.calls.nodes[id].parent {
                children[parent] += 1;
            }
        }
        Guides {
            waiting: children.clone(),
            children,
            column: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The lines before `node`, the next one that is shown.
    fn next(&mut self, tree: &Tree, id: NodeId) -> String {
        let node = &tree.calls.nodes[id];
        self.column.truncate(node.level as usize - 1);
        let above = self.column.last().copied().unwrap_or(0);
        let Some(parent) = node.parent else {
            self.open.clear();
            self.column.push(0);
            return String::new();
        };
        self.waiting[parent] -= 1;
        self.open.truncate(above);
        let only = self.children[parent] == 1;
        let last = self.waiting[parent] == 0;
        let mut guide = String::new();
        if above > STEPS {
            guide.push_str(&format!("⋯{} ", node.level));
        }
        let drawn = if above > STEPS { above - LAST_STEPS } else { 0 };
        for &open in &self.open[drawn..] {
            guide.push_str(if open { "│ " } else { "  " });
        }
        guide.push_str(match (only, last) {
            (true, _) => "↳ ",
            (false, false) => "├ ",
            (false, true) => "└ ",
        });
        if only && self.children[id] <= 1 {
            self.column.push(above);
        } else {
            self.open.push(!last);
            self.column.push(above + 1);
        }
        guide
    }
}
