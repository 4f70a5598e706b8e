//! What events have counted, next to what their samples add up to.
//!
//! The kernel counts an event of a clock or of software all the time, sampled or not, also in
//! threads that live too short for a sample; `read` gives the sum over all that inherited it.

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::cast::Open;
use super::doubles;
use super::event::EventSpec;
use super::kernel;
use super::rows::Row;
use super::tally::{SAMPLE, word};
use crate::base::{Counted, Counting};
use crate::perfdata::writer::{EventDescription, count_record};
use perf_event_open_sys::bindings as sys;

/// How long counters that are read again and again rest at least.
const LEAST_PAUSE: Duration = Duration::from_millis(150);
/// Reading them takes at most one part in this many of the time.
const COST: u32 = 50;
/// Where they are in an attr.
const PERIOD_AT: usize = 16;
const SAMPLE_TYPE_AT: usize = 24;
const FLAGS_AT: usize = 40;
/// `exclude_kernel` and `freq`, flags.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const FREQ: u64 = 1 << 10;
/// Where the id and the period are in a sample: behind the header, and behind IDENTIFIER, IP, TID,
/// TIME, CPU.
const SAMPLE_ID_AT: usize = 8;
const SAMPLE_PERIOD_AT: usize = 48;

/// What the counters of one event have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// In threads of which nothing is counted twice.
    pub(super) least: u64,
    /// In threads that may have the event by inheritance, too.
    pub(super) unsure: u64,
}

impl Count {
    /// A part of it.
    pub(super) fn part(self, part: f64) -> Count {
        let of = |count: u64| (count as f64 * part) as u64;
        Count {
            least: of(self.least),
            unsure: of(self.unsure),
        }
    }

    /// The count that is nearest to this sum of samples. Whether a thread that appeared while the
    /// events were opened is counted twice is not known.
    pub(super) fn nearest(self, sampled: u64) -> u64 {
        sampled.clamp(self.least, self.least.saturating_add(self.unsure))
    }
}

/// Reads the counters of each event of `specs`; `None` where its counters are read with a group.
pub(super) fn read(specs: &[EventSpec], rows: &[Row]) -> Vec<Option<Count>> {
    let counts = specs.iter().enumerate().map(|(index, spec)| {
        if spec.reads {
            return None;
        }
        let mut count = Count::default();
        for row in rows {
            for fd in row.events.get(index)? {
                let value = kernel::read_event(fd.as_fd(), 3).ok()?;
                let value = value.first()?;
                let sum = match row.late {
                    true => &mut count.unsure,
                    false => &mut count.least,
                };
                *sum = sum.saturating_add(*value);
            }
        }
        Some(count)
    });
    counts.collect()
}

/// What counters have counted since `before`.
pub(super) fn since(now: Vec<Option<Count>>, before: &[Option<Count>]) -> Vec<Option<Count>> {
    let counts = now.into_iter().enumerate().map(|(index, now)| {
        let before = before.get(index).copied().flatten().unwrap_or_default();
        now.map(|now| Count {
            least: now.least.saturating_sub(before.least),
            unsure: now.unsure.saturating_sub(before.unsure),
        })
    });
    counts.collect()
}

/// The sums of the periods of samples.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// By the ids of events: which event it is, and the period where samples do not have it.
    ids: FxHashMap<u64, (usize, Option<u64>)>,
    sums: Vec<(u64, u64)>,
}

impl Sums {
    pub(super) fn new(events: &[EventDescription]) -> Sums {
        let mut ids = FxHashMap::default();
        for (index, event) in events.iter().enumerate() {
            let asked = word(&event.attr, SAMPLE_TYPE_AT).unwrap_or(0);
            let has_period = asked & u64::from(sys::PERF_SAMPLE_PERIOD) != 0;
            let fixed = word(&event.attr, PERIOD_AT).filter(|_| !has_period);
            ids.extend(event.ids.iter().map(|&id| (id, (index, fixed))));
        }
        Sums {
            ids,
            sums: vec![(0, 0); events.len()],
        }
    }

    /// Adds the samples among whole records.
    fn add_all(&mut self, records: &[u8]) {
        let all = doubles::filter(
            records,
            &mut |record| {
                if doubles::kind(record) == Some(SAMPLE) {
                    self.add(record);
                }
                true
            },
            &mut |_| Ok::<(), Infallible>(()),
        );
        let Ok(()) = all;
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, sample: &[u8]) {
        let event = word(sample, SAMPLE_ID_AT).and_then(|id| self.ids.get(&id));
        let Some(&(index, fixed)) = event else {
            return;
        };
        let period = fixed.or_else(|| word(sample, SAMPLE_PERIOD_AT));
        if let Some((sum, samples)) = self.sums.get_mut(index) {
            *sum = sum.saturating_add(period.unwrap_or(1));
            *samples += 1;
        }
    }

    /// The samples of an event next to what the kernel has counted of it.
    pub(super) fn compared(
        &self,
        index: usize,
        event: &EventDescription,
        spec: &EventSpec,
        count: Count,
    ) -> Counted {
        let (sampled, samples) = self.sums.get(index).copied().unwrap_or_default();
        let number = word(&event.attr, PERIOD_AT).unwrap_or(0);
        let flags = word(&event.attr, FLAGS_AT).unwrap_or(0);
        let counting = Counting::of(spec.kind, spec.config[0], flags & EXCLUDE_KERNEL != 0);
        Counted {
            counting,
            counted: count.nearest(sampled),
            sampled,
            samples,
            period: counting.period(flags & FREQ != 0, number),
        }
    }
}

/// The counters of a recording that is watched: they are read again and again, as nobody knows when
/// it ends.
#[derive(Debug, Default)]
pub(super) struct Counters {
    sums: Sums,
    /// What the READ records so far add up to, by event.
    reported: Vec<u64>,
    due: Option<Instant>,
}

impl Counters {
    pub(super) fn new(events: &[EventDescription]) -> Counters {
        Counters {
            sums: Sums::new(events),
            reported: vec![0; events.len()],
            due: None,
        }
    }

    /// Adds the samples among whole records.
    pub(super) fn sampled(&mut self, records: &[u8]) {
        self.sums.add_all(records);
    }

    /// Whether it is time to read them.
    pub(super) fn are_due(&self) -> bool {
        self.due.is_none_or(|due| Instant::now() >= due)
    }

    /// Returns READ records of what was counted since the last ones.
    pub(super) fn read(&mut self, open: &Open, time: u64) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::writer::ATTR_SIZE;

    #[test]
    fn samples_add_up_by_event() {
        let event = |id: u64, sample_type: u32, period: u64| {
            let mut attr = [0; ATTR_SIZE];
            attr[PERIOD_AT..PERIOD_AT + 8].copy_from_slice(&period.to_ne_bytes());
            attr[SAMPLE_TYPE_AT..SAMPLE_TYPE_AT + 4].copy_from_slice(&sample_type.to_ne_bytes());
            EventDescription {
                name: "page-faults".into(),
                attr,
                ids: vec![id, id + 1],
            }
        };
        let events = [event(70, sys::PERF_SAMPLE_PERIOD, 1), event(80, 0, 100)];
        let mut sums = Sums::new(&events);
        let sample = |id: u64, period: u64| {
            let words = [9, id, 0, 0, 0, 0, period].map(u64::to_ne_bytes);
            words.concat()
        };
        for (id, period) in [(70, 5), (71, 7), (80, 3), (81, 3), (99, 1)] {
            sums.add(&sample(id, period));
        }
        sums.add(&[0; 3]);
        assert_eq!(sums.sums, [(12, 2), (200, 2)]);
    }

    #[test]
    fn a_thread_that_may_be_counted_twice_makes_the_count_unsure() {
        let count = Count {
            least: 100,
            unsure: 20,
        };
        let nearest = [50, 110, 500].map(|sampled| count.nearest(sampled));
        assert_eq!(nearest, [100, 110, 120]);
    }
}
