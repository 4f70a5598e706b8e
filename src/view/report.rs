//! The report: what someone wants to know first.
//!
//! Where the time goes, whether that can be trusted, and what to ask next.

use super::basis::{self, Total};
use super::flat::{self, Flat, Row, Sort};
use super::label::{self, Labels};
use super::page::{Block, Page};
use super::question::Question;
use super::table::{Cell, Column, Role, Table};
use super::{Figures, Subject, caveats, certainty, merged, number, owners, quality, range};
use crate::analysis::inclusive::Basis;
use crate::analysis::lines::Lines;
use crate::analysis::owners::Charged;
use crate::analysis::report::{InCode, Summary};
use crate::analysis::sampling_error::SamplingError;
use crate::analysis::waits::Wait;
use crate::base::{Event, Unit};
use crate::profile::{FunctionId, ThreadId, pattern_of};

/// What the report shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The maximum number of functions in each list; `None` for all.
    pub limit: Option<usize>,
    /// Only functions with at least this share, in percent.
    pub min: f64,
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
    /// The functions with the largest total; those that only pass their samples on are folded into
    /// others with exactly the same samples.
    pub by_total: Flat,
    /// For each row of `by_total`, the functions that are folded into it, outermost first.
    pub folded: Vec<Vec<String>>,
    /// Commands with their weights, the heaviest first.
    pub commands: Vec<(String, u64)>,
    /// Threads with their weights, the heaviest first.
    pub threads: Vec<(ThreadId, u64)>,
    /// Where threads leave their processor, the heaviest first; nothing for events of running ones.
    pub waits: Vec<(Wait, u64)>,
    /// How many rows a list on a page has at most.
    rows: usize,
    /// Questions to ask next.
    pub next: Vec<Question>,
    /// How far shares may be off because not every event was recorded.
    pub sampling_error: SamplingError,
    /// The weight by crate, library or directory.
    pub charged: Charged,
    has_cut_stacks: bool,
    in_code: Option<InCode>,
}

/// How many commands and threads a page names.
const THREADS: usize = 6;

/// Chooses, orders and names.
pub fn arrange(subject: &Subject, summary: &Summary, options: &Options) -> Report {
    let weights = &summary.flat.weights;
    let choose = |sort, limit| {
        let options = flat::Options {
            sort,
            limit,
            min: options.min,
        };
        flat::choose(subject, weights, &options)
    };
    let mut by_self = choose(Sort::SelfWeight, options.limit);
    by_self.retain(|&id| weights.self_samples[id] > 0);
    // Without a limit: rows are merged first, and the merged ones are counted.
    let by_inclusive = match weights.basis {
        Basis::Nothing => Vec::new(),
        _ => choose(Sort::Total, None),
    };
    let merged = merged::rows(subject, summary, &by_inclusive, options.limit);
    let by_total: Vec<FunctionId> = merged.iter().map(|row| row.function).collect();
    let folded = || merged.iter().flat_map(|row| &row.folded);
    let labels = Labels::new(
        subject,
        by_self.iter().chain(&by_total).chain(folded()).copied(),
    );
    let functions = flat::rows(subject, &summary.flat, &by_self, &labels)
        .into_iter()
        .map(|row| {
            let hottest = hottest_line(subject, &summary.lines, &row);
            (row, hottest)
        })
        .collect();
    let mut report = Report {
        functions,
        by_total: Flat {
            hidden: weights.present().count() - by_total.len() - folded().count(),
            rows: flat::rows(subject, &summary.flat, &by_total, &labels),
        },
        folded: merged
            .iter()
            .map(|row| {
                let label = |&id: &FunctionId| labels.of(id).to_owned();
                row.folded.iter().map(label).collect()
            })
            .collect(),
        commands: summary.commands.clone(),
        threads: summary.threads.clone(),
        waits: summary.waits.clone(),
        rows: options.limit.unwrap_or(usize::MAX),
        next: Vec::new(),
        sampling_error: summary.sampling_error,
        charged: summary.charged.clone(),
        has_cut_stacks: summary.has_cut_stacks,
        in_code: summary.in_code,
    };
    report.next = questions(&report, subject, summary.recurses);
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

/// The questions that lead on from here.
fn questions(report: &Report, subject: &Subject, recurses: bool) -> Vec<Question> {
    /// A longer pattern is too long for a page.
    const PATTERN: usize = 60;
    if subject.selection.samples() == 0 {
        return Vec::new();
    }
    match report.known() {
        Some(Total::Estimated(_)) => {
            let graph = Question::CallersAndCallees { estimated: true };
            return vec![graph, Question::Totals];
        }
        Some(Total::Unknown) => return Vec::new(),
        _ => {}
    }
    let mut next = vec![Question::CallTree];
    if let Some((row, _)) = report.functions.first() {
        let pattern = pattern_of(subject.profile.distinct_name(row.function));
        let pattern = Some(pattern).filter(|pattern| pattern.len() <= PATTERN);
        next.push(Question::AroundHottest(pattern));
    }
    next.push(Question::CallersAndCallees { estimated: false });
    if recurses {
        next.push(Question::Recursion);
    }
    next.extend([Question::Totals, Question::FoldedStacks]);
    next
}

impl Report {
    /// How totals are known.
    fn known(&self) -> Option<Total> {
        flat::known(self.functions.iter().map(|(row, _)| row))
    }

    /// The functions by self weight with all their figures, and with all that tells functions of one
    /// name apart.
    pub fn table(&self, subject: &Subject) -> Table {
        let rows = self.functions.iter();
        let rows = rows.map(|(row, _)| (row.function, &*row.name));
        label::with_identities(self.figures(subject), subject, rows)
    }

    /// The functions by self weight with all their figures.
    fn figures(&self, subject: &Subject) -> Table {
        let mut columns = Vec::from(flat::figure_columns(self.known()));
        columns.extend([
            Column::new("name", "function", Role::Name),
            Column::new("line", "hottest line", Role::Aside),
            Column::new("module", "module", Role::Aside),
        ]);
        let mut table = Table::new(columns);
        let whole = subject.selection.total();
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
        let what = what_is_counted(subject.selection.event());
        if !self.functions.is_empty() {
            blocks.push(Block::Space);
            // All off-CPU time is self time of the scheduler.
            if self.waits.is_empty() {
                blocks.push(Block::Heading(format!("Hottest functions by self {what}")));
                blocks.push(Block::Table(self.self_table(subject)));
            } else {
                blocks.extend(self.waits_blocks(subject, what));
            }
            blocks.push(Block::Space);
            let estimated = match self.known() {
                Some(Total::Estimated(_)) => " (estimated)",
                _ => "",
            };
            if !self.by_total.rows.is_empty() {
                blocks.push(Block::Heading(format!(
                    "Hottest functions by total {what}{estimated}"
                )));
            }
            blocks.extend(basis::line(self.known()));
            if !self.by_total.rows.is_empty() {
                let table = self.total_table(subject);
                let legend = range::legend(range::cells(&table));
                blocks.push(Block::Table(table));
                blocks.extend(self.folded_legend());
                blocks.extend(legend);
            }
        }
        blocks.extend(self.by_owner(subject, what));
        blocks.extend(self.who(subject));
        if let Some(found) = &self.in_code {
            blocks.extend(in_code(found));
        }
        blocks.push(Block::Space);
        blocks.push(Block::Heading("How reliable is this?".into()));
        blocks.extend(self.trust(subject));
        blocks.extend(certainty::line(subject, &self.sampling_error).map(Block::Line));
        if !self.next.is_empty() {
            blocks.push(Block::Next(self.next.clone()));
        }
        Page {
            unit: subject.selection.event().unit.clone(),
            blocks,
        }
    }

    /// Where threads leave their processor, in place of self time.
    fn waits_blocks(&self, subject: &Subject, what: &str) -> Vec<Block> {
        let shown = self.rows.min(self.waits.len());
        let waits = &self.waits[..shown];
        let ids = waits
            .iter()
            .flat_map(|(wait, _)| [Some(wait.function), wait.caller]);
        let labels = Labels::new(subject, ids.flatten());
        let mut table = Table::new(vec![
            Column::new("percent", "%", Role::Heat),
            Column::new("weight", "weight", Role::Figure),
            Column::new("name", "from", Role::Name),
            Column::new("module", "module", Role::Aside),
            Column::new("caller", "called by", Role::Aside),
        ]);
        let whole = subject.selection.total();
        for &(wait, part) in waits {
            let caller = wait.caller.map(|caller| labels.of(caller).to_owned());
            table.rows.push(vec![
                Cell::Share { part, whole },
                Cell::Weight(part),
                Cell::Text(labels.of(wait.function).to_owned()),
                Cell::Text(subject.module(wait.function).to_owned()),
                caller.map_or(Cell::Nothing, Cell::Text),
            ]);
        }
        let heading = format!(
            "Innermost user-space functions by {what}, with their caller in another module"
        );
        let mut blocks = vec![Block::Heading(heading), Block::Table(table)];
        let more = self.waits.len() - shown;
        if more > 0 {
            blocks.push(Block::Line(format!("… {more} more")));
        }
        blocks
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
        blocks.extend(other_events(subject));
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
        if self.known() == Some(Total::Unknown) {
            left_out.push("total_percent");
        }
        table.without(&left_out)
    }

    /// What is behind the numbers of folded functions, where there are any.
    fn folded_legend(&self) -> Option<Block> {
        let is_folded = self.folded.iter().any(|names| !names.is_empty());
        is_folded.then(|| {
            Block::Line(
                "(+NAME), (+N): more functions on exactly the same samples; they have no self time and do \
                 not recurse."
                    .into(),
            )
        })
    }

    fn total_table(&self, subject: &Subject) -> Table {
        /// A longer name of a folded function leaves too little room for that of the row.
        const SHORT_NAME: usize = 24;
        let mut table = self.by_total.with_ranges(subject);
        let name = table.columns.iter().position(|column| column.key == "name");
        for (row, folded) in table.rows.iter_mut().zip(&self.folded) {
            let cell = name.and_then(|name| row.get_mut(name));
            if let Some(Cell::Text(text) | Cell::Branch { text, .. }) = cell
                && !folded.is_empty()
            {
                match folded.as_slice() {
                    [only] if only.chars().count() <= SHORT_NAME => {
                        text.push_str(&format!(" (+{only})"))
                    }
                    more => text.push_str(&format!(" (+{})", more.len())),
                }
            }
        }
        // The total comes first, what it is at most directly behind it.
        let has_ranges = range::cells(&table).next().is_some();
        let figures = if has_ranges { 3 } else { 2 };
        table.columns[..figures].rotate_left(1);
        table.columns[0].role = Role::Heat;
        table.columns[figures - 1].role = Role::Figure;
        for row in &mut table.rows {
            row[..figures].rotate_left(1);
        }
        let mut left_out = vec!["self", "samples", "inferred", "total_max"];
        left_out.extend(flat::CALL_FIGURES);
        if subject.figures == Figures::Percent {
            left_out.push("total");
        }
        if !subject.has_modules(self.by_total.rows.iter().map(|row| row.function)) {
            left_out.push("module");
        }
        table.without(&left_out)
    }

    /// Time by crate, where there are several and stacks that tell them apart.
    fn by_owner(&self, subject: &Subject, what: &str) -> Vec<Block> {
        /// How many owners a page names.
        const OWNERS: usize = 8;
        let is_measured = self.known() == Some(Total::Measured);
        if self.charged.shares.len() < 2 || !is_measured {
            return Vec::new();
        }
        let heading = format!("{what} by crate, library or directory");
        let mut letters = heading.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        let heading = first.into_iter().chain(letters).collect();
        let mut blocks = vec![Block::Space, Block::Heading(heading)];
        // Without a limit of rows all are listed.
        let limit = (self.rows < usize::MAX).then_some(OWNERS.min(self.rows));
        blocks.extend(owners::blocks(subject, &self.charged, limit));
        blocks
    }

    /// The heaviest commands and threads, where there are several.
    fn who(&self, subject: &Subject) -> Vec<Block> {
        let whole = subject.selection.total();
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

    /// What is not known, and how exact the shares are.
    fn trust(&self, subject: &Subject) -> Vec<Block> {
        let mut blocks = caveats::notes(&subject.profile.caveats);
        if blocks.is_empty() {
            blocks.push(Block::Line(
                match subject.profile.about.duration {
                    Some(_) => {
                        "No samples were lost, no stacks were truncated, and every function has a name."
                    }
                    None if self.has_cut_stacks => {
                        "Some stacks are incomplete: the callers outside [truncated] and [broken stack] are \
                         unknown."
                    }
                    None => "No problems were found in the file.",
                }
                .into(),
            ));
        }
        blocks.extend(quality::blocks(subject.profile));
        if subject.is_part() && (!subject.profile.caveats.is_empty() || blocks.len() > 1) {
            let scope = "Notes and stacks describe the whole file, not only the samples shown:";
            blocks.insert(0, Block::Line(scope.into()));
        }
        blocks
    }
}

/// What the weights of an event are, as headings name it.
fn what_is_counted(event: &Event) -> &str {
    match &event.unit {
        Unit::Nanoseconds if event.is_off_processor() => "off-CPU time",
        Unit::Nanoseconds => "time",
        Unit::Samples => "samples",
        Unit::Count(unit) if unit == "cycles" => "time",
        Unit::Count(unit) => unit,
    }
}

/// A line on the other events of the recording.
fn other_events(subject: &Subject) -> Option<Block> {
    let profile = subject.profile;
    let counts = profile.samples_by_event();
    let others: Vec<(String, u64)> = profile
        .events
        .enumerate()
        .filter(|&(id, event)| counts[id] > 0 && event.name != subject.selection.event().name)
        .map(|(id, event)| (event.name.clone(), counts[id]))
        .collect();
    (!others.is_empty()).then_some(Block::OtherEvents(others))
}

/// Coverage of the code, and how much of it the samples touched.
fn in_code(found: &InCode) -> [Block; 4] {
    let coverage = &found.coverage;
    let of = |part: u64, whole: u64| {
        let (part, whole) = (number::grouped(part), number::grouped(whole));
        format!("{part} of {whole}")
    };
    [
        Block::Space,
        Block::Heading("Coverage of the code".into()),
        Block::Line(format!(
            "The samples reached {} functions and {} arcs that the run could reach, and {} arcs that \
             are not in the code: indirect calls, or frames missing from stacks.",
            of(coverage.touched_functions, coverage.functions),
            of(coverage.touched_arcs, coverage.arcs),
            number::grouped(coverage.only_observed)
        )),
        Block::Line(format!(
            "Recursion through several functions: {} cycles in the samples, {} with the code's calls.",
            number::grouped(found.observed_cycles as u64),
            number::grouped(found.possible_cycles as u64)
        )),
    ]
}
