//! The flat profile: functions with their self and total weights.

use super::basis::{self, Total};
use super::number::grouped;
use super::page::{Block, HiddenBy, HiddenRows, Page};
use super::table::{Cell, Column, Role, Table};
use super::{Figures, Subject, caveats, label, range, rows};
use crate::analysis::called::Called;
use crate::analysis::cut::AtMost;
use crate::analysis::flat::Summary;
use crate::analysis::inclusive::FunctionWeights;
use crate::analysis::sampling_error::intervals::Of;
use crate::names::{Label, Labels};
use crate::profile::{FunctionId, RowKind};

/// What functions are sorted by; ties by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Decreasing self weight, then decreasing total.
    #[default]
    SelfWeight,
    /// Decreasing total, then decreasing self weight.
    Total,
    /// The full name.
    Name,
    /// Decreasing number of samples in the function itself.
    Samples,
}

/// Which functions are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The order.
    pub sort: Sort,
    /// The maximum number of functions; `None` for all.
    pub limit: Option<usize>,
    /// Only those with at least this share, in percent: of self weight when sorted by it, of
    /// the total otherwise.
    pub min: f64,
}

/// One function.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The function.
    pub function: FunctionId,
    /// Its label, which no other function has.
    pub name: Label,
    /// The name of its module.
    pub module: String,
    /// The weight of the samples taken in it.
    pub self_weight: u64,
    /// The weight of the samples with it on the stack, each once.
    pub total: u64,
    /// How that is known.
    pub known: Total,
    /// What the total is at most: more than the total where stacks were cut and the function may be
    /// among the callers that they lack. `None` where the total was not measured.
    pub total_max: Option<AtMost>,
    /// The part of the total that rests on restored frames.
    pub inferred: u64,
    /// The number of samples taken in it.
    pub samples: u64,
    /// Its calls, where calls were counted.
    pub called: Option<Called>,
    /// Half the widths of the 95 % intervals of self weight and total, where that was asked for.
    pub half_widths: Option<[u64; 2]>,
}

impl Row {
    /// The number of its calls as people read it, where it is known.
    pub fn calls(&self) -> Option<String> {
        self.called.as_ref().and_then(called_text)
    }
}

/// The flat profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Flat {
    /// The functions, in order.
    pub rows: Vec<Row>,
    /// How many functions are not shown.
    pub hidden: usize,
    /// What the intervals of the rows are taken from, where that was asked for.
    pub intervals: Option<Of>,
}

/// Chooses, orders and names the functions.
pub fn arrange(subject: &Subject, summary: &Summary, options: &Options) -> Flat {
    let chosen = choose(subject, summary.ran.clone(), &summary.weights, options);
    let labels = subject.labels(chosen.iter().copied());
    Flat {
        hidden: summary.ran.len() - chosen.len(),
        intervals: summary.intervals.as_ref().map(|it| it.of),
        rows: rows(subject, summary, &chosen, &labels),
    }
}

/// Those of some functions that are to be shown, in order.
pub(super) fn choose(
    subject: &Subject,
    mut chosen: Vec<FunctionId>,
    weights: &FunctionWeights,
    options: &Options,
) -> Vec<FunctionId> {
    chosen.retain(|&id| {
        let weight = match options.sort {
            Sort::SelfWeight => weights.self_weight[id],
            _ => weights.total[id],
        };
        reaches(weight, subject.selection.total(), options.min)
    });
    let figures = |id: FunctionId| {
        let (self_weight, total) = (weights.self_weight[id], weights.total[id]);
        match options.sort {
            Sort::SelfWeight => (self_weight, total),
            Sort::Total => (total, self_weight),
            Sort::Samples => (weights.self_samples[id], self_weight),
            Sort::Name => (0, 0),
        }
    };
    chosen.sort_unstable_by(|&a, &b| {
        let largest_first = figures(b).cmp(&figures(a));
        largest_first.then_with(|| subject.profile.compare_names(a, b))
    });
    chosen.truncate(options.limit.unwrap_or(usize::MAX));
    chosen
}

/// The rows of these functions, for which there are labels.
pub(super) fn rows(
    subject: &Subject,
    summary: &Summary,
    functions: &[FunctionId],
    labels: &Labels,
) -> Vec<Row> {
    let Summary {
        weights,
        hidden,
        calls,
        intervals,
        ..
    } = summary;
    let known = |id| Total::of(weights, id);
    let row = |&id: &FunctionId| Row {
        known: known(id),
        function: id,
        name: labels.label(id),
        module: subject.module(id).to_owned(),
        self_weight: weights.self_weight[id],
        total: weights.total[id],
        total_max: (known(id) == Total::Measured)
            .then(|| hidden.at_most[id].plus(weights.total[id])),
        inferred: weights.inferred[id],
        samples: weights.self_samples[id],
        called: calls.as_ref().map(|calls| calls[id]),
        half_widths: intervals
            .as_ref()
            .map(|it| [it.self_weight[id], it.total[id]]),
    };
    functions.iter().map(row).collect()
}

/// Whether `part` is at least `percent` per cent of `whole`.
pub(in crate::view) fn reaches(part: u64, whole: u64, percent: f64) -> bool {
    percent <= 0.0 || part as f64 * 100.0 >= percent * whole as f64
}

/// How the totals of some rows are known: all in the same way.
pub(super) fn known<'a>(mut rows: impl Iterator<Item = &'a Row>) -> Option<Total> {
    rows.next().map(|row| row.known)
}

/// The columns of a function's figures: those of [`figures`], with intervals where rows have them.
pub(super) fn figure_columns(known: Option<Total>, intervals: bool) -> Vec<Column> {
    let (percent, total) = match known {
        Some(Total::Estimated(_)) => ("est. total %", "est. total"),
        _ => ("total %", "total"),
    };
    let half_width = |key| intervals.then(|| Column::new(key, HALF_WIDTH, Role::Figure));
    let [of_self, of_total] = HALF_WIDTHS.map(half_width);
    let columns = [
        Some(Column::new("self_percent", "self %", Role::Heat)),
        of_self,
        Some(Column::new("total_percent", percent, Role::Figure)),
        of_total,
        Some(range::column()),
        Some(Column::new("self", "self", Role::Spare)),
        Some(Column::new("total", total, Role::Spare)),
        Some(Column::new("total_max", "at most", Role::Bound)),
    ];
    columns.into_iter().flatten().collect()
}

/// A function's self weight and total, and what the latter is at most, as shares of `whole` and as
/// weights.
pub(super) fn figures(row: &Row, whole: u64) -> Vec<Cell> {
    let share = |part| Cell::Share { part, whole };
    let total = Some(row.total).filter(|_| row.known != Total::Unknown);
    let most = row.total_max;
    let [of_self, of_total] = match row.half_widths {
        Some(widths) => widths.map(|it| Some(share(it))),
        None => [None, None],
    };
    let cells = [
        Some(share(row.self_weight)),
        of_self,
        Some(total.map_or(Cell::Nothing, share)),
        of_total,
        Some(most.map_or(Cell::Nothing, |most| range::cell(row.total, most, whole))),
        Some(Cell::Weight(row.self_weight)),
        Some(total.map_or(Cell::Nothing, Cell::Weight)),
        Some(most.map_or(Cell::Nothing, range::weight)),
    ];
    cells.into_iter().flatten().collect()
}

/// What the intervals that are shown are, and how much would narrow that of the first row to a
/// point.
pub(super) fn interval_legend(of: Of, first: Option<&Row>, whole: u64) -> String {
    let width = first.and_then(|row| row.half_widths).map_or(0, |it| it[0]);
    let points = 100.0 * width as f64 / whole.max(1) as f64;
    let (what, more) = match of {
        Of::Runs => ("by runs", "runs"),
        Of::Blocks => ("of this run", "time"),
    };
    let mut text = format!("±: half the 95 % interval {what}");
    // Intervals narrow with the square root of what they are taken from.
    if points >= 1.5 {
        text.push_str(&format!("; ±1 takes {:.0} × the {more}", points * points));
    }
    text
}

/// The columns of intervals.
pub(super) const HALF_WIDTHS: [&str; 2] = ["self_half_width", "total_half_width"];
/// Their title.
pub(super) const HALF_WIDTH: &str = "±";
/// The columns of calls for programs that are one for people.
pub const CALLS_IN_ONE: [&str; 3] = ["calls", "recursive_calls", "calls_at_least"];
/// The columns of weights by calls.
pub(super) const PER_CALL: [&str; 2] = ["self_per_call", "total_per_call"];

/// The calls of a function: as one text, as numbers, and its weights for each.
fn call_figures(row: &Row) -> [Cell; 6] {
    let Some(called) = &row.called else {
        return [const { Cell::Nothing }; 6];
    };
    let count = |calls: Option<u64>| calls.map_or(Cell::Nothing, Cell::Count);
    let each = |weight: u64, calls: Option<u64>| {
        calls.map_or(Cell::Nothing, |calls| Cell::PerCall { weight, calls })
    };
    let is_known = called.by_others.is_some();
    let total = called
        .total_divisor
        .filter(|_| row.known == Total::Measured);
    [
        row.calls().map_or(Cell::Nothing, Cell::Text),
        count(called.by_others),
        count(called.recursive),
        count(Some(u64::from(called.is_least)).filter(|_| is_known)),
        each(row.self_weight, called.self_divisor),
        each(row.total, total),
    ]
}

/// What the mark of numbers of calls means, if it is shown.
pub(super) fn least_legend(is_shown: bool) -> Option<Block> {
    is_shown.then(|| Block::Line("≥ at least: not all calls of the function can be counted".into()))
}

/// Calls by others and by itself, as gprof has them: `5`, `1+29`, `≥3`.
pub(super) fn called_text(called: &Called) -> Option<String> {
    let mark = if called.is_least { "≥" } else { "" };
    match (called.by_others, called.recursive) {
        (None, None) => None,
        (others, None | Some(0)) => Some(format!("{mark}{}", grouped(others.unwrap_or(0)))),
        (others, Some(recursive)) => Some(format!(
            "{mark}{}+{}",
            grouped(others.unwrap_or(0)),
            grouped(recursive)
        )),
    }
}

impl Flat {
    /// The rows with all their figures, and with all that tells functions of one name apart.
    pub fn table(&self, subject: &Subject) -> Table {
        let labels = self.rows.iter().map(|row| (row.function, &*row.name.text));
        let table = self.with_ranges(subject).without(&[range::KEY, "called"]);
        let table = label::with_identities(table, subject, labels);
        rows::with_kinds(table, subject, self.rows.iter().map(|row| row.function))
    }

    /// The same with the column that people read ranges in, if there are any.
    pub fn with_ranges(&self, subject: &Subject) -> Table {
        let mut columns = figure_columns(known(self.rows.iter()), self.intervals.is_some());
        columns.extend([
            Column::new("samples", "samples", Role::Figure),
            Column::new("inferred", "inferred", Role::Figure),
            Column::new("called", "calls", Role::Figure),
            Column::new("calls", "calls", Role::Figure),
            Column::new("recursive_calls", "recursive", Role::Figure),
            Column::new("calls_at_least", "at least", Role::Figure),
            Column::new("self_per_call", "self/call", Role::Figure),
            Column::new("total_per_call", "total/call", Role::Figure),
            Column::new("name", rows::title(subject.profile.rows), Role::Name),
            Column::new("module", "module", Role::Aside),
        ]);
        let mut table = Table::new(columns);
        let whole = subject.selection.total();
        for row in &self.rows {
            let mut cells = figures(row, whole);
            cells.extend([Cell::Count(row.samples), Cell::Weight(row.inferred)]);
            cells.extend(call_figures(row));
            cells.extend([
                Cell::name(label::marked(row.name.clone(), row.inferred, row.total)),
                Cell::Text(row.module.clone()),
            ]);
            table.rows.push(cells);
        }
        if self.rows.iter().all(|row| row.called.is_none()) {
            table = table.without(&["called"]).without(&CALLS_IN_ONE);
            table = table.without(&PER_CALL);
        }
        range::if_filled(table)
    }

    /// The page for people.
    pub fn page(&self, subject: &Subject) -> Page {
        let mut blocks = vec![Block::Line(subject.headline())];
        let known = known(self.rows.iter());
        blocks.extend(basis::line(known));
        let mut legend = None;
        if !self.rows.is_empty() {
            let mut left_out = vec!["samples", "inferred", "total_max"];
            left_out.extend(CALLS_IN_ONE);
            if subject.figures == Figures::Percent {
                left_out.extend(["self", "total"]);
            }
            if known == Some(Total::Unknown) {
                left_out.extend(["total_percent", "total"]);
            }
            if subject.profile.rows.is_of_samples() {
                // They are the same.
                left_out.extend(["total_percent", "total"]);
            }
            let is_module = subject.profile.rows == RowKind::Module;
            if is_module || !subject.has_modules(self.rows.iter().map(|row| row.function)) {
                left_out.push("module");
            }
            let table = self.with_ranges(subject).without(&left_out);
            legend = range::legend(subject.profile.rows, range::cells(&table));
            blocks.push(Block::Space);
            blocks.push(Block::Table(table));
        }
        let noun = rows::noun(subject.profile.rows);
        blocks.extend(HiddenRows::block(self.hidden, noun, HiddenBy::LimitOrShare));
        blocks.extend(legend);
        blocks.extend(self.intervals.map(|of| {
            let whole = subject.selection.total();
            Block::Line(interval_legend(of, self.rows.first(), whole))
        }));
        let shown = self.rows.iter().map(|row| row.function);
        blocks.extend(rows::unknown(subject, shown));
        let is_least = |row: &Row| row.called.is_some_and(|called| called.is_marked());
        blocks.extend(least_legend(self.rows.iter().any(is_least)));
        let marked = |row: &Row| label::is_inferred(row.inferred, row.total);
        blocks.extend(label::legend(self.rows.iter().any(marked)));
        blocks.extend(caveats::foot_of(subject));
        Page {
            unit: subject.selection.event().unit.clone(),
            blocks: range::settled(subject, blocks),
        }
    }
}
