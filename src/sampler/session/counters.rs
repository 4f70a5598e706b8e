//! The counters of what is watched, read while it is sampled.

use std::time::{Duration, Instant};

use super::participants::Open;
use crate::perfdata::raw::{self, Layouts};
use crate::perfdata::writer::{WriterEvent, count_record};
use crate::sampler::counts::Sums;

// How long counters that are read again and again rest at least.
const LEAST_PAUSE: Duration = Duration::from_millis(150);
// Reading them takes at most one part in this many of the time.
const COST: u32 = 50;

/// The counters of a recording that is watched: they are read again and again, as nobody knows when
/// it ends.
#[derive(Debug, Default)]
pub(in crate::sampler) struct Counters {
    sums: Sums,
    layouts: Layouts,
    /// What the READ records so far add up to, by event.
    reported: Vec<u64>,
    due: Option<Instant>,
}

impl Counters {
    pub(in crate::sampler) fn new(events: &[WriterEvent]) -> Counters {
        Counters {
            sums: Sums::new(events),
            layouts: Layouts::new(events),
            reported: vec![0; events.len()],
            due: None,
        }
    }

    pub(in crate::sampler) fn sampled(&mut self, records: &[u8]) {
        for record in raw::records(records).filter(|record| record.is_sample()) {
            self.sums.add_sample(record, &self.layouts);
        }
    }

    pub(in crate::sampler) fn are_due(&self) -> bool {
        self.due.is_none_or(|due| Instant::now() >= due)
    }

    pub(in crate::sampler) fn read(&mut self, open: &Open, time: u64) -> Vec<u8> {
        let begin = Instant::now();
        let session = &open.session;
        let lost = session.lost().map(|_| 0);
        let mut records = Vec::new();
        for (index, count) in session.counts(&open.user_share).into_iter().enumerate() {
            let (Some(count), Some((spec, event)), Some(reported)) =
                (count, session.event(index), self.reported.get_mut(index))
            else {
                continue;
            };
            let counted = self.sums.compared(index, event, spec, count).counted;
            if let Some(&id) = event.ids.first() {
                let since = counted.saturating_sub(*reported);
                records.extend(count_record(time, id, since, lost));
                *reported = counted.max(*reported);
            }
        }
        // A counter of each of thousands of threads takes a while to read.
        let pause = LEAST_PAUSE.max(begin.elapsed() * COST);
        self.due = Some(Instant::now() + pause);
        records
    }
}
