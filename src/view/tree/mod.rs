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
//!
//! Where recursion is collapsed, what arrived only through stubs stands behind the weight, and a stub
//! has no figures of its own:
//!
//! ```text
//!   total %  parent %  self %  total (indirect)  level  function ↳ calls
//!    100.00    100.00    0.00             6       1     main
//!    100.00    100.00   50.00             6       2     ↳ r
//!     50.00     50.00   50.00             1 (2)   3       ├ s
//!                                                 3 ↑2    └ r... (66.67 %)
//! ```

mod draw;
mod guides;

pub use self::draw::drawing;
use self::guides::Guides;
use super::flat::reaches;
use super::label::Labels;
use super::page::{Block, Page};
use super::table::{Cell, Column, Role, Table};
use super::{Figures, Subject, caveats, label, number};
use crate::analysis::tree::{CallTree, Collapse, Node, NodeId};
use crate::base::{Id, IdVec};
use crate::profile::FunctionId;

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
    /// The function that the stacks begin at, with the weight of the samples that have it;
    /// `None` where whole stacks are shown.
    pub root: Option<(FunctionId, u64)>,
    /// Where stacks recurse: the rows that the tree has in each degree of [`Collapse::ALL`], as
    /// far as they were counted.
    pub rows: Option<[Option<usize>; 4]>,
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
    /// What was asked for.
    pub options: Options,
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
                && reaches(node.standing(), whole, options.min)
        })
        .map(|(id, _)| id)
        .collect();
    if let Some(limit) = options.limit {
        // A parent is at least as heavy as its child and comes first among equals.
        chosen.sort_by_key(|&id| std::cmp::Reverse(calls.nodes.at(id).standing()));
        chosen.truncate(limit);
    }
    let mut shown = IdVec::filled(false, calls.nodes.len());
    for &id in &chosen {
        shown[id] = true;
    }
    let root = options.root.map(|(function, _)| function);
    let functions = chosen.iter().map(|&id| calls.nodes.at(id).function);
    let labels = Labels::new(subject, functions.chain(root));
    Tree {
        hidden: calls.nodes.len() - chosen.len(),
        calls,
        direction,
        shown,
        options: *options,
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
        self.labels.of(self.calls.nodes.at(node).function)
    }

    /// What the function is called that the stacks begin at, where one was asked for.
    pub fn root(&self) -> Option<&str> {
        let (function, _) = self.options.root?;
        Some(self.labels.of(function))
    }

    /// The weight of the node above, of which a node's is a part; of a root, the total.
    fn whole(&self, subject: &Subject, node: &Node) -> u64 {
        let parent = node.parent.map(|parent| self.calls.nodes.at(parent));
        parent.map_or(subject.selection.total, |parent| parent.weight())
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
            figure("parent_percent"),
            figure("in_only_percent"),
            figure("to_level"),
            figure("passes"),
            label::column(),
        ]);
        for id in self.nodes() {
            let node = self.calls.nodes.at(id);
            let target = node.stub.map(|target| self.calls.nodes.at(target).level);
            // A stub has no counts.
            let of_node = |cell| {
                if target.is_some() {
                    Cell::Nothing
                } else {
                    cell
                }
            };
            let share = |part, whole| of_node(Cell::Share { part, whole });
            let whole = subject.selection.total;
            table.rows.push(vec![
                Cell::Count(id.index() as u64),
                node.parent
                    .map_or(Cell::Nothing, |p| Cell::Count(p.index() as u64)),
                Cell::Count(u64::from(node.level)),
                share(node.weight(), whole),
                of_node(Cell::Weight(node.direct)),
                of_node(Cell::Weight(node.indirect)),
                of_node(Cell::Weight(node.in_only)),
                Cell::Text(subject.plain_name(node.function).into_owned()),
                Cell::Text(subject.module(node.function).to_owned()),
                share(node.weight(), self.whole(subject, &node)),
                share(node.in_only, whole),
                target.map_or(Cell::Nothing, |level| Cell::Count(u64::from(level))),
                target.map_or(Cell::Nothing, |_| Cell::Weight(node.passes)),
                Cell::Text(self.name(id).to_owned()),
            ]);
        }
        table
    }

    /// The page for people.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = vec![Block::Line(subject.headline())];
        blocks.extend(self.part(subject).map(Block::Line));
        blocks.extend(self.degree().map(Block::Line));
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
        if self.nodes().any(|id| self.calls.nodes.at(id).cut > 0) {
            let line = "… callers further out were not followed; more of them: --depth N --min 0";
            blocks.push(Block::Line(line.into()));
        }
        if self
            .nodes()
            .any(|id| self.calls.nodes.at(id).stub.is_some())
        {
            let line = "f... (share) is a collapsed call of f: so many samples take it, and go on at the \
                        level behind ↑. In brackets: what first arrived after such a call.";
            blocks.push(Block::Line(line.into()));
        }
        let nodes = || self.nodes().map(|id| self.calls.nodes.at(id));
        blocks.extend(label::legend(
            nodes().any(|node| label::is_inferred(node.inferred, node.weight())),
        ));
        blocks.extend(caveats::foot(&subject.profile.caveats));
        Page {
            unit: subject.selection.event.unit.clone(),
            blocks,
        }
    }

    /// A line on the part of the stacks that is shown, where it is one.
    fn part(&self, subject: &Subject) -> Option<String> {
        let (_, weight) = self.options.root?;
        let share = number::percent(weight, subject.selection.total, 2);
        let name = self.root()?;
        Some(match self.direction {
            Direction::TopDown => format!("From {name} inwards: {share} % of them"),
            Direction::BottomUp => format!("Outwards as far as {name}: {share} % of them"),
        })
    }

    /// A line on what became of recursion, where there is any.
    fn degree(&self) -> Option<String> {
        let degree = self.calls.collapse;
        let done = match degree {
            Collapse::None => "not collapsed",
            _ => "collapsed",
        };
        let head = format!("Recursion is {done} (--collapse {})", degree.name());
        let Some(rows) = self.options.rows else {
            let collapsed = self.calls.nodes.iter().any(|node| node.stub.is_some());
            return collapsed.then_some(head);
        };
        let told = |(degree, rows): (Collapse, Option<usize>)| match rows {
            Some(rows) => format!("{} {}", degree.name(), number::grouped(rows as u64)),
            None => format!("{} a great many", degree.name()),
        };
        let others: Vec<String> = Collapse::ALL
            .into_iter()
            .zip(rows)
            .filter(|(other, _)| *other != degree)
            .map(told)
            .collect();
        let sampled = self.calls.nodes.iter().filter(|node| !node.in_code);
        let lines = number::grouped(sampled.count() as u64);
        Some(format!("{head}: {lines} lines; {}", others.join(", ")))
    }

    fn drawing(&self, subject: &Subject) -> Table {
        let bottom_up = self.direction == Direction::BottomUp;
        let nodes = || self.nodes().map(|id| self.calls.nodes.at(id));
        let folded = nodes().any(|node| node.stub.is_some());
        let indirect = nodes().any(|node| node.indirect > 0);
        let (percent, weight, name) = match (bottom_up, indirect) {
            (false, false) => ("total %", "total", "function ↳ calls"),
            (false, true) => ("total %", "total (indirect)", "function ↳ calls"),
            (true, false) => ("self %", "self", "function ↳ called by"),
            (true, true) => ("self %", "self (indirect)", "function ↳ called by"),
        };
        let mut table = Table::new(vec![
            Column::new("percent", percent, Role::Heat),
            Column::new("parent_percent", "parent %", Role::Figure),
            Column::new("in_only_percent", "self %", Role::Figure),
            Column::new("weight", weight, Role::Figure),
            Column::new("level", "level", Role::Figure),
            Column::new("name", name, Role::Name),
        ]);
        let whole = subject.selection.total;
        let shown = |value| match value {
            0 => "0".to_owned(),
            value => number::weight(value, &subject.selection.event.unit),
        };
        let behind = |node: &Node| match node.indirect {
            0 => String::new(),
            indirect => format!(" ({})", shown(indirect)),
        };
        let leads = |node: &Node| match node.stub {
            None => String::new(),
            Some(target) => format!(" ↑{}", self.calls.nodes.at(target).level),
        };
        // Room behind direct weights and levels, so that these stand one under the other.
        let widest = |text: &dyn Fn(&Node) -> String| {
            let widths = nodes().map(|node| text(&node).chars().count());
            widths.max().unwrap_or(0)
        };
        let (room, arrow) = (widest(&behind), widest(&leads));
        let mut guides = Guides::new(self);
        for id in self.nodes() {
            let node = self.calls.nodes.at(id);
            let mut guide = guides.next(self, id);
            if label::is_inferred(node.inferred, node.weight()) {
                guide.push_str(label::INFERRED);
            }
            let mut text = self.name(id).to_owned();
            if node.inlined {
                text.push_str(" (inlined)");
            }
            if node.in_code {
                text.push_str(" (in the code)");
            }
            let level = Cell::Text(format!("{}{:arrow$}", node.level, leads(&node)));
            if node.stub.is_some() {
                let share = number::percent(node.passes, whole, 2);
                text.push_str(&format!("... ({share} %)"));
                let mut cells = vec![Cell::Nothing; 4];
                cells.extend([level, Cell::Branch { guide, text }]);
                table.rows.push(cells);
                continue;
            }
            let share = |part, whole| Cell::Share { part, whole };
            table.rows.push(vec![
                share(node.weight(), whole),
                share(node.weight(), self.whole(subject, &node)),
                share(node.in_only, whole),
                Cell::Text(format!("{}{:room$}", shown(node.direct), behind(&node))),
                level,
                Cell::Branch { guide, text },
            ]);
        }
        let mut left_out = Vec::new();
        if !folded {
            left_out.extend(["parent_percent", "level"]);
        }
        if bottom_up {
            left_out.push("in_only_percent");
        }
        if subject.figures == Figures::Percent {
            left_out.push("weight");
        }
        table.without(&left_out)
    }
}
