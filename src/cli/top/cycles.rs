//! Recursion: cycles from within, and functions that call themselves.

use std::cmp::Reverse;

use proftool::analysis::cycles::Summary;
use proftool::analysis::graph::{self, Entry};
use proftool::callgraph::{ArcId, CycleId};
use proftool::export::shown::{self, Shown};
use proftool::names::{Label, Mark};
use proftool::profile::FunctionId;
use proftool::view::Subject;
use proftool::view::cycles::{self, CyclesView, Options};
use proftool::view::number;
use proftool::view::page::Block;
use proftool::view::range;
use proftool::view::table::{Cell, Column, Role, What};

use super::listing::{Key, Line, Listing, Look, key, key_of};
use super::wish::{Matches, Search};
use super::written::samples;

const CYCLES: usize = 20;

// The place of the column of totals.
const TOTAL: usize = 4;

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
        is_searched: search.is_on(),
        found: search.among(subject),
        lines: Vec::new(),
        has_ranges: false,
    };
    for (place, &cycle) in (1..).zip(&view.order).take(CYCLES) {
        lines.cycle(place, cycle);
    }
    let hidden = view.order.len().saturating_sub(CYCLES);
    if hidden > 0 && !search.is_on() {
        let more = counted(hidden, "more cycle", "more cycles");
        lines.heading(key("hidden"), format!("… {more}"));
    }
    lines.recursive();
    let (all, own) = (view.order.len(), view.recursive.len());
    let Lines {
        lines, has_ranges, ..
    } = lines;
    let first = lines.iter().position(|line| line.look != Look::Heading);
    let mut left_out = Vec::new();
    if !has_ranges {
        left_out.push(range::KEY);
    }
    if !view.shows_estimate() {
        left_out.push("estimate");
    }
    let listing = Listing {
        columns: vec![
            Column::new("percent", "total %", Role::Heat),
            range::column(),
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
    };
    listing.without(&left_out)
}

fn counted(n: usize, one: &str, many: &str) -> String {
    let noun = if n == 1 { one } else { many };
    format!("{} {noun}", number::grouped(n as u64))
}

// The figures of a line; nothing in the columns that it has no figure for.
#[derive(Default)]
struct Figures {
    total: Option<u64>,
    at_most: Option<Cell>,
    self_weight: Option<u64>,
    outside: Option<u64>,
    estimate: Option<u64>,
}

struct Lines<'a> {
    subject: &'a Subject<'a>,
    view: &'a CyclesView<'a>,
    is_searched: bool,
    found: Matches,
    lines: Vec<Line>,
    // Whether a total is a range.
    has_ranges: bool,
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
        let heading = self.view.heading(self.subject, (place, cycle));
        self.heading(key((own, "heading")), heading);
        if self.view.is_scheduled(cycle) && !self.is_searched {
            return;
        }
        members.retain(|&id| self.finds(id));
        for id in members {
            let portion = graph.portion(Entry::Function(id));
            let estimate = self.view.summary.estimate.attribution.total(id);
            let figures = Figures {
                total: Some(self.total(id)),
                at_most: Some(self.view.at_most(self.subject, Entry::Function(id))),
                self_weight: Some(portion.self_weight.round() as u64),
                outside: Some(portion.children.round() as u64),
                estimate: Some(estimate.round() as u64),
            };
            let key = key_of((own, "member"), self.subject.profile, id);
            self.line(key, Some(id), figures, self.view.member(id).into());
        }
        if self.is_searched {
            return;
        }
        let (entries, unknown) = self.view.entries(cycle);
        self.arcs(own, "entry calls", entries, unknown);
        let cut = self.view.summary.cut_inside(cycle).samples;
        let are = if cut == 1 { "is" } else { "are" };
        self.remark(
            own,
            "cut",
            (cut > 0).then(|| {
                let samples = samples(cut);
                format!("{samples} {are} incomplete inside the cycle; their entry is unknown")
            }),
        );
        let inside = self.view.summary.inside(cycle);
        self.arcs(own, "inside", inside, Vec::new());
        self.remark(own, "calls", self.view.calls_line(cycle));
        let broken = match self.view.broken(self.subject, cycle) {
            Block::Calls {
                before,
                calls,
                after,
            } => {
                let calls = calls
                    .iter()
                    .map(|call| Shown::call(call).whole().into_owned());
                Some(shown::sentence(&before, &calls.collect::<Vec<_>>(), &after))
            }
            _ => None,
        };
        self.remark(own, "broken", broken);
        self.remark(own, "depth", self.view.depth_line(cycle));
    }

    // Calls with their weights, below what stands in place of calls that are not known.
    fn arcs(&mut self, own: Key, title: &str, arcs: Vec<ArcId>, unknown: Vec<(u64, Label)>) {
        if arcs.is_empty() && unknown.is_empty() {
            return;
        }
        self.heading(key((own, title)), title.to_owned());
        for (weight, label) in unknown {
            let figures = Figures {
                total: Some(weight),
                ..Figures::default()
            };
            self.line(key((own, title, &label.text)), None, figures, label.into());
        }
        for id in arcs {
            let arc = &self.view.summary.graph.graph.arcs()[id];
            let weight = self.view.summary.weight(id);
            let from = key_of("from", self.subject.profile, arc.from);
            let key = key_of((own, title, from), self.subject.profile, arc.to);
            let has_stacks = self.view.summary.graph.has_stacks();
            let figures = Figures {
                total: Some(weight).filter(|_| has_stacks),
                ..Figures::default()
            };
            let (to, call) = (arc.to, self.view.arc(id));
            self.line(key, Some(to), figures, call.into());
            if let Some(line) = self.lines.last_mut().filter(|_| !has_stacks) {
                line.cells[TOTAL] = Cell::Count(weight);
            }
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
            let summary = self.view.summary;
            // Of a stack that is cut in the function, callers of the same function may be missing.
            let least = if summary.cut_in(id).samples > 0 {
                "at least "
            } else {
                ""
            };
            let depth = summary.depths.of(id).map(|depth| {
                Mark::Remark(format!("{least}{}, {:.1}", depth.deepest(), depth.mean()))
            });
            let figures = Figures {
                total: Some(self.total(id)),
                at_most: Some(self.view.at_most(self.subject, Entry::Function(id))),
                self_weight: Some(summary.graph.weights.self_weight[id]),
                ..Figures::default()
            };
            let label = self.view.member(id).with(depth).with(self.view.mark(id));
            let key = key_of("recursive", self.subject.profile, id);
            self.line(key, Some(id), figures, label.into());
        }
    }

    fn line(&mut self, key: Key, function: Option<FunctionId>, figures: Figures, what: What) {
        let whole = self.subject.selection.total();
        let weight = |weight: Option<u64>| weight.map_or(Cell::Nothing, Cell::Weight);
        let share = |part| Cell::Share { part, whole };
        let at_most = figures.at_most.unwrap_or(Cell::Nothing);
        self.has_ranges |= at_most != Cell::Nothing;
        self.lines.push(Line {
            key,
            function,
            cells: vec![
                figures.total.map_or(Cell::Nothing, share),
                at_most,
                weight(figures.self_weight),
                weight(figures.outside),
                weight(figures.total),
                weight(figures.estimate),
                Cell::name(what),
            ],
            look: Look::Plain,
            branch: None,
        });
    }

    fn heading(&mut self, key: Key, text: String) {
        self.lines.push(Line::heading(key, text));
    }

    fn remark(&mut self, own: Key, about: &str, text: Option<String>) {
        if let Some(text) = text {
            self.heading(key((own, about)), text);
        }
    }

    fn finds(&self, id: FunctionId) -> bool {
        self.found.has(id)
    }

    fn total(&self, id: FunctionId) -> u64 {
        self.view.summary.graph.total(Entry::Function(id)).round() as u64
    }
}
