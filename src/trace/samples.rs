//! Distinct samples and their sums.

use crate::base::{Distinct, IdVec, WeightSum, define_id};

use super::{AddressPathId, TraceEventId, TraceSample, TraceThreadId};

define_id! {
    /// A row of [`Samples`].
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
    /// Makes room for one event more.
    pub(super) fn add_event(&mut self) {
        self.totals.push(0);
    }

    /// Counts a sample. `row` is where the last one like it was counted, if one is known.
    /// Returns the row, and whether all of its weight was counted.
    pub(super) fn add(
        &mut self,
        key: SampleKey,
        weight: u64,
        row: Option<SampleId>,
    ) -> (SampleId, bool) {
        let row = match row.filter(|&row| self.keys.rows()[row] == key) {
            Some(row) => row,
            None => self.row(key),
        };
        (row, self.add_to(row, WeightSum::of(weight)))
    }

    /// Counts many samples. Returns the row.
    fn add_many(&mut self, key: SampleKey, sum: WeightSum) -> SampleId {
        let row = self.row(key);
        self.add_to(row, sum);
        row
    }

    /// Returns the same samples of `events` events at other places, and for each row its row there.
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
            .map(|(key, &sum)| moved.add_many(place(key), sum))
            .collect();
        (moved, rows)
    }

    fn row(&mut self, key: SampleKey) -> SampleId {
        let row = self.keys.id_of(key);
        if self.sums.get(row).is_none() {
            self.sums.push(WeightSum::default());
        }
        row
    }

    /// Counts samples in a row. Returns whether all of their weight was counted.
    fn add_to(&mut self, row: SampleId, sum: WeightSum) -> bool {
        let total = &mut self.totals[self.keys.rows()[row].event];
        let accepted = sum.at_most(u64::MAX - *total);
        *total += accepted.weight;
        self.sums[row].add(accepted);
        accepted.weight == sum.weight
    }

    /// Returns the keys of the rows, in order of first appearance.
    pub(super) fn keys(&self) -> &IdVec<SampleId, SampleKey> {
        self.keys.rows()
    }

    /// The weight and the number of each.
    pub(super) fn sums(&self) -> &IdVec<SampleId, WeightSum> {
        &self.sums
    }

    /// The rows in order of event, thread and path.
    pub(super) fn rows(&self) -> Vec<TraceSample> {
        rows(self.keys.rows().iter().zip(self.sums.iter().copied()))
    }
}

/// Rows of a trace, in order of event, thread and path.
pub(super) fn rows<'a>(
    samples: impl Iterator<Item = (&'a SampleKey, WeightSum)>,
) -> Vec<TraceSample> {
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
    rows.sort_unstable_by_key(|row| (row.event, row.thread, row.path));
    rows
}
