//! Samples that come twice, taken out.
//!
//! A thread that appeared while the events were opened may have them by inheritance and was given
//! its own as well. The kernel marks what comes of inherited events with the id of the event that
//! they were inherited from, so of such a thread, and of those that it makes, only what has an id
//! of its own events counts.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::tally::{READ, SAMPLE, word};

const EXIT: u32 = 4;
const FORK: u32 = 7;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;

/// Where the thread is in a sample, after the header, IDENTIFIER, IP and the process; and its id.
const SAMPLE_TID_AT: usize = 28;
const SAMPLE_ID_AT: usize = 8;
/// The same in SWITCH: header, process and thread, TIME, CPU, IDENTIFIER.
const SWITCH_TID_AT: usize = 12;
const SWITCH_ID_AT: usize = 32;
/// Where the thread and its parent are in FORK and EXIT.
const TID_AT: usize = 16;
const PARENT_TID_AT: usize = 20;

/// The threads of which samples may come twice.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubles {
    /// The ids of each one's own events.
    own: FxHashMap<i32, Rc<FxHashSet<u64>>>,
}

impl Doubles {
    /// Of this thread, only what has one of these ids counts.
    pub(super) fn expect(&mut self, tid: i32, ids: impl IntoIterator<Item = u64>) {
        self.own.insert(tid, Rc::new(ids.into_iter().collect()));
    }

    /// Whether there are no such threads.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Whether a record is of an event that its thread has for its own; where the thread and the id
    /// of the event are.
    fn is_own(&self, record: &[u8], tid_at: usize, id_at: usize) -> bool {
        let own = thread_at(record, tid_at).and_then(|tid| self.own.get(&tid));
        own.is_none_or(|ids| word(record, id_at).is_some_and(|id| ids.contains(&id)))
    }

    /// Whether a record counts.
    pub(super) fn admits(&mut self, record: &[u8]) -> bool {
        let kind = half(record, 0).unwrap_or(0);
        let thread = |at| thread_at(record, at);
        match kind {
            SAMPLE => self.is_own(record, SAMPLE_TID_AT, SAMPLE_ID_AT),
            SWITCH => self.is_own(record, SWITCH_TID_AT, SWITCH_ID_AT),
            FORK => {
                if let (Some(tid), Some(parent)) = (thread(TID_AT), thread(PARENT_TID_AT))
                    && !self.own.contains_key(&tid)
                    && let Some(ids) = self.own.get(&parent).cloned()
                {
                    self.own.insert(tid, ids);
                }
                true
            }
            EXIT => {
                if let Some(tid) = thread(TID_AT) {
                    self.own.remove(&tid);
                }
                true
            }
            _ => true,
        }
    }
}

fn thread_at(record: &[u8], at: usize) -> Option<i32> {
    half(record, at).map(|number| number as i32)
}

/// Hands out those of whole records that `admits` lets pass, in as large slices as can be.
pub(super) fn filter<E>(
    records: &[u8],
    admits: &mut dyn FnMut(&[u8]) -> bool,
    consume: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut begin, mut at) = (0, 0);
    while let Some(header) = records.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]])).max(8);
        let end = (at + size).min(records.len());
        if !admits(&records[at..end]) {
            if begin < at {
                consume(&records[begin..at])?;
            }
            begin = end;
        }
        at = end;
    }
    match begin < records.len() {
        true => consume(&records[begin..]),
        false => Ok(()),
    }
}

/// Whether a record is of a part of the time only: a sample, a switch, what was counted meanwhile.
pub(super) fn is_of_time(record: &[u8]) -> bool {
    matches!(
        half(record, 0),
        Some(SAMPLE | SWITCH | SWITCH_CPU_WIDE | READ)
    )
}

/// The number of a record's type.
pub(super) fn kind(record: &[u8]) -> Option<u32> {
    half(record, 0)
}

fn half(record: &[u8], at: usize) -> Option<u32> {
    let bytes = record.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u32]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(0u16.to_ne_bytes());
        record.extend((8 + 4 * body.len() as u16).to_ne_bytes());
        record.extend(body.iter().flat_map(|half| half.to_ne_bytes()));
        record
    }

    fn sample(tid: u32, id: u64) -> Vec<u8> {
        let words = id.to_ne_bytes();
        let (first, second) = words.split_at(4);
        let half = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().unwrap());
        record(SAMPLE, &[half(first), half(second), 0, 0, 1, tid])
    }

    /// Process and thread, TIME, CPU, IDENTIFIER.
    fn switch(tid: u32, id: u32) -> Vec<u8> {
        record(SWITCH, &[1, tid, 0, 0, 0, 0, id, 0])
    }

    #[test]
    fn what_comes_twice_counts_once() {
        let mut doubles = Doubles::default();
        doubles.expect(7, [70, 71]);
        let task = |kind, tid: u32, parent: u32| record(kind, &[1, 1, tid, parent, 0, 0]);
        // Thread 8 is made by 7 and has the events of both; 9 is made by a thread that was there.
        let kept = [
            sample(1, 10),
            sample(7, 70),
            task(FORK, 8, 7),
            sample(8, 71),
            task(FORK, 9, 1),
            sample(9, 10),
            switch(8, 71),
            switch(1, 10),
            task(EXIT, 7, 1),
            sample(7, 10),
        ];
        let mut all = kept.to_vec();
        all.insert(4, sample(8, 10));
        all.insert(0, sample(7, 10));
        all.push(sample(8, 10));
        all.push(switch(8, 10));
        let all = all.concat();
        let mut seen = Vec::new();
        let mut admits = |record: &[u8]| doubles.admits(record);
        let taken = filter(&all, &mut admits, &mut |records| {
            seen.extend_from_slice(records);
            Ok::<(), ()>(())
        });
        assert_eq!(taken, Ok(()));
        assert_eq!(seen, kept.concat());
    }

    #[test]
    fn broken_records_do_not_hang_it() {
        let mut doubles = Doubles::default();
        doubles.expect(0, []);
        for bytes in [&[0; 64][..], &[9, 0, 0, 0, 0, 0, 255, 255, 1], &[4; 12]] {
            let mut admits = |record: &[u8]| doubles.admits(record);
            let taken = filter(bytes, &mut admits, &mut |_| Ok::<(), ()>(()));
            assert_eq!(taken, Ok(()));
        }
    }
}
