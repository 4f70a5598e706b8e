//! When samples were taken: sums by slices of equal length, counted from the first sample, or from
//! where the part of time begins that is looked at.
//!
//! The length of a recording is known only at its end. So slices begin short, and when there are
//! too many of them, each two become one:
//!
//! ```text
//!   1 ms each    0 1 2 3 … 255   a sample at 256 ms
//!   2 ms each    0   1   … 127   128
//! ```
//!
//! Samples that are equal in event, thread, path and slice are added up, so that memory does not
//! grow with the length of a recording on the same stacks.

use std::mem;

use crate::base::{Distinct, SliceSum, SliceSums, SmallSum, define_id};

use super::samples::SampleKey;
use super::{AddressPathId, TraceEventId, TraceThreadId};

// The shortest slice, in nanoseconds.
const SHORTEST: u64 = 1_000_000;
// How many slices there are at most.
const SLICES: u64 = 256;
// With fewer rows than this, adding up equal rows saves nothing.
const FEW: usize = 4096;
// How many samples are taken before memory is given back.
const CHUNK: usize = 1 << 16;

/// The samples of a thread on a path in a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    pub event: TraceEventId,
    pub thread: TraceThreadId,
    pub path: AddressPathId,
    pub slice: u32,
    pub weight: u64,
    /// The number of samples; of intervals of time, those that reach into the slice.
    pub count: u64,
}

/// The samples of a trace by time.
#[derive(Clone, Debug)]
pub struct Times {
    /// The length of a slice in nanoseconds.
    pub slice: u64,
    /// Where the first slice begins, in nanoseconds after the first sample.
    pub start: u64,
    /// The end of the selected part of time, if it is before the end of the recording.
    pub end: Option<u64>,
    rows: Rows,
}

impl Times {
    // In order of event, thread, path and slice.
    #[cfg(test)]
    fn samples(&self) -> impl Iterator<Item = TimedSample> {
        self.rows.rows.iter().map(|row| self.rows.sample(row))
    }

    /// Takes the samples from the last to the first.
    pub fn into_last_first(self) -> LastFirst {
        LastFirst(self.rows)
    }
}

/// Samples, from the last to the first. There may be as many as a recording has: as they are taken,
/// their memory is given back.
#[derive(Debug)]
pub struct LastFirst(Rows);

impl Iterator for LastFirst {
    type Item = TimedSample;

    fn next(&mut self) -> Option<TimedSample> {
        let last = self.0.rows.pop()?;
        if self.0.rows.len().is_multiple_of(CHUNK) {
            self.0.rows.shrink_to_fit();
        }
        Some(self.0.sample(&last))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.rows.len(), Some(self.0.rows.len()))
    }
}

impl ExactSizeIterator for LastFirst {}

define_id! {
    /// A thread whose samples are of an event.
    OwnerId
}

/// The samples of an owner on a path in a slice. There may be as many as a recording has, and twice
/// as many while they are sorted, so they are small.
#[derive(Clone, Copy, Debug)]
struct Row {
    owner: OwnerId,
    path: AddressPathId,
    sum: SmallSum,
}

/// Rows, and what they refer to.
#[derive(Clone, Debug, Default)]
struct Rows {
    rows: Vec<Row>,
    owners: Distinct<OwnerId, (TraceEventId, TraceThreadId)>,
    sums: SliceSums,
}

impl Rows {
    fn push(&mut self, key: SampleKey, sum: SliceSum) {
        self.rows.push(Row {
            owner: self.owners.id_of((key.event, key.thread)),
            path: key.path,
            sum: self.sums.small(sum),
        });
    }

    fn sample(&self, row: &Row) -> TimedSample {
        let (event, thread) = self.owners.rows()[row.owner];
        let sum = self.sums.get(row.sum);
        TimedSample {
            event,
            thread,
            path: row.path,
            slice: sum.slice,
            weight: sum.weight,
            count: sum.count,
        }
    }

    fn change(&mut self, change: impl Fn(SliceSum) -> SliceSum) {
        let sums = mem::take(&mut self.sums);
        for row in &mut self.rows {
            row.sum = self.sums.small(change(sums.get(row.sum)));
        }
    }

    fn add_up(&mut self) {
        self.sort();
        let sums = &mut self.sums;
        self.rows.dedup_by(|next, kept| {
            let (new, old) = (sums.get(next.sum), sums.get(kept.sum));
            let is_same = (next.owner, next.path, new.slice) == (kept.owner, kept.path, old.slice);
            if is_same {
                kept.sum = sums.small(SliceSum {
                    slice: old.slice,
                    weight: old.weight.saturating_add(new.weight),
                    count: old.count.saturating_add(new.count),
                });
            }
            is_same
        });
        if !self.sums.are_small() {
            // Sums that were added up have left theirs behind.
            self.change(|sum| sum);
        }
    }

    /// Sorts by event, thread, path and slice.
    fn sort(&mut self) {
        // Samples come in order of time, which is that of slices: what leaves equal rows in their
        // order has to look at the others only.
        let Rows { rows, owners, sums } = self;
        let owners = owners.rows();
        let mut spare = Vec::new();
        sort_by_number(rows, |row| row.path.index(), &mut spare);
        sort_by_number(rows, |row| owners[row.owner].1.index(), &mut spare);
        sort_by_number(rows, |row| owners[row.owner].0.index(), &mut spare);
        // One look at each where all is in order. Intervals reach back into earlier slices.
        rows.sort_by_key(|row| (owners[row.owner], row.path, sums.get(row.sum).slice));
    }
}

/// Puts the rows where they belong by counting how many there are of each number; rows of one
/// number stay in their order. `spare` is room for them, if it is not empty.
fn sort_by_number(rows: &mut Vec<Row>, number: impl Fn(&Row) -> usize, spare: &mut Vec<Row>) {
    let numbers = || rows.iter().map(&number);
    let (Some(least), Some(most)) = (numbers().min(), numbers().max()) else {
        return;
    };
    // Counting takes longer where there are fewer rows than numbers, and is in vain for one.
    if least == most || most - least >= rows.len() {
        return;
    }
    let mut starts = vec![0_usize; most - least + 1];
    numbers().for_each(|number| starts[number - least] += 1);
    let mut start = 0;
    for place in &mut starts {
        start += mem::replace(place, start);
    }
    if spare.is_empty() {
        spare.clone_from(rows);
    }
    for row in rows.iter() {
        let place = &mut starts[number(row) - least];
        spare[*place] = *row;
        *place += 1;
    }
    mem::swap(rows, spare);
}

/// The samples so far.
#[derive(Debug)]
pub(super) struct TimedSamples {
    slice: u64,
    rows: Rows,
    /// How many there were when equal ones were added up last.
    distinct: usize,
    /// Whether each sample had a time.
    is_whole: bool,
}

impl TimedSamples {
    pub(super) fn new() -> TimedSamples {
        TimedSamples {
            slice: SHORTEST,
            rows: Rows::default(),
            distinct: 0,
            is_whole: true,
        }
    }

    /// Counts a sample that was taken this long after the first slice began.
    pub(super) fn add(&mut self, key: SampleKey, at: Option<u64>, weight: u64) {
        let Some(at) = at else {
            self.is_whole = false;
            return;
        };
        self.reach(at);
        self.push(key, at / self.slice, weight);
    }

    /// Counts an interval: in each slice the time that it has there.
    pub(super) fn add_interval(&mut self, key: SampleKey, from: u64, to: u64) {
        self.reach(to);
        let mut at = from;
        while at < to {
            let slice = at / self.slice;
            let end = to.min((slice + 1) * self.slice);
            self.push(key, slice, end - at);
            at = end;
        }
    }

    fn push(&mut self, key: SampleKey, slice: u64, weight: u64) {
        if self.rows.rows.len() >= FEW.max(2 * self.distinct) {
            self.add_up();
        }
        // There are no more slices than 32 bits can number.
        let slice = slice as u32;
        self.rows.push(
            key,
            SliceSum {
                slice,
                weight,
                count: 1,
            },
        );
    }

    /// Makes slices long enough for this time.
    fn reach(&mut self, at: u64) {
        let mut times = 0;
        while at / self.slice >= SLICES {
            self.slice = self.slice.saturating_mul(2);
            times += 1;
        }
        if times > 0 {
            self.rows.change(|sum| SliceSum {
                slice: sum.slice.checked_shr(times).unwrap_or(0),
                ..sum
            });
            self.add_up();
        }
    }

    fn add_up(&mut self) {
        self.rows.add_up();
        self.distinct = self.rows.rows.len();
    }

    /// The sums, with those of other events behind them, whose numbers are counted on from
    /// `behind`; `None` if some sample had no time.
    pub(super) fn finish(mut self, others: Option<TimedSamples>, behind: usize) -> Option<Times> {
        if !self.is_whole {
            return None;
        }
        if let Some(mut others) = others {
            // Lengths are multiples of the shortest by powers of two.
            self.reach((SLICES - 1).saturating_mul(others.slice));
            others.reach((SLICES - 1).saturating_mul(self.slice));
            for row in &others.rows.rows {
                let TimedSample {
                    event,
                    thread,
                    path,
                    ..
                } = others.rows.sample(row);
                let event = TraceEventId::new(behind + event.index());
                let key = SampleKey {
                    event,
                    thread,
                    path,
                };
                self.rows.push(key, others.rows.sums.get(row.sum));
            }
        }
        self.add_up();
        Some(Times {
            slice: self.slice,
            start: 0,
            end: None,
            rows: self.rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: usize) -> SampleKey {
        SampleKey {
            event: TraceEventId::new(0),
            thread: TraceThreadId::new(0),
            path: AddressPathId::new(path),
        }
    }

    #[test]
    fn slices_grow_and_keep_each_sample_in_its_time() {
        let mut times = TimedSamples::new();
        let taken: Vec<u64> = (0..3000).map(|i| i * 700_001).collect();
        for &at in &taken {
            times.add(key(at as usize % 3), Some(at), 1);
        }
        let times = times.finish(None, 0).unwrap();
        assert_eq!(times.slice, 16_000_000);
        for slice in 0..SLICES {
            let range = slice * times.slice..(slice + 1) * times.slice;
            let wanted = taken.iter().filter(|at| range.contains(at)).count() as u64;
            let rows = times.samples().filter(|row| u64::from(row.slice) == slice);
            assert_eq!(rows.map(|row| row.weight).sum::<u64>(), wanted);
        }
    }

    #[test]
    fn rows_are_in_order_of_event_thread_path_and_slice() {
        let mut times = TimedSamples::new();
        for number in 0..20_000_usize {
            let key = SampleKey {
                event: TraceEventId::new(number % 3),
                thread: TraceThreadId::new(number % 7),
                path: AddressPathId::new(number * 31 % 500),
            };
            times.add(key, Some(number as u64 * 50_000), 1);
            if number % 5 == 0 {
                let at = number as u64 * 50_000;
                times.add_interval(key, at.saturating_sub(9_000_000), at);
            }
        }
        let times = times.finish(None, 0).unwrap();
        let place = |row: &TimedSample| (row.event, row.thread, row.path, row.slice);
        assert!(
            times
                .samples()
                .map(|row| place(&row))
                .is_sorted_by(|a, b| a < b)
        );
        let samples: u64 = times.samples().map(|row| row.count).sum();
        assert!(samples >= 24_000);
    }

    #[test]
    fn samples_are_taken_from_the_last_and_give_their_memory_back() {
        let mut times = TimedSamples::new();
        for number in 0..200_000_usize {
            times.add(key(number), Some(number as u64), 1);
        }
        let times = times.finish(None, 0).unwrap();
        let mut wanted: Vec<_> = times.samples().collect();
        wanted.reverse();
        let mut taken = times.into_last_first();
        assert_eq!(taken.len(), 200_000);
        let first: Vec<_> = taken.by_ref().take(150_000).collect();
        assert_eq!(
            (taken.len(), first.as_slice()),
            (50_000, &wanted[..150_000])
        );
        assert!(taken.0.rows.capacity() < 100_000);
        assert!(taken.eq(wanted[150_000..].iter().copied()));
    }

    #[test]
    fn an_interval_is_cut_at_the_ends_of_slices() {
        let (mut times, mut off) = (TimedSamples::new(), TimedSamples::new());
        times.add(key(0), Some(5), 1);
        off.add_interval(key(1), 500_000, 3_250_000);
        off.add_interval(key(1), 2_000_000_000, 2_000_000_001);
        let times = times.finish(Some(off), 7).unwrap();
        let rows: Vec<_> = times
            .samples()
            .map(|row| (row.event.index(), row.slice, row.weight))
            .collect();
        assert_eq!(times.slice, 8_000_000);
        assert_eq!(rows, [(0, 0, 1), (7, 0, 2_750_000), (7, 250, 1)]);
        let mut untimed = TimedSamples::new();
        untimed.add(key(0), None, 1);
        assert!(untimed.finish(None, 0).is_none());
    }
}
