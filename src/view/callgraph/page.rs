//! The call graph as a page for people.

use std::cmp::Reverse;

use super::{CallGraphView, Part, kinds, sites};
use crate::base::Unit;
use crate::callgraph::{CallArc, CycleId};
use crate::profile::{CallKind, FunctionId};
use crate::view::page::{Block, HiddenBy, HiddenRows, Page};
use crate::view::table::{Call, Cell, Column, Guide, Role, Table, What};
use crate::view::{Subject, caveats, number};

/// How many callees or callers a page names where not all were asked for.
const NEIGHBOURS: usize = 10;
/// How many members of a cycle a page names where not all were asked for.
const MEMBERS: usize = 12;

impl CallGraphView<'_> {
    /// The page for people.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = vec![Block::Line(self.headline(subject))];
        blocks.extend(self.about_cycles().map(Block::Line));
        blocks.extend(self.about_samples(subject).into_iter().map(Block::Line));
        if self.part == Part::Cycles && self.listed.is_empty() {
            blocks.push(Block::Line("no recursion by direct calls".to_owned()));
        }
        if !self.listed.is_empty() {
            blocks.push(Block::Space);
            blocks.push(Block::Table(match self.part {
                Part::Roots => self.roots(subject),
                Part::Cycles => self.members(subject),
                _ => self.listing(subject),
            }));
        }
        let noun = ("function", "functions");
        blocks.extend(HiddenRows::block(self.hidden, noun, HiddenBy::Limit));
        blocks.extend(caveats::foot_of(subject));
        Page {
            unit: match self.summary.measured {
                Some(_) => subject.selection.event().unit.clone(),
                None => Unit::Samples,
            },
            blocks,
        }
    }

    /// How much of what there is, over the modules that are looked at.
    fn headline(&self, subject: &Subject) -> String {
        let inside = || {
            self.summary
                .within
                .ids()
                .filter(|&id| self.summary.within[id])
        };
        let code = |id| self.code(subject, id);
        let functions = inside().filter(|&id| !code(id).imported).count() as u64;
        let mut line = counted(functions, "function", "functions");
        let arcs = || {
            self.summary
                .graph
                .arcs()
                .iter()
                .filter(|arc| self.summary.within[arc.from])
        };
        for (kind, one, many) in [
            (CallKind::Call, "call", "calls"),
            (CallKind::Tail, "tail call", "tail calls"),
            (CallKind::Import, "call of", "calls of"),
        ] {
            let sites: u64 = arcs().map(|arc| arc.sites_of(kind)).sum();
            line.push_str(", ");
            line.push_str(&counted(sites, one, many));
        }
        let mut imports: Vec<FunctionId> = arcs()
            .filter(|arc| arc.sites_of(CallKind::Import) > 0)
            .map(|arc| arc.to)
            .collect();
        imports.sort_unstable();
        imports.dedup();
        line.push(' ');
        line.push_str(&counted(imports.len() as u64, "import", "imports"));
        let indirect: u64 = inside().map(|id| code(id).indirect_calls).sum();
        line.push_str(", ");
        line.push_str(&counted(indirect, "indirect call", "indirect calls"));
        line
    }

    fn about_cycles(&self) -> Option<String> {
        let inside = |members: &&Vec<FunctionId>| members.iter().any(|&id| self.summary.within[id]);
        let cycles = self.summary.cycles.members().iter().filter(inside);
        let sizes: Vec<usize> = cycles.map(Vec::len).collect();
        let largest = number::grouped(*sizes.iter().max()? as u64);
        Some(match sizes.len() {
            1 => format!("1 cycle of {largest} functions"),
            cycles => format!(
                "{} cycles, the largest of {largest} functions",
                number::grouped(cycles as u64)
            ),
        })
    }

    /// What the samples touched.
    fn about_samples(&self, subject: &Subject) -> Vec<String> {
        let Some(measured) = &self.summary.measured else {
            return Vec::new();
        };
        let coverage = &measured.coverage;
        let of = |part: u64, whole: u64| {
            let (part, whole) = (number::grouped(part), number::grouped(whole));
            format!("{part} of {whole}")
        };
        let mut lines = vec![
            subject.headline(),
            format!(
                "of the code that the run could reach, the {} cover {} functions and {} arcs",
                match subject.profile.counts {
                    Some(_) => "samples and counted calls",
                    None => "samples",
                },
                of(coverage.touched_functions, coverage.functions),
                of(coverage.touched_arcs, coverage.arcs)
            ),
        ];
        if coverage.only_observed > 0 {
            let arcs = counted(coverage.only_observed, "sampled arc is", "sampled arcs are");
            lines.push(format!(
                "{arcs} not in the code: indirect calls, or frames missing from stacks"
            ));
        }
        lines
    }

    /// Each listed function, with its callers where it was asked for, and its callees.
    fn listing(&self, subject: &Subject) -> Table {
        let mut table = self.columns();
        let with_callers = matches!(self.part, Part::About(_));
        for &id in &self.listed {
            if with_callers {
                let callers = self.summary.graph.arcs_to(id);
                self.neighbours(
                    &mut table,
                    subject,
                    Guide::Caller,
                    callers.collect(),
                    |arc| arc.from,
                );
            }
            let callees: Vec<&CallArc> = self.summary.graph.arcs_from(id).collect();
            let total = self.summary.measured.as_ref().map(|m| m.weights.total[id]);
            table.rows.push(vec![
                share(subject, total),
                Cell::name(self.label(id)),
                Cell::Count(callees.iter().map(|arc| arc.sites()).sum()),
                Cell::Nothing,
                self.cycle_number(id),
                Cell::Nothing,
            ]);
            self.neighbours(&mut table, subject, Guide::Callee, callees, |arc| arc.to);
            let indirect = self.code(subject, id).indirect_calls;
            if indirect > 0 {
                table.rows.push(vec![
                    Cell::Nothing,
                    Cell::beside(Guide::Callee, "[not known]"),
                    Cell::Count(indirect),
                    Cell::Text("indirect".into()),
                    Cell::Nothing,
                    Cell::Nothing,
                ]);
            }
        }
        self.trimmed(table)
    }

    fn columns(&self) -> Table {
        Table::new(vec![
            Column::new("percent", "total %", Role::Heat),
            Column::new("function", "function", Role::Name),
            Column::new("sites", "sites", Role::Figure),
            Column::new("kind", "kind", Role::Aside),
            Column::new("cycle", "cycle", Role::Figure),
            Column::new("origin", "evidence", Role::Aside),
        ])
    }

    /// The table without columns that have nothing to say.
    fn trimmed(&self, table: Table) -> Table {
        let mut left_out = Vec::new();
        if self.summary.cycles.members().is_empty() {
            left_out.push("cycle");
        }
        if self.summary.measured.is_none() {
            left_out.extend(["percent", "origin"]);
        }
        table.without(&left_out)
    }

    /// Rows for the other ends of arcs: the heaviest first, then those with the most sites; ties
    /// by name.
    fn neighbours(
        &self,
        table: &mut Table,
        subject: &Subject,
        guide: Guide,
        mut arcs: Vec<&CallArc>,
        end: impl Fn(&CallArc) -> FunctionId,
    ) {
        // Who only takes an address does not call.
        arcs.sort_by_key(|arc| {
            let heavy = Reverse((arc.weight, arc.is_call(), arc.sites()));
            (heavy, self.name(end(arc)), end(arc))
        });
        let all = matches!(self.part, Part::About(_)) || self.limit.is_none();
        let shown = if all { arcs.len() } else { NEIGHBOURS };
        for arc in arcs.iter().take(shown) {
            let measured = self.summary.measured.is_some();
            table.rows.push(vec![
                share(subject, measured.then_some(arc.weight)),
                Cell::beside(guide.clone(), self.label(end(arc))),
                Cell::Count(sites(arc)),
                Cell::Text(kinds(arc)),
                self.cycle_number(end(arc)),
                Cell::Text(arc.evidence().into()),
            ]);
        }
        let rest = arcs.get(shown..).unwrap_or_default();
        if !rest.is_empty() {
            table.rows.push(vec![
                Cell::Nothing,
                Cell::beside(guide, What::More(rest.len())),
                Cell::Count(rest.iter().map(|arc| sites(arc)).sum()),
                Cell::Nothing,
                Cell::Nothing,
                Cell::Nothing,
            ]);
        }
    }

    /// What nothing calls, with what may call it all the same.
    fn roots(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("percent", "total %", Role::Heat),
            Column::new("function", "function nothing calls", Role::Name),
            Column::new("calls", "calls", Role::Figure),
            Column::new("taken", "address taken", Role::Figure),
            Column::new("in_data", "in data", Role::Figure),
            Column::new("cycle", "cycle", Role::Figure),
        ]);
        for &id in &self.listed {
            let callees = self.summary.graph.arcs_from(id);
            let callers = self.summary.graph.arcs_to(id);
            let taken = callers.map(|arc| arc.sites_of(CallKind::Pointer)).sum();
            let total = self.summary.measured.as_ref().map(|m| m.weights.total[id]);
            table.rows.push(vec![
                share(subject, total),
                Cell::name(self.label(id)),
                Cell::Count(callees.map(|arc| arc.sites()).sum()),
                Cell::Count(taken),
                Cell::Count(self.code(subject, id).pointers_in_data),
                self.cycle_number(id),
            ]);
        }
        self.trimmed(table)
    }

    /// The members of each cycle, with the calls that keep it together.
    fn members(&self, subject: &Subject) -> Table {
        let mut table = self.columns();
        let mut rest = self.listed.as_slice();
        let mut cycles = 0;
        while let Some(cycle) = rest.first().and_then(|&id| self.summary.cycles.of()[id]) {
            let all = self.limit.is_none_or(|limit| cycles < limit);
            if !all {
                break;
            }
            let same = |&id: &FunctionId| self.summary.cycles.of()[id] == Some(cycle);
            let here = rest.iter().take_while(|id| same(id)).count();
            let (members, others) = rest.split_at(here);
            rest = others;
            cycles += 1;
            self.one_cycle(&mut table, subject, cycle, members);
        }
        let in_none = |id: &&FunctionId| self.summary.cycles.of()[**id].is_none();
        let alone: Vec<FunctionId> = self.listed.iter().filter(in_none).copied().collect();
        if !alone.is_empty() {
            let (one, several) = ("function calls itself", "functions call themselves");
            let heading = counted(alone.len() as u64, one, several);
            self.part_of_recursion(&mut table, subject, heading, None, &alone);
        }
        self.trimmed(table.without(&["kind", "origin"]))
    }

    fn one_cycle(
        &self,
        table: &mut Table,
        subject: &Subject,
        cycle: CycleId,
        members: &[FunctionId],
    ) {
        let size = self.summary.cycles.members()[cycle].len() as u64;
        let heading = format!("cycle of {} functions", number::grouped(size));
        self.part_of_recursion(table, subject, heading, Some(cycle), members);
    }

    /// Functions with their calls of each other or themselves.
    fn part_of_recursion(
        &self,
        table: &mut Table,
        subject: &Subject,
        heading: String,
        cycle: Option<CycleId>,
        members: &[FunctionId],
    ) {
        table.rows.push(vec![
            Cell::Nothing,
            Cell::Text(heading),
            Cell::Nothing,
            Cell::Nothing,
            cycle.map_or(Cell::Nothing, |cycle| Cell::Count(cycle.index() as u64 + 1)),
            Cell::Nothing,
        ]);
        let shown = self.limit.map_or(members.len(), |_| MEMBERS);
        for &id in members.iter().take(shown) {
            let inside = self.summary.graph.arcs_from(id);
            let inside = inside.filter(|arc| arc.is_call() && self.summary.cycles.is_within(arc));
            let mut callees: Vec<&CallArc> = inside.collect();
            callees.sort_by_key(|arc| (Reverse((arc.weight, arc.sites())), self.name(arc.to)));
            let call = Call {
                from: self.label(id),
                to: { callees.iter() }
                    .take(3)
                    .map(|arc| self.label(arc.to))
                    .collect(),
                has_more: callees.len() > 3,
            };
            let total = self.summary.measured.as_ref().map(|m| m.weights.total[id]);
            table.rows.push(vec![
                share(subject, total),
                Cell::beside(Guide::Part, call),
                Cell::Count(callees.iter().map(|arc| arc.sites()).sum()),
                Cell::Nothing,
                Cell::Nothing,
                Cell::Nothing,
            ]);
        }
        if let Some(more) = members.len().checked_sub(shown).filter(|&more| more > 0) {
            table.rows.push(vec![
                Cell::Nothing,
                Cell::beside(Guide::Part, What::More(more)),
                Cell::Nothing,
                Cell::Nothing,
                Cell::Nothing,
                Cell::Nothing,
            ]);
        }
    }

    /// The number of a function's cycle, from 1, over the whole graph.
    fn cycle_number(&self, function: FunctionId) -> Cell {
        match self.summary.cycles.of()[function] {
            Some(cycle) => Cell::Count(cycle.index() as u64 + 1),
            None => Cell::Nothing,
        }
    }
}

fn share(subject: &Subject, part: Option<u64>) -> Cell {
    match part {
        Some(part) => Cell::Share {
            part,
            whole: subject.selection.total(),
        },
        None => Cell::Nothing,
    }
}

/// `1 call`, `2 calls`.
fn counted(n: u64, one: &str, many: &str) -> String {
    let noun = if n == 1 { one } else { many };
    format!("{} {noun}", number::grouped(n))
}
