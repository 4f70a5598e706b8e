//! The static call graph: functions with their callees, or one with its callers too.
//!
//! What is chosen is a part of the graph: some arcs, and the functions at their ends. A cycle is
//! shown when all of its members are.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::label::Labels;
use super::page::{Block, Page};
use super::table::{Cell, Column, Role, Table};
use super::{Subject, caveats, number};
use crate::base::{IdVec, Unit};
use crate::callgraph::{Arc, ArcKind, CallGraph};
use crate::profile::FunctionId;

/// How many callees or callers a page names where not all were asked for.
const NEIGHBOURS: usize = 10;

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// At most so many functions with their callees; `None` for all.
    pub limit: Option<usize>,
    /// Only these functions, with their callers and callees; empty for the whole graph.
    pub about: Vec<FunctionId>,
}

/// A part of a call graph, with names.
#[derive(Clone, Debug)]
pub struct CallGraphView<'a> {
    /// The whole graph.
    pub graph: &'a CallGraph,
    /// The functions of the part, in order of id.
    pub functions: Vec<FunctionId>,
    /// The arcs of the part, in order of caller and callee.
    pub arcs: Vec<Arc>,
    /// The functions that a page lists, in order.
    listed: Vec<FunctionId>,
    /// How many more functions call something.
    hidden: usize,
    /// Whether one function was asked for.
    is_detail: bool,
    limit: Option<usize>,
    cycles: Vec<usize>,
    cycle_of: IdVec<FunctionId, Option<usize>>,
    index: FxHashMap<FunctionId, usize>,
    labels: Labels,
}

/// Chooses, orders and names.
pub fn arrange<'a>(
    subject: &Subject,
    graph: &'a CallGraph,
    options: &Options,
) -> CallGraphView<'a> {
    let is_detail = !options.about.is_empty();
    let mut listed = if is_detail {
        options.about.clone()
    } else {
        callers_by_sites(subject, graph)
    };
    let hidden = match options.limit {
        Some(limit) if !is_detail => listed.len().saturating_sub(limit),
        _ => 0,
    };
    listed.truncate(listed.len() - hidden);
    let whole = !is_detail && hidden == 0;

    let mut chosen = IdVec::filled(false, graph.nodes.len());
    listed.iter().for_each(|&id| chosen[id] = true);
    let mut arcs = graph.arcs.clone();
    arcs.retain(|arc| whole || chosen[arc.from] || is_detail && chosen[arc.to]);
    for arc in &arcs {
        chosen[arc.from] = true;
        chosen[arc.to] = true;
    }
    let mut functions: Vec<FunctionId> = graph.nodes.ids().collect();
    functions.retain(|&id| whole || chosen[id]);

    let complete = |members: &Vec<FunctionId>| members.iter().all(|&id| whole || chosen[id]);
    let cycles = graph.cycles.iter().enumerate();
    let cycles: Vec<usize> = cycles
        .filter(|(_, members)| complete(members))
        .map(|(index, _)| index)
        .collect();
    CallGraphView {
        graph,
        labels: Labels::new(subject, functions.iter().copied()),
        index: functions.iter().copied().zip(0..).collect(),
        functions,
        arcs,
        listed,
        hidden,
        is_detail,
        limit: options.limit,
        cycles,
        cycle_of: graph.cycle_of(),
    }
}

/// The functions that call something, those with the most calls first; ties by name.
fn callers_by_sites(subject: &Subject, graph: &CallGraph) -> Vec<FunctionId> {
    let mut sites = IdVec::filled(0_u64, graph.nodes.len());
    for arc in &graph.arcs {
        sites[arc.from] = sites[arc.from].saturating_add(arc.sites);
    }
    let mut callers: Vec<FunctionId> = sites.ids().filter(|&id| sites[id] > 0).collect();
    callers.sort_by_cached_key(|&id| (Reverse(sites[id]), subject.name(id), id));
    callers
}

impl CallGraphView<'_> {
    /// What a function of the part is called.
    pub fn name(&self, function: FunctionId) -> &str {
        self.labels.of(function)
    }

    /// The place of a function of the part in [`CallGraphView::functions`].
    pub fn index(&self, function: FunctionId) -> usize {
        self.index.get(&function).copied().unwrap_or(0)
    }

    /// The cycles of which all members are shown.
    pub fn cycles(&self) -> impl Iterator<Item = &[FunctionId]> {
        let cycles = self.cycles.iter();
        cycles.map(|&index| self.graph.cycles[index].as_slice())
    }

    /// The place in [`CallGraphView::cycles`] of the cycle that a function is a member of.
    pub fn cycle(&self, function: FunctionId) -> Option<usize> {
        let cycle = self.cycle_of[function]?;
        self.cycles.binary_search(&cycle).ok()
    }

    /// The number of calls in these functions whose callees are not known.
    pub fn indirect_calls(&self) -> u64 {
        let calls = |&id: &FunctionId| self.graph.nodes[id].indirect_calls;
        self.functions.iter().map(calls).sum()
    }

    /// The number of jumps in these functions that may be tail calls.
    pub fn indirect_jumps(&self) -> u64 {
        let jumps = |&id: &FunctionId| self.graph.nodes[id].indirect_jumps;
        self.functions.iter().map(jumps).sum()
    }

    /// The arcs, a row each.
    pub fn table(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("caller", "caller", Role::Name),
            Column::new("caller_address", "address", Role::Aside),
            Column::new("callee", "callee", Role::Name),
            Column::new("callee_address", "address", Role::Aside),
            Column::new("kind", "kind", Role::Aside),
            Column::new("sites", "sites", Role::Figure),
        ]);
        let address = |id: FunctionId| match subject.profile.functions[id].address {
            Some(address) => Cell::Text(format!("{address:#x}")),
            None => Cell::Nothing,
        };
        for arc in &self.arcs {
            table.rows.push(vec![
                Cell::Text(self.name(arc.from).to_owned()),
                address(arc.from),
                Cell::Text(self.name(arc.to).to_owned()),
                address(arc.to),
                Cell::Text(arc.kind.name().to_owned()),
                Cell::Count(arc.sites),
            ]);
        }
        table
    }

    /// The page for people.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = vec![Block::Line(self.headline())];
        blocks.extend(self.about_cycles().map(Block::Line));
        if !self.listed.is_empty() {
            blocks.push(Block::Space);
            blocks.push(Block::Table(self.listing()));
        }
        if self.hidden > 0 {
            blocks.push(Block::Line(format!(
                "… {} more; all of them: --limit 0",
                counted(
                    self.hidden as u64,
                    "function with calls",
                    "functions with calls"
                )
            )));
        }
        blocks.extend(caveats::foot(&subject.profile.caveats));
        Page {
            unit: Unit::Samples,
            blocks,
        }
    }

    /// How much of what there is, over the whole graph.
    fn headline(&self) -> String {
        let nodes = || self.graph.nodes.iter();
        let imported = nodes().filter(|node| node.imported).count() as u64;
        let functions = self.graph.nodes.len() as u64 - imported;
        let mut line = counted(functions, "function", "functions");
        for (kind, one, many) in [
            (ArcKind::Call, "call", "calls"),
            (ArcKind::Tail, "tail call", "tail calls"),
            (ArcKind::Import, "call of", "calls of"),
        ] {
            let arcs = self.graph.arcs.iter().filter(|arc| arc.kind == kind);
            let sites: u64 = arcs.map(|arc| arc.sites).sum();
            line.push_str(", ");
            line.push_str(&counted(sites, one, many));
        }
        line.push(' ');
        line.push_str(&counted(imported, "import", "imports"));
        let indirect: u64 = nodes().map(|node| node.indirect_calls).sum();
        line.push_str(", ");
        line.push_str(&counted(indirect, "indirect call", "indirect calls"));
        line
    }

    fn about_cycles(&self) -> Option<String> {
        let largest = self.graph.cycles.iter().map(Vec::len).max()? as u64;
        let cycles = self.graph.cycles.len() as u64;
        let members = number::grouped(largest);
        Some(match cycles {
            1 => format!("1 cycle, of {members} functions"),
            _ => format!(
                "{} cycles, the largest of {members} functions",
                number::grouped(cycles)
            ),
        })
    }

    /// Each listed function, with its callers where it was asked for, and its callees.
    fn listing(&self) -> Table {
        let mut table = Table::new(vec![
            Column::new("function", "function", Role::Name),
            Column::new("sites", "sites", Role::Figure),
            Column::new("kind", "kind", Role::Aside),
            Column::new("cycle", "cycle", Role::Figure),
        ]);
        let mut callers: FxHashMap<FunctionId, Vec<&Arc>> = FxHashMap::default();
        if self.is_detail {
            for arc in &self.arcs {
                callers.entry(arc.to).or_default().push(arc);
            }
        }
        for &id in &self.listed {
            let mut callers = callers.remove(&id).unwrap_or_default();
            let mut callees: Vec<&Arc> = self.graph.callees(id).iter().collect();
            let sites = callees.iter().map(|arc| arc.sites).sum();
            self.neighbours(&mut table, "← ", &mut callers, |arc| arc.from);
            table.rows.push(vec![
                Cell::Text(self.name(id).to_owned()),
                Cell::Count(sites),
                Cell::Nothing,
                self.cycle_number(id),
            ]);
            self.neighbours(&mut table, "→ ", &mut callees, |arc| arc.to);
            let node = &self.graph.nodes[id];
            if node.indirect_calls > 0 {
                table.rows.push(vec![
                    Cell::Branch {
                        guide: "  → ".into(),
                        text: "[not known]".into(),
                    },
                    Cell::Count(node.indirect_calls),
                    Cell::Text("indirect".into()),
                    Cell::Nothing,
                ]);
            }
        }
        if self.graph.cycles.is_empty() {
            return table.without(&["cycle"]);
        }
        table
    }

    /// Rows for the other ends of arcs, those with the most sites first; ties by name.
    fn neighbours(
        &self,
        table: &mut Table,
        mark: &str,
        arcs: &mut [&Arc],
        end: impl Fn(&Arc) -> FunctionId,
    ) {
        arcs.sort_by_key(|arc| (Reverse(arc.sites), self.name(end(arc)), end(arc), arc.kind));
        let all = self.is_detail || self.limit.is_none();
        let shown = if all { arcs.len() } else { NEIGHBOURS };
        for arc in arcs.iter().take(shown) {
            table.rows.push(vec![
                Cell::Branch {
                    guide: format!("  {mark}"),
                    text: self.name(end(arc)).to_owned(),
                },
                Cell::Count(arc.sites),
                Cell::Text(arc.kind.name().to_owned()),
                self.cycle_number(end(arc)),
            ]);
        }
        let rest = arcs.get(shown..).unwrap_or_default();
        if !rest.is_empty() {
            let sites = rest.iter().map(|arc| arc.sites).sum();
            table.rows.push(vec![
                Cell::Branch {
                    guide: format!("  {mark}"),
                    text: format!("… {} more", number::grouped(rest.len() as u64)),
                },
                Cell::Count(sites),
                Cell::Nothing,
                Cell::Nothing,
            ]);
        }
    }

    /// The number of a function's cycle, from 1, over the whole graph.
    fn cycle_number(&self, function: FunctionId) -> Cell {
        match self.cycle_of[function] {
            Some(cycle) => Cell::Count(cycle as u64 + 1),
            None => Cell::Nothing,
        }
    }
}

/// `1 call`, `2 calls`.
fn counted(n: u64, one: &str, many: &str) -> String {
    let noun = if n == 1 { one } else { many };
    format!("{} {noun}", number::grouped(n))
}
