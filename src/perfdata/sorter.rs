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
//! again with a greater budget.

/// A record that waits: where it is, and its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) time: u64,
    /// The buffer that holds it.
    pub(super) buffer: u32,
    /// Its place in the buffer.
    pub(super) start: u32,
}

/// The queue of waiting records.
#[derive(Debug)]
pub(super) struct Sorter {
    waiting: Vec<Waiting>,
    /// Bytes of records that may wait before a round's end hands them out.
    budget: u64,
    /// Bytes of records that may wait at all.
    most: u64,
    /// Bytes that wait.
    bytes: u64,
    /// The greatest time seen.
    greatest: u64,
    /// Everything up to here is complete at the end of the next round.
    complete: u64,
    /// The greatest time handed out.
    handed_out: u64,
}

impl Sorter {
    pub(super) fn new(budget: u64) -> Sorter {
        Sorter::with_most(budget, budget.saturating_mul(4))
    }

    /// One that hands records out as soon as a round has made them complete.
    pub(super) fn prompt(most: u64) -> Sorter {
        Sorter::with_most(0, most)
    }

    fn with_most(budget: u64, most: u64) -> Sorter {
        Sorter {
            waiting: Vec::new(),
            budget,
            most,
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
        self.bytes += size as u64;
        self.waiting.push(record);
        record.time >= self.handed_out
    }

    /// A round ended. Returns the records to hand out now, in order.
    pub(super) fn end_round(&mut self) -> Vec<Waiting> {
        let limit = self.complete;
        self.complete = self.greatest;
        match self.bytes > self.budget {
            true => self.hand_out(limit),
            false => Vec::new(),
        }
    }

    /// The greatest time handed out: all that is not later was handed out, too, unless it comes
    /// late.
    pub(super) fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Whether so much waits that some must go, rounds or not.
    pub(super) fn is_overfull(&self) -> bool {
        self.bytes > self.most
    }

    /// The older half of the waiting records, in order.
    pub(super) fn hand_out_half(&mut self) -> Vec<Waiting> {
        self.sort();
        let middle = self.waiting.get(self.waiting.len() / 2);
        let limit = middle.map_or(u64::MAX, |w| w.time);
        self.hand_out(limit)
    }

    /// All waiting records, in order.
    pub(super) fn finish(&mut self) -> Vec<Waiting> {
        self.hand_out(u64::MAX)
    }

    /// Stable: records of equal time stay in the order of the file.
    fn sort(&mut self) {
        self.waiting.sort_by_key(|w| w.time);
    }

    fn hand_out(&mut self, limit: u64) -> Vec<Waiting> {
        self.sort();
        let end = self.waiting.partition_point(|w| w.time <= limit);
        let rest = self.waiting.split_off(end);
        let out = std::mem::replace(&mut self.waiting, rest);
        if let Some(last) = out.last() {
            self.handed_out = self.handed_out.max(last.time);
        }
        // What is left counts as if its share of bytes were that of its number.
        let all = (out.len() + self.waiting.len()).max(1) as u64;
        self.bytes = self.bytes / all * self.waiting.len() as u64;
        out
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

    fn times(records: &[Waiting]) -> Vec<u64> {
        records.iter().map(|r| r.time).collect()
    }

    #[test]
    fn a_round_hands_out_what_the_round_before_completed() {
        let mut sorter = Sorter::new(0);
        assert!([1, 4, 6, 2, 3, 7].iter().all(|&t| sorter.add(record(t), 8)));
        assert!(sorter.end_round().is_empty());
        assert!([8, 5, 10].iter().all(|&t| sorter.add(record(t), 8)));
        assert_eq!(times(&sorter.end_round()), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(times(&sorter.finish()), [8, 10]);
    }

    #[test]
    fn a_late_record_is_noticed() {
        let mut sorter = Sorter::new(0);
        sorter.add(record(5), 8);
        sorter.end_round();
        sorter.add(record(9), 8);
        assert_eq!(times(&sorter.end_round()), [5]);
        assert!(!sorter.add(record(4), 8));
    }
}
