//! What has changed between runs.

mod frames;

use rustc_hash::FxHashMap;

use super::number;
use super::page::{Block, HiddenBy, HiddenRows, Page};
use super::table::{Cell, Column, Role, Table};
use crate::base::{Language, Unit};
use crate::compare::{Apart, Change, Comparison, FunctionChange, SAME, Verdict, Work};
use crate::names::{Form, Label, Mark, Names, in_form, stem};

/// How many functions of a kind are listed where only their number matters.
const FEW: usize = 3;

/// A function and its place in the comparison.
type Row<'a> = (usize, &'a FunctionChange);

/// What a comparison is of, and how it is shown.
#[derive(Clone, Debug)]
pub struct Compared<'a> {
    /// The figures.
    pub comparison: &'a Comparison,
    /// What was compared: the names of both sides.
    pub sides: [&'a str; 2],
    /// How functions are named.
    pub names: Names,
    /// The most rows of a table.
    pub limit: Option<usize>,
    /// What recording adds to a run, as a part of its time without, where that was estimated.
    pub cost: Option<f64>,
    /// What each function is called, as no other is.
    labels: Vec<String>,
}

impl<'a> Compared<'a> {
    /// Labels the functions of a comparison.
    pub fn of(
        comparison: &'a Comparison,
        sides: [&'a str; 2],
        names: Names,
        limit: Option<usize>,
    ) -> Compared<'a> {
        Compared {
            comparison,
            sides,
            names,
            limit,
            cost: None,
            labels: labels(comparison, names),
        }
    }

    /// The label of the function at this place of the comparison.
    pub fn label(&self, place: usize) -> &str {
        &self.labels[place]
    }

    /// The page for people.
    pub fn page(&self) -> Page {
        let Comparison {
            functions, event, ..
        } = self.comparison;
        let unit = event.unit.clone();
        let mut blocks = vec![Block::Line(self.subject()), Block::Line(self.all())];
        let changed: Vec<Row> = functions
            .iter()
            .enumerate()
            .filter(|(_, it)| it.own.verdict.is_change())
            .collect();
        let through: Vec<Row> = (functions.iter().enumerate())
            .filter(|(_, it)| it.total.verdict.is_change() && !it.own.verdict.is_change())
            .collect();
        let list = |blocks: &mut Vec<Block>, title: &str, rows: &[Row], of| {
            if rows.is_empty() {
                return;
            }
            let limit = self.limit.unwrap_or(usize::MAX);
            blocks.extend([Block::Space, Block::Heading(title.to_owned())]);
            let shown = rows.iter().take(limit).copied();
            let table = self.rows(shown, of).without(&LEFT_OUT);
            blocks.push(Block::Table(table));
            let hidden = rows.len().saturating_sub(limit);
            let noun = ("function", "functions");
            blocks.extend(HiddenRows::block(hidden, noun, HiddenBy::Limit));
        };
        list(
            &mut blocks,
            "Functions whose own time has changed",
            &changed,
            |it| it.own,
        );
        let title = "Functions whose total time has changed by what they call";
        list(&mut blocks, title, &through, |it| it.total);
        blocks.push(Block::Space);
        if changed.is_empty() && through.is_empty() {
            let text = "No function is known to have changed.";
            blocks.push(Block::Line(text.to_owned()));
        }
        blocks.extend(self.cycles().map(Block::Line));
        if self.comparison.apart.is_none() {
            blocks.extend(self.undecided(&unit).map(Block::Line));
        }
        blocks.extend(self.calls());
        if self.comparison.apart.is_none() {
            blocks.push(Block::Line(self.method()));
        }
        let cost = |part: f64| {
            format!(
                "Recording adds ≈ {:.1} % to the time of a run.",
                100.0 * part
            )
        };
        blocks.extend(self.cost.map(|part| Block::Line(cost(part))));
        Page { unit, blocks }
    }

    /// All functions.
    pub fn table(&self) -> Table {
        let functions = self.comparison.functions.iter().enumerate();
        let limit = self.limit.unwrap_or(usize::MAX);
        self.rows(functions.take(limit), |it| it.own)
    }

    // `self 82.8 ms to 105.0 ms a run, +26.7 % (+11.0 ms to +33.3 ms): worse`
    fn in_words(&self, what: &str, change: &Change) -> String {
        let unit = &self.comparison.event.unit;
        let [base, new] = [change.base, change.new].map(|it| number::weight(rounded(it), unit));
        let difference = |value: f64| number::difference(value.round() as i64, unit);
        let [low, high] = change.interval.map(difference);
        let growth = match rounded(change.base) {
            0 => String::new(),
            of => {
                let growth = number::growth(change.difference().round() as i64, of);
                format!(", {growth} %")
            }
        };
        let verdict = change.verdict.name();
        let per = self.per();
        format!("{what} {base} to {new} {per}{growth} ({low} to {high}): {verdict}")
    }

    fn subject(&self) -> String {
        let Comparison { runs, event, .. } = self.comparison;
        let side = |side: usize| {
            let noun = if runs[side] == 1 { "run" } else { "runs" };
            format!("{} ({} {noun})", self.sides[side], runs[side])
        };
        let (base, new) = (side(0), side(1));
        format!("{} {}: base {base}, new {new}", event.name, self.per())
    }

    // What weights are of: `a run`.
    fn per(&self) -> String {
        match &self.comparison.work {
            None => "a run".to_owned(),
            Some(Work { name, amount }) => format!("per {} {name}", number::grouped(*amount)),
        }
    }

    // `2.31 s → 2.44 s, +5.4 % (95 %: +4.2 to +6.6 %): worse`
    fn all(&self) -> String {
        let time = &self.comparison.time;
        let unit = &self.comparison.event.unit;
        let [base, new] = [time.base, time.new].map(|it| number::weight(rounded(it), unit));
        let growth =
            |difference: f64| number::growth(difference.round() as i64, rounded(time.base).max(1));
        let [low, high] = time.interval.map(growth);
        let change = growth(time.difference());
        let verdict = match time.verdict {
            Verdict::Same => format!("same, within ±{} %", 100.0 * SAME),
            Verdict::Undecided => match self.comparison.apart {
                Some(apart) => format!("undecided: {}", why(apart)),
                None => format!("undecided{}", more_runs(time)),
            },
            other => other.name().to_owned(),
        };
        format!("all: {base} to {new}, {change} % (95 %: {low} to {high} %): {verdict}")
    }

    // `Cycle of expr, term and 2 more: self …: worse`. Where one of its functions is known to have
    // changed, its row has said so.
    fn cycles(&self) -> impl Iterator<Item = String> {
        let functions = &self.comparison.functions;
        let is_change = |place: usize| functions[place].own.verdict.is_change();
        let cycles = self.comparison.cycles.iter();
        let changed = cycles.filter(move |it| {
            it.own.verdict.is_change() && !it.members.iter().any(|(place, _)| is_change(*place))
        });
        changed.map(|it| {
            let names = it.members.iter().map(|(place, _)| self.label(*place));
            let mut names: Vec<String> = names.take(FEW).map(str::to_owned).collect();
            let more = it.members.len() - names.len();
            if more > 0 {
                names.push(format!("{more} more"));
            }
            let last = names.pop().unwrap_or_default();
            let own = self.in_words("self", &it.own);
            format!("Cycle of {} and {last}: {own}", names.join(", "))
        })
    }

    fn undecided(&self, unit: &Unit) -> Option<String> {
        let functions = self.comparison.functions.iter();
        // What has no weight of its own on either side is nothing to decide on.
        let is_open = |it: &FunctionChange| {
            it.own.verdict == Verdict::Undecided && it.own.base + it.own.new > 0.0
        };
        let mut all: Vec<Row> = functions.enumerate().filter(|it| is_open(it.1)).collect();
        let size = |it: &FunctionChange| it.own.difference().abs();
        all.sort_by(|a, b| size(b.1).total_cmp(&size(a.1)));
        if all.is_empty() {
            return None;
        }
        let named = all.iter().take(FEW).map(|&(place, it)| {
            let [low, high] = it
                .own
                .interval
                .map(|it| number::difference(it as i64, unit));
            let more = it.own.more_runs.map(|more| match more {
                1 => ", 1 more run".to_owned(),
                _ => format!(", {} more runs", number::grouped(more)),
            });
            let label = self.label(place);
            format!("{label} ({low} to {high}{})", more.unwrap_or_default())
        });
        let named: Vec<String> = named.collect();
        let noun = if all.len() == 1 {
            "function"
        } else {
            "functions"
        };
        let rest = if all.len() > FEW { ", …" } else { "" };
        Some(format!(
            "Undecided own time of {} {noun}: {}{rest}",
            all.len(),
            named.join(", ")
        ))
    }

    fn calls(&self) -> Vec<Block> {
        let functions = &self.comparison.functions;
        let changed: Vec<(Row, [u64; 2])> = (functions.iter().enumerate())
            .filter_map(|row| Some((row, row.1.calls?.changed()?)))
            .collect();
        let varying = functions
            .iter()
            .filter(|it| it.calls.is_some_and(|it| it.varies))
            .count();
        let counted = || functions.iter().filter_map(|it| it.calls);
        let unsure = counted().filter(|it| it.is_repeated && it.may_be_chance);
        let unsure = unsure.count();
        if counted().next().is_none() {
            return Vec::new();
        }
        let mut blocks = vec![Block::Heading("Calls that have changed, exact".to_owned())];
        if changed.is_empty() {
            let known = counted()
                .filter(|it| it.exact.iter().all(Option::is_some))
                .count();
            let text = match (self.comparison.runs.contains(&1), unsure) {
                (true, _) => "Calls are not compared: two runs a side show which repeat.".into(),
                (false, 0) => {
                    format!("Functions of which all calls are known: {known}; none has changed.")
                }
                (false, _) => "No calls are known to have changed.".into(),
            };
            blocks[0] = Block::Line(text);
        } else {
            let mut table = Table::new(vec![
                Column::new("base_calls", "base", Role::Figure),
                Column::new("new_calls", "new", Role::Figure),
                Column::new("factor", "factor", Role::Figure),
                Column::new("function", "function", Role::Name),
                Column::new("module", "module", Role::Aside),
                Column::new("calls_by", "called by", Role::Aside),
            ]);
            let limit = self.limit.unwrap_or(usize::MAX);
            for ((place, it), [base, new]) in changed.iter().take(limit) {
                table.rows.push(vec![
                    Cell::Count(*base),
                    Cell::Count(*new),
                    match base {
                        0 => Cell::Nothing,
                        _ => Cell::Factor {
                            number: *new,
                            of: *base,
                        },
                    },
                    self.name(*place, it),
                    Cell::Text(it.module.to_string()),
                    it.calls_by.as_ref().map_or(Cell::Nothing, |by| {
                        Cell::Text(called(&by.caller.name, by.caller.language, self.names))
                    }),
                ]);
            }
            blocks.push(Block::Table(table));
            let hidden = changed.len().saturating_sub(limit);
            let noun = ("function", "functions");
            blocks.extend(HiddenRows::block(hidden, noun, HiddenBy::Limit));
        }
        if varying > 0 {
            let mut text =
                format!("The calls of {varying} functions vary from run to run (hash seeds?).");
            if unsure > 0 {
                text.push_str(&format!(
                    " {unsure} more differ by no more than that; further runs would decide."
                ));
            }
            blocks.push(Block::Line(text));
        }
        blocks.push(Block::Space);
        blocks
    }

    fn method(&self) -> String {
        let text = match self.comparison.runs {
            [1, 1] => {
                "One run a side: how far runs vary is not known, so no verdict is better or worse."
            }
            _ => "Where nothing has changed, 97 of 100 such lists are empty.",
        };
        text.to_owned()
    }

    fn rows<'f>(
        &self,
        functions: impl Iterator<Item = Row<'f>>,
        of: fn(&FunctionChange) -> Change,
    ) -> Table {
        let mut table = Table::new(vec![
            Column::new("verdict", "", Role::Word),
            Column::new("percent", "%", Role::Figure),
            Column::new("difference", "change", Role::Figure),
            Column::new("low", "from", Role::Figure),
            Column::new("high", "to (95 %)", Role::Figure),
            Column::new("base", "base", Role::Figure),
            Column::new("new", "new", Role::Figure),
            Column::new("base_calls", "base calls", Role::Figure),
            Column::new("new_calls", "new calls", Role::Figure),
            Column::new("function", "function", Role::Name),
            Column::new("module", "module", Role::Aside),
            Column::new("match", "match", Role::Aside),
            Column::new("line", "line", Role::Aside),
            Column::new("cause", "called by", Role::Aside),
        ]);
        for (place, it) in functions {
            let change = of(it);
            let [low, high] = change.interval;
            let difference = |value: f64| Cell::Difference(value.round() as i64);
            let calls = |side: usize| {
                let calls = it.calls.and_then(|calls| calls.exact[side]);
                calls.map_or(Cell::Nothing, Cell::Count)
            };
            table.rows.push(vec![
                Cell::Text(change.verdict.name().to_owned()),
                match rounded(change.base) {
                    0 => Cell::Nothing,
                    base => Cell::Growth {
                        difference: change.difference().round() as i64,
                        of: base,
                    },
                },
                difference(change.difference()),
                difference(low),
                difference(high),
                Cell::Weight(rounded(change.base)),
                Cell::Weight(rounded(change.new)),
                calls(0),
                calls(1),
                self.name(place, it),
                Cell::Text(it.module.to_string()),
                Cell::Text(it.matched.name().to_owned()),
                it.line.as_ref().map_or(Cell::Nothing, |it| {
                    let file = it.line.file.rsplit('/').next().unwrap_or_default();
                    Cell::Text(format!("{file}:{}", it.line.line))
                }),
                it.cause.as_ref().map_or(Cell::Nothing, |cause| {
                    Cell::Text(called(
                        &cause.caller.name,
                        cause.caller.language,
                        self.names,
                    ))
                }),
            ]);
        }
        table.without_empty(&["line", "cause"])
    }

    // What it was called in the base, where that is another name.
    fn was(&self, it: &FunctionChange) -> Option<String> {
        let was = it.was.as_deref();
        let was = was.filter(|was| stem(was) != stem(&it.name))?;
        Some(called(was, it.language, self.names))
    }

    fn name(&self, place: usize, it: &FunctionChange) -> Cell {
        let was = self.was(it).map(|was| format!("was {was}?"));
        Cell::name(Label::from(self.label(place).to_owned()).with(was.map(Mark::Remark)))
    }
}

/// What a table of changes leaves out for people.
const LEFT_OUT: [&str; 4] = ["base_calls", "new_calls", "match", "difference"];

/// Why differences of times are not known.
pub fn why(apart: Apart) -> &'static str {
    match apart {
        Apart::Machines => "recorded on different machines",
        Apart::Times => "recorded more than an hour apart",
    }
}

fn more_runs(change: &Change) -> String {
    match change.more_runs {
        Some(1) => "; 1 more run a side would probably decide".to_owned(),
        Some(more) => format!(
            "; {} more runs a side would probably decide",
            number::grouped(more)
        ),
        None => String::new(),
    }
}

fn is_more(change: &Change) -> bool {
    change.difference() > 0.0
}

fn rounded(weight: f64) -> u64 {
    number::rounded(weight.max(0.0))
}

fn called(name: &str, language: Language, names: Names) -> String {
    match names {
        Names::Short => in_form(name, language, Form::Short).into_owned(),
        _ => name.to_owned(),
    }
}

// Names that several functions have are followed by the file that declares each, or the module.
fn labels(comparison: &Comparison, names: Names) -> Vec<String> {
    let functions = comparison.functions.iter();
    let mut labels: Vec<String> = functions
        .clone()
        .map(|it| called(&it.name, it.language, names))
        .collect();
    let form = |it: &FunctionChange, form| in_form(&it.name, it.language, form).into_owned();
    let whole: [&dyn Fn(&FunctionChange) -> String; 4] = [
        &|it| form(it, Form::Arguments),
        &|it| form(it, Form::Parameters),
        &|it| it.name.to_string(),
        &|it| format!("{} ({})", it.name, it.file.as_ref().unwrap_or(&it.module)),
    ];
    // Only short names have longer forms.
    let forms = if names == Names::Short { 0 } else { 2 };
    for fuller in &whole[forms..] {
        let mut number: FxHashMap<String, u32> = FxHashMap::default();
        labels
            .iter()
            .for_each(|label| *number.entry(label.clone()).or_default() += 1);
        for (label, it) in labels.iter_mut().zip(functions.clone()) {
            if number[label.as_str()] > 1 {
                *label = fuller(it);
            }
        }
    }
    labels
}
