//! When samples were taken, by slices of time.

use std::ops::Range;

use crate::base::{Lists, SliceSum, SliceSums, SmallSum};

use super::{EventId, Filter, LineId, PathId, PlaceId, Profile, ThreadId, Weighing};

/// The samples of a thread on a path in a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// The event.
    pub event: EventId,
    /// The thread.
    pub thread: ThreadId,
    /// Where they were taken.
    pub path: PathId,
    /// The path with the lines of its calls, where the profile has them.
    pub place: Option<PlaceId>,
    /// The source line of the innermost frame, where it is known.
    pub line: Option<LineId>,
    /// The number of the slice.
    pub slice: u32,
    /// The sum of weights in the event's unit.
    pub weight: u64,
    /// The number of samples; of intervals of time, those that reach into the slice.
    pub count: u64,
}

/// Slices of equal length that a part of time is divided into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// The length of one in nanoseconds.
    pub length: u64,
    /// Where the first begins, in nanoseconds after the first sample of the recording.
    pub start: u64,
    /// Where the part of time ends, which may be inside of the last slice; `None` for the end of
    /// the recording.
    pub end: Option<u64>,
}

/// The samples of a profile by time; equal slices are not added up.
#[derive(Clone, Debug)]
pub struct Times {
    /// How time is divided.
    pub slices: Slices,
    /// What samples are of, where they came one after the other: there may be as many of them as
    /// the recording has samples, on far fewer stacks.
    stacks: Vec<Stack>,
    /// By slice, as that is how they are looked at: one memory access after the other, not a
    /// million anywhere.
    samples: Lists<InSlice>,
    sums: SliceSums,
}

/// What samples are of, whenever they were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stack {
    event: EventId,
    thread: ThreadId,
    path: PathId,
    place: Option<PlaceId>,
    line: Option<LineId>,
}

/// What of a stack was in a slice.
#[derive(Clone, Copy, Debug)]
struct InSlice {
    stack: u32,
    sum: SmallSum,
}

impl Times {
    pub(super) fn new(slices: Slices, samples: impl Iterator<Item = TimedSample>) -> Times {
        let mut stacks = Vec::new();
        let mut sums = SliceSums::default();
        let samples = samples.map(|sample| {
            let stack = Stack {
                event: sample.event,
                thread: sample.thread,
                path: sample.path,
                place: sample.place,
                line: sample.line,
            };
            if stacks.last() != Some(&stack) {
                stacks.push(stack);
            }
            InSlice {
                stack: stacks.len() as u32 - 1,
                sum: sums.small(SliceSum {
                    slice: sample.slice,
                    weight: sample.weight,
                    count: sample.count,
                }),
            }
        });
        let samples: Vec<InSlice> = samples.collect();
        let slice = |sample: &InSlice| sums.get(sample.sum).slice as usize;
        let count = samples.iter().map(slice).max().map_or(0, |last| last + 1);
        let samples = Lists::new(count, samples.iter().map(|it| (slice(it), *it)));
        Times {
            slices,
            stacks,
            samples,
            sums,
        }
    }
}

/// The samples of a selection in a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRow {
    /// The number of the slice.
    pub slice: u32,
    /// The thread.
    pub thread: ThreadId,
    /// Where the samples were taken.
    pub path: PathId,
    /// The path with the lines of its calls, where the profile has them.
    pub place: Option<PlaceId>,
    /// The source line of the innermost frame, where it is known.
    pub line: Option<LineId>,
    /// The sum of weights in the selection's unit.
    pub weight: u64,
}

/// The samples of a selection by time. Rows are made as they are asked for: they take four times
/// the memory.
#[derive(Clone, Debug)]
pub struct TimedRows<'a> {
    times: &'a Times,
    weighing: Weighing,
    selected: Vec<bool>,
    /// The number of slices up to the last with a row.
    len: usize,
}

impl<'a> TimedRows<'a> {
    /// How time is divided.
    pub fn slices(&self) -> Slices {
        self.times.slices
    }

    /// The rows, in order of slice.
    pub fn rows(&self) -> impl Iterator<Item = TimedRow> + Clone {
        self.rows_of(0..self.len)
    }

    /// The rows of each bucket of `1 << shift` slices that has any, with the bucket's number.
    pub fn by_bucket(
        &self,
        shift: u32,
    ) -> impl Iterator<Item = (u32, impl Iterator<Item = TimedRow> + Clone)> {
        let slices = move |bucket: usize| bucket << shift..self.len.min((bucket + 1) << shift);
        let buckets = 0..self.len.div_ceil(1 << shift);
        buckets
            .map(move |bucket| (bucket as u32, self.rows_of(slices(bucket))))
            .filter(|(_, rows)| rows.clone().next().is_some())
    }

    /// The rows of blocks of equal length, of which there are at least this number where there are
    /// as many slices, and at most twice as many; those without rows are left out.
    pub fn blocks(
        &self,
        least: u32,
    ) -> impl Iterator<Item = impl Iterator<Item = TimedRow> + Clone> {
        let shift = (self.len() / least).checked_ilog2().unwrap_or(0);
        self.by_bucket(shift).map(|(_, rows)| rows)
    }

    /// The number of slices up to the last with a row.
    pub fn len(&self) -> u32 {
        self.len as u32
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn rows_of(&self, slices: Range<usize>) -> impl Iterator<Item = TimedRow> + Clone {
        let TimedRows {
            times,
            weighing,
            ref selected,
            ..
        } = *self;
        let samples = times.samples.of_all(slices).iter();
        let samples = samples.filter(|sample| selected[sample.stack as usize]);
        samples.map(move |sample| {
            let stack = &times.stacks[sample.stack as usize];
            let sum = times.sums.get(sample.sum);
            TimedRow {
                slice: sum.slice,
                thread: stack.thread,
                path: stack.path,
                place: stack.place,
                line: stack.line,
                weight: match weighing {
                    Weighing::Weight => sum.weight,
                    Weighing::Samples => sum.count,
                },
            }
        })
    }
}

impl Profile {
    /// The samples of `event` that pass `filter` by time; `None` where the profile has no times.
    /// Their weights add up to the total of [`Profile::select`], except for time off the processor
    /// before the first sample.
    pub fn select_times(&self, event: EventId, filter: &Filter) -> Option<TimedRows<'_>> {
        let times = self.times.as_ref()?;
        let passes = self.passing(filter);
        let is_selected = |stack: &Stack| stack.event == event && passes(stack.thread, stack.path);
        let selected: Vec<bool> = times.stacks.iter().map(is_selected).collect();
        let has_any = |slice| {
            let mut samples = times.samples.of(slice).iter();
            samples.any(|sample| selected[sample.stack as usize])
        };
        let last = (0..times.samples.len()).rposition(has_any);
        Some(TimedRows {
            times,
            weighing: filter.weighing,
            len: last.map_or(0, |it| it + 1),
            selected,
        })
    }
}
