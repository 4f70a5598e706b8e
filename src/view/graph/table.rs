//! The listing as a table: of its entries for people, of all figures for spreadsheets.

use super::GraphView;
use super::entry::{Line, Relation, Who};
use crate::analysis::attribution::Portion;
use crate::analysis::graph::Entry;
use crate::callgraph::{ArcId, CallArc, Origin};
use crate::names::{Label, Mark};
use crate::profile::FunctionId;
use crate::view::label::OfCallers;
use crate::view::number::rounded;
use crate::view::table::{Cell, Column, Guide, Name, Role, Table, What};
use crate::view::{Figures, Subject, label, range, rows};

/// The rows of one function's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRows {
    /// The rows, with the columns in which there is something.
    pub table: Table,
    /// For each row the function that it is about; none where no caller is known.
    pub functions: Vec<Option<FunctionId>>,
    /// Which row is the function's own: callers stand above it, callees below.
    pub itself: usize,
}

/// The columns of a listing.
fn columns(subject: &Subject) -> [Column; 9] {
    [
        Column::new("index", "index", Role::Aside),
        Column::new("percent", "total %", Role::Heat),
        range::column(),
        Column::new("self", "self", Role::Figure),
        Column::new("children", "children", Role::Figure),
        Column::new("samples", "samples", Role::Spare),
        Column::new("called", "called", Role::Figure),
        Column::new("function", rows::title(subject.profile.rows), Role::Name),
        Column::new("origin", "evidence", Role::Aside),
    ]
}

/// Whether the code had a part in it.
fn is_known_from_code(line: &Line) -> bool {
    matches!(
        line.origin,
        Some(Origin::Code | Origin::Both | Origin::Inferred)
    )
}

impl GraphView<'_> {
    /// The entries, with an empty line between them.
    pub(super) fn listing(&self, subject: &Subject) -> Table {
        let mut table = Table::new(Vec::from(columns(subject)));
        let columns = table.columns.len();
        let mut from_code = false;
        for (place, &entry) in self.listed.iter().enumerate() {
            if place > 0 {
                table.rows.push(vec![Cell::Nothing; columns]);
            }
            for line in self.lines(entry) {
                from_code |= is_known_from_code(&line);
                table.rows.push(self.row(subject, &line, true));
            }
        }
        range::if_filled(table.without(&self.empty_columns(from_code)))
    }

    /// The columns in which a listing has nothing to say.
    fn empty_columns(&self, from_code: bool) -> Vec<&'static str> {
        let mut left_out = Vec::new();
        if self.summary.calls.is_none() {
            left_out.push("called");
        }
        if !self.summary.has_stacks() {
            left_out.push("samples");
        }
        if !from_code {
            left_out.push("origin");
        }
        left_out
    }

    /// The entry of one function: its callers with the heaviest last, itself, its callees with the
    /// heaviest first; without indices, which are places in the whole listing. What was said of
    /// [`Options::functions`](super::Options::functions) decides whether all of them are there.
    pub fn entry(&self, subject: &Subject, function: FunctionId) -> EntryRows {
        let mut table = Table::new(Vec::from(columns(subject)));
        let mut functions = Vec::new();
        let mut itself = 0;
        for line in self.lines(Entry::Function(function)) {
            if line.relation == Relation::Primary {
                itself = table.rows.len();
            }
            functions.push(match line.who {
                Who::Entry(Entry::Function(id)) => Some(id),
                _ => None,
            });
            table.rows.push(self.row(subject, &line, false));
        }
        let table = table.without(&["index"]);
        let lines = self.lines(Entry::Function(function));
        let from_code = lines.iter().any(is_known_from_code);
        EntryRows {
            table: range::if_filled(table.without(&self.empty_columns(from_code))),
            functions,
            itself,
        }
    }

    fn row(&self, subject: &Subject, line: &Line, is_indexed: bool) -> Vec<Cell> {
        let whole = subject.selection.total();
        let index = match (line.relation, line.who) {
            (Relation::Primary, Who::Entry(entry)) => Cell::Index(self.index(entry)),
            _ => Cell::Nothing,
        };
        let share = |part: f64| Cell::Share {
            part: rounded(part),
            whole,
        };
        let amount = |part: f64| match subject.figures {
            Figures::Percent => share(part),
            Figures::All => Cell::Weight(rounded(part)),
        };
        let total = line.total.map_or(0, rounded);
        let at_most = line.at_most.map(|most| range::cell(total, most, whole));
        let unseen = line.origin == Some(Origin::Code);
        let portion = line.portion.filter(|_| !unseen);
        vec![
            index,
            line.total.filter(|_| !unseen).map_or(Cell::Nothing, share),
            at_most.unwrap_or(Cell::Nothing),
            portion.map_or(Cell::Nothing, |portion| amount(portion.self_weight)),
            portion.map_or(Cell::Nothing, |portion| amount(portion.children)),
            line.samples.map_or(Cell::Nothing, Cell::Count),
            { line.called.as_ref() }.map_or(Cell::Nothing, |called| text(&called.text)),
            self.who(line, unseen, is_indexed),
            line.evidence
                .map_or(Cell::Nothing, |evidence| Cell::Text(evidence.into())),
        ]
    }

    fn who(&self, line: &Line, is_faint: bool, is_indexed: bool) -> Cell {
        let guide = match line.relation {
            Relation::Caller => Guide::Caller,
            Relation::Primary => Guide::None,
            Relation::Member => Guide::Member,
            Relation::Callee => Guide::Callee,
        };
        let label = |label: Label| {
            What::Label(Label {
                is_restored: line.is_inferred,
                ..label
            })
        };
        let what = match line.who {
            Who::Spontaneous => label("<spontaneous>".into()),
            Who::Unknown => label("<not known>".into()),
            Who::More(more) => What::More(more),
            Who::Entry(Entry::Function(id)) if is_indexed => label(self.indexed(id)),
            Who::Entry(Entry::Function(id)) => label(self.in_cycle(id)),
            Who::Entry(entry @ Entry::Cycle(cycle)) => What::Cycle {
                number: self.summary.number(cycle),
                index: is_indexed.then(|| self.index(entry)),
            },
        };
        Cell::Name(Box::new(Name {
            guide,
            what,
            is_faint,
        }))
    }

    /// The place in the order of totals, from 1; 0 for none.
    fn index(&self, entry: Entry) -> u32 {
        match entry {
            Entry::Function(id) => self.places.0[id],
            Entry::Cycle(cycle) => self.places.1[cycle],
        }
    }

    /// A function with its cycle and its index.
    pub(in crate::view) fn indexed(&self, function: FunctionId) -> Label {
        let index = self.index(Entry::Function(function));
        self.in_cycle(function).with(Mark::Index(index))
    }

    fn in_cycle(&self, function: FunctionId) -> Label {
        let cycle = self.summary.cycles.of()[function];
        let mark = cycle.map(|cycle| Mark::Cycle(self.summary.number(cycle)));
        self.label(function).with(mark)
    }

    /// All functions, cycles, roots and arcs, a row each.
    pub fn table(&self, subject: &Subject) -> Table {
        let figure = |key| Column::new(key, key, Role::Figure);
        let mut table = Table::new(vec![
            Column::new("row", "row", Role::Aside),
            Column::new("caller", "caller", Role::Name),
            Column::new("caller_module", "module", Role::Aside),
            Column::new("function", "function", Role::Name),
            Column::new("module", "module", Role::Aside),
            figure("cycle"),
            figure("percent"),
            figure("self"),
            figure("children"),
            figure("total"),
            figure("samples"),
            figure("calls"),
            figure("calls_at_least"),
            figure("sites"),
            Column::new("origin", "origin", Role::Aside),
            figure("total_max"),
            label::column_of_caller(),
            label::column(),
        ]);
        let mut about: Vec<[Option<FunctionId>; 2]> = Vec::new();
        let rows = Rows {
            view: self,
            subject,
        };
        for &entry in &self.ranked {
            about.push(match entry {
                Entry::Function(id) => [None, Some(id)],
                Entry::Cycle(_) => [None; 2],
            });
            table.rows.push(rows.ranked(entry));
        }
        for id in self.functions() {
            let root = self.summary.attribution.roots[id];
            if root.total() > 0.0 {
                about.push([None, Some(id)]);
                table.rows.push(rows.root(id, root));
            }
        }
        for (id, arc) in self.summary.graph.arcs().enumerate() {
            about.push([Some(arc.from), Some(arc.to)]);
            table.rows.push(rows.arc(id, arc));
        }
        let table = label::with_addresses(table, subject, OfCallers::Shown, about);
        match subject.profile.counts.as_ref() {
            Some(counts) if counts.are_partial() => table,
            _ => table.without(&["calls_at_least"]),
        }
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn weight(part: f64) -> Cell {
    Cell::Weight(rounded(part))
}

/// 1 if a number of calls is a lower bound, else 0; nothing where there is no number.
fn flag(calls: Option<u64>, is_least: bool) -> Cell {
    calls.map_or(Cell::Nothing, |_| Cell::Count(u64::from(is_least)))
}

/// Makes the rows of the table. A row has all columns; what is no figure of its kind is left empty.
struct Rows<'a> {
    view: &'a GraphView<'a>,
    subject: &'a Subject<'a>,
}

impl Rows<'_> {
    fn share(&self, part: f64) -> Cell {
        Cell::Share {
            part: rounded(part),
            whole: self.subject.selection.total(),
        }
    }

    fn plain(&self, id: FunctionId) -> Cell {
        Cell::Text(self.subject.plain_name(id).into_owned())
    }

    fn module(&self, id: FunctionId) -> Cell {
        text(self.subject.module(id))
    }

    fn cycle_of(&self, id: FunctionId) -> Cell {
        let summary = self.view.summary;
        summary.cycles.of()[id].map_or(Cell::Nothing, |cycle| {
            Cell::Count(summary.number(cycle) as u64)
        })
    }

    /// Numbers of samples are known by stacks only.
    fn samples(&self, number: u64) -> Cell {
        if self.view.summary.has_stacks() {
            Cell::Count(number)
        } else {
            Cell::Nothing
        }
    }

    /// A function or a cycle.
    fn ranked(&self, entry: Entry) -> Vec<Cell> {
        let summary = self.view.summary;
        let (portion, total) = (summary.portion(entry), summary.total(entry));
        let calls = summary.calls.as_ref().map(|calls| match entry {
            Entry::Function(id) => (calls.functions[id].known(), calls.functions[id].is_least),
            Entry::Cycle(cycle) => {
                let calls = &calls.cycles[cycle];
                // At least 0 calls says nothing.
                let known = (!calls.is_least || calls.outside > 0).then_some(calls.outside);
                (known, calls.is_least)
            }
        });
        let (calls, is_least) = calls.unwrap_or_default();
        let (row, name, module, cycle, samples, label) = match entry {
            Entry::Function(id) => (
                self.subject.profile.rows.name(),
                self.plain(id),
                self.module(id),
                self.cycle_of(id),
                self.samples(summary.weights.samples[id]),
                text(self.view.name(id)),
            ),
            Entry::Cycle(cycle) => (
                "cycle",
                Cell::Nothing,
                Cell::Nothing,
                Cell::Count(summary.number(cycle) as u64),
                Cell::Nothing,
                Cell::Nothing,
            ),
        };
        vec![
            text(row),
            Cell::Nothing,
            Cell::Nothing,
            name,
            module,
            cycle,
            self.share(total),
            weight(portion.self_weight),
            weight(portion.children),
            weight(total),
            samples,
            calls.map_or(Cell::Nothing, Cell::Count),
            flag(calls, is_least),
            Cell::Nothing,
            Cell::Nothing,
            summary
                .total_max(entry)
                .map_or(Cell::Nothing, range::weight),
            Cell::Nothing,
            label,
        ]
    }

    /// What a function took that was called by no function of the profile.
    fn root(&self, id: FunctionId, root: Portion) -> Vec<Cell> {
        vec![
            text("root"),
            Cell::Nothing,
            Cell::Nothing,
            self.plain(id),
            self.module(id),
            self.cycle_of(id),
            self.share(root.total()),
            weight(root.self_weight),
            weight(root.children),
            weight(root.total()),
            self.samples(self.view.summary.root_samples[id]),
            Cell::Nothing,
            Cell::Nothing,
            Cell::Nothing,
            Cell::Nothing,
            Cell::Nothing,
            Cell::Nothing,
            text(self.view.name(id)),
        ]
    }

    fn arc(&self, id: ArcId, arc: &CallArc) -> Vec<Cell> {
        let summary = self.view.summary;
        let (total, portion) = summary.weight(id);
        let inside = if summary.cycles.share(arc.from, arc.to) {
            self.cycle_of(arc.to)
        } else {
            Cell::Nothing
        };
        let optional = |part: Option<f64>| part.map_or(Cell::Nothing, weight);
        vec![
            text("arc"),
            self.plain(arc.from),
            self.module(arc.from),
            self.plain(arc.to),
            self.module(arc.to),
            inside,
            total.map_or(Cell::Nothing, |total| self.share(total)),
            optional(portion.map(|portion| portion.self_weight)),
            optional(portion.map(|portion| portion.children)),
            optional(total),
            self.samples(arc.samples),
            arc.calls.map_or(Cell::Nothing, Cell::Count),
            flag(arc.calls, arc.calls_are_least),
            Cell::Count(arc.sites()),
            text(arc.origin().name()),
            Cell::Nothing,
            text(self.view.name(arc.from)),
            text(self.view.name(arc.to)),
        ]
    }
}
