//! The report, which answers the first questions about a recording.
//!
//! Where the time goes, how reliable that is, and what to ask next.

mod page;
mod screen;

pub use screen::place_name;

use super::basis::Total;
use super::flat::{self, Flat, Row, Sort};
use super::label;
use super::question::Question;
use super::table::{Cell, Column, Role, Table};
use super::{Subject, merged, range};
use crate::analysis::inclusive::Basis;
use crate::analysis::lines::Lines;
use crate::analysis::owners::Charged;
use crate::analysis::report::{InCode, Summary};
use crate::analysis::sampling_error::SamplingError;
use crate::analysis::tree::HotPaths;
use crate::analysis::waits::Wait;
use crate::profile::{FunctionId, ModuleId, ThreadId, pattern_of};

/// What the report shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The maximum number of functions in each list; `None` for all.
    pub limit: Option<usize>,
    /// Only functions with at least this share, in percent.
    pub min: f64,
    /// The functions that may be in a list, in order; `None` for all.
    pub shown: Option<Vec<FunctionId>>,
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
    /// The functions of the user's own code by total, without those that hand nearly all to one
    /// other, each with its hottest line.
    pub own: Vec<(Row, Option<HotLine>)>,
    /// The functions by total, each with its hottest line; those that only pass their samples on
    /// are folded.
    all: Vec<(Row, Option<HotLine>)>,
    /// The self weight of the kernel, of each library and program, the heaviest first.
    pub places: Vec<(String, u64)>,
    /// Commands with their weights, the heaviest first.
    pub commands: Vec<(String, u64)>,
    /// Threads with their weights, the heaviest first.
    pub threads: Vec<(ThreadId, u64)>,
    /// Where threads leave their processor, the heaviest first; nothing for events of running ones.
    pub waits: Vec<(Wait, u64)>,
    /// The heaviest paths of the call tree; `None` where there are no calls.
    pub hot: Option<HotPaths>,
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
    let is_shown = |id: &FunctionId| {
        (options.shown.as_ref()).is_none_or(|shown| shown.binary_search(id).is_ok())
    };
    let choose = |sort, limit| {
        let options = flat::Options {
            sort,
            limit,
            min: options.min,
        };
        let shown = weights.present().filter(is_shown);
        flat::choose(subject, shown.collect(), weights, &options)
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
    let is_own = |id: &FunctionId| summary.charged.owners.is_own(*id) && !summary.forwards[*id];
    let own = by_inclusive.iter().copied().filter(is_own);
    let own: Vec<FunctionId> = own.take(options.limit.unwrap_or(usize::MAX)).collect();
    let named = by_self.iter().chain(&by_total).chain(folded()).chain(&own);
    let labels = subject.labels(named.copied());
    let with_lines = |functions: &[FunctionId]| {
        let rows = flat::rows(subject, &summary.flat, functions, &labels).into_iter();
        let with_line = |row: Row| {
            let hottest = hottest_line(subject, &summary.lines, &row);
            (row, hottest)
        };
        rows.map(with_line).collect()
    };
    let functions = with_lines(&by_self);
    let place = |&(module, part): &(Option<ModuleId>, u64)| {
        let name = module.map_or("", |module| &subject.profile.modules[module].name);
        (name.to_owned(), part)
    };
    let mut report = Report {
        functions,
        by_total: Flat {
            hidden: weights.present().count() - by_total.len() - folded().count(),
            rows: flat::rows(subject, &summary.flat, &by_total, &labels),
            intervals: summary.flat.intervals.as_ref().map(|it| it.of),
        },
        folded: merged
            .iter()
            .map(|row| {
                let label = |&id: &FunctionId| labels.of(id).to_owned();
                row.folded.iter().map(label).collect()
            })
            .collect(),
        own: with_lines(&own),
        all: with_lines(&by_total),
        places: summary.places.iter().map(place).collect(),
        commands: summary.commands.clone(),
        threads: summary.threads.clone(),
        waits: summary.waits.clone(),
        hot: summary.hot.clone(),
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
    // All off-CPU time is self time of the scheduler: there, where the most is waited.
    let wait = report.waits.first().map(|(wait, _)| wait.function);
    let hottest = report.functions.first().map(|(row, _)| row);
    let function = wait.or(hottest.map(|row| row.function));
    let pattern = function.map(|it| pattern_of(subject.profile.name(it)));
    // Filters take labels as well, which may be shorter.
    let label = hottest
        .filter(|_| wait.is_none())
        .map(|row| row.name.text.clone());
    let short = [pattern, label]
        .into_iter()
        .flatten()
        .find(|text| text.len() <= PATTERN);
    next.extend(short.map(Question::AroundHottest));
    next.push(Question::CallersAndCallees { estimated: false });
    if recurses {
        next.push(Question::Recursion);
    }
    next.extend([Question::Totals, Question::FlameGraph]);
    next
}

impl Report {
    /// How totals are known.
    fn known(&self) -> Option<Total> {
        flat::known(self.functions.iter().map(|(row, _)| row))
    }

    /// The functions by self weight with all their figures, and with all that tells functions of
    /// one name apart.
    pub fn table(&self, subject: &Subject) -> Table {
        let rows = self
            .functions
            .iter()
            .map(|(row, _)| (row.function, &*row.name.text));
        let figures = self.figures(subject).without(&[range::KEY]);
        label::with_identities(figures, subject, rows)
    }

    /// The functions by self weight with all their figures, and with what totals are at most for
    /// people.
    fn figures(&self, subject: &Subject) -> Table {
        let intervals = self.by_total.intervals.is_some();
        let mut columns = flat::figure_columns(self.known(), intervals);
        columns.extend([
            Column::new("name", "function", Role::Name),
            Column::new("line", "hottest line", Role::Aside),
            Column::new("module", "module", Role::Aside),
        ]);
        let mut table = Table::new(columns);
        let whole = subject.selection.total();
        for (row, line) in &self.functions {
            let place = |line: &HotLine| Cell::Text(format!("{}:{}", line.file, line.line));
            let mut cells = flat::figures(row, whole);
            cells.extend([
                Cell::name(row.name.clone()),
                line.as_ref().map_or(Cell::Nothing, place),
                Cell::Text(row.module.clone()),
            ]);
            table.rows.push(cells);
        }
        table
    }
}
