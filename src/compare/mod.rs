//! Compares runs of a program before and after a change: which functions became slower or faster,
//! as far as the runs tell.
//!
//! ```text
//!   profiles ──▶ Runs ──▶ matching ──▶ statistics ──▶ Comparison
//!                 figures by function   one test a     verdicts at a false
//!                 and run               figure         discovery rate of 2.5 %
//! ```
//!
//! Times are compared in the event's unit a run, never as shares: these add up to one, so where one
//! function gets slower, the shares of all others fall. The unit of the statistics is the run, as
//! samples of one run are not independent ([`statistics`]). Numbers of calls need no statistics:
//! those that are equal in all runs of a side are compared by equality.
//!
//! With a single run on each side there is no variance between runs. The variance within a run is
//! then taken [`SINGLE`] times, as blocks of time have it, and the verdict is at most
//! [`Verdict::Large`].

pub mod budget;
mod identity;
mod judge;
mod matching;
mod row;
mod run;
pub mod statistics;
#[cfg(test)]
mod tests;

use self::identity::Identities;
use self::judge::{Judge, Measured};
use self::run::{Counted, Run};
use self::statistics::discoveries;
use crate::base::{Caveats, Event, Language};
use crate::profile::{Profile, Selection, TimedRows};

pub use self::identity::NO_SYMBOL;
pub use self::matching::Match;

/// How many times the variance between runs may be that within a run. Samples of real programs had
/// up to 1.84 times that of independent ones; the factor leaves room for other machines.
pub const SINGLE: f64 = 4.0;
/// The part of the base's time within which a difference is none.
pub const SAME: f64 = 0.005;
/// What is large in a comparison of single runs: this part of the function's own figure.
pub const LARGE: f64 = 0.25;
/// The samples on both sides below which a function is not tested. The number depends on the sum of
/// both sides only, so the choice does not favour differences (R. Bourgon, R. Gentleman, W. Huber,
/// "Independent filtering increases detection power for high-throughput experiments", PNAS 107,
/// 2010).
const FEWEST: u64 = 10;
/// The part of a difference that one caller has to explain to be named.
const CAUSE: f64 = 0.8;

/// One of the two that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What was before.
    Base,
    /// What is now.
    New,
}

/// The runs of both sides.
#[derive(Debug, Default)]
pub struct Runs {
    identities: Identities,
    sides: [Vec<Run>; 2],
    caveats: Caveats,
}

impl Runs {
    /// Adds a run: the selection of a profile, with its times where the run is the only one of its
    /// side. The profile is not needed any more afterwards.
    pub fn add(
        &mut self,
        side: Side,
        profile: &Profile,
        selection: &Selection,
        times: Option<&TimedRows>,
    ) {
        let run = Run::of(profile, selection, times, (side, &mut self.identities));
        self.sides[side as usize].push(run);
        self.caveats.merge(&profile.caveats);
    }
}

/// What is known of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Less time.
    Better,
    /// More time.
    Worse,
    /// No difference that matters: less than [`SAME`] of the base's time.
    Same,
    /// The runs do not tell.
    Undecided,
    /// A large difference between single runs, which may have had another cause than the program.
    Large,
    /// No run of the base has a sample or a call of the function.
    New,
    /// No new run has one.
    Gone,
}

impl Verdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::Undecided => "undecided",
            Verdict::Large => "large",
            Verdict::New => "new",
            Verdict::Gone => "gone",
        }
    }

    /// Whether it says that something has changed.
    pub fn is_change(self) -> bool {
        !matches!(self, Verdict::Same | Verdict::Undecided)
    }
}

/// A figure on both sides, in the event's unit a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The mean of the base's runs.
    pub base: f64,
    /// The mean of the new runs.
    pub new: f64,
    /// The ends of the interval that holds the true difference in 95 of 100 comparisons.
    pub interval: [f64; 2],
    /// What that says.
    pub verdict: Verdict,
    /// How many more runs a side would probably decide, if it is undecided and any number would.
    pub more_runs: Option<u64>,
}

impl Change {
    /// New less base.
    pub fn difference(&self) -> f64 {
        self.new - self.base
    }

    /// The difference in percent of the base; `None` where that is 0.
    pub fn percent(&self) -> Option<f64> {
        (self.base > 0.0).then(|| 100.0 * self.difference() / self.base)
    }
}

/// How often something was called, on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The number of each side, where all of its runs have the same.
    pub exact: [Option<u64>; 2],
    /// Whether a side has no number because its runs differ.
    pub varies: bool,
    /// Whether each side has at least two runs, so that numbers are known to repeat.
    pub is_repeated: bool,
}

impl Calls {
    // Of the figures of each run; `None` where nothing was counted.
    fn of(runs: &[Vec<Counted>; 2]) -> Option<Calls> {
        let mut all = runs.iter().flatten();
        if all.all(|it| *it == Counted::None) {
            return None;
        }
        let number = |it: &Counted| match *it {
            Counted::None => Some(0),
            Counted::All(calls) => Some(calls),
            Counted::Some => None,
        };
        let first = |runs: &Vec<Counted>| runs.first().and_then(number);
        let is_same = |runs: &Vec<Counted>| runs.iter().all(|it| number(it) == first(runs));
        Some(Calls {
            exact: runs
                .each_ref()
                .map(|runs| first(runs).filter(|_| is_same(runs))),
            varies: runs.iter().any(|runs| !is_same(runs)),
            is_repeated: runs.iter().all(|runs| runs.len() > 1),
        })
    }

    /// Whether the numbers are known, repeat, and differ.
    pub fn changed(&self) -> Option<[u64; 2]> {
        match self.exact {
            [Some(base), Some(new)] if self.is_repeated && base != new => Some([base, new]),
            _ => None,
        }
    }
}

/// A function that calls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its full name.
    pub name: Box<str>,
    /// What that is written in.
    pub language: Language,
}

/// A caller that explains most of its callee's difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// The caller.
    pub caller: Caller,
    /// The part of the callee's own weight for which this caller called it.
    pub change: Change,
}

/// A caller that calls more or less often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallsBy {
    /// The caller.
    pub caller: Caller,
    /// How often it calls.
    pub calls: Calls,
}

/// A function on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionChange {
    /// Its full name, as the new side has it.
    pub name: Box<str>,
    /// The name of its module there.
    pub module: Box<str>,
    /// The name of the file that declares it, where that is known.
    pub file: Option<Box<str>>,
    /// What its name is written in.
    pub language: Language,
    /// How it was recognized on the other side.
    pub matched: Match,
    /// Its name on the base side, where that differs.
    pub was: Option<Box<str>>,
    /// The weight of the samples taken in it.
    pub own: Change,
    /// The weight of the samples with it on the stack.
    pub total: Change,
    /// How often it was called, where calls were counted.
    pub calls: Option<Calls>,
    /// Who called it in the time by which it differs.
    pub cause: Option<Cause>,
    /// Who calls it more or less often, if most of the difference is of one caller.
    pub calls_by: Option<CallsBy>,
    /// Functions that only one side has and whose weight was counted here on that side: they were
    /// inlined here, or split off.
    pub absorbed: Vec<Box<str>>,
}

impl FunctionChange {
    /// What is to be said of the function: of its own weight, or else of its total.
    pub fn verdict(&self) -> Verdict {
        self.own.verdict
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was sampled.
    pub event: Event,
    /// The number of runs of each side.
    pub runs: [usize; 2],
    /// The number of samples of each side.
    pub samples: [u64; 2],
    /// All of the time.
    pub time: Change,
    /// All functions of either side; changes first, the largest difference first.
    pub functions: Vec<FunctionChange>,
    /// Whether calls were counted on both sides.
    pub has_counts: bool,
    /// What is unknown about the runs.
    pub caveats: Caveats,
}

impl Comparison {
    /// Compares the runs of an event.
    pub fn of(event: Event, runs: &Runs) -> Comparison {
        let Runs {
            identities,
            sides,
            caveats,
        } = runs;
        let sides = sides.each_ref().map(Vec::as_slice);
        let judge = Judge::of(sides);
        let rows = row::rows(&matching::pairs(identities, sides), sides);
        let own = rows
            .iter()
            .map(|row| judge.measure(&row.values(|it| it.own), row));
        let own: Vec<Measured> = own.collect();
        let total = rows
            .iter()
            .map(|row| judge.measure(&row.values(|it| it.total), row));
        let total: Vec<Measured> = total.collect();
        let all = judge.of_runs();
        // All figures that are shown are of one family of tests.
        let family: Vec<&Measured> = [&all].into_iter().chain(&own).chain(&total).collect();
        let tested: Vec<bool> = family.iter().map(|it| it.samples >= FEWEST).collect();
        let p_values = family.iter().zip(&tested).filter(|(_, tested)| **tested);
        let p_values: Vec<f64> = p_values.map(|(it, _)| it.difference.p_value()).collect();
        let (found, level) = discoveries(&p_values);
        let mut found = found.into_iter();
        let changes: Vec<Change> = (family.iter().zip(tested))
            .map(|(it, tested)| {
                let is_found = tested && found.next().unwrap_or(false);
                judge.change(it, is_found, level)
            })
            .collect();
        let (time, of_functions) = (changes[0], &changes[1..]);
        let (own, total) = of_functions.split_at(rows.len());
        let mut functions: Vec<FunctionChange> = Vec::with_capacity(rows.len());
        for ((row, own), total) in rows.iter().zip(own).zip(total) {
            let Some(shown) = row.shown(identities) else {
                continue;
            };
            let base = row.pair.numbers[0].and_then(|it| identities.shown(Side::Base, it));
            let was = base
                .filter(|base| base.name != shown.name)
                .map(|it| it.name.clone());
            let cause = own.verdict.is_change().then(|| judge.cause(row, own));
            let calls = Calls::of(&row.values(|it| it.calls));
            let calls_by = calls.and_then(|calls| row.calls_by(calls));
            let caller = |place: usize| {
                let shown = rows[place].shown(identities)?;
                Some(Caller {
                    name: shown.name.clone(),
                    language: shown.language,
                })
            };
            let absorbed = row.absorbed.iter().filter_map(|&number| {
                let shown = [Side::New, Side::Base].map(|side| identities.shown(side, number));
                Some(shown.into_iter().flatten().next()?.name.clone())
            });
            functions.push(FunctionChange {
                name: shown.name.clone(),
                module: shown.module.clone(),
                file: identities.identity(row.number()).file.clone(),
                language: shown.language,
                matched: row.pair.matched,
                was,
                own: *own,
                total: *total,
                calls,
                cause: cause.flatten().and_then(|(place, change)| {
                    let caller = caller(place)?;
                    Some(Cause { caller, change })
                }),
                calls_by: calls_by.and_then(|(place, calls)| {
                    let caller = caller(place)?;
                    Some(CallsBy { caller, calls })
                }),
                absorbed: absorbed.collect(),
            });
        }
        let order = |it: &FunctionChange| {
            let size = it
                .own
                .difference()
                .abs()
                .max(0.5 * it.total.difference().abs());
            (
                it.own.verdict.is_change(),
                it.total.verdict.is_change(),
                size,
            )
        };
        functions.sort_by(|a, b| {
            let (a, b) = (order(a), order(b));
            (b.0, b.1).cmp(&(a.0, a.1)).then(b.2.total_cmp(&a.2))
        });
        Comparison {
            event,
            runs: sides.map(<[Run]>::len),
            samples: sides.map(|runs| runs.iter().map(|run| run.samples).sum()),
            time,
            functions,
            has_counts: sides
                .iter()
                .all(|runs| runs.iter().all(|run| run.has_counts)),
            caveats: caveats.clone(),
        }
    }
}
