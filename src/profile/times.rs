//! When samples were taken, by slices of time.

use crate::base::{SliceSum, SliceSums, SmallSum};

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
    /// The places of its samples, in order of slice. Rows are made as they are asked for: copies of the
    /// samples would take ten times the memory.
    places: Vec<u32>,
}

impl<'a> TimedRows<'a> {
    /// How time is divided.
    pub fn slices(&self) -> Slices {
        self.times.slices
    }

    /// The rows, in order of slice.
    pub fn rows(&self) -> impl Iterator<Item = TimedRow> + Clone {
        self.rows_at(&self.places)
    }

    /// The rows of each bucket of `1 << shift` slices that has any, with the bucket's number.
    pub fn by_bucket(
        &self,
        shift: u32,
    ) -> impl Iterator<Item = (u32, impl Iterator<Item = TimedRow> + Clone)> {
        let times = self.times;
        let bucket = move |place: u32| times.sum(place).slice >> shift;
        let buckets = self.places.chunk_by(move |&a, &b| bucket(a) == bucket(b));
        buckets.map(move |places| (bucket(places[0]), self.rows_at(places)))
    }

    /// The number of slices up to the last with a row.
    pub fn len(&self) -> u32 {
        let last = self.places.last();
        last.map_or(0, |&place| self.times.sum(place).slice + 1)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
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
        let samples = (0..).zip(&times.samples);
        let samples = samples.filter(|(_, it)| is_wanted(it));
        let samples = samples.map(|(place, it)| (place, times.sums.get(it.sum).slice));
        Some(TimedRows {
            times,
            weighing: filter.weighing,
            places: in_order_of_slice(samples),
        })
    }
}

/// Sorts places by slice, those of one slice as they come. There are few slices and many places: these are
/// put where they belong at once.
fn in_order_of_slice(places: impl Iterator<Item = (u32, u32)> + Clone) -> Vec<u32> {
    let mut starts: Vec<usize> = Vec::new();
    for (_, slice) in places.clone() {
        let slice = slice as usize;
        if slice >= starts.len() {
            starts.resize(slice + 1, 0);
        }
        starts[slice] += 1;
    }
    let mut start = 0;
    for count in &mut starts {
        start += std::mem::replace(count, start);
    }
    let mut sorted = vec![0; start];
    for (place, slice) in places {
        let start = &mut starts[slice as usize];
        sorted[*start] = place;
        *start += 1;
    }
    sorted
}
