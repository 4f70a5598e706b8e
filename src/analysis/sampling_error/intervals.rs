//! How far the shares of functions may be off, by runs or by blocks of time.
//!
//! Samples that follow each other are of one phase or one request, so a share varies more than that
//! of independent samples would ([`sampling_error`](super)). Where there are several runs, these
//! are independent; else the time of the one run is divided into blocks. The share of a function
//! is the ratio of two sums over these parts: of its weight w and of all weight W. With
//! p = Σw / ΣW the variance of that ratio is
//!
//! ```text
//!   B/(B − 1) · Σ (w − p·W)² / (ΣW)²
//! ```
//!
//! for B parts (W. G. Cochran, "Sampling techniques", 1977, section 2.11). By blocks it is that of
//! the one run: what differs from run to run is not in it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::base::IdVec;
use crate::profile::{FunctionId, PathId, Profile, Selection, TimedRows};

/// The number of blocks, at most twice as many.
const BLOCKS: u32 = 32;

/// The weights of paths in a run or a block of time.
type Weights = FxHashMap<PathId, f64>;

/// What the intervals are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Several runs.
    Runs,
    /// Blocks of time of one run.
    Blocks,
}

/// Half the widths of the 95 % intervals of functions, in the event's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    /// Of the self weight.
    pub self_weight: IdVec<FunctionId, u64>,
    /// Of the total.
    pub total: IdVec<FunctionId, u64>,
    /// What they are taken from.
    pub of: Of,
}

// Of one figure over the parts: Σ w, Σ w², Σ w·W.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: f64,
    squares: f64,
    products: f64,
}

/// The intervals of all functions: by runs, where the selection has several, else by blocks of
/// time. `None` where there is neither. Linear in rows by block times the depth of their stacks.
///
/// ```no_run
/// use proftool::analysis::sampling_error::intervals;
/// use proftool::input::{Options, open_with};
/// use proftool::profile::Filter;
///
/// let options = Options { keeps_times: true, ..Options::default() };
/// let profile = open_with("perf.data".as_ref(), &options, &mut |_, _| {})?;
/// if let Some(event) = profile.main_event() {
///     let selection = profile.select(event, &Filter::default());
///     let times = profile.select_times(event, &Filter::default());
///     if let Some(intervals) = intervals::of(&profile, &selection, times.as_ref()) {
///         assert_eq!(intervals.self_weight.len(), profile.functions.len());
///     }
/// }
/// # Ok::<(), proftool::input::Error>(())
/// ```
pub fn of(
    profile: &Profile,
    selection: &Selection,
    times: Option<&TimedRows>,
) -> Option<Intervals> {
    let mut runs: BTreeMap<u32, Weights> = BTreeMap::new();
    for row in selection.rows() {
        let run = runs.entry(profile.threads[row.thread].run).or_default();
        *run.entry(row.path).or_default() += row.weight as f64;
    }
    if runs.len() > 1 {
        return Some(by(profile, runs.into_values(), Of::Runs));
    }
    let blocks = times?.blocks(BLOCKS).map(|rows| {
        let mut weights = Weights::default();
        for row in rows {
            *weights.entry(row.path).or_default() += row.weight as f64;
        }
        weights
    });
    Some(by(profile, blocks, Of::Blocks))
}

fn by(profile: &Profile, parts: impl Iterator<Item = Weights>, of: Of) -> Intervals {
    let functions = profile.functions.len();
    let mut own: IdVec<FunctionId, Sums> = IdVec::filled(Sums::default(), functions);
    let mut total = own.clone();
    // The last path on which a function was counted, so that it counts once for each.
    let mut counted: IdVec<FunctionId, Option<PathId>> = IdVec::filled(None, functions);
    let (mut count, mut whole, mut squares) = (0, 0.0, 0.0);
    for paths in parts {
        let mut in_part: FxHashMap<FunctionId, [f64; 2]> = FxHashMap::default();
        counted.iter_mut().for_each(|path| *path = None);
        for (&path, &weight) in &paths {
            let function = profile.paths[path].function;
            in_part.entry(function).or_default()[0] += weight;
            for frame in profile.paths.outwards(path) {
                if counted[frame.function].replace(path) != Some(path) {
                    in_part.entry(frame.function).or_default()[1] += weight;
                }
            }
        }
        let all: f64 = paths.values().sum();
        count += 1;
        whole += all;
        squares += all * all;
        for (function, weights) in in_part {
            for (sums, weight) in [&mut own, &mut total].into_iter().zip(weights) {
                let sums = &mut sums[function];
                sums.weight += weight;
                sums.squares += weight * weight;
                sums.products += weight * all;
            }
        }
    }
    let parts = f64::from(count);
    let half_width = |sums: &Sums| {
        if whole == 0.0 || count < 2 {
            return whole.round() as u64;
        }
        let share = sums.weight / whole;
        let around = sums.squares - 2.0 * share * sums.products + share * share * squares;
        let variance = parts / (parts - 1.0) * around.max(0.0);
        let half_width = student(count - 1) * variance.sqrt();
        half_width.min(whole).round() as u64
    };
    let widths = |sums: &IdVec<FunctionId, Sums>| {
        let widths: Vec<u64> = sums.iter().map(half_width).collect();
        widths.into()
    };
    Intervals {
        self_weight: widths(&own),
        total: widths(&total),
        of,
    }
}

// Student's factor for 95 %, at most for 31 degrees of freedom.
fn student(freedom: u32) -> f64 {
    const FACTORS: [f64; 31] = [
        12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
        2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04,
        2.04,
    ];
    FACTORS[(freedom as usize).clamp(1, FACTORS.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::{Of, of};
    use crate::base::{Event, Sampling, WeightSum};
    use crate::profile::{
        Builder, Filter, Function, FunctionId, Module, Profile, Slices, SumOfRuns, Thread,
        TimedSample,
    };

    /// A profile of 64 slices with a sample each: of `b` where it is said so, else of `a`.
    fn profile(is_b: fn(u32) -> bool) -> (Profile, [FunctionId; 3]) {
        let mut builder = Builder::default();
        let event = builder.sampled_event(Event::named("cpu-clock"), Sampling::Drawn);
        let module = builder.module(Module {
            name: "app".into(),
            path: "app".into(),
        });
        let ids = ["main", "a", "b"].map(|it| builder.function(Function::named(it, module)));
        let thread = builder.thread(Thread::new(1, 1, "app"));
        let main = builder.path(None, ids[0], false);
        let paths = [1, 2].map(|it| builder.path(Some(main), ids[it], false));
        let samples = (0..64).map(|slice| TimedSample {
            event,
            thread,
            path: paths[usize::from(is_b(slice))],
            place: None,
            line: None,
            slice,
            weight: 1,
            count: 1,
        });
        let samples: Vec<TimedSample> = samples.collect();
        for sample in &samples {
            builder.sample(event, thread, sample.path, None, WeightSum::equal(1, 1));
        }
        let slices = Slices {
            length: 1_000_000,
            ..Slices::default()
        };
        builder.times(slices, samples.into_iter());
        (builder.finish(), ids)
    }

    fn half_widths(is_b: fn(u32) -> bool) -> [u64; 3] {
        let (profile, ids) = profile(is_b);
        let event = profile.main_event().expect("an event");
        let selection = profile.select(event, &Filter::default());
        let times = profile.select_times(event, &Filter::default());
        let intervals = of(&profile, &selection, times.as_ref()).expect("times");
        assert_eq!(intervals.of, Of::Blocks);
        ids.map(|id| intervals.total[id])
    }

    #[test]
    fn what_is_on_every_sample_has_no_interval() {
        assert_eq!(half_widths(|slice| slice % 3 == 0)[0], 0);
    }

    // The share is the same in each of 32 blocks, however often functions take turns.
    #[test]
    fn what_takes_the_same_part_of_each_block_is_certain() {
        assert_eq!(half_widths(|slice| slice % 2 == 0), [0, 0, 0]);
    }

    // Σ (w − W/2)² = 32 · 1², so 2.04 · √(32/31 · 32) = 11.7 of 64. Of independent samples it
    // would be 1.96 · √64 / 2 = 7.8.
    #[test]
    fn phases_are_less_certain_than_independent_samples() {
        assert_eq!(half_widths(|slice| slice < 32), [0, 12, 12]);
    }

    // Of 64 samples each a has 32, 48 and 16: Σ (w − W/2)² = 2 · 16², so 4.30 · √(3/2 · 512).
    #[test]
    fn several_runs_are_compared_with_each_other() {
        let runs: [fn(u32) -> bool; 3] = [
            |slice| slice % 2 == 0,
            |slice| slice % 4 == 0,
            |slice| slice % 4 != 0,
        ];
        let mut sum = SumOfRuns::default();
        runs.into_iter().for_each(|run| sum.add(&profile(run).0));
        let sum = sum.finish();
        let event = sum.main_event().expect("an event");
        let selection = sum.select(event, &Filter::default());
        let intervals = of(&sum, &selection, None).expect("runs");
        assert_eq!(intervals.of, Of::Runs);
        let widths = sum.functions.ids().map(|id| intervals.total[id]);
        assert_eq!(widths.collect::<Vec<_>>(), [0, 119, 119]);
    }
}
