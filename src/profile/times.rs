//! When samples were taken, by slices of time.

use super::{EventId, Filter, PathId, Profile, ThreadId, Weighing};

/// The samples of a thread on a path in a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// The event.
    pub event: EventId,
    /// The thread.
    pub thread: ThreadId,
    /// Where they were taken.
    pub path: PathId,
    /// The number of the slice.
    pub slice: u32,
    /// The sum of weights in the event's unit.
    pub weight: u64,
    /// The number of samples; of intervals of time, those that reach into the slice.
    pub count: u64,
}

/// The samples of a profile by time; equal slices are not added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The length of a slice in nanoseconds. The first begins with the first sample.
    pub slice: u64,
    /// The samples.
    pub samples: Vec<TimedSample>,
}

/// What of a selection was in a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRow {
    /// The number of the slice.
    pub slice: u32,
    /// The thread.
    pub thread: ThreadId,
    /// Where the samples were taken.
    pub path: PathId,
    /// The sum of weights in the selection's unit.
    pub weight: u64,
}

/// What of a selection was when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedRows {
    slice: u64,
    /// In order of slice.
    rows: Vec<TimedRow>,
}

impl TimedRows {
    /// The length of a slice in nanoseconds. The first begins with the first sample.
    pub fn slice(&self) -> u64 {
        self.slice
    }

    /// The rows, in order of slice, thread and path.
    pub fn rows(&self) -> &[TimedRow] {
        &self.rows
    }

    /// The number of slices up to the last with a row.
    pub fn slices(&self) -> u32 {
        self.rows.last().map_or(0, |row| row.slice + 1)
    }
}

impl Profile {
    /// The samples of `event` that pass `filter` by time; `None` where the profile has no times. Their
    /// weights add up to the total of [`Profile::select`], but for time off the processor before the
    /// first sample.
    pub fn select_times(&self, event: EventId, filter: &Filter) -> Option<TimedRows> {
        let times = self.times.as_ref()?;
        let passes = self.passing(filter);
        let samples = times
            .samples
            .iter()
            .filter(|it| it.event == event && passes(it.thread, it.path));
        let mut rows: Vec<TimedRow> = samples
            .map(|it| TimedRow {
                slice: it.slice,
                thread: it.thread,
                path: it.path,
                weight: match filter.weighing {
                    Weighing::Weight => it.weight,
                    Weighing::Samples => it.count,
                },
            })
            .collect();
        rows.sort_unstable_by_key(|row| (row.slice, row.thread, row.path));
        Some(TimedRows {
            slice: times.slice,
            rows,
        })
    }
}
