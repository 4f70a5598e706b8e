//! Recursion: cycles from within, and functions that call themselves.

use std::cmp::Reverse;

use proftool::analysis::cycles::Summary;
use proftool::analysis::graph::{self, Entry};
use proftool::callgraph::{ArcId, CycleId};
use proftool::profile::FunctionId;
use proftool::view::Subject;
use proftool::view::cycles::{self, CyclesView, Options};
use proftool::view::label;
use proftool::view::number;
use proftool::view::table::{Cell, Column, Role};

use super::listing::{Key, Line, Listing, Look, key, key_of};
use super::wish::Search;

/// The cycles that are shown.
const CYCLES: usize = 20;

/// The cycles, as `proftool cycles` shows them.
pub fn listing(subject: &Subject, search: &Search) -> Listing {
    let options = Options {
        limit: Some(CYCLES),
        ..Options::default()
    };
    let counting = graph::Options::default();
    let summary = Summary::of(subject.profile, subject.selection, &counting);
    let view = cycles::arrange(subject, &summary, &options);
    let mut lines = Lines {
        subject,
        view: &view,
        search,
        lines: Vec::new(),
    };
    for (place, &cycle) in view.order.iter().enumerate().take(CYCLES) {
        lines.cycle(place, cycle);
    }
    lines.recursive();
    let (all, own) = (view.order.len(), view.recursive.len());
    let counted = |n: usize, one: &str, many: &str| {
        format!(
            "{} {}",
            number::grouped(n as u64),
            if n == 1 { one } else { many }
        )
    };
    let lines = lines.lines;
    let first = lines.iter().position(|line| line.look != Look::Heading);
    Listing {
        columns: vec![
            Column::new("percent", "total %", Role::Heat),
            Column::new("self", "self", Role::Figure),
            Column::new("outside", "outside", Role::Figure),
            Column::new("total", "total", Role::Figure),
            Column::new("estimate", "fonseca", Role::Figure),
            Column::new("function", "member or call", Role::Name),
        ],
        lines,
        hidden: 0,
        about: vec![
            counted(all, "cycle", "cycles"),
            counted(own, "function calls itself", "functions call themselves"),
        ],
        first: first.unwrap_or(0),
    }
}

struct Lines<'a> {
    subject: &'a Subject<'a>,
    view: &'a CyclesView<'a>,
    search: &'a Search,
    lines: Vec<Line>,
}

impl Lines<'_> {
    fn cycle(&mut self, place: usize, cycle: CycleId) {
        let (names, graph) = (&self.view.graph, &self.view.summary.graph);
        let mut members = graph.cycles.members()[cycle].clone();
        if !members.iter().any(|&id| self.finds(id)) {
            return;
        }
        members.sort_by_key(|&id| (Reverse(self.total(id)), names.name(id)));
        // A cycle is known again by its heaviest member.
        let own = key_of("cycle", self.subject.profile, members[0]);
        let total = graph.total(Entry::Cycle(cycle)).round() as u64;
        let functions = members.len() as u64;
        self.heading(
            key((own, "heading")),
            format!(
                "cycle {}: {} functions, {} % of the total",
                place + 1,
                number::grouped(functions),
                number::percent(total, self.subject.selection.total(), 2)
            ),
        );
        members.retain(|&id| self.finds(id));
        for id in members {
            let portion = graph.portion(Entry::Function(id));
            let estimate = self.view.summary.estimate.attribution.total(id);
            let name = self.marked(id, names.name(id).to_owned());
            self.lines.push(Line {
                key: key_of((own, "member"), self.subject.profile, id),
                function: Some(id),
                cells: vec![
                    self.share(self.total(id)),
                    Cell::Weight(portion.self_weight.round() as u64),
                    Cell::Weight(portion.children.round() as u64),
                    Cell::Weight(self.total(id)),
                    Cell::Weight(estimate.round() as u64),
                    Cell::Text(name),
                ],
                look: Look::Plain,
                branch: None,
            });
        }
        if self.search.is_on() {
            return;
        }
        self.arcs(own, "entry calls", self.view.summary.entries(cycle));
        self.arcs(own, "inside", self.view.summary.inside(cycle));
        let broken = self.view.broken_text(self.subject, cycle);
        self.heading(key((own, "broken")), broken);
    }

    fn arcs(&mut self, own: Key, title: &str, arcs: Vec<ArcId>) {
        if arcs.is_empty() {
            return;
        }
        self.heading(key((own, title)), title.to_owned());
        for id in arcs {
            let arc = &self.view.summary.graph.graph.arcs()[id];
            let weight = self.view.summary.weight(id);
            let from = key_of("from", self.subject.profile, arc.from);
            let mut cells = vec![Cell::Nothing; 6];
            if self.view.summary.graph.has_stacks() {
                cells[0] = self.share(weight);
                cells[3] = Cell::Weight(weight);
            } else {
                cells[3] = Cell::Count(weight);
            }
            cells[5] = Cell::Text(self.view.arc(id));
            self.lines.push(Line {
                key: key_of((own, title, from), self.subject.profile, arc.to),
                function: Some(arc.to),
                cells,
                look: Look::Plain,
                branch: None,
            });
        }
    }

    fn recursive(&mut self) {
        let found: Vec<FunctionId> = self
            .view
            .recursive
            .iter()
            .copied()
            .filter(|&id| self.finds(id))
            .collect();
        if found.is_empty() {
            return;
        }
        let title = "functions that call themselves: max depth, mean depth";
        self.heading(key("recursive"), title.to_owned());
        for id in found {
            let (names, graph) = (&self.view.graph, &self.view.summary.graph);
            let name = names.name(id).to_owned();
            let depth = self
                .view
                .summary
                .depths
                .of(id)
                .map_or(String::new(), |depth| {
                    format!(" ({}, {:.1})", depth.deepest(), depth.mean())
                });
            let mut cells = vec![Cell::Nothing; 6];
            cells[0] = self.share(self.total(id));
            cells[1] = Cell::Weight(graph.weights.self_weight[id]);
            cells[3] = Cell::Weight(self.total(id));
            cells[5] = Cell::Text(self.marked(id, name) + &depth + self.view.gap_mark(id));
            self.lines.push(Line {
                key: key_of("recursive", self.subject.profile, id),
                function: Some(id),
                cells,
                look: Look::Plain,
                branch: None,
            });
        }
    }

    fn heading(&mut self, key: Key, text: String) {
        self.lines.push(Line::heading(key, text));
    }

    fn finds(&self, id: FunctionId) -> bool {
        self.search.finds(self.subject.profile, id)
    }

    fn total(&self, id: FunctionId) -> u64 {
        self.view.summary.graph.total(Entry::Function(id)).round() as u64
    }

    fn share(&self, part: u64) -> Cell {
        let whole = self.subject.selection.total();
        Cell::Share { part, whole }
    }

    fn marked(&self, id: FunctionId, name: String) -> String {
        let weights = &self.view.summary.graph.weights;
        if label::is_inferred(weights.inferred[id], weights.total[id]) {
            format!("{}{name}", label::INFERRED)
        } else {
            name
        }
    }
}
