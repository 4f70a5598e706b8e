//! The page of the report with everything on it.

use super::{Report, THREADS};
use crate::analysis::report::InCode;
use crate::base::{Event, Unit};
use crate::names::{Label, Mark};
use crate::profile::ThreadId;
use crate::view::basis::{self, Total};
use crate::view::page::{Block, Meaning, Page};
use crate::view::table::{Cell, Column, Role, Table, What};
use crate::view::tree::HotLines;
use crate::view::{Figures, Subject, caveats, certainty, flat, number, owners, quality, range};

impl Report {
    /// The page for people, with all rows that were chosen.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = self.summary(subject);
        let what = what_is_counted(subject.selection.event());
        if !self.functions.is_empty() {
            blocks.push(Block::Space);
            blocks.extend(if self.waits.is_empty() {
                self.by_self(subject, what, self.rows)
            } else {
                // All off-CPU time is self time of the scheduler.
                self.waits_blocks(subject, what, self.rows)
            });
            if let Some(hot) = &self.hot {
                let lines = HotLines::new(subject, hot, &self.charged.owners, usize::MAX);
                blocks.push(Block::Space);
                blocks.push(Block::Heading(hot_heading(&lines, what)));
                blocks.push(Block::Table(lines.table(subject)));
            }
            blocks.extend(self.totals(subject, what, self.rows));
        }
        blocks.extend(self.by_owner(subject, what));
        blocks.extend(self.who(subject));
        if let Some(found) = &self.in_code {
            blocks.extend(in_code(found));
        }
        blocks.push(Block::Space);
        blocks.extend(self.reliability(subject));
        if !self.next.is_empty() {
            blocks.push(Block::Next(self.next.clone()));
        }
        Page {
            unit: subject.selection.event().unit.clone(),
            blocks: range::settled(subject, blocks),
        }
    }

    /// The functions by self weight.
    pub(super) fn by_self(&self, subject: &Subject, what: &str, rows: usize) -> Vec<Block> {
        let mut table = self.self_table(subject);
        table.rows.truncate(rows);
        vec![
            Block::Heading(format!("Hottest functions by self {what}")),
            Block::Table(table),
        ]
    }

    /// The functions by total, after an empty line.
    pub(super) fn totals(&self, subject: &Subject, what: &str, rows: usize) -> Vec<Block> {
        let mut blocks = vec![Block::Space];
        let estimated = match self.known() {
            Some(Total::Estimated(_)) => " (estimated)",
            _ => "",
        };
        // All off-CPU time is in the scheduler and what leads to it: those say nothing.
        let outside = if self.waits.is_empty() {
            ""
        } else {
            ", outside of the kernel"
        };
        let is_shown = |function| {
            let module = subject.profile.functions[function].module;
            outside.is_empty() || !subject.profile.modules[module].is_kernel()
        };
        let by_total = self.by_total.rows.iter();
        let shown: Vec<bool> = by_total.map(|row| is_shown(row.function)).collect();
        if shown.contains(&true) {
            blocks.push(Block::Heading(format!(
                "Hottest functions by total {what}{estimated}{outside}"
            )));
        }
        blocks.extend(basis::line(self.known()));
        if shown.contains(&true) {
            let mut table = self.total_table(subject);
            let mut is_shown = shown.iter();
            table.rows.retain(|_| is_shown.next() == Some(&true));
            table.rows.truncate(rows);
            let by_self = self.self_table(subject);
            let ranges = range::cells(&table).chain(range::cells(&by_self));
            let legend = range::legend(subject.profile.rows, ranges);
            blocks.push(Block::Table(table));
            let folded = self.folded.iter().zip(&shown);
            let mut folded = folded.filter(|it| *it.1).take(rows);
            if folded.any(|(names, _)| !names.is_empty()) {
                blocks.push(Block::Meaning(Meaning::Same));
            }
            blocks.extend(legend);
        }
        blocks
    }

    /// How reliable the figures are, under a heading.
    pub fn reliability(&self, subject: &Subject) -> Vec<Block> {
        let mut blocks = vec![Block::Heading("How reliable is this?".into())];
        blocks.extend(self.trust(subject));
        blocks.extend(match self.by_total.intervals {
            Some(_) => self.interval_legend(subject).map(Block::Line),
            None => certainty::line(subject, &self.sampling_error).map(Block::Line),
        });
        blocks
    }

    /// Where threads leave their processor, in place of self time.
    pub(super) fn waits_blocks(&self, subject: &Subject, what: &str, rows: usize) -> Vec<Block> {
        // Saying that there is one more takes as much room as it.
        let most = self.waits.len();
        let shown = if rows + 1 == most {
            most
        } else {
            rows.min(most)
        };
        let waits = &self.waits[..shown];
        let ids = waits
            .iter()
            .flat_map(|(wait, _)| [Some(wait.function), wait.caller]);
        let labels = subject.labels(ids.flatten());
        let mut table = Table::new(vec![
            Column::new("percent", "%", Role::Heat),
            Column::new("weight", "weight", Role::Spare),
            Column::new("name", "from", Role::Name),
            Column::new("module", "module", Role::Aside),
            Column::new("caller", "called by", Role::Aside),
        ]);
        let whole = subject.selection.total();
        for &(wait, part) in waits {
            let name = |id| Cell::name(labels.label(id));
            table.rows.push(vec![
                Cell::Share { part, whole },
                Cell::Weight(part),
                name(wait.function),
                Cell::Text(subject.module(wait.function).to_owned()),
                wait.caller.map_or(Cell::Nothing, name),
            ]);
        }
        let heading = format!("Innermost user-space functions by {what}, callers in other modules");
        let mut blocks = vec![Block::Heading(heading), Block::Table(table)];
        let more = self.waits.len() - shown;
        if more > 0 {
            blocks.push(Block::Line(format!("… {more} more")));
        }
        blocks
    }

    /// What was recorded: the command, the samples, and other events.
    pub fn summary(&self, subject: &Subject) -> Vec<Block> {
        let mut blocks = Vec::new();
        if let Some(command) = &subject.profile.about.command {
            blocks.push(Block::Heading(command.clone()));
        }
        let mut text = subject.headline();
        // One time, or none, is no duration.
        let duration = subject.profile.about.duration;
        if let Some(duration) = duration.filter(|&duration| duration > 0) {
            text.push_str(&format!(", recorded over {}", number::duration(duration)));
        }
        match subject.profile.runs() {
            1 if self.threads.len() > 1 => {
                text.push_str(&format!(", {} threads", self.threads.len()));
            }
            1 => {}
            runs => text.push_str(&format!(" in {runs} runs")),
        }
        blocks.push(Block::Line(text));
        blocks.extend(other_events(subject));
        blocks
    }

    /// The functions by self weight, with the columns that fit best on a page.
    pub(super) fn self_table(&self, subject: &Subject) -> Table {
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
        range::if_filled(table.without(&left_out))
    }

    fn total_table(&self, subject: &Subject) -> Table {
        /// A longer name of a folded function leaves too little room for that of the row.
        const SHORT_NAME: usize = 24;
        let mut table = self.by_total.with_ranges(subject);
        let name = table.columns.iter().position(|column| column.key == "name");
        for (row, folded) in table.rows.iter_mut().zip(&self.folded) {
            let cell = name.and_then(|name| row.get_mut(name));
            if let Some(Cell::Name(name)) = cell
                && let What::Label(label) = &mut name.what
            {
                label.marks.extend(match folded.as_slice() {
                    [] => None,
                    [only] if only.chars().count() <= SHORT_NAME => Some(Mark::Same(only.clone())),
                    more => Some(Mark::SameNumber(more.len())),
                });
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
        left_out.extend(flat::CALLS_IN_ONE);
        left_out.extend(flat::PER_CALL);
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
        let mut section = |title: &'static str, rows: Vec<(Label, u64)>| {
            let more = rows.len().saturating_sub(THREADS);
            if rows.len() < 2 {
                return;
            }
            let mut table = Table::new(vec![
                Column::new("percent", "%", Role::Heat),
                Column::new("weight", "weight", Role::Spare),
                Column::new("name", title, Role::Name),
            ]);
            for (name, part) in rows.into_iter().take(THREADS) {
                let cells = [
                    Cell::Share { part, whole },
                    Cell::Weight(part),
                    Cell::name(name),
                ];
                table.rows.push(cells.into());
            }
            blocks.push(Block::Space);
            blocks.push(Block::Table(table));
            if more > 0 {
                blocks.push(Block::Line(format!("… {more} more")));
            }
        };
        let command = |(name, weight): &(String, u64)| (name.clone().into(), *weight);
        section("command", self.commands.iter().map(command).collect());
        let thread = |&(id, weight): &(ThreadId, u64)| {
            let thread = &subject.profile.threads[id];
            let ids = format!("pid {}, tid {}", thread.pid, thread.tid);
            let label = Label::from(&*thread.comm).with(Mark::Remark(ids));
            (label, weight)
        };
        section("thread", self.threads.iter().map(thread).collect());
        blocks
    }

    /// What is said where nothing is to be read with care.
    pub(super) fn without_caveats(&self, subject: &Subject) -> Block {
        let quality = subject.profile.quality;
        let is_incomplete = quality.is_some_and(|quality| quality.rooted < quality.stacks);
        let text = match subject.profile.about.duration {
            // Stacks end early without a note, too, where a function keeps no frame pointer.
            Some(_) if is_incomplete => "No samples were lost, and every function has a name.",
            Some(_) => {
                "No samples were lost, no stacks were truncated, and every function has a name."
            }
            None if self.has_cut_stacks => {
                "Some stacks are incomplete: the callers outside [truncated] and [broken stack] \
                 are unknown."
            }
            None => "No problems were found in the file.",
        };
        Block::Line(text.into())
    }

    /// What is not known, and how exact the shares are.
    fn trust(&self, subject: &Subject) -> Vec<Block> {
        let mut blocks = caveats::notes(&subject.profile.caveats);
        if blocks.is_empty() {
            blocks.push(self.without_caveats(subject));
        }
        blocks.extend(quality::blocks(subject.profile));
        if subject.is_part() && (!subject.profile.caveats.is_empty() || blocks.len() > 1) {
            let scope = "Notes and stacks describe the whole file, not only the samples shown:";
            blocks.insert(0, Block::Line(scope.into()));
        }
        blocks
    }
}

/// What the lines are.
pub(super) fn hot_heading(lines: &HotLines, what: &str) -> String {
    let paths = if lines.has_second() {
        "Hot paths by"
    } else {
        "Hot path by"
    };
    let collapsed = if lines.is_collapsed() {
        ", recursion collapsed"
    } else {
        ""
    };
    format!("{paths} {what}: the heaviest callee at each step{collapsed}")
}

/// What the weights of an event are, as headings name it.
pub(super) fn what_is_counted(event: &Event) -> &str {
    match &event.unit {
        Unit::Nanoseconds if event.is_off_processor() => "off-CPU time",
        Unit::Nanoseconds => "time",
        Unit::Samples => "samples",
        Unit::Count(unit) => match unit.as_str() {
            "cycles" => "time",
            "page-faults" => "page faults",
            "minor-faults" => "minor page faults",
            "major-faults" => "major page faults",
            "context-switches" => "context switches",
            other => other,
        },
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
pub(super) fn in_code(found: &InCode) -> [Block; 4] {
    let coverage = &found.coverage;
    let of = |part: u64, whole: u64| {
        let (part, whole) = (number::grouped(part), number::grouped(whole));
        format!("{part} of {whole}")
    };
    [
        Block::Space,
        Block::Heading("Coverage of the code".into()),
        Block::Line(format!(
            "The samples reached {} functions and {} arcs that the run could reach, and {} arcs \
             that are not in the code: indirect calls, or frames missing from stacks.",
            of(coverage.touched_functions, coverage.functions),
            of(coverage.touched_arcs, coverage.arcs),
            number::grouped(coverage.only_observed)
        )),
        Block::Line(format!(
            "Recursion through several functions: {} cycles in the samples, {} with the code's \
             calls.",
            number::grouped(found.observed_cycles as u64),
            number::grouped(found.possible_cycles as u64)
        )),
    ]
}
