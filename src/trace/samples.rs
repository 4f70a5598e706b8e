//! Distinct samples and their sums.

use crate::base::{Distinct, IdVec, WeightSum, define_id};

use super::{AddressPathId, TraceEventId, TraceSample, TraceThreadId};

define_id! {
    pub(super) SampleId
}

/// What distinguishes rows of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SampleKey {
    pub(super) event: TraceEventId,
    pub(super) thread: TraceThreadId,
    pub(super) path: AddressPathId,
}

/// The samples so far; equal ones are summed up.
#[derive(Debug, Default)]
pub(super) struct Samples {
    keys: Distinct<SampleId, SampleKey>,
    sums: IdVec<SampleId, WeightSum>,
    /// The total weight of each event: a weight is cut where its event's would pass 64 bits.
    totals: IdVec<TraceEventId, u64>,
}

impl Samples {
    pub(super) fn add_event(&mut self) {
        self.totals.push(0);
    }

    /// Counts a sample. Returns whether all of its weight was counted.
    pub(super) fn add(&mut self, key: SampleKey, weight: u64) -> bool {
        let sum = WeightSum::of(weight);
        let room = u64::MAX - self.totals[key.event];
        let accepted = sum.at_most(room);
        self.take_room(key.event, accepted.weight);
        self.add_accepted(key, accepted);
        accepted.weight == weight
    }

    pub(super) fn has_room(&self, event: TraceEventId, weight: u64) -> bool {
        weight <= u64::MAX - self.totals[event]
    }

    pub(super) fn take_room(&mut self, event: TraceEventId, weight: u64) {
        let total = &mut self.totals[event];
        *total = total.saturating_add(weight);
    }

    /// Counts samples whose weight the total of their event has. Returns the row.
    pub(super) fn add_accepted(&mut self, key: SampleKey, sum: WeightSum) -> SampleId {
        let row = self.keys.id_of(key);
        if self.sums.get(row).is_none() {
            self.sums.push(WeightSum::default());
        }
        self.sums[row].add(sum);
        row
    }

    pub(super) fn moved(
        &self,
        events: usize,
        place: &dyn Fn(&SampleKey) -> SampleKey,
    ) -> (Samples, Vec<SampleId>) {
        let mut moved = Samples::default();
        (0..events).for_each(|_| moved.add_event());
        let rows = self
            .keys
            .rows()
            .iter()
            .zip(&self.sums)
            .map(|(key, &sum)| {
                moved.take_room(key.event, sum.weight);
                moved.add_accepted(place(key), sum)
            })
            .collect();
        (moved, rows)
    }

    /// Returns the keys of the rows, in order of first appearance.
    pub(super) fn keys(&self) -> &IdVec<SampleId, SampleKey> {
        self.keys.rows()
    }

    pub(super) fn sums(&self) -> &IdVec<SampleId, WeightSum> {
        &self.sums
    }

    /// The rows in order of event, thread and path.
    pub(super) fn rows(&self) -> Vec<TraceSample> {
        rows(
            self.keys
                .rows()
                .iter()
                .copied()
                .zip(self.sums.iter().copied()),
        )
    }

    pub(super) fn rows_with(&self, others: Vec<(SampleKey, WeightSum)>) -> Vec<TraceSample> {
        let own = self
            .keys
            .rows()
            .iter()
            .copied()
            .zip(self.sums.iter().copied());
        let mut rows = rows(own.chain(others));
        sum_up(&mut rows);
        rows
    }
}

/// Rows of a trace, in order of event, thread and path.
pub(super) fn rows(samples: impl Iterator<Item = (SampleKey, WeightSum)>) -> Vec<TraceSample> {
    let mut rows: Vec<TraceSample> = samples
        .map(|(key, sum)| TraceSample {
            event: key.event,
            thread: key.thread,
            path: key.path,
            weight: sum.weight,
            count: sum.count,
            squares: sum.squares,
        })
        .collect();
    sort(&mut rows);
    rows
}

/// Puts rows into the order of event, thread and path.
pub(super) fn sort(rows: &mut [TraceSample]) {
    rows.sort_unstable_by_key(|row| (row.event, row.thread, row.path));
}

/// Sums up rows with the same event, thread and path; they are in order of these.
pub(super) fn sum_up(rows: &mut Vec<TraceSample>) {
    rows.dedup_by(|next, kept| {
        let key = |row: &TraceSample| (row.event, row.thread, row.path);
        let is_same = key(next) == key(kept);
        if is_same {
            kept.weight = kept.weight.saturating_add(next.weight);
            kept.count = kept.count.saturating_add(next.count);
            kept.squares = kept.squares.saturating_add(next.squares);
        }
        is_same
    });
}
