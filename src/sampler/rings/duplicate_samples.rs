//! Removes samples that come twice.
//!
//! A thread that appeared while the events were opened may have them by inheritance and was given
//! its own as well. The kernel marks what comes of inherited events with the id of the event that
//! they were inherited from, so of such a thread, and of those that it makes, only what has an id
//! of its own events counts.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use perf_event_open_sys::bindings as sys;

use crate::perfdata::Body;
use crate::perfdata::raw::{Field, Offsets, RawRecord};

#[derive(Clone, Debug, Default)]
pub(in crate::sampler) struct DuplicateSamples {
    offsets: Offsets,
    own: FxHashMap<i32, Rc<FxHashSet<u64>>>,
}

impl DuplicateSamples {
    pub(in crate::sampler) fn new(offsets: &Offsets) -> DuplicateSamples {
        DuplicateSamples {
            offsets: *offsets,
            own: FxHashMap::default(),
        }
    }

    /// Of this thread, only what has one of these ids counts.
    pub(in crate::sampler) fn expect(&mut self, tid: i32, ids: impl IntoIterator<Item = u64>) {
        self.own.insert(tid, Rc::new(ids.into_iter().collect()));
    }

    pub(in crate::sampler) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    fn is_own(&self, record: RawRecord<'_>) -> bool {
        let own = record.tid(&self.offsets).and_then(|tid| self.own.get(&tid));
        let id = record.field(Field::Id, &self.offsets);
        own.is_none_or(|ids| id.is_some_and(|id| ids.contains(&id)))
    }

    pub(in crate::sampler) fn admits(&mut self, record: RawRecord<'_>) -> bool {
        match record.kind() {
            sys::PERF_RECORD_SAMPLE | sys::PERF_RECORD_SWITCH => return self.is_own(record),
            sys::PERF_RECORD_FORK | sys::PERF_RECORD_EXIT => {}
            _ => return true,
        }
        match record.says(&self.offsets) {
            Some(Body::Fork(task)) if !self.own.contains_key(&task.tid) => {
                if let Some(ids) = self.own.get(&task.parent_tid).cloned() {
                    self.own.insert(task.tid, ids);
                }
            }
            Some(Body::Exit(task)) => {
                self.own.remove(&task.tid);
            }
            _ => {}
        }
        true
    }
}

/// Whether a record is of a part of the time only: a sample, a switch, what was counted meanwhile.
pub(in crate::sampler) fn is_of_time(record: RawRecord<'_>) -> bool {
    matches!(
        record.kind(),
        sys::PERF_RECORD_SAMPLE
            | sys::PERF_RECORD_SWITCH
            | sys::PERF_RECORD_SWITCH_CPU_WIDE
            | sys::PERF_RECORD_READ
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::perfdata::raw::{self, Layouts, oracle};
    use crate::sampler::events::attr::tests::description;

    fn duplicates() -> DuplicateSamples {
        DuplicateSamples::new(Layouts::new(&[description("cpu-clock")]).shared())
    }

    fn record(kind: u32, halves: &[u32]) -> Vec<u8> {
        let body: Vec<u8> = halves.iter().flat_map(|half| half.to_ne_bytes()).collect();
        oracle::record(kind, 0, &body)
    }

    /// IDENTIFIER, IP, process and thread.
    fn sample(tid: u32, id: u64) -> Vec<u8> {
        let words = [id, 0].map(u64::to_ne_bytes).concat();
        let task = [1, tid].map(u32::to_ne_bytes).concat();
        oracle::record(sys::PERF_RECORD_SAMPLE, 0, &[words, task].concat())
    }

    /// Process and thread, TIME, CPU, IDENTIFIER.
    fn switch(tid: u32, id: u64) -> Vec<u8> {
        let task = [1, tid].map(u32::to_ne_bytes).concat();
        let words = [0, 0, id].map(u64::to_ne_bytes).concat();
        oracle::record(sys::PERF_RECORD_SWITCH, 0, &[task, words].concat())
    }

    #[test]
    fn samples_that_arrive_twice_count_once() {
        let mut duplicates = duplicates();
        duplicates.expect(7, [70, 71]);
        let task = |kind, tid: u32, parent: u32| {
            let own = [1, 1, tid, parent, 0, 0];
            record(kind, &[&own[..], &[0; 8]].concat())
        };
        // Thread 8 is made by 7 and has the events of both; 9 is made by a thread that was there.
        let kept = [
            sample(1, 10),
            sample(7, 70),
            task(sys::PERF_RECORD_FORK, 8, 7),
            sample(8, 71),
            task(sys::PERF_RECORD_FORK, 9, 1),
            sample(9, 10),
            switch(8, 71),
            switch(1, 10),
            task(sys::PERF_RECORD_EXIT, 7, 1),
            sample(7, 10),
        ];
        let mut all = kept.to_vec();
        all.insert(4, sample(8, 10));
        all.insert(0, sample(7, 10));
        all.push(sample(8, 10));
        all.push(switch(8, 10));
        let all = all.concat();
        let mut seen = Vec::new();
        let mut admits = |record: RawRecord<'_>| duplicates.admits(record);
        let taken = raw::filter(&all, &mut admits, &mut |records| {
            seen.extend_from_slice(records);
            Ok::<(), ()>(())
        });
        assert_eq!(taken, Ok(()));
        assert_eq!(seen, kept.concat());
    }

    #[test]
    fn broken_records_do_not_cause_a_hang() {
        let mut duplicates = duplicates();
        duplicates.expect(0, []);
        for bytes in [&[0; 64][..], &[9, 0, 0, 0, 0, 0, 255, 255, 1], &[4; 12]] {
            let mut admits = |record: RawRecord<'_>| duplicates.admits(record);
            let taken = raw::filter(bytes, &mut admits, &mut |_| Ok::<(), ()>(()));
            assert_eq!(taken, Ok(()));
        }
    }
}
