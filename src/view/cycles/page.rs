//! The cycles as a page for people.

use std::cmp::Reverse;

use super::CyclesView;
use crate::analysis::graph::Entry;
use crate::base::Unit;
use crate::callgraph::{ArcId, CycleId};
use crate::names::{Label, Mark};
use crate::profile::FunctionId;
use crate::view::page::{Block, HiddenBy, HiddenRows, Page};
use crate::view::table::{Call, Cell, Column, Role, Table, What};
use crate::view::{Subject, basis, caveats, label, number, range};

/// How many members, arcs and functions a page names where not all were asked for.
const ROWS: usize = 12;
/// How many functions that call themselves it lists then.
const RECURSIVE: usize = 10;

impl CyclesView<'_> {
    /// The page.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = self.graph.heading(subject);
        blocks.push(Block::Line(self.headline()));
        if self.shows_estimate() {
            let error = self.summary.estimate.attribution.standard_error;
            blocks.extend(basis::sampled("fonseca", error, subject.selection.total()));
        }
        let cycles = self.order.len();
        let shown = self.limit.unwrap_or(usize::MAX);
        let mut ranges = Vec::new();
        for (place, &cycle) in (1..).zip(&self.order).take(shown) {
            blocks.push(Block::Space);
            self.one_cycle(subject, (place, cycle), &mut blocks, &mut ranges);
        }
        if cycles > shown {
            blocks.push(Block::Space);
            let noun = ("cycle", "cycles");
            blocks.extend(HiddenRows::block(cycles - shown, noun, HiddenBy::Limit));
        }
        if !self.recursive.is_empty() {
            blocks.push(Block::Space);
            blocks.push(Block::Heading("functions that call themselves".into()));
            push_table(&mut blocks, &mut ranges, self.own(subject));
            if self.is_cut_inside() {
                blocks.push(Block::Line(
                    "cut inside: samples whose incomplete stacks begin with the function; their \
                     callers and depth are unknown, and totals of callers are ranges"
                        .into(),
                ));
            }
        }
        let graph = &self.summary.graph.graph;
        let arcs = { self.order.iter() }.flat_map(|&cycle| self.summary.arcs_to(cycle));
        let own = { self.recursive.iter() }.filter_map(|&id| graph.arc_between(id, id));
        blocks.extend(label::legends(arcs.chain(own).map(|id| &graph.arcs()[id])));
        blocks.extend(range::legend(subject.profile.rows, &ranges));
        blocks.extend(caveats::foot_of(subject));
        Page {
            unit: subject.selection.event().unit.clone(),
            blocks: range::settled(subject, blocks),
        }
    }

    /// The number of cycles, and of functions that recurse.
    fn headline(&self) -> String {
        let (cycles, own) = (self.order.len(), self.recursive.len());
        let count = |is: &dyn Fn(FunctionId) -> bool| {
            let these = self.recursive.iter().filter(|&&id| is(id));
            these.count()
        };
        let gaps = count(&|id| self.summary.recurses_across_gap(id));
        let pointers = count(&|id| self.summary.recurses_through_pointer(id));
        let mut summary = format!(
            "{}, {}",
            counted(cycles, "cycle", "cycles"),
            counted(
                own - gaps - pointers,
                "function calls itself",
                "functions call themselves"
            ),
        );
        if pointers > 0 {
            let pointers = counted(pointers, "function", "functions");
            summary.push_str(&format!(", {pointers} may, through a pointer"));
        }
        if gaps > 0 {
            let gaps = counted(gaps, "function recurses", "functions recurse");
            summary.push_str(&format!(", {gaps} through missing frames"));
        }
        summary
    }

    /// One cycle: its members, the calls into it and inside of it, and how to break it.
    fn one_cycle(
        &self,
        subject: &Subject,
        (place, cycle): (usize, CycleId),
        blocks: &mut Vec<Block>,
        ranges: &mut Vec<Cell>,
    ) {
        let heading = self.heading(subject, (place, cycle));
        if self.is_scheduled(cycle) {
            blocks.push(Block::Line(heading));
            return;
        }
        blocks.push(Block::Heading(heading));
        push_table(blocks, ranges, self.members(subject, cycle));
        let (entries, unknown) = self.entries(cycle);
        blocks.extend(self.arc_table(subject, "entry calls", entries, unknown));
        blocks.extend(self.cut_line(cycle).map(Block::Line));
        blocks.extend(self.arc_table(subject, "inside", self.summary.inside(cycle), Vec::new()));
        blocks.extend(self.calls_line(cycle).map(Block::Line));
        blocks.push(self.broken(subject, cycle));
        blocks.extend(self.depth_line(cycle).map(Block::Line));
    }

    /// The first line of a cycle: `cycle 1: 2 functions, 98.69 % of the total`.
    pub fn heading(&self, subject: &Subject, (place, cycle): (usize, CycleId)) -> String {
        let members = self.summary.graph.cycles.members()[cycle].len();
        let total = self.summary.graph.total(Entry::Cycle(cycle)).round() as u64;
        let heading = format!(
            "cycle {place}: {}, {} % of the total{}",
            counted(members, "function", "functions"),
            number::percent(total, subject.selection.total(), 2),
            range::behind(subject, self.at_most(subject, Entry::Cycle(cycle)), " %"),
        );
        let heading = if self.summary.only_through_pointer[cycle] {
            heading + " (through a pointer)"
        } else {
            heading
        };
        match self.scheduled.get(&cycle) {
            Some(scheduled) => format!("{heading}, {scheduled}"),
            None => heading,
        }
    }

    /// Whether a cycle runs through the scheduler of a runtime: then its heading says all of it.
    pub fn is_scheduled(&self, cycle: CycleId) -> bool {
        self.scheduled.contains_key(&cycle)
    }

    /// The calls into a cycle, and with their weights what stands in place of calls that are not
    /// known: where stacks begin in the cycle, and the marks of incomplete ones.
    pub fn entries(&self, cycle: CycleId) -> (Vec<ArcId>, Vec<(u64, Label)>) {
        let entries = self.summary.entries(cycle).into_iter();
        let is_from_mark = |id: &ArcId| {
            self.graph
                .is_mark(self.summary.graph.graph.arcs()[*id].from)
        };
        let (from_marks, entries) = entries.partition(is_from_mark);
        (entries, self.unknown_entries(cycle, from_marks))
    }

    fn members(&self, subject: &Subject, cycle: CycleId) -> Table {
        let mut table = Table::new(vec![
            Column::new("percent", "total %", Role::Heat),
            range::column(),
            Column::new("self", "self", Role::Figure),
            Column::new("outside", "outside", Role::Figure),
            Column::new("total", "total", Role::Spare),
            Column::new("estimate", "fonseca", Role::Figure),
            Column::new("function", "member", Role::Name),
        ]);
        let mut members = self.summary.graph.cycles.members()[cycle].clone();
        let total = |id: FunctionId| self.summary.graph.total(Entry::Function(id)).round() as u64;
        members.sort_by_cached_key(|&id| (Reverse(total(id)), self.graph.name(id)));
        let limit = self.limit.map_or(usize::MAX, |_| ROWS);
        for &id in members.iter().take(limit) {
            let portion = self.summary.graph.portion(Entry::Function(id));
            let estimate = self.summary.estimate.attribution.total(id);
            table.rows.push(vec![
                Cell::Share {
                    part: total(id),
                    whole: subject.selection.total(),
                },
                self.at_most(subject, Entry::Function(id)),
                Cell::Weight(portion.self_weight.round() as u64),
                Cell::Weight(portion.children.round() as u64),
                Cell::Weight(total(id)),
                Cell::Weight(estimate.round() as u64),
                Cell::name(self.member(id)),
            ]);
        }
        if let Some(more) = members.len().checked_sub(limit).filter(|&more| more > 0) {
            let mut row = vec![Cell::Nothing; table.columns.len() - 1];
            row.push(Cell::name(What::More(more)));
            table.rows.push(row);
        }
        range::if_filled(if self.shows_estimate() {
            table
        } else {
            table.without(&["estimate"])
        })
    }

    /// A member of a cycle, marked if it was restored.
    pub fn member(&self, function: FunctionId) -> Label {
        let weights = &self.summary.graph.weights;
        let (inferred, total) = (weights.inferred[function], weights.total[function]);
        label::marked(self.graph.label(function), inferred, total)
    }

    /// Whether Fonseca's estimate has a column. It knows nothing of arcs that are cut, and without
    /// stacks the total is this estimate.
    pub fn shows_estimate(&self) -> bool {
        self.summary.graph.cycles.cut().is_empty() && self.summary.graph.has_stacks()
    }

    /// The upper end of a total for people.
    pub fn at_most(&self, subject: &Subject, entry: Entry) -> Cell {
        let total = self.summary.graph.total(entry).round() as u64;
        let most = self.summary.graph.total_max(entry);
        most.map_or(Cell::Nothing, |most| {
            range::cell(total, most, subject.selection.total())
        })
    }

    /// What came into a cycle without a caller: where stacks begin in it, and by mark where they
    /// are not whole. A stack begins once, so that the weights of a mark's arcs can be added.
    fn unknown_entries(&self, cycle: CycleId, from_marks: Vec<ArcId>) -> Vec<(u64, Label)> {
        if !self.summary.graph.has_stacks() {
            return Vec::new();
        }
        let mut entries = Vec::new();
        let root = self.summary.graph.attribution.cycles[cycle].root.total();
        if root > 0.0 {
            entries.push((root.round() as u64, "<spontaneous>".into()));
        }
        let mut marks: Vec<(FunctionId, u64)> = Vec::new();
        for id in from_marks {
            let (mark, weight) = (
                self.summary.graph.graph.arcs()[id].from,
                self.summary.weight(id),
            );
            match marks.iter_mut().find(|(other, _)| *other == mark) {
                Some((_, sum)) => *sum += weight,
                None => marks.push((mark, weight)),
            }
        }
        let named = marks
            .into_iter()
            .map(|(mark, sum)| (sum, self.graph.label(mark)));
        entries.extend(named);
        entries
    }

    /// A table of arcs and of what is known in place of some, if there are any.
    fn arc_table(
        &self,
        subject: &Subject,
        title: &'static str,
        arcs: Vec<ArcId>,
        without_arc: Vec<(u64, Label)>,
    ) -> Option<Block> {
        let stacks = self.summary.graph.has_stacks();
        let mut table = Table::new(vec![
            Column::new("percent", "total %", Role::Heat),
            if stacks {
                Column::new("weight", "weight", Role::Spare)
            } else {
                Column::new("calls", "calls", Role::Figure)
            },
            Column::new("arc", title, Role::Name),
        ]);
        let mut row = |weight: u64, what: What| {
            let share = Cell::Share {
                part: weight,
                whole: subject.selection.total(),
            };
            table.rows.push(if stacks {
                vec![share, Cell::Weight(weight), Cell::name(what)]
            } else {
                vec![Cell::Nothing, Cell::Count(weight), Cell::name(what)]
            });
        };
        for (weight, label) in without_arc {
            row(weight, label.into());
        }
        let limit = self.limit.map_or(usize::MAX, |_| ROWS);
        for &id in arcs.iter().take(limit) {
            row(self.summary.weight(id), self.arc(id).into());
        }
        if let Some(more) = arcs.len().checked_sub(limit).filter(|&more| more > 0) {
            let more = Cell::name(What::More(more));
            table.rows.push(vec![Cell::Nothing, Cell::Nothing, more]);
        }
        (!table.rows.is_empty()).then(|| {
            if stacks {
                Block::Table(table)
            } else {
                Block::Table(table.without(&["percent"]))
            }
        })
    }

    /// A call of a cycle.
    pub fn arc(&self, id: ArcId) -> Call {
        let arc = &self.summary.graph.graph.arcs()[id];
        let to = self.graph.label(arc.to).with(label::mark(arc));
        Call::new(self.graph.label(arc.from), to)
    }

    /// The sentence on what to leave out of a cycle so that it is none.
    pub fn broken(&self, subject: &Subject, cycle: CycleId) -> Block {
        let breaking = &self.summary.breaking[cycle];
        let limit = self.limit.map_or(usize::MAX, |_| ROWS);
        let named = breaking.arcs.iter().take(limit);
        let calls = named.map(|&id| self.arc(id)).collect();
        let more = breaking
            .arcs
            .len()
            .checked_sub(limit)
            .filter(|&n| n > 0)
            .map_or(String::new(), |more| {
                format!(" and {} more", number::grouped(more as u64))
            });
        let weight = self.summary.broken_weight[cycle];
        let weight = if self.summary.graph.has_stacks() {
            match &subject.selection.event().unit {
                Unit::Samples => format!("{} samples", number::grouped(weight)),
                unit => number::weight(weight, unit),
            }
        } else {
            counted(
                usize::try_from(weight).unwrap_or(usize::MAX),
                "call",
                "calls",
            )
        };
        let best = if breaking.is_best {
            String::new()
        } else {
            "; a lighter set may exist: the cycle is too large for an exact search".into()
        };
        let has_gaps = (self.summary.arcs_to(cycle))
            .map(|id| &self.summary.graph.graph.arcs()[id])
            .any(|arc| arc.is_gap() && self.summary.graph.cycles.share(arc.from, arc.to));
        let gaps = if has_gaps {
            "; calls of missing frames may close it again"
        } else {
            ""
        };
        Block::Calls {
            before: "removing".into(),
            calls,
            after: format!("{more} breaks the cycle ({weight}{best}{gaps})"),
        }
    }

    /// How often the cycle is entered and passed, where all of its calls were counted beside
    /// stacks.
    pub fn calls_line(&self, cycle: CycleId) -> Option<String> {
        let graph = &self.summary.graph;
        let calls = graph.calls.as_ref()?.cycles.get(cycle)?;
        if !graph.has_stacks() || calls.is_least || calls.outside == 0 {
            return None;
        }
        Some(format!(
            "calls: {} from outside, {} between members: {:.1} per entry",
            number::grouped(calls.outside),
            number::grouped(calls.inside),
            calls.inside as f64 / calls.outside as f64
        ))
    }

    /// The number of samples whose entry into a cycle is unknown, if there are any.
    fn cut_line(&self, cycle: CycleId) -> Option<String> {
        let samples = self.summary.cut_inside(cycle).samples;
        let (is, these) = match samples {
            1 => ("is", "it"),
            _ => ("are", "these"),
        };
        (samples > 0).then(|| {
            format!(
                "{} of its samples {is} incomplete inside the cycle: the entry of {these} is \
                 unknown, and totals of callers are ranges",
                number::grouped(samples)
            )
        })
    }

    /// How deep a cycle recurses, if stacks show that.
    pub fn depth_line(&self, cycle: CycleId) -> Option<String> {
        let depth = self.summary.depths.cycles.get(cycle)?;
        if !self.summary.graph.has_stacks() || depth.deepest() == 0 {
            return None;
        }
        let cut = self.summary.cut_inside(cycle);
        let least = if cut.samples > 0 { "at least " } else { "" };
        Some(format!(
            "depth: max {least}{}, mean {least}{:.1}",
            number::grouped(depth.deepest() as u64),
            depth.mean()
        ))
    }

    fn own(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("percent", "total %", Role::Heat),
            range::column(),
            Column::new("self", "self", Role::Figure),
            Column::new("deepest", "max depth", Role::Figure),
            Column::new("mean", "mean depth", Role::Figure),
            Column::new("cut", "cut inside", Role::Figure),
            Column::new("calls", "calls by itself", Role::Figure),
            Column::new("function", "function", Role::Name),
        ]);
        let limit = self.limit.map_or(usize::MAX, |_| RECURSIVE);
        for &id in self.recursive.iter().take(limit) {
            let depth = self.summary.depths.of(id);
            let calls = self
                .summary
                .graph
                .calls
                .as_ref()
                .and_then(|calls| calls.functions[id].known_recursive());
            table.rows.push(vec![
                Cell::Share {
                    part: self.summary.graph.total(Entry::Function(id)).round() as u64,
                    whole: subject.selection.total(),
                },
                self.at_most(subject, Entry::Function(id)),
                Cell::Weight(self.summary.graph.weights.self_weight[id]),
                depth.map_or(Cell::Nothing, |depth| Cell::Count(depth.deepest() as u64)),
                depth.map_or(Cell::Nothing, |depth| {
                    Cell::Text(format!("{:.1}", depth.mean()))
                }),
                Cell::Count(self.summary.cut_in(id).samples),
                calls.map_or(Cell::Nothing, Cell::Count),
                Cell::name(self.graph.indexed(id).with(self.mark(id))),
            ]);
        }
        if let Some(more) = self.recursive.len().checked_sub(limit).filter(|&n| n > 0) {
            let mut row = vec![Cell::Nothing; table.columns.len() - 1];
            row.push(Cell::name(What::More(more)));
            table.rows.push(row);
        }
        let mut left_out = Vec::new();
        if self.summary.graph.calls.is_none() {
            left_out.push("calls");
        }
        if !self.summary.graph.has_stacks() {
            left_out.extend(["deepest", "mean"]);
        }
        if !self.is_cut_inside() {
            left_out.push("cut");
        }
        range::if_filled(table.without(&left_out))
    }

    /// What is to be said of a function that recurses.
    pub fn mark(&self, function: FunctionId) -> Option<Mark> {
        if self.summary.recurses_across_gap(function) {
            Some(Mark::AcrossGap)
        } else {
            let may = self.summary.recurses_through_pointer(function);
            may.then_some(Mark::ThroughPointer)
        }
    }

    /// Whether stacks are cut in a function that calls itself.
    fn is_cut_inside(&self) -> bool {
        self.recursive
            .iter()
            .any(|&id| self.summary.cut_in(id).samples > 0)
    }
}

/// Adds a table, and its ranges to those of the page.
fn push_table(blocks: &mut Vec<Block>, ranges: &mut Vec<Cell>, table: Table) {
    ranges.extend(range::cells(&table).cloned());
    blocks.push(Block::Table(table));
}

/// `1 cycle`, `2 cycles`.
fn counted(n: usize, one: &str, many: &str) -> String {
    let noun = if n == 1 { one } else { many };
    format!("{} {noun}", number::grouped(n as u64))
}
