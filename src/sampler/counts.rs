//! What events have counted, next to what their samples add up to.
//!
//! The kernel counts an event of a clock or of software all the time, sampled or not, also in
//! threads that live too short for a sample; `read` gives the sum over all that inherited it.

use std::os::fd::AsFd;

use perf_event_open_sys::bindings as sys;

use super::events::event::EventSpec;
use super::kernel;
use super::rings::descriptors::ThreadEvents;
use crate::base::{Counted, Counting};
use crate::perfdata::raw::{Field, Layouts, RawRecord};
use crate::perfdata::writer::WriterEvent;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// The count in threads that cannot be counted twice.
    pub(super) least: u64,
    /// The count including threads that may have inherited the event as well.
    pub(super) unsure: u64,
}

impl Count {
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
pub(super) fn read(specs: &[EventSpec], rows: &[ThreadEvents]) -> Vec<Option<Count>> {
    let counts = specs.iter().enumerate().map(|(index, spec)| {
        if spec.reads {
            return None;
        }
        let mut count = Count::default();
        for row in rows {
            for fd in row.events.get(index)? {
                let value = kernel::read_event(fd.as_fd(), 3).ok()?;
                let value = value.first()?;
                let sum = if row.late {
                    &mut count.unsure
                } else {
                    &mut count.least
                };
                *sum = sum.saturating_add(*value);
            }
        }
        Some(count)
    });
    counts.collect()
}

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

#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// By event: the period where samples do not have it, the sum, the samples.
    events: Vec<(Option<u64>, u64, u64)>,
}

impl Sums {
    pub(super) fn new(events: &[WriterEvent]) -> Sums {
        let fixed = |event: &WriterEvent| {
            let attr = event.settings();
            let has_period = attr.sample_type & u64::from(sys::PERF_SAMPLE_PERIOD) != 0;
            (!has_period).then_some(attr.period_or_frequency)
        };
        Sums {
            events: events.iter().map(|event| (fixed(event), 0, 0)).collect(),
        }
    }

    pub(super) fn add_sample(&mut self, sample: RawRecord<'_>, layouts: &Layouts) {
        if let Some((event, offsets)) = layouts.event(sample) {
            self.add(event, sample.field(Field::Period, offsets));
        }
    }

    fn add(&mut self, event: usize, period: Option<u64>) {
        if let Some((fixed, sum, samples)) = self.events.get_mut(event) {
            *sum = sum.saturating_add(fixed.or(period).unwrap_or(1));
            *samples += 1;
        }
    }

    pub(super) fn compared(
        &self,
        index: usize,
        event: &WriterEvent,
        spec: &EventSpec,
        count: Count,
    ) -> Counted {
        let (_, sampled, samples) = self.events.get(index).copied().unwrap_or_default();
        let attr = event.settings();
        let counting = Counting::of(spec.kind, spec.config[0], attr.excludes_kernel());
        Counted {
            counting,
            counted: count.nearest(sampled),
            sampled,
            samples,
            period: counting.period(attr.has_frequency(), attr.period_or_frequency),
            ended: 0,
            switches: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::writer::ATTR_SIZE;

    #[test]
    fn samples_add_up_by_event() {
        let event = |sample_type: u32, period: u64| {
            let mut attr = [0; ATTR_SIZE];
            attr[16..24].copy_from_slice(&period.to_ne_bytes());
            attr[24..32].copy_from_slice(&u64::from(sample_type).to_ne_bytes());
            WriterEvent {
                name: "page-faults".into(),
                attr,
                ids: Vec::new(),
            }
        };
        let events = [event(sys::PERF_SAMPLE_PERIOD, 1), event(0, 100)];
        let mut sums = Sums::new(&events);
        for (event, period) in [(0, Some(5)), (0, None), (1, None), (1, Some(3)), (2, None)] {
            sums.add(event, period);
        }
        assert_eq!(sums.events, [(None, 6, 2), (Some(100), 200, 2)]);
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
