//! How far the shares of functions may be off, by blocks of time.
//!
//! Samples that follow each other are of one phase or one request, so a share varies more than that
//! of independent samples would ([`sampling_error`](super)). Time is divided into
//! blocks, and the share of a function is the ratio of two sums over them: of its weight w and of
//! all weight W. With p = Σw / ΣW the variance of that ratio is
//!
//! ```text
//!   B/(B − 1) · Σ (w − p·W)² / (ΣW)²
//! ```
//!
//! for B blocks (W. G. Cochran, "Sampling techniques", 1977, section 2.11). It is that of this run:
//! what differs from run to run is not in it.

use rustc_hash::FxHashMap;

use crate::base::IdVec;
use crate::profile::{FunctionId, PathId, Profile, TimedRows};

/// The number of blocks, at most twice as many.
const BLOCKS: u32 = 32;
/// Student's factor for 95 % and 31 degrees of freedom.
const WIDTH: f64 = 2.04;

/// Half the widths of the 95 % intervals of functions, in the event's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    /// Of the self weight.
    pub self_weight: IdVec<FunctionId, u64>,
    /// Of the total.
    pub total: IdVec<FunctionId, u64>,
}

// Of one figure over the blocks: Σ w, Σ w², Σ w·W.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: f64,
    squares: f64,
    products: f64,
}

/// The intervals of all functions. Linear in rows by block times the depth of their stacks.
///
/// ```no_run
/// use proftool::analysis::sampling_error::intervals;
/// use proftool::input::{Options, open_with};
/// use proftool::profile::Filter;
///
/// let options = Options { keeps_times: true, ..Options::default() };
/// let profile = open_with("perf.data".as_ref(), &options, &mut |_, _| {})?;
/// if let Some(event) = profile.main_event()
///     && let Some(times) = profile.select_times(event, &Filter::default())
/// {
///     let half_widths = intervals::by_blocks(&profile, &times).self_weight;
///     assert_eq!(half_widths.len(), profile.functions.len());
/// }
/// # Ok::<(), proftool::input::Error>(())
/// ```
pub fn by_blocks(profile: &Profile, times: &TimedRows) -> Intervals {
    let functions = profile.functions.len();
    let mut own: IdVec<FunctionId, Sums> = IdVec::filled(Sums::default(), functions);
    let mut total = own.clone();
    // The last path on which a function was counted, so that it counts once for each.
    let mut counted: IdVec<FunctionId, Option<PathId>> = IdVec::filled(None, functions);
    let (mut blocks, mut whole, mut squares) = (0.0, 0.0, 0.0);
    for rows in times.blocks(BLOCKS) {
        let mut paths: FxHashMap<PathId, f64> = FxHashMap::default();
        for row in rows {
            *paths.entry(row.path).or_default() += row.weight as f64;
        }
        let mut in_block: FxHashMap<FunctionId, [f64; 2]> = FxHashMap::default();
        counted.iter_mut().for_each(|path| *path = None);
        for (&path, &weight) in &paths {
            let function = profile.paths[path].function;
            in_block.entry(function).or_default()[0] += weight;
            for frame in profile.paths.outwards(path) {
                if counted[frame.function].replace(path) != Some(path) {
                    in_block.entry(frame.function).or_default()[1] += weight;
                }
            }
        }
        let all: f64 = paths.values().sum();
        blocks += 1.0;
        whole += all;
        squares += all * all;
        for (function, weights) in in_block {
            for (sums, weight) in [&mut own, &mut total].into_iter().zip(weights) {
                let sums = &mut sums[function];
                sums.weight += weight;
                sums.squares += weight * weight;
                sums.products += weight * all;
            }
        }
    }
    let half_width = |sums: &Sums| {
        if whole == 0.0 || blocks < 2.0 {
            return whole.round() as u64;
        }
        let share = sums.weight / whole;
        let around = sums.squares - 2.0 * share * sums.products + share * share * squares;
        let variance = blocks / (blocks - 1.0) * around.max(0.0);
        (WIDTH * variance.sqrt()).round() as u64
    };
    let widths = |sums: &IdVec<FunctionId, Sums>| {
        let widths: Vec<u64> = sums.iter().map(half_width).collect();
        widths.into()
    };
    Intervals {
        self_weight: widths(&own),
        total: widths(&total),
    }
}

#[cfg(test)]
mod tests {
    use super::by_blocks;
    use crate::base::{Event, Sampling, WeightSum};
    use crate::profile::{
        Builder, Filter, Function, FunctionId, Module, Profile, Slices, Thread, TimedSample,
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
        let times = profile.select_times(event, &Filter::default());
        let intervals = by_blocks(&profile, &times.expect("times"));
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
}
