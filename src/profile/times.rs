//! When samples were taken, by slices of time.

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How time is divided.
    pub slices: Slices,
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
    /// The path with the lines of its calls, where the profile has them.
    pub place: Option<PlaceId>,
    /// The source line of the innermost frame, where it is known.
    pub line: Option<LineId>,
    /// The sum of weights in the selection's unit.
    pub weight: u64,
}

/// What of a selection was when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedRows {
    slices: Slices,
    /// In order of slice.
    rows: Vec<TimedRow>,
}

impl TimedRows {
    /// How time is divided.
    pub fn slices(&self) -> Slices {
        self.slices
    }

    /// The rows, in order of slice.
    pub fn rows(&self) -> &[TimedRow] {
        &self.rows
    }

    /// The number of slices up to the last with a row.
    pub fn len(&self) -> u32 {
        self.rows.last().map_or(0, |row| row.slice + 1)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Profile {
    /// The samples of `event` that pass `filter` by time; `None` where the profile has no times. Their
    /// weights add up to the total of [`Profile::select`], but for time off the processor before the
    /// first sample.
    pub fn select_times(&self, event: EventId, filter: &Filter) -> Option<TimedRows> {
        let times = self.times.as_ref()?;
        let passes = self.passing(filter);
        let row = |it: &TimedSample| TimedRow {
            slice: it.slice,
            thread: it.thread,
            path: it.path,
            place: it.place,
            line: it.line,
            weight: match filter.weighing {
                Weighing::Weight => it.weight,
                Weighing::Samples => it.count,
            },
        };
        let samples = times.samples.iter();
        let samples = samples.filter(|it| it.event == event && passes(it.thread, it.path));
        Some(TimedRows {
            slices: times.slices,
            rows: in_order_of_slice(samples.map(row)),
        })
    }
}

/// Sorts rows by slice, those of one slice as they come. There are few slices and many rows: these are put
/// where they belong at once.
fn in_order_of_slice(rows: impl Iterator<Item = TimedRow> + Clone) -> Vec<TimedRow> {
    let mut starts: Vec<usize> = Vec::new();
    for row in rows.clone() {
        let slice = row.slice as usize;
        if slice >= starts.len() {
            starts.resize(slice + 1, 0);
        }
        starts[slice] += 1;
    }
    let mut start = 0;
    for place in &mut starts {
        start += std::mem::replace(place, start);
    }
    let Some(first) = rows.clone().next() else {
        return Vec::new();
    };
    let mut sorted = vec![first; start];
    for row in rows {
        let place = &mut starts[row.slice as usize];
        sorted[*place] = row;
        *place += 1;
    }
    sorted
}
