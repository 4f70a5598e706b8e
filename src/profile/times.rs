//! When samples were taken, by slices of time.

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
    /// Where the part of time ends, which may be inside of the last slice; `None` for the end of the
    /// recording.
    pub end: Option<u64>,
}

/// The samples of a profile by time; equal slices are not added up.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// How time is divided.
    pub slices: Slices,
    /// What samples are of, where they were added one after the other: there may be as many of them as the
    /// recording has samples, on far fewer stacks.
    stacks: Vec<Stack>,
    samples: Vec<InSlice>,
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
    /// The place of the stack.
    stack: u32,
    sum: SmallSum,
}

impl Times {
    /// Those of these slices, without samples.
    pub(super) fn new(slices: Slices) -> Times {
        Times {
            slices,
            ..Times::default()
        }
    }

    /// Makes room for this number of samples.
    pub(super) fn reserve(&mut self, samples: usize) {
        self.samples.reserve_exact(samples);
    }

    pub(super) fn add(&mut self, sample: &TimedSample) {
        let stack = Stack {
            event: sample.event,
            thread: sample.thread,
            path: sample.path,
            place: sample.place,
            line: sample.line,
        };
        if self.stacks.last() != Some(&stack) {
            self.stacks.push(stack);
        }
        self.samples.push(InSlice {
            stack: self.stacks.len() as u32 - 1,
            sum: self.sums.small(SliceSum {
                slice: sample.slice,
                weight: sample.weight,
                count: sample.count,
            }),
        });
    }

    /// What there is at a place.
    fn sum(&self, place: u32) -> SliceSum {
        self.sums.get(self.samples[place as usize].sum)
    }

    fn stack(&self, sample: &InSlice) -> &Stack {
        &self.stacks[sample.stack as usize]
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

/// The samples of a selection by time.
#[derive(Clone, Debug)]
pub struct TimedRows<'a> {
    times: &'a Times,
    weighing: Weighing,
    /// The places of its samples, by slice. Rows are made as they are asked for: copies of the samples would
    /// take ten times the memory.
    places: Lists<u32>,
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
        self.rows_at(self.places.of_all(0..self.len))
    }

    /// The rows of each bucket of `1 << shift` slices that has any, with the bucket's number.
    pub fn by_bucket(
        &self,
        shift: u32,
    ) -> impl Iterator<Item = (u32, impl Iterator<Item = TimedRow> + Clone)> {
        let slices = move |bucket: usize| bucket << shift..self.len.min((bucket + 1) << shift);
        let buckets = 0..self.len.div_ceil(1 << shift);
        let buckets = buckets.map(move |bucket| (bucket, self.places.of_all(slices(bucket))));
        buckets
            .filter(|(_, places)| !places.is_empty())
            .map(|(bucket, places)| (bucket as u32, self.rows_at(places)))
    }

    /// The number of slices up to the last with a row.
    pub fn len(&self) -> u32 {
        self.len as u32
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn rows_at(&self, places: &[u32]) -> impl Iterator<Item = TimedRow> + Clone {
        let (times, weighing) = (self.times, self.weighing);
        places.iter().map(move |&place| {
            let stack = times.stack(&times.samples[place as usize]);
            let sum = times.sum(place);
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
    /// The samples of `event` that pass `filter` by time; `None` where the profile has no times. Their
    /// weights add up to the total of [`Profile::select`], except for time off the processor before the
    /// first sample.
    pub fn select_times(&self, event: EventId, filter: &Filter) -> Option<TimedRows<'_>> {
        let times = self.times.as_ref()?;
        let passes = self.passing(filter);
        let is_wanted = |it: &InSlice| {
            let stack = times.stack(it);
            stack.event == event && passes(stack.thread, stack.path)
        };
        let slice = |it: &InSlice| times.sums.get(it.sum).slice as usize;
        let slices = times.samples.iter().map(slice).max().map_or(0, |it| it + 1);
        let samples = (0..).zip(&times.samples);
        let samples = samples.filter(|(_, it)| is_wanted(it));
        let places = Lists::new(slices, samples.map(|(place, it)| (slice(it), place)));
        let last = (0..slices).rposition(|slice| !places.of(slice).is_empty());
        Some(TimedRows {
            times,
            weighing: filter.weighing,
            places,
            len: last.map_or(0, |it| it + 1),
        })
    }
}
