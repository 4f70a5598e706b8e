//! The report: what someone wants to know first.
//!
//! Where the time goes, whether that can be trusted, and what to ask next.

use super::callgraph::Coverage;
use super::flat::{self, Flat, Row, Sort};
use super::label::{self, Labels};
use super::page::{Block, Page};
use super::table::{Cell, Column, Role, Table};
use super::{Figures, Subject, caveats, number, quality, range};
use crate::analysis::cut::{self, Hidden};
use crate::analysis::inclusive::{self, FunctionWeights};
use crate::analysis::lines::{self, Lines};
use crate::analysis::threads;
use crate::analysis::tree::Stacks;
use crate::base::{IdVec, Unit, shell_quoted};
use crate::callgraph::{Arc, CallGraph, Cycles};
use crate::profile::{FunctionId, ThreadId, pattern_of};

/// What the report shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// At most so many functions in each list; `None` for all.
    pub limit: Option<usize>,
    /// Only functions with at least this share, in percent.
    pub min: f64,
    /// Whether it is told what the code could do, where it was looked at.
    pub in_code: bool,
    /// How the input is named in a command, ready for a shell; empty where it is the default.
    pub file: String,
}

/// The hottest line of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotLine {
    /// The source file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The weight of the samples taken there.
    pub weight: u64,
}

/// The report.
#[derive(Clone, Debug)]
pub struct Report {
    /// The functions with the most self weight, each with its hottest line.
    pub functions: Vec<(Row, Option<HotLine>)>,
    /// The functions with the largest total.
    pub by_total: Flat,
    /// Commands with their weights, the heaviest first.
    pub commands: Vec<(String, u64)>,
    /// Threads with their weights, the heaviest first.
    pub threads: Vec<(ThreadId, u64)>,
    /// Commands to go on with, each with what it shows.
    pub next: Vec<(String, &'static str)>,
    in_code: bool,
}

/// How many commands and threads a page names.
const THREADS: usize = 6;

/// Chooses and orders.
pub fn arrange(subject: &Subject, options: &Options) -> Report {
    let weights = inclusive::by_function(subject.profile, subject.selection);
    let lines = lines::by_function(subject.profile, subject.selection);
    let choose = |sort| {
        let options = flat::Options {
            sort,
            limit: options.limit,
            min: options.min,
        };
        flat::choose(subject, &weights, &options)
    };
    let mut by_self = choose(Sort::SelfWeight);
    by_self.retain(|&id| weights.self_samples[id] > 0);
    let cut = cut::by_function(subject.profile, subject.selection);
    let by_total = most_inclusive(subject, &weights, &cut, options);
    let labels = Labels::new(subject, by_self.iter().chain(&by_total).copied());
    let functions = flat::rows(subject, &weights, &cut, &by_self, &labels)
        .into_iter()
        .map(|row| {
            let hottest = hottest_line(subject, &lines, &row);
            (row, hottest)
        })
        .collect();
    let commands = threads::by_command(subject.profile, subject.selection);
    let mut report = Report {
        functions,
        by_total: Flat {
            hidden: weights.present().count() - by_total.len(),
            rows: flat::rows(subject, &weights, &cut, &by_total, &labels),
        },
        commands: commands
            .into_iter()
            .map(|(c, w)| (c.to_owned(), w))
            .collect(),
        threads: threads::by_thread(subject.profile, subject.selection),
        next: Vec::new(),
        in_code: options.in_code,
    };
    report.next = next_commands(&report, subject, &options.file);
    report
}

fn hottest_line(subject: &Subject, lines: &Lines, row: &Row) -> Option<HotLine> {
    let hottest = lines.of(row.function).first()?;
    let line = &subject.profile.lines[hottest.line];
    Some(HotLine {
        file: line.file.clone(),
        line: line.line,
        weight: hottest.weight,
    })
}

/// The functions with the largest totals, without what only passes them on: of functions with one
/// and the same total and nothing of their own, such as the start-up code around `main`, one stands
/// for all, `main` if it is among them, else the one with the shortest name.
fn most_inclusive(
    subject: &Subject,
    weights: &FunctionWeights,
    cut: &Hidden,
    options: &Options,
) -> Vec<FunctionId> {
    let everything = flat::Options {
        sort: Sort::Total,
        limit: None,
        min: options.min,
    };
    let all = flat::choose(subject, weights, &everything);
    let passes_on = |id: FunctionId| weights.self_weight[id] == 0;
    let range = |id: FunctionId| (weights.total[id], cut.at_most[id]);
    let name = |id: FunctionId| &*subject.profile.functions[id].name;
    let mut chosen: Vec<FunctionId> = Vec::new();
    for id in all {
        let same =
            |last: &FunctionId| passes_on(*last) && passes_on(id) && range(*last) == range(id);
        match chosen.last().copied().filter(same) {
            Some(last) => {
                let rank = |id| (name(id) != "main", name(id).len());
                if rank(id) < rank(last) {
                    chosen.pop();
                    chosen.push(id);
                }
            }
            None if options.limit.is_some_and(|limit| chosen.len() >= limit) => break,
            None => chosen.push(id),
        }
    }
    chosen
}

/// Commands that lead on from here.
fn next_commands(report: &Report, subject: &Subject, file: &str) -> Vec<(String, &'static str)> {
    // What was counted needs its program again, which is not known here.
    if subject.selection.samples == 0 || subject.profile.about.histogram.is_some() {
        return Vec::new();
    }
    let command = |view: &str, options: &str| {
        [view, file, options]
            .into_iter()
            .filter(|part| !part.is_empty())
            .fold("proftool".to_owned(), |all, part| all + " " + part)
    };
    let mut next = vec![(command("tree", ""), "the calls, outermost first")];
    if let Some((row, _)) = report.functions.first() {
        let pattern = pattern_of(subject.profile.distinct_name(row.function));
        let focus = if pattern.len() <= 60 {
            format!(" --focus {}", shell_quoted(&pattern))
        } else {
            String::new()
        };
        next.push((
            command("tree", focus.trim_start()),
            "the calls around the hottest function",
        ));
    }
    next.push((
        command("graph", ""),
        "each function with its callers and callees",
    ));
    if Stacks::new(subject.profile, subject.selection).recurse() {
        next.push((command("cycles", ""), "what recurses, and how deep"));
    }
    next.push((command("flat", "--sort total"), "all functions by total"));
    next.push((
        command("export", "--to folded -o stacks.folded"),
        "input for flame graphs",
    ));
    next
}

impl Report {
    /// The functions by self weight with all their figures, and with all that tells functions of one
    /// name apart.
    pub fn table(&self, subject: &Subject) -> Table {
        let rows = self.functions.iter();
        let rows = rows.map(|(row, _)| (row.function, &*row.name));
        label::with_identities(self.figures(subject), subject, rows)
    }

    /// The functions by self weight with all their figures.
    fn figures(&self, subject: &Subject) -> Table {
        let mut columns = Vec::from(flat::figure_columns());
        columns.extend([
            Column::new("name", "function", Role::Name),
            Column::new("line", "hottest line", Role::Aside),
            Column::new("module", "module", Role::Aside),
        ]);
        let mut table = Table::new(columns);
        let whole = subject.selection.total;
        for (row, line) in &self.functions {
            let place = |line: &HotLine| Cell::Text(format!("{}:{}", line.file, line.line));
            let mut cells = Vec::from(flat::figures(row, whole));
            cells.extend([
                Cell::Text(row.name.clone()),
                line.as_ref().map_or(Cell::Nothing, place),
                Cell::Text(row.module.clone()),
            ]);
            table.rows.push(cells);
        }
        table.without(&[range::KEY])
    }

    /// The page for people.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = self.summary(subject);
        let what = match &subject.selection.event.unit {
            Unit::Nanoseconds | Unit::Samples => "time goes".to_owned(),
            Unit::Count(unit) if unit == "cycles" => "time goes".to_owned(),
            Unit::Count(unit) => format!("{unit} are"),
        };
        if !self.functions.is_empty() {
            blocks.push(Block::Space);
            blocks.push(Block::Heading(format!(
                "Where the {what}: in the functions themselves"
            )));
            blocks.push(Block::Table(self.self_table(subject)));
            blocks.push(Block::Space);
            blocks.push(Block::Heading(format!(
                "Where the {what}: with all that they call"
            )));
            blocks.push(Block::Table(self.total_table(subject)));
            blocks.extend(range::legend(self.by_total.has_ranges()));
        }
        blocks.extend(self.who(subject));
        if self.in_code {
            blocks.extend(in_code(subject));
        }
        blocks.push(Block::Space);
        blocks.push(Block::Heading("Can this be trusted?".into()));
        blocks.extend(trust(subject));
        if !self.next.is_empty() {
            blocks.push(Block::Space);
            blocks.push(Block::Heading("What to ask next".into()));
            blocks.push(Block::Commands(self.next.clone()));
        }
        Page {
            unit: subject.selection.event.unit.clone(),
            blocks,
        }
    }

    fn summary(&self, subject: &Subject) -> Vec<Block> {
        let mut blocks = Vec::new();
        if let Some(command) = &subject.profile.about.command {
            blocks.push(Block::Heading(command.clone()));
        }
        let mut text = subject.headline();
        if let Some(duration) = subject.profile.about.duration {
            text.push_str(&format!(", recorded over {}", number::duration(duration)));
        }
        if self.threads.len() > 1 {
            text.push_str(&format!(", {} threads", self.threads.len()));
        }
        blocks.push(Block::Line(text));
        blocks.extend(other_events(subject).map(Block::Line));
        blocks
    }

    /// The functions by self weight, with the columns that fit best on a page.
    fn self_table(&self, subject: &Subject) -> Table {
        let mut table = self.figures(subject);
        let place = table.columns.iter().position(|column| column.key == "line");
        for ((_, line), row) in self.functions.iter().zip(&mut table.rows) {
            if let (Some(line), Some(place)) = (line, place) {
                let file = line.file.rsplit('/').next().unwrap_or(&line.file);
                row[place] = Cell::Text(format!("{file}:{}", line.line));
            }
        }
        let mut left_out = vec!["total", "total_max"];
        if subject.figures == Figures::Percent {
            left_out.push("self");
        }
        if !subject.has_modules(self.functions.iter().map(|(row, _)| row.function)) {
            left_out.push("module");
        }
        if self.functions.iter().all(|(_, line)| line.is_none()) {
            left_out.push("line");
        }
        table.without(&left_out)
    }

    fn total_table(&self, subject: &Subject) -> Table {
        let mut table = self.by_total.with_ranges(subject);
        // The total comes first, what it is at most directly behind it.
        table.columns[..3].rotate_left(1);
        table.columns[0].role = Role::Heat;
        table.columns[2].role = Role::Figure;
        for row in &mut table.rows {
            row[..3].rotate_left(1);
        }
        let mut left_out = vec!["self", "samples", "inferred", "total_max"];
        if !self.by_total.has_ranges() {
            left_out.push(range::KEY);
        }
        if subject.figures == Figures::Percent {
            left_out.push("total");
        }
        if !subject.has_modules(self.by_total.rows.iter().map(|row| row.function)) {
            left_out.push("module");
        }
        table.without(&left_out)
    }

    /// The heaviest commands and threads, where there are several.
    fn who(&self, subject: &Subject) -> Vec<Block> {
        let whole = subject.selection.total;
        let mut blocks = Vec::new();
        let mut section = |title: &'static str, rows: Vec<(String, u64)>| {
            let more = rows.len().saturating_sub(THREADS);
            if rows.len() < 2 {
                return;
            }
            let mut table = Table::new(vec![
                Column::new("percent", "%", Role::Heat),
                Column::new("weight", "weight", Role::Figure),
                Column::new("name", title, Role::Name),
            ]);
            for (name, part) in rows.into_iter().take(THREADS) {
                let cells = [
                    Cell::Share { part, whole },
                    Cell::Weight(part),
                    Cell::Text(name),
                ];
                table.rows.push(cells.into());
            }
            blocks.push(Block::Space);
            blocks.push(Block::Table(table));
            if more > 0 {
                blocks.push(Block::Line(format!("… {more} more")));
            }
        };
        section("command", self.commands.clone());
        let thread = |&(id, weight): &(ThreadId, u64)| {
            let thread = &subject.profile.threads[id];
            (
                format!("{} (pid {}, tid {})", thread.comm, thread.pid, thread.tid),
                weight,
            )
        };
        section("thread", self.threads.iter().map(thread).collect());
        blocks
    }
}

/// A line on the events that the recording has beside the one that is shown.
fn other_events(subject: &Subject) -> Option<String> {
    let profile = subject.profile;
    let counts = profile.samples_by_event();
    let others: Vec<String> = profile
        .events
        .enumerate()
        .filter(|&(id, event)| counts[id] > 0 && event.name != subject.selection.event.name)
        .map(|(id, event)| format!("{} ({})", event.name, number::grouped(counts[id])))
        .collect();
    let list = others.join(", ");
    (!others.is_empty()).then(|| format!("Other events, shown with --event NAME: {list}"))
}

/// What is not known, and how exact the shares are.
fn trust(subject: &Subject) -> Vec<Block> {
    let mut blocks = caveats::notes(&subject.profile.caveats);
    if blocks.is_empty() {
        blocks.push(Block::Line(
            match subject.profile.about.duration {
                Some(_) => "No sample was lost, no stack was cut, and every function has a name.",
                None if cut::is_any(subject.profile) => {
                    "Some stacks are cut: what was outside of [truncated] is not known."
                }
                None => "The file holds nothing to warn about.",
            }
            .into(),
        ));
    }
    blocks.extend(quality::blocks(subject.profile));
    let samples = subject.selection.samples;
    // The weights of folded stacks may be anything.
    if samples > 0 && subject.profile.about.duration.is_some() {
        // Two standard errors of a share of one half, the least certain one, in points.
        let points = 100.0 / (samples as f64).sqrt();
        blocks.push(Block::Line(format!(
            "With {} sample{} a share is good to about ± {points:.1} points.",
            number::grouped(samples),
            if samples == 1 { "" } else { "s" },
        )));
    }
    blocks
}

/// What the code could do, and how much of it the samples touched; nothing where the code was
/// not looked at.
fn in_code(subject: &Subject) -> Vec<Block> {
    let profile = subject.profile;
    if profile.code.calls.is_empty() {
        return Vec::new();
    }
    let graph = CallGraph::of(profile, subject.selection);
    let everywhere = IdVec::filled(true, profile.functions.len());
    let coverage = Coverage::of(profile, subject.selection, &graph, &everywhere);
    let of = |part: u64, whole: u64| {
        let (part, whole) = (number::grouped(part), number::grouped(whole));
        format!("{part} of {whole}")
    };
    let possible = Cycles::find(&graph, Arc::is_call).members.len() as u64;
    let seen = Cycles::find(&graph, Arc::is_observed).members.len() as u64;
    vec![
        Block::Space,
        Block::Heading("What the code could do".into()),
        Block::Line(format!(
            "The samples touched {} functions and {} arcs that the run could reach, and {} arcs that \
             the code does not show: calls through pointers, or frames missing from stacks.",
            of(coverage.touched_functions, coverage.functions),
            of(coverage.touched_arcs, coverage.arcs),
            number::grouped(coverage.only_observed)
        )),
        Block::Line(format!(
            "Recursion through several functions: {} cycles in the samples, {} with the code's calls.",
            number::grouped(seen),
            number::grouped(possible)
        )),
    ]
}
