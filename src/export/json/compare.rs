//! A comparison: `runs {base, new}`, `apart|null`, `cost|null`, `per_work {name, amount}|null`,
//! `time {base, new, change {low, high, percent|null}, verdict, more_runs|null}`,
//! `functions [{name, label, module, base {self, total, calls|null}, new {…},
//! change {low, high, percent|null}, total_change {low, high, percent|null, verdict}, verdict,
//! exact, match, was|null, more_runs|null, absorbed [name], calls_by {name, base, new}|null,
//! line {file, line, base, new, change {…}}|null}]`,
//! `arcs [{from, to, base {self, calls|null}, new {…}, change {…}, verdict}]` and
//! `cycles [{members [{name, base, new}], base {self}, new {self}, change {…}, verdict}]`.
//!
//! Weights are those of a run, on average, in the event's unit; `low` and `high` are the ends of
//! the interval of the difference, and `percent` is the estimate. `verdict` is of the function's
//! own weight: `better`, `worse`, `same`, `undecided`, `large`, `new` or `gone`. `exact` is true if
//! calls are equal in all runs of each side, and the runs are enough to know that they repeat.
//! `line` is the one that most of the difference is on. `arcs` has the calls that explain most of a
//! function's difference. `cycles` has sets of functions that call each other in a circle, on the
//! sides that are true of a member. `apart` is `machines` or `times` where the sides were recorded
//! so far apart that no difference of weights is known. `cost` is an estimate of what recording
//! adds to a run, as a part of its time without. `per_work` is the work that weights are of, where
//! runs did different amounts. `total` and `samples` of the document are the mean of the new runs,
//! and all samples.

use std::io::{self, Write};

use serde::Serialize;

use super::layout::list;
use super::{head, value};
use crate::base::Sampling;
use crate::compare::{Calls, Change, CycleChange, FunctionChange};
use crate::export::Advice;
use crate::view::compare::Compared;

#[derive(Serialize)]
struct Sides<T> {
    base: T,
    new: T,
}

#[derive(Serialize)]
struct ChangeFields {
    low: f64,
    high: f64,
    percent: Option<f64>,
}

#[derive(Serialize)]
struct TotalFields {
    #[serde(flatten)]
    change: ChangeFields,
    verdict: &'static str,
}

#[derive(Serialize)]
struct TimeFields {
    base: f64,
    new: f64,
    change: ChangeFields,
    verdict: &'static str,
    more_runs: Option<u64>,
}

#[derive(Serialize)]
struct Figures {
    #[serde(rename = "self")]
    own: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    calls: Option<u64>,
}

#[derive(Serialize)]
struct FunctionItem<'a> {
    name: &'a str,
    label: &'a str,
    module: &'a str,
    #[serde(flatten)]
    figures: Sides<Figures>,
    change: ChangeFields,
    total_change: TotalFields,
    verdict: &'static str,
    exact: bool,
    #[serde(rename = "match")]
    matched: &'static str,
    was: Option<&'a str>,
    more_runs: Option<u64>,
    absorbed: &'a [Box<str>],
    calls_by: Option<CallerItem<'a>>,
    line: Option<LineItem<'a>>,
}

#[derive(Serialize)]
struct WorkItem<'a> {
    name: &'a str,
    amount: u64,
}

#[derive(Serialize)]
struct LineItem<'a> {
    file: &'a str,
    line: u32,
    #[serde(flatten)]
    weights: Sides<f64>,
    change: ChangeFields,
}

#[derive(Serialize)]
struct CallerItem<'a> {
    name: &'a str,
    #[serde(flatten)]
    calls: Sides<u64>,
}

#[derive(Serialize)]
struct ArcItem<'a> {
    from: &'a str,
    to: &'a str,
    #[serde(flatten)]
    figures: Sides<Figures>,
    change: ChangeFields,
    verdict: &'static str,
}

#[derive(Serialize)]
struct CycleItem<'a> {
    members: Vec<MemberItem<'a>>,
    #[serde(flatten)]
    weights: Sides<OwnFields>,
    change: ChangeFields,
    verdict: &'static str,
}

#[derive(Serialize)]
struct OwnFields {
    #[serde(rename = "self")]
    own: f64,
}

#[derive(Serialize)]
struct MemberItem<'a> {
    name: &'a str,
    #[serde(flatten)]
    is_in: Sides<bool>,
}

/// Writes the document.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, compared: &Compared, advice: &dyn Advice) -> io::Result<()> {
    let comparison = compared.comparison;
    let total = comparison.time.new.max(0.0).round() as u64;
    let samples = comparison.samples.iter().sum();
    let known = (&comparison.caveats, advice);
    head(
        out,
        "compare",
        &comparison.event,
        Sampling::Unknown,
        total,
        samples,
        known,
    )?;
    let [base, new] = comparison.runs;
    out.write_all(b"\"runs\":")?;
    value(out, &Sides { base, new })?;
    out.write_all(b",\n\"apart\":")?;
    value(out, &comparison.apart.map(|it| it.name()))?;
    out.write_all(b",\n\"cost\":")?;
    value(out, &compared.cost)?;
    out.write_all(b",\n\"per_work\":")?;
    let work = comparison.work.as_ref().map(|work| WorkItem {
        name: &work.name,
        amount: work.amount,
    });
    value(out, &work)?;
    out.write_all(b",\n\"time\":")?;
    let time = &comparison.time;
    value(
        out,
        &TimeFields {
            base: time.base,
            new: time.new,
            change: change(time),
            verdict: time.verdict.name(),
            more_runs: time.more_runs,
        },
    )?;
    out.write_all(b",\n\"functions\":")?;
    let limit = compared.limit.unwrap_or(usize::MAX);
    let functions = || comparison.functions.iter().enumerate().take(limit);
    list(
        out,
        functions().map(|(place, it)| function(compared.label(place), it)),
    )?;
    out.write_all(b",\n\"arcs\":")?;
    let arcs = functions().filter_map(|(_, it)| {
        let cause = it.cause.as_ref()?;
        let figures = |own| Figures {
            own,
            total: None,
            calls: None,
        };
        Some(ArcItem {
            from: &cause.caller.name,
            to: &it.name,
            figures: Sides {
                base: figures(cause.change.base),
                new: figures(cause.change.new),
            },
            change: change(&cause.change),
            verdict: cause.change.verdict.name(),
        })
    });
    list(out, arcs)?;
    out.write_all(b",\n\"cycles\":")?;
    let cycles = comparison.cycles.iter().take(limit);
    list(out, cycles.map(|it| cycle(&comparison.functions, it)))?;
    out.write_all(b"}\n")
}

fn function<'a>(label: &'a str, it: &'a FunctionChange) -> FunctionItem<'a> {
    let figures = |own, total, side: usize| Figures {
        own,
        total: Some(total),
        calls: it.calls.and_then(|calls| calls.exact[side]),
    };
    FunctionItem {
        name: &it.name,
        label,
        module: &it.module,
        figures: Sides {
            base: figures(it.own.base, it.total.base, 0),
            new: figures(it.own.new, it.total.new, 1),
        },
        change: change(&it.own),
        total_change: TotalFields {
            change: change(&it.total),
            verdict: it.total.verdict.name(),
        },
        verdict: it.own.verdict.name(),
        exact: is_exact(it.calls),
        matched: it.matched.name(),
        was: it.was.as_deref(),
        more_runs: it.own.more_runs,
        absorbed: &it.absorbed,
        calls_by: it.calls_by.as_ref().and_then(|by| {
            let [base, new] = by.calls.changed()?;
            Some(CallerItem {
                name: &by.caller.name,
                calls: Sides { base, new },
            })
        }),
        line: it.line.as_ref().map(|it| LineItem {
            file: &it.line.file,
            line: it.line.line,
            weights: Sides {
                base: it.change.base,
                new: it.change.new,
            },
            change: change(&it.change),
        }),
    }
}

fn cycle<'a>(functions: &'a [FunctionChange], it: &CycleChange) -> CycleItem<'a> {
    let members = it.members.iter().map(|&(place, [base, new])| MemberItem {
        name: &functions[place].name,
        is_in: Sides { base, new },
    });
    CycleItem {
        members: members.collect(),
        weights: Sides {
            base: OwnFields { own: it.own.base },
            new: OwnFields { own: it.own.new },
        },
        change: change(&it.own),
        verdict: it.own.verdict.name(),
    }
}

fn is_exact(calls: Option<Calls>) -> bool {
    calls.is_some_and(|calls| calls.is_fact() && calls.exact.iter().all(Option::is_some))
}

fn change(change: &Change) -> ChangeFields {
    let [low, high] = change.interval;
    ChangeFields {
        low,
        high,
        percent: change.percent(),
    }
}
