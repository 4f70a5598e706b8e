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
mod calls;
mod circumstances;
mod cycles;
mod identity;
mod judge;
mod matching;
mod row;
mod run;
pub mod statistics;
#[cfg(test)]
mod tests;
mod work;

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use self::calls::Variation;
use self::cycles::Cycle;
use self::identity::Identities;
use self::judge::{Judge, Measured};
use self::row::Row;
use self::run::Run;
use self::statistics::discoveries;
use crate::base::{Caveats, Event, IdVec, Language};
use crate::profile::{FunctionId, Line, Profile, Selection, TimedRows};

pub use self::calls::Calls;
pub use self::circumstances::Apart;
pub use self::matching::Match;
pub use self::work::Work;

/// How many times the variance between runs may be that within a run. Samples of real programs had
/// up to 1.84 times that of independent ones; the factor leaves room for other machines.
pub const SINGLE: f64 = 4.0;
/// A difference below this part of the base's time does not matter.
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
    work: Option<Work>,
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

    /// Takes the weights of the last run of a side as they would be if it had done as much as the
    /// first run of all.
    pub fn set_work(&mut self, side: Side, work: Work) {
        let first = self.work.get_or_insert_with(|| work.clone()).amount;
        if let Some(run) = self.sides[side as usize].last_mut() {
            run.scale(first as f64 / work.amount as f64);
        }
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

/// A line that explains most of its function's difference.
#[derive(Clone, Debug, PartialEq)]
pub struct LineCause {
    /// The line, as the new side has it.
    pub line: Line,
    /// The part of the function's own weight that is on it.
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
    /// Where in it the weight is by which it differs.
    pub line: Option<LineCause>,
    /// Who calls it more or less often, if most of the difference is of one caller.
    pub calls_by: Option<CallsBy>,
    /// Functions that only one side has and whose weight was counted here on that side: they were
    /// inlined here, or split off.
    pub absorbed: Vec<Box<str>>,
    /// The number of the function on each side that has it.
    numbers: [Option<u32>; 2],
}

/// Functions that call each other in a circle, on one side or on both.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleChange {
    /// The place of each function in [`Comparison::functions`], and on which sides it is in a cycle
    /// with others of these.
    pub members: Vec<(usize, [bool; 2])>,
    /// The weight of the samples taken in them.
    pub own: Change,
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
    /// Why no difference of times is known, if the sides were recorded too far apart.
    pub apart: Option<Apart>,
    /// All of the time.
    pub time: Change,
    /// The work that weights are of, where it is not that of each run.
    pub work: Option<Work>,
    /// All functions of either side; changes first, the largest difference first.
    pub functions: Vec<FunctionChange>,
    /// All cycles of either side; the largest difference first.
    pub cycles: Vec<CycleChange>,
    /// What is unknown about the runs.
    pub caveats: Caveats,
}

impl Comparison {
    /// Compares the runs of an event.
    pub fn of(event: Event, runs: &Runs) -> Comparison {
        let sides = runs.sides.each_ref().map(Vec::as_slice);
        let judge = Judge::of(sides);
        let rows = row::rows(&matching::pairs(&runs.identities, sides), sides);
        let numbers = rows.iter().flat_map(|row| row.values(|it| it.calls));
        let variation = Variation::of(numbers, sides.map(<[Run]>::len));
        let cycles = cycles::cycles(&rows);
        let (time, of_functions, of_cycles) = changes(&judge, &rows, &cycles);
        let functions = rows.iter().zip(of_functions).enumerate();
        let functions = functions.filter_map(|(place, (row, [own, total]))| {
            let mut change =
                FunctionChange::of(row, &rows, (&runs.identities, variation), [own, total])?;
            if own.verdict.is_change() {
                change.cause = judge.caller(row, &own).and_then(|(place, change)| {
                    let caller = caller(&rows[place], &runs.identities)?;
                    Some(Cause { caller, change })
                });
                change.line = judge.line(row, &own).and_then(|(line, change)| {
                    let line = row.place(line, &runs.identities)?;
                    Some(LineCause { line, change })
                });
            }
            Some((place, change))
        });
        let mut functions: Vec<(usize, FunctionChange)> = functions.collect();
        functions.sort_by(|(_, a), (_, b)| a.by_weight(b));
        let (of_rows, functions): (Vec<usize>, _) = functions.into_iter().unzip();
        let places = of_rows.into_iter().enumerate();
        let places = places.map(|(place, row)| (row, place)).collect();
        let cycles = cycles.iter().zip(of_cycles);
        let mut cycles: Vec<CycleChange> = (cycles)
            .map(|(cycle, own)| CycleChange::of(cycle, own, &places))
            .collect();
        cycles.sort_by(|a, b| {
            let [a, b] = [a, b].map(|it| it.own.difference().abs());
            b.total_cmp(&a)
        });
        Comparison {
            event,
            runs: sides.map(<[Run]>::len),
            samples: sides.map(|runs| runs.iter().map(|run| run.samples).sum()),
            apart: judge.apart,
            time,
            work: runs.work.clone(),
            functions,
            cycles,
            caveats: runs.caveats.clone(),
        }
    }

    /// The place in this comparison of each function of a profile, which is one of these runs of a
    /// side, or their sum; `None` for marks and for functions that did not run.
    pub fn places(
        &self,
        runs: &Runs,
        side: Side,
        profile: &Profile,
    ) -> IdVec<FunctionId, Option<usize>> {
        let places = self.functions.iter().enumerate();
        let places = places.filter_map(|(place, it)| Some((it.numbers[side as usize]?, place)));
        let places: FxHashMap<u32, usize> = places.collect();
        let place = |function| {
            let number = runs.identities.find(profile, function)?;
            places.get(&number).copied()
        };
        let places: Vec<_> = profile.functions.iter().map(place).collect();
        places.into()
    }
}

// The change of all time, those of each function's own weight and total, and those of cycles. All
// figures that are shown are of one family of tests.
fn changes(
    judge: &Judge,
    rows: &[Row],
    cycles: &[Cycle],
) -> (Change, Vec<[Change; 2]>, Vec<Change>) {
    let measured: Vec<[Measured; 2]> = (rows.iter())
        .map(|row| {
            let values = [row.values(|it| it.own), row.values(|it| it.total)];
            values.map(|values| judge.measure(&values, row))
        })
        .collect();
    let of_cycles = cycles.iter().map(|cycle| {
        let members = cycle.members.iter().map(|(place, _)| &rows[*place]);
        judge.measure_all(members)
    });
    let of_cycles: Vec<Measured> = of_cycles.collect();
    let all = judge.of_runs();
    let of_functions = || measured.iter().flatten();
    let family = || [&all].into_iter().chain(of_functions()).chain(&of_cycles);
    let is_tested = |it: &&Measured| it.samples >= FEWEST;
    let tested = family().filter(is_tested);
    let p_values: Vec<f64> = tested.map(|it| it.difference.p_value()).collect();
    let (found, level) = discoveries(&p_values);
    let mut found = found.into_iter();
    let mut change = |it: &Measured| {
        let is_found = is_tested(&it) && found.next() == Some(true);
        judge.change(it, is_found, level)
    };
    // In the order of the family.
    let time = change(&all);
    let of_functions = measured.iter();
    let of_functions = of_functions.map(|figures| figures.each_ref().map(&mut change));
    let of_functions = of_functions.collect();
    (time, of_functions, of_cycles.iter().map(change).collect())
}

// A row as a caller.
fn caller(row: &Row, identities: &Identities) -> Option<Caller> {
    let shown = row.shown(identities)?;
    Some(Caller {
        name: shown.name.clone(),
        language: shown.language,
    })
}

impl CycleChange {
    fn of(cycle: &Cycle, own: Change, places: &FxHashMap<usize, usize>) -> CycleChange {
        let members = cycle.members.iter();
        let members = members.filter_map(|(row, is_in)| Some((*places.get(row)?, *is_in)));
        let mut members: Vec<_> = members.collect();
        members.sort_unstable();
        CycleChange { members, own }
    }
}

impl FunctionChange {
    /// Whether runs of a side have a sample or a call of it.
    pub fn is_on(&self, side: Side) -> bool {
        self.numbers[side as usize].is_some()
    }

    // Of a row among others: what changed of its own weight and its total, without causes.
    fn of(
        row: &Row,
        rows: &[Row],
        (identities, variation): (&Identities, Variation),
        [own, total]: [Change; 2],
    ) -> Option<FunctionChange> {
        let shown = row.shown(identities)?;
        let base = row.pair.numbers[0].and_then(|it| identities.shown(Side::Base, it));
        let was = base.filter(|base| base.name != shown.name);
        let calls = Calls::of(&row.values(|it| it.calls), variation);
        let calls_by = calls.and_then(|calls| row.calls_by(calls, variation));
        let absorbed = row.absorbed.iter().filter_map(|&number| {
            let shown = [Side::New, Side::Base].map(|side| identities.shown(side, number));
            Some(shown.into_iter().flatten().next()?.name.clone())
        });
        Some(FunctionChange {
            name: shown.name.clone(),
            module: shown.module.clone(),
            file: identities.identity(row.number()).file.clone(),
            language: shown.language,
            matched: row.pair.matched,
            was: was.map(|it| it.name.clone()),
            own,
            total,
            calls,
            cause: None,
            line: None,
            calls_by: calls_by.and_then(|(place, calls)| {
                let caller = caller(&rows[place], identities)?;
                Some(CallsBy { caller, calls })
            }),
            absorbed: absorbed.collect(),
            numbers: row.pair.numbers,
        })
    }

    // Changes of the own weight first, then those of the total, the largest difference first.
    fn by_weight(&self, other: &FunctionChange) -> Ordering {
        let kind = |it: &FunctionChange| [it.own, it.total].map(|it| it.verdict.is_change());
        let size = |it: &FunctionChange| {
            let [own, total] = [it.own, it.total].map(|it| it.difference().abs());
            own.max(0.5 * total)
        };
        let by_kind = kind(other).cmp(&kind(self));
        by_kind.then_with(|| size(other).total_cmp(&size(self)))
    }
}
