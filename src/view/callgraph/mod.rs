//! The call graph of programs and libraries, from their code, and what samples showed of it.
//!
//! What is shown is a part of the graph: some arcs, and the functions at their ends.
//!
//! | part | listed | arcs |
//! |---|---|---|
//! | whole | the functions that call most | all of those listed |
//! | about | some functions | to and from them |
//! | reachable | what can be called from some functions, directly or through others | among them |
//! | roots | what nothing calls | from them |
//! | cycles | functions that all reach each other | among the members of each |
//!
//! With samples the listed functions are those with the largest totals, and arcs have weights.

mod draw;
mod page;
mod part;

use rustc_hash::FxHashMap;

use super::Subject;
use super::label;
use super::table::{Cell, Column, Role, Table};
use crate::analysis::code::Summary;
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallArc, CycleId};
use crate::names::{Label, Labels};
use crate::profile::{CallKind, FunctionCode, FunctionId};

pub use self::part::Part;

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The maximum number of listed functions; `None` for all.
    pub limit: Option<usize>,
    /// With samples: only functions with at least this share, in percent, are listed.
    pub min: f64,
    /// Which part.
    pub part: Part,
}

/// A part of a call graph, with names.
#[derive(Clone, Debug)]
pub struct CallGraphView<'a> {
    /// The figures of the whole graph.
    pub summary: &'a Summary,
    /// The functions of the part, in order of id.
    pub functions: Vec<FunctionId>,
    /// The arcs of the part, in order of caller and callee.
    pub arcs: Vec<ArcId>,
    part: Part,
    /// The functions that a page lists, in order.
    listed: Vec<FunctionId>,
    /// How many more there would be.
    hidden: usize,
    limit: Option<usize>,
    /// Those of which the part has all members.
    complete: Vec<CycleId>,
    index: FxHashMap<FunctionId, usize>,
    labels: Labels,
}

/// Chooses, orders and names.
pub fn arrange<'a>(
    subject: &Subject,
    summary: &'a Summary,
    options: &Options,
) -> CallGraphView<'a> {
    let (graph, cycles) = (&summary.graph, &summary.cycles);
    let chosen = part::choose(subject, summary, options);
    let mut is_shown = IdVec::filled(false, graph.functions());
    chosen.listed.iter().for_each(|&id| is_shown[id] = true);
    for &arc in &chosen.arcs {
        is_shown[graph.arcs()[arc].from] = true;
        is_shown[graph.arcs()[arc].to] = true;
    }
    let mut functions: Vec<FunctionId> = subject.profile.functions.ids().collect();
    functions.retain(|&id| is_shown[id]);
    let complete = cycles
        .members()
        .enumerate()
        .filter(|(_, members)| members.iter().all(|&id| is_shown[id]));
    CallGraphView {
        summary,
        labels: subject.labels(functions.iter().copied()),
        index: functions.iter().copied().zip(0..).collect(),
        functions,
        arcs: chosen.arcs,
        part: options.part.clone(),
        listed: chosen.listed,
        hidden: chosen.hidden,
        limit: options.limit,
        complete: complete.map(|(id, _)| id).collect(),
    }
}

impl CallGraphView<'_> {
    /// What a function of the part is called.
    pub fn name(&self, function: FunctionId) -> &str {
        self.labels.of(function)
    }

    pub(super) fn label(&self, function: FunctionId) -> Label {
        self.labels.label(function)
    }

    /// The place of a function of the part in [`CallGraphView::functions`].
    pub fn index(&self, function: FunctionId) -> usize {
        self.index.get(&function).copied().unwrap_or(0)
    }

    /// What the code of a function says of it.
    pub fn code(&self, subject: &Subject, function: FunctionId) -> FunctionCode {
        let rows = &subject.profile.code.functions;
        rows.get(function).copied().flatten().unwrap_or_default()
    }

    /// The cycles of which all members are shown.
    pub fn cycles(&self) -> impl Iterator<Item = &[FunctionId]> {
        let cycles = self.complete.iter();
        cycles.map(|&id| self.summary.cycles.members()[id].as_slice())
    }

    /// The place in [`CallGraphView::cycles`] of the cycle that a function is a member of.
    pub fn cycle(&self, function: FunctionId) -> Option<usize> {
        let cycle = self.summary.cycles.of()[function]?;
        self.complete.binary_search(&cycle).ok()
    }

    /// The number of calls in the shown functions whose callees are not known.
    pub fn indirect_calls(&self, subject: &Subject) -> u64 {
        let codes = self.functions.iter().map(|&id| self.code(subject, id));
        codes.map(|code| code.indirect_calls).sum()
    }

    /// The number of jumps in the shown functions that may be tail calls.
    pub fn indirect_jumps(&self, subject: &Subject) -> u64 {
        let codes = self.functions.iter().map(|&id| self.code(subject, id));
        codes.map(|code| code.indirect_jumps).sum()
    }

    /// The arcs, a row each.
    pub fn table(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("caller", "caller", Role::Name),
            Column::new("caller_module", "module", Role::Aside),
            Column::new("caller_address", "address", Role::Aside),
            Column::new("callee", "callee", Role::Name),
            Column::new("callee_module", "module", Role::Aside),
            Column::new("callee_address", "address", Role::Aside),
            Column::new("kind", "kind", Role::Aside),
            Column::new("sites", "sites", Role::Figure),
            Column::new("weight", "weight", Role::Figure),
            Column::new("origin", "origin", Role::Aside),
            label::column_of_caller(),
            Column::new("callee_label", "callee's label", Role::Aside),
        ]);
        let address = |id: FunctionId| match subject.profile.functions[id].address {
            Some(address) => Cell::Text(format!("{address:#x}")),
            None => Cell::Nothing,
        };
        for arc in self.arcs.iter().map(|&arc| &self.summary.graph.arcs()[arc]) {
            table.rows.push(vec![
                Cell::Text(subject.plain_name(arc.from).into_owned()),
                Cell::Text(subject.module(arc.from).to_owned()),
                address(arc.from),
                Cell::Text(subject.plain_name(arc.to).into_owned()),
                Cell::Text(subject.module(arc.to).to_owned()),
                address(arc.to),
                Cell::Text(kinds(arc)),
                Cell::Count(sites(arc)),
                Cell::Weight(arc.weight),
                Cell::Text(arc.origin().name().to_owned()),
                Cell::Text(self.name(arc.from).to_owned()),
                Cell::Text(self.name(arc.to).to_owned()),
            ]);
        }
        match self.summary.measured {
            Some(_) => table,
            None => table.without(&["weight", "origin"]),
        }
    }
}

/// The kinds of an arc's places in the code: `call`, `call+tail`; empty where there are none.
fn kinds(arc: &CallArc) -> String {
    let kinds = CallKind::ALL
        .into_iter()
        .filter(|&kind| arc.sites_of(kind) > 0);
    kinds.map(CallKind::name).collect::<Vec<_>>().join("+")
}

/// The number of an arc's places in the code: those that call, or else that take the address.
fn sites(arc: &CallArc) -> u64 {
    match arc.sites() {
        0 => arc.sites_of(CallKind::Pointer),
        calls => calls,
    }
}
