//! `proftool check`: whether runs keep to budgets.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::ValueEnum;
use proftool::analysis::inclusive;
use proftool::base::{Caveats, Event, Unit};
use proftool::compare::Apart;
use proftool::compare::budget::{self, Kept, Measure};
use proftool::export::{Advice, json};
use proftool::names::stem;
use proftool::profile::{About, FunctionId, Profile, Selection, pattern_of};
use proftool::view::compare::why;
use toml::{Table, Value};

use super::answer;
use super::compare::{IN_TURN, of_all_runs};
use super::failure::{self, Misused, hinted};
use super::query::open::Needs;
use super::query::{Query, modules_named};

/// A budget is exceeded.
const OVER: u8 = 3;
/// The runs do not tell whether one is.
const UNDECIDED: u8 = 4;

/// The arguments of `proftool check`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("file", |file| file.hide(true)))]
pub struct Args {
    /// The budgets: see proftool help comparing.
    #[arg(long, value_name = "FILE")]
    budget: PathBuf,
    /// Recordings that have to keep to them.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    new: Vec<PathBuf>,
    /// Recordings from before, for budgets of growth.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    base: Vec<PathBuf>,
    /// Format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    query: Query,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    /// A test a budget, for CI services.
    Junit,
    /// Annotations of GitHub's workflows.
    Github,
}

const EXAMPLES: &str = "\
Examples:
  proftool check --budget budget.toml --new new.*.data
  proftool check --budget budget.toml --new new.*.data --base old.*.data";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let budgets = budgets(&args.budget)?;
    let is_growth = |it: &Budget| matches!(it.limit, Limit::Growth(_));
    if args.base.is_empty() && budgets.iter().any(is_growth) {
        return Err(Misused("a budget of growth needs --base FILE…".into()).into());
    }
    let new = measured(args, &args.new, &budgets)?;
    let base = measured(args, &args.base, &budgets)?;
    let apart = Apart::of([base.about.iter(), new.about.iter()]);
    if let Some(apart) = apart.filter(|_| budgets.iter().any(is_growth)) {
        let text = format!("growth is undecided: {}", why(apart));
        failure::line("note", &text);
        failure::line("hint", IN_TURN);
    }
    let checked = budgets.iter().enumerate().map(|(place, budget)| {
        let of = |side: &Runs| side.runs.iter().map(|run| run[place]).collect::<Vec<Run>>();
        budget.check(&of(&base), &of(&new), apart)
    });
    let checked: Vec<Checked> = checked.collect();
    for (place, budget) in budgets.iter().enumerate() {
        if !new.runs.iter().any(|run| run[place].is_there) {
            let text = format!("{} is in none of the new runs", budget.scope.text());
            failure::line("warning", &text);
            let words = match budget.scope {
                Scope::Module(_) => "flat --by module",
                Scope::Path(_) => "flat --by file",
                _ => "flat --names full",
            };
            let query = args.query.of_file(&args.new[0]);
            let list = query.command(&format!("{words} --limit 0 --min 0"));
            failure::line("hint", &format!("what there is: {list}"));
        }
    }
    let event = new.event.context("nothing was recorded")?;
    let unit = event.unit.clone();
    let rows = budgets.iter().zip(&checked);
    let rows: Vec<json::check::Row> = rows.map(|it| row(it.0, it.1, &unit)).collect();
    let mut text = Vec::new();
    match args.format {
        Format::Text => lines(&mut text, &rows)?,
        Format::Json => {
            let samples = (new.total, new.samples);
            let known = (&new.caveats, &args.query.shown_by("check") as &dyn Advice);
            json::check::write(&mut text, &event, samples, known, &rows)?;
        }
        Format::Junit => json::check::junit(&mut text, &rows)?,
        Format::Github => json::check::github(&mut text, &rows)?,
    }
    answer::print_plain(&text)?;
    let samples = base.samples.saturating_add(new.samples);
    let mut caveats = base.caveats;
    caveats.merge(&new.caveats);
    let caveats = of_all_runs(&caveats, samples);
    answer::warn(&caveats, &args.query.shown_by("check"));
    let worst = |kept| checked.iter().any(|it| it.kept == kept);
    Ok(match (worst(Kept::Fail), worst(Kept::Undecided)) {
        (true, _) => ExitCode::from(OVER),
        (_, true) => ExitCode::from(UNDECIDED),
        _ => ExitCode::SUCCESS,
    })
}

/// What a budget is of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Run,
    Function(String),
    Module(String),
    Path(String),
}

impl Scope {
    fn text(&self) -> &str {
        match self {
            Scope::Run => "the run",
            Scope::Function(name) | Scope::Module(name) | Scope::Path(name) => name,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    // In the event's unit.
    Time(f64),
    Percent(f64),
    Growth(f64),
    Calls(u64),
}

#[derive(Clone, Debug, PartialEq)]
struct Budget {
    scope: Scope,
    is_own: bool,
    limit: Limit,
}

/// What a run has of what a budget is of.
#[derive(Clone, Copy, Debug)]
struct Run {
    weight: Measure,
    // The weight of all samples.
    whole: f64,
    // Where they were counted, and all were.
    calls: Option<u64>,
    // Whether the run has such code.
    is_there: bool,
}

/// The runs of a side, each with what the budgets are of, and what they have in common.
#[derive(Default)]
struct Runs {
    runs: Vec<Vec<Run>>,
    event: Option<Event>,
    total: u64,
    samples: u64,
    caveats: Caveats,
    about: Vec<About>,
}

struct Checked {
    // In the unit of the limit.
    measured: Option<f64>,
    kept: Kept,
}

impl Budget {
    fn check(&self, base: &[Run], new: &[Run], apart: Option<Apart>) -> Checked {
        let mean = |runs: &[Measure]| {
            runs.iter().map(|it| it.value).sum::<f64>() / runs.len().max(1) as f64
        };
        let weights = |runs: &[Run]| runs.iter().map(|it| it.weight).collect::<Vec<Measure>>();
        let (measured, kept) = match self.limit {
            Limit::Time(limit) => (mean(&weights(new)), budget::at_most(&weights(new), limit)),
            Limit::Percent(limit) => {
                let share = |run: &Run| Measure {
                    value: 100.0 * run.weight.value / run.whole,
                    variance: run.weight.variance * (100.0 / run.whole).powi(2),
                };
                let shares: Vec<Measure> = new.iter().map(share).collect();
                (mean(&shares), budget::at_most(&shares, limit))
            }
            Limit::Growth(limit) => {
                let (base, new) = (weights(base), weights(new));
                let growth = 100.0 * (mean(&new) / mean(&base) - 1.0);
                let kept = budget::below(&base, &new, 1.0 + limit / 100.0);
                // Nothing can be said of a growth from nothing.
                let is_known = apart.is_none() && growth.is_finite();
                (growth, if is_known { kept } else { Kept::Undecided })
            }
            Limit::Calls(limit) => {
                let calls: Option<Vec<u64>> = new.iter().map(|run| run.calls).collect();
                let Some(calls) = calls else {
                    return Checked {
                        measured: None,
                        kept: Kept::Undecided,
                    };
                };
                let most = calls.iter().copied().max().unwrap_or_default();
                let kept = match calls.iter().filter(|calls| **calls > limit).count() {
                    0 => Kept::Pass,
                    over if over == calls.len() => Kept::Fail,
                    _ => Kept::Undecided,
                };
                (most as f64, kept)
            }
        };
        // Code that was renamed keeps to any budget: that is no answer.
        let is_there = new.iter().any(|run| run.is_there);
        Checked {
            measured: Some(measured).filter(|it| it.is_finite() && is_there),
            kept: if is_there { kept } else { Kept::Undecided },
        }
    }

    fn of(table: &Table) -> Result<Budget, String> {
        let mut scope = Scope::Run;
        let scopes = ["function", "module", "path"];
        if table.keys().filter(|key| scopes.contains(&&***key)).count() > 1 {
            return Err("a budget is of one function, module or path".to_owned());
        }
        let mut limit = None;
        let mut is_own = false;
        for (key, value) in table {
            let number = match value {
                Value::Integer(number) => Some(*number as f64),
                Value::Float(number) => Some(*number),
                _ => None,
            };
            let number = number.filter(|number| *number >= 0.0);
            let new = match (key.as_str(), value) {
                ("function", Value::String(name)) => {
                    scope = Scope::Function(name.clone());
                    continue;
                }
                ("module", Value::String(name)) => {
                    scope = Scope::Module(name.clone());
                    continue;
                }
                ("path", Value::String(name)) => {
                    scope = Scope::Path(name.clone());
                    continue;
                }
                ("of", Value::String(of)) if of == "self" || of == "total" => {
                    is_own = of == "self";
                    continue;
                }
                ("time", Value::String(text)) => weight(text).map(Limit::Time),
                ("percent", _) => number.map(Limit::Percent),
                ("growth", _) => number.map(Limit::Growth),
                ("calls", Value::Integer(calls)) => u64::try_from(*calls).ok().map(Limit::Calls),
                _ => None,
            };
            let new = new.ok_or_else(|| format!("{key} has no such value"))?;
            if limit.replace(new).is_some() {
                return Err(format!("{key}: a budget has one limit"));
            }
        }
        let limit = limit.ok_or("a budget needs time, percent, growth or calls")?;
        let needs_function = is_own || matches!(limit, Limit::Calls(_));
        if needs_function && !matches!(scope, Scope::Function(_)) {
            return Err("calls and self time have budgets by function".to_owned());
        }
        Ok(Budget {
            scope,
            is_own,
            limit,
        })
    }

    fn measure(&self, query: &Query, profile: &Profile, all: &Selection) -> anyhow::Result<Run> {
        let mut run = Run {
            weight: Measure {
                value: 0.0,
                variance: 0.0,
            },
            whole: all.total() as f64,
            calls: None,
            is_there: true,
        };
        let Some(event) = query.event(profile)? else {
            bail!("{} has no samples to check", query.file().display());
        };
        let mut filter = query.filter(profile);
        match &self.scope {
            Scope::Run => {}
            Scope::Module(name) => {
                filter.modules = modules_named(profile, std::slice::from_ref(name));
            }
            Scope::Path(path) => filter.paths = vec![path.clone()],
            Scope::Function(name) => {
                let functions = named(profile, name);
                run.is_there = !functions.is_empty();
                run.calls = calls(profile, &functions);
                if self.is_own {
                    let weights = inclusive::by_function(profile, all);
                    let own: u64 = functions.iter().map(|&id| weights.self_weight[id]).sum();
                    let each = all.squares() as f64 / run.whole.max(1.0);
                    run.weight = Measure {
                        value: own as f64,
                        variance: own as f64 * each,
                    };
                    return Ok(run);
                }
                let patterns: Vec<String> = functions
                    .iter()
                    .map(|&id| pattern_of(profile.name(id)))
                    .collect();
                // Nothing matches what no text can be.
                let pattern = if patterns.is_empty() {
                    "$.^".into()
                } else {
                    patterns.join("|")
                };
                filter.focus = Some(regex::Regex::new(&pattern)?);
            }
        }
        let selection = profile.select(event, &filter);
        run.is_there &= self.scope == Scope::Run || selection.samples() > 0 || run.calls.is_some();
        run.weight = Measure {
            value: selection.total() as f64,
            variance: selection.squares() as f64,
        };
        Ok(run)
    }
}

// The functions of this name in any form.
fn named(profile: &Profile, name: &str) -> Vec<FunctionId> {
    let functions = profile.functions.enumerate();
    let named = functions.filter(|(_, function)| {
        function.name == name
            || function.linkage_name.as_deref() == Some(name)
            || proftool::names::short_name(function) == name
            || stem(&function.name) == name
    });
    named.map(|(id, _)| id).collect()
}

fn calls(profile: &Profile, functions: &[FunctionId]) -> Option<u64> {
    let counts = profile.counts.as_ref()?;
    let all = functions.iter().all(|&id| counts.has_all_of(id));
    let of = counts
        .calls()
        .iter()
        .filter(|count| functions.contains(&count.to));
    let is_least = of.clone().any(|count| count.is_least);
    (all && !is_least && !functions.is_empty()).then(|| of.map(|count| count.calls).sum())
}

// A time in nanoseconds, or a number in the event's unit.
fn weight(text: &str) -> Option<f64> {
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
    ];
    let text = text.trim();
    let unit = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = unit.unwrap_or((text, &1.0));
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

fn budgets(path: &Path) -> anyhow::Result<Vec<Budget>> {
    let place = || path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", place()))?;
    let refused = |what: String| {
        let hint = "an example: proftool help comparing";
        hinted(format!("{}: {what}", place()), Some(hint.into()))
    };
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| refused(error.message().into()))?;
    if let Some(key) = table.keys().find(|key| *key != "budget") {
        return Err(refused(format!("unknown table {key}")));
    }
    let rows = table
        .get("budget")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let rows: Option<Vec<&Table>> = rows.iter().map(Value::as_table).collect();
    let rows = rows
        .filter(|rows| !rows.is_empty())
        .ok_or_else(|| refused("no [[budget]]".into()))?;
    rows.into_iter()
        .map(|row| Budget::of(row).map_err(refused))
        .collect()
}

fn measured(args: &Args, files: &[PathBuf], budgets: &[Budget]) -> anyhow::Result<Runs> {
    let mut all = Runs::default();
    for file in files {
        let query = args.query.of_file(file);
        let profile = query.open(Needs::STACKS)?;
        let selection = query.select(&profile)?;
        let run = budgets
            .iter()
            .map(|it| it.measure(&query, &profile, &selection));
        all.runs.push(run.collect::<anyhow::Result<_>>()?);
        all.event = Some(selection.event().clone());
        all.total = all.total.saturating_add(selection.total());
        all.samples = all.samples.saturating_add(selection.samples());
        all.caveats.merge(&profile.caveats);
        all.about.push(profile.about.clone());
    }
    Ok(all)
}

fn row<'a>(budget: &'a Budget, checked: &Checked, unit: &Unit) -> json::check::Row<'a> {
    let (rule, limit) = match budget.limit {
        Limit::Time(limit) => ("time", limit),
        Limit::Percent(limit) => ("percent", limit),
        Limit::Growth(limit) => ("growth", limit),
        Limit::Calls(limit) => ("calls", limit as f64),
    };
    let scope = |is_it: bool| is_it.then(|| budget.scope.text());
    json::check::Row {
        rule,
        function: scope(matches!(budget.scope, Scope::Function(_))),
        module: scope(matches!(budget.scope, Scope::Module(_))),
        path: scope(matches!(budget.scope, Scope::Path(_))),
        of: if budget.is_own { "self" } else { "total" },
        measured: checked.measured,
        limit,
        verdict: checked.kept.name(),
        unit: unit.clone(),
    }
}

fn lines(out: &mut dyn Write, rows: &[json::check::Row]) -> io::Result<()> {
    rows.iter()
        .try_for_each(|row| writeln!(out, "{:<9}  {}", row.verdict, row.sentence()))
}
