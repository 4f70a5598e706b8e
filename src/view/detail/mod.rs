//! One function: its time, its callers, its descendants; what is known of it beyond that.

mod call_sites;
mod depths;

pub use call_sites::Listed;

use self::call_sites::{Side, place};
use self::depths::steps;
use super::flat::reaches;
use super::page::{Block, HiddenBy, HiddenRows, Meaning, Page};
use super::table::{Cell, Column, Role, Table};
use super::{Figures, Subject, basis, caveats, label, number};
use crate::analysis::call_sites::CallSite;
use crate::analysis::cut::{AtMost, Unknown};
use crate::analysis::detail::{Basis, Detail, Neighbour, Rule};
use crate::analysis::function::Summary;
use crate::analysis::lines::LineWeight;
use crate::names::{Label, Labels, Mark};
use crate::profile::FunctionId;

/// Which lines are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The maximum number of callers, descendants, calls and source lines each; `None` for all.
    pub limit: Option<usize>,
    /// Only those with at least this share of the function's total, in percent.
    pub min: f64,
}

/// A function with its neighbours, chosen and named.
#[derive(Clone, Debug)]
pub struct DetailView {
    /// The figures, with all neighbours.
    pub detail: Detail,
    /// What the function's total is at most: more than the total where stacks were cut and the
    /// function may be among the callers that they lack. `None` where the total is estimated.
    pub total_max: Option<AtMost>,
    /// The callers that are shown.
    pub callers: Vec<Neighbour>,
    /// The descendants that are shown.
    pub descendants: Vec<Neighbour>,
    /// By line, the calls that it makes; `None` where the input has no lines of calls.
    pub call_sites: Option<Listed>,
    /// By line, the calls by which it is reached; `None` where the input has no lines of calls.
    pub called_from: Option<Listed>,
    /// The source lines that are shown, the hottest first; none where lines are not known.
    pub lines: Vec<LineWeight>,
    /// How many source lines are not shown.
    pub hidden_lines: usize,
    labels: Labels,
}

/// Chooses and names.
pub fn arrange(subject: &Subject, summary: Summary, options: &Options) -> DetailView {
    let detail = summary.detail;
    let whole = detail.total;
    let limit = options.limit.unwrap_or(usize::MAX);
    let chosen = |all: &[Neighbour]| -> Vec<Neighbour> {
        let large = |other: &&Neighbour| reaches(other.weight, whole, options.min);
        all.iter().filter(large).take(limit).copied().collect()
    };
    let lines: Vec<LineWeight> = summary
        .lines
        .iter()
        .filter(|line| reaches(line.weight, whole, options.min))
        .take(limit)
        .copied()
        .collect();
    let callers = chosen(&detail.callers);
    let descendants = chosen(&detail.descendants);
    let sites = summary.call_sites.as_ref();
    let call_sites = sites.map(|sites| Listed::of(&sites.made, whole, options));
    let called_from = sites.map(|sites| Listed::of(&sites.received, whole, options));
    let neighbours = callers.iter().chain(&descendants);
    let by_line = call_sites.iter().chain(&called_from);
    let functions = (neighbours.map(|other| other.function))
        .chain(by_line.flat_map(|listed| listed.sites.iter().map(|site| site.function)))
        .chain([detail.function]);
    DetailView {
        total_max: summary.total_max,
        labels: subject.labels(functions),
        call_sites,
        called_from,
        hidden_lines: summary.lines.len() - lines.len(),
        callers,
        descendants,
        lines,
        detail,
    }
}

impl DetailView {
    /// What a function is called; the one that the view is about, or a neighbour that is shown.
    pub fn name(&self, function: FunctionId) -> &str {
        self.labels.of(function)
    }

    /// All figures, a record each: the function's two times, its neighbours, the source lines of
    /// calls and of its own time, its depths of recursion. Percentages are of the function's total.
    pub fn table(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("what", "what", Role::Name),
            Column::new("percent", "%", Role::Heat),
            Column::new("total_percent", "% of all", Role::Figure),
            Column::new("weight", "weight", Role::Figure),
            Column::new("recursive", "recursive", Role::Figure),
            Column::new("name", "name", Role::Name),
            Column::new("module", "module", Role::Aside),
            Column::new("line", "line", Role::Name),
            Column::new("inlined", "inlined", Role::Figure),
            label::column(),
        ]);
        let detail = &self.detail;
        let mut about: Vec<[Option<FunctionId>; 2]> = Vec::new();
        // A row on a function, or on something else of this name.
        let mut row = |what: &str,
                       part: u64,
                       recursive: Option<bool>,
                       function: Option<FunctionId>,
                       other: String| {
            about.push([None, function]);
            let share = |whole| Cell::Share { part, whole };
            table.rows.push(vec![
                Cell::Text(what.into()),
                share(detail.total),
                share(subject.selection.total()),
                Cell::Weight(part),
                recursive.map_or(Cell::Nothing, |recursive| Cell::Count(recursive.into())),
                Cell::Text(function.map_or(other, |id| subject.plain_name(id).into_owned())),
                Cell::Text(function.map_or("", |id| subject.module(id)).into()),
                Cell::Nothing,
                Cell::Nothing,
                function.map_or(Cell::Nothing, |id| Cell::Text(self.name(id).to_owned())),
            ]);
        };
        let nameless = String::new;
        let recurses = Some(detail.recurses());
        let own = [("self", detail.self_weight), ("total", detail.total)];
        for (what, weight) in own {
            row(what, weight, recurses, Some(detail.function), nameless());
        }
        match self.total_max.map(|most| (most.weight, most.known())) {
            Some((_, Some(most))) if most > detail.total => {
                row("total_max", most, None, None, nameless());
            }
            Some((limit, None)) => row("total_limit", limit, None, None, nameless()),
            _ => {}
        }
        row("root", detail.outermost, None, None, nameless());
        for (what, others) in [("caller", &self.callers), ("descendant", &self.descendants)] {
            for other in others {
                let (function, recursive) = (Some(other.function), Some(other.recursive));
                row(what, other.weight, recursive, function, nameless());
            }
        }
        for line in &self.lines {
            row("line", line.weight, None, None, place(subject, line.line));
        }
        for &(depth, weight) in &detail.depths {
            row("depth", weight, None, None, depth.to_string());
        }
        for (side, listed) in self.by_line() {
            for site in &listed.sites {
                let share = |whole| Cell::Share {
                    part: site.weight,
                    whole,
                };
                about.push([None, Some(site.function)]);
                table.rows.push(vec![
                    Cell::Text(side.what().into()),
                    share(detail.total),
                    share(subject.selection.total()),
                    Cell::Weight(site.weight),
                    Cell::Nothing,
                    Cell::Text(subject.plain_name(site.function).into_owned()),
                    Cell::Text(subject.module(site.function).into()),
                    site.line
                        .map_or(Cell::Nothing, |line| Cell::Text(place(subject, line))),
                    Cell::Count(site.inlined.into()),
                    Cell::Text(self.name(site.function).to_owned()),
                ]);
            }
        }
        label::with_addresses(table, subject, label::OfCallers::None, about)
    }

    /// The page for people.
    pub fn page(&self, subject: &Subject) -> Page {
        let detail = &self.detail;
        let mut blocks = vec![Block::Line(subject.headline()), Block::Space];
        let name = self.name(detail.function);
        blocks.push(Block::Heading(subject.with_module(name, detail.function)));
        if detail.basis != Basis::Stacks {
            blocks.push(Block::Line(format!(
                "callers and callees: {}",
                basis::ESTIMATED
            )));
        }
        blocks.push(Block::Table(self.times(subject)));
        blocks.extend(self.range(subject));
        blocks.push(Block::Space);
        blocks.push(Block::Heading("Distribution to callers".into()));
        self.neighbours(subject, true, &mut blocks);
        if self.detail.callers_lack_own {
            let line =
                "The line of a caller does not include the self time of its own inner calls.";
            blocks.push(Block::Line(line.into()));
        }
        blocks.push(Block::Space);
        blocks.push(Block::Heading("Contributions from descendants".into()));
        self.neighbours(subject, false, &mut blocks);
        blocks.extend(self.explanation().map(Block::Line));
        self.lines_of_calls(subject, &mut blocks);
        if !self.lines.is_empty() {
            blocks.push(Block::Space);
            blocks.push(Block::Heading("Source lines of its own time".into()));
            blocks.push(Block::Table(self.line_table(subject)));
            blocks.extend(more(self.hidden_lines, ("line", "lines")));
        }
        if detail.depths.iter().any(|&(depth, _)| depth > 1) {
            blocks.push(Block::Space);
            blocks.push(Block::Heading("Occurrences per stack".into()));
            blocks.push(Block::Table(self.depth_table(subject)));
        }
        let mut shown = self.callers.iter().chain(&self.descendants);
        if shown.any(|other| other.inferred) {
            blocks.push(Block::Meaning(Meaning::ByCode));
        }
        blocks.extend(caveats::foot_of(subject));
        Page {
            unit: subject.selection.event().unit.clone(),
            blocks,
        }
    }

    /// That the total is a range, if it is.
    fn range(&self, subject: &Subject) -> Option<Block> {
        let (total, most) = (self.detail.total, self.total_max?);
        let (whole, unit) = (subject.selection.total(), &subject.selection.event().unit);
        let share = number::percent(most.weight, whole, 2);
        let weight = number::weight(most.weight, unit);
        let hidden = number::weight(most.weight.saturating_sub(total), unit);
        let text = match most.unknown {
            None => format!(
                "Function and descendants: at most {share} % of all ({weight}). Incomplete stacks \
                 of {hidden} lack callers, and the function can be one of them."
            ),
            Some(reason) => {
                let reason = match reason {
                    Unknown::IndirectCall => "it leads to indirect calls",
                    _ => "it leads to code that was not read",
                };
                format!(
                    "Function and descendants: at most {share} % of all ({weight}). Incomplete \
                     stacks of {hidden} lack callers. Whether the function can be one of them is \
                     not known: {reason}."
                )
            }
        };
        (most.weight > total).then_some(Block::Line(text))
    }

    fn times(&self, subject: &Subject) -> Table {
        let detail = &self.detail;
        let mut table = Table::new(vec![
            Column::new("percent", "%", Role::Heat),
            Column::new("total_percent", "% of all", Role::Figure),
            Column::new("weight", "weight", Role::Spare),
            Column::new("name", "", Role::Name),
        ]);
        for (name, part) in [
            ("function", detail.self_weight),
            ("function and descendants", detail.total),
        ] {
            let share = |whole| Cell::Share { part, whole };
            table.rows.push(vec![
                share(detail.total),
                share(subject.selection.total()),
                Cell::Weight(part),
                Cell::Text(name.into()),
            ]);
        }
        without_weights(table, subject)
    }

    /// The callers or the descendants.
    fn neighbours(&self, subject: &Subject, callers: bool, blocks: &mut Vec<Block>) {
        let detail = &self.detail;
        let (shown, all, noun) = if callers {
            (&self.callers, &detail.callers, ("caller", "callers"))
        } else {
            let noun = ("descendant", "descendants");
            (&self.descendants, &detail.descendants, noun)
        };
        let mut table = Table::new(vec![
            Column::new("percent", "%", Role::Heat),
            Column::new("weight", "weight", Role::Spare),
            Column::new("calls", "calls", Role::Figure),
            Column::new("weight_per_call", "per call", Role::Figure),
            Column::new("name", noun.0, Role::Name),
            Column::new("module", "module", Role::Aside),
        ]);
        let counts = subject.profile.counts.as_ref();
        let mut row = |part, other: Option<&Neighbour>, label: Label, module: &str| {
            let whole = detail.total;
            let counted = other.zip(counts).and_then(|(other, counts)| {
                let (from, to) = if callers {
                    (other.function, detail.function)
                } else {
                    (detail.function, other.function)
                };
                counts.between(Some(from), to)
            });
            // What is part of recursion is inside of other calls as well; what is inlined is not
            // called.
            let is_plain =
                other.is_some_and(|other| !other.recursive && !other.inferred && !other.inlined);
            let each = counted.filter(|row| is_plain && !row.is_least && row.calls > 0);
            table.rows.push(vec![
                Cell::Share { part, whole },
                Cell::Weight(part),
                counted.map_or(Cell::Nothing, |row| {
                    if row.is_least {
                        Cell::Text(format!("≥{}", number::grouped(row.calls)))
                    } else {
                        Cell::Count(row.calls)
                    }
                }),
                each.map_or(Cell::Nothing, |row| Cell::PerCall {
                    weight: part,
                    calls: row.calls,
                }),
                Cell::name(label),
                Cell::Text(module.into()),
            ]);
        };
        for other in shown {
            let label = { self.labels.label(other.function) }
                .with(other.recursive.then_some(Mark::LeadsBack))
                .with(other.inferred.then_some(Mark::ByCode));
            let module = subject.module(other.function);
            row(other.weight, Some(other), label, module);
        }
        if callers && detail.outermost > 0 {
            let root = match detail.basis {
                Basis::Stacks => "outermost on its stack",
                Basis::Calls { .. } => "no counted caller",
            };
            let root = Label::from(".root.").with(Mark::Remark(root.into()));
            row(detail.outermost, None, root, "");
        }
        if counts.is_none() {
            table = table.without(&["calls", "weight_per_call"]);
        }
        if table.rows.is_empty() && all.is_empty() {
            blocks.push(Block::Line("none".into()));
            return;
        }
        if !subject.has_modules(shown.iter().map(|other| other.function)) {
            table = table.without(&["module"]);
        }
        blocks.push(Block::Table(without_weights(table, subject)));
        blocks.extend(more(all.len() - shown.len(), noun));
    }

    /// What the asterisk means, and why shares pass 100 % if they do.
    fn explanation(&self) -> Option<String> {
        let detail = &self.detail;
        let name = self.name(detail.function);
        let sum = detail.shown();
        let by_calls = detail.basis != Basis::Stacks;
        if by_calls {
            let mut others = self.callers.iter().chain(&self.descendants);
            return (others.any(|other| other.recursive))
                .then(|| format!("* in the same cycle as {name}."));
        }
        if sum > u128::from(detail.total) {
            let hundredths = (sum * 20_000 + u128::from(detail.total.max(1)))
                / (u128::from(detail.total.max(1)) * 2);
            let what = match detail.rule {
                Rule::Strict => "call",
                Rule::Whole => "take and call",
            };
            return Some(format!(
                "* leads back to {name}. These lines include what inner calls of {name} {what}, so \
                 the lines add up to {}.{:02} %. Each line counts a sample once.",
                hundredths / 100,
                hundredths % 100
            ));
        }
        let starred = |others: &[Neighbour]| others.iter().any(|other| other.recursive);
        if starred(&self.descendants) && detail.rule == Rule::Strict {
            return Some(format!(
                "* leads back to {name}. These lines do not include the self time of inner calls \
                 of {name}."
            ));
        }
        (starred(&self.descendants) || starred(&self.callers))
            .then(|| format!("* part of the recursion of {name}."))
    }

    /// What is known of the lines of calls, the calls that it makes first.
    fn by_line(&self) -> impl Iterator<Item = (Side, &Listed)> {
        let listed = [&self.call_sites, &self.called_from];
        let sides = Side::ALL.into_iter().zip(listed);
        sides.filter_map(|(side, listed)| Some((side, listed.as_ref()?)))
    }

    /// The tables of calls by line; one in which no line is known says nothing new.
    fn lines_of_calls(&self, subject: &Subject, blocks: &mut Vec<Block>) {
        let whole = self.detail.total;
        let mut any = false;
        for (side, listed) in self.by_line().filter(|(_, listed)| listed.is_known) {
            any |= !listed.sites.is_empty();
            blocks.push(Block::Space);
            blocks.push(Block::Heading(side.heading().into()));
            if !listed.sites.is_empty() {
                let label = |site: &CallSite| self.labels.label(site.function);
                blocks.push(Block::Table(listed.table(subject, side, whole, label)));
            }
            blocks.extend(more(listed.hidden, ("line", "lines")));
        }
        if any && self.detail.recurses() {
            blocks.push(Block::Line(format!(
                "A line includes everything below its calls, also in inner calls of {}. Each line \
                 counts a sample once.",
                self.name(self.detail.function)
            )));
        }
    }

    fn line_table(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("percent", "%", Role::Heat),
            Column::new("weight", "weight", Role::Spare),
            Column::new("line", "line", Role::Name),
        ]);
        for line in &self.lines {
            table.rows.push(vec![
                Cell::Share {
                    part: line.weight,
                    whole: self.detail.total,
                },
                Cell::Weight(line.weight),
                Cell::Text(place(subject, line.line)),
            ]);
        }
        without_weights(table, subject)
    }

    fn depth_table(&self, subject: &Subject) -> Table {
        let mut table = Table::new(vec![
            Column::new("percent", "%", Role::Heat),
            Column::new("weight", "weight", Role::Spare),
            Column::new("depth", "times", Role::Name),
        ]);
        for (from, to, part) in steps(&self.detail.depths) {
            let times = if from == to {
                number::grouped(from.into())
            } else {
                let (from, to) = (number::grouped(from.into()), number::grouped(to.into()));
                format!("{from} to {to}")
            };
            table.rows.push(vec![
                Cell::Share {
                    part,
                    whole: self.detail.total,
                },
                Cell::Weight(part),
                Cell::Text(times),
            ]);
        }
        without_weights(table, subject)
    }
}

fn without_weights(table: Table, subject: &Subject) -> Table {
    match subject.figures {
        Figures::All => table,
        Figures::Percent => table.without(&["weight"]),
    }
}

/// A line on what is not shown.
fn more(hidden: usize, noun: (&'static str, &'static str)) -> Option<Block> {
    HiddenRows::block(hidden, noun, HiddenBy::LimitOrShare)
}
