//! Puts records into order of time.
//!
//! Each processor's buffer is in order of time, but a recorder empties them one after the other:
//!
//! ```text
//!   file:   cpu 0: 1 4 6 │ cpu 1: 2 3 7 │ FINISHED_ROUND │ cpu 0: 8 9 │ cpu 1: 10 │ FINISHED_ROUND
//!   wanted: 1 2 3 4 6 7 8 9 10
//! ```
//!
//! `FINISHED_ROUND` says that all buffers were looked at once. A record that was written to a
//! buffer after it had been emptied comes with the next round, so at the end of a round everything
//! up to the greatest time of the round *before* is complete. That is perf's rule. Recorders have
//! been seen to break it; therefore records are only handed out when they take more memory than
//! the budget, and a record that comes too late all the same is noticed: the reader can then start
//! again and sort the whole recording, in memory and on disk (see `spill`).

// Bytes of records that wait before a round's end hands them out, where rounds are relied on.
const ROUNDS: u64 = 8 << 20;
const OVERHEAD: u64 = size_of::<Waiting>() as u64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) time: u64,
    pub(super) buffer: u32,
    pub(super) start: u32,
}

#[derive(Debug)]
pub(super) struct Sorter {
    waiting: Vec<Waiting>,
    // Bytes of records that may wait before a round's end hands them out.
    budget: u64,
    bytes: u64,
    greatest: u64,
    /// Everything up to here is complete at the end of the next round.
    complete: u64,
    handed_out: u64,
}

impl Sorter {
    pub(super) fn by_rounds() -> Sorter {
        Sorter::new(ROUNDS)
    }

    /// A queue that hands records out as soon as a round has made them complete.
    pub(super) fn prompt() -> Sorter {
        Sorter::new(0)
    }

    pub(super) fn of_all() -> Sorter {
        Sorter::new(u64::MAX)
    }

    fn new(budget: u64) -> Sorter {
        Sorter {
            waiting: Vec::new(),
            budget,
            bytes: 0,
            greatest: 0,
            complete: 0,
            handed_out: 0,
        }
    }

    /// Adds a record of `size` bytes. Returns false when it comes too late: later ones have been
    /// handed out already.
    pub(super) fn add(&mut self, record: Waiting, size: usize) -> bool {
        self.greatest = self.greatest.max(record.time);
        self.bytes += size as u64 + OVERHEAD;
        self.waiting.push(record);
        record.time >= self.handed_out
    }

    /// A round ended. Returns the time up to which records are to be handed out now.
    pub(super) fn end_round(&mut self) -> Option<u64> {
        let limit = std::mem::replace(&mut self.complete, self.greatest);
        (self.bytes > self.budget).then_some(limit)
    }

    /// The greatest time handed out: all that is not later was handed out, too, unless it comes
    /// late.
    pub(super) fn handed_out(&self) -> u64 {
        self.handed_out
    }

    pub(super) fn hands_out(&mut self, time: u64) {
        self.handed_out = self.handed_out.max(time);
    }

    pub(super) fn middle(&mut self) -> u64 {
        self.sort();
        let middle = self.waiting.get(self.waiting.len() / 2);
        middle.map_or(u64::MAX, |record| record.time)
    }

    // Stable: records of equal time stay in the order of the file. What is in order costs one look
    // at each.
    fn sort(&mut self) {
        self.waiting.sort_by_key(|w| w.time);
    }

    pub(super) fn take(&mut self, limit: u64) -> Vec<Waiting> {
        self.sort();
        let end = self.waiting.partition_point(|w| w.time <= limit);
        let rest = self.waiting.split_off(end);
        let out = std::mem::replace(&mut self.waiting, rest);
        // What is left counts as if its share of bytes were that of its number.
        let all = (out.len() + self.waiting.len()).max(1) as u64;
        self.bytes = self.bytes / all * self.waiting.len() as u64;
        out
    }

    pub(super) fn put_back(&mut self, records: Vec<Waiting>) {
        self.waiting = records;
    }

    /// Bytes of memory that the queue takes besides those of the records.
    pub(super) fn held(&self) -> u64 {
        self.waiting.len() as u64 * OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64) -> Waiting {
        Waiting {
            time,
            buffer: 0,
            start: 0,
        }
    }

    /// The times of what is handed out up to `limit`.
    fn times(sorter: &mut Sorter, limit: Option<u64>) -> Vec<u64> {
        let Some(limit) = limit else {
            return Vec::new();
        };
        let times: Vec<u64> = sorter.take(limit).iter().map(|r| r.time).collect();
        sorter.hands_out(times.last().copied().unwrap_or(0));
        times
    }

    #[test]
    fn a_round_hands_out_what_the_round_before_completed() {
        let mut sorter = Sorter::prompt();
        assert!([1, 4, 6, 2, 3, 7].iter().all(|&t| sorter.add(record(t), 8)));
        let due = sorter.end_round();
        assert!(times(&mut sorter, due).is_empty());
        assert!([8, 5, 10].iter().all(|&t| sorter.add(record(t), 8)));
        let due = sorter.end_round();
        assert_eq!(times(&mut sorter, due), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(times(&mut sorter, Some(u64::MAX)), [8, 10]);
    }

    #[test]
    fn a_late_record_is_reported() {
        let mut sorter = Sorter::prompt();
        sorter.add(record(5), 8);
        sorter.end_round();
        sorter.add(record(9), 8);
        let due = sorter.end_round();
        assert_eq!(times(&mut sorter, due), [5]);
        assert!(!sorter.add(record(4), 8));
    }

    #[test]
    fn a_queue_that_ignores_rounds_keeps_everything() {
        let mut sorter = Sorter::of_all();
        sorter.add(record(5), usize::MAX / 2);
        assert_eq!(sorter.end_round(), None);
        assert_eq!(sorter.end_round(), None);
    }
}
