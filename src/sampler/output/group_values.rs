//! The values of group counters before a part of a recording that is written on its own.
//!
//! A sample of a group has what each counter has counted since the beginning. A reader of only the
//! later samples would attribute all of that to the first of them.

use rustc_hash::FxHashMap;

use crate::perfdata::raw::{self, Field, Layouts, RawRecord};
use crate::perfdata::writer::WriterEvent;

#[derive(Clone, Debug, Default)]
pub(in crate::sampler) struct GroupValues {
    /// Whether each thread has counters of its own, by event.
    of_threads: Vec<bool>,
    /// By process and thread (0 where they do not matter) and id.
    values: FxHashMap<(u64, u64), u64>,
}

impl GroupValues {
    pub(in crate::sampler) fn new(events: &[WriterEvent]) -> GroupValues {
        let of_threads = events.iter().map(|event| event.settings().inherits());
        GroupValues {
            of_threads: of_threads.collect(),
            values: FxHashMap::default(),
        }
    }

    /// A sample is left out: later ones count from its values.
    pub(in crate::sampler) fn leave_out(&mut self, layouts: &Layouts, sample: RawRecord<'_>) {
        let Some((event, offsets)) = layouts.event(sample) else {
            return;
        };
        let mut counters = sample.counters(offsets).peekable();
        if counters.peek().is_some() {
            let thread = self.thread(event, sample, layouts);
            self.values
                .extend(counters.map(|counter| ((thread, counter.id), counter.value)));
        }
    }

    /// A sample stays: its values become what was counted since those that were left out.
    pub(in crate::sampler) fn adjust(&self, layouts: &Layouts, sample: &mut [u8]) {
        let Some(record) = RawRecord::first(sample) else {
            return;
        };
        let Some((event, offsets)) = layouts.event(record) else {
            return;
        };
        let thread = self.thread(event, record, layouts);
        raw::change_counters(sample, offsets, |id, value| {
            let before = self.values.get(&(thread, id)).copied();
            value.saturating_sub(before.unwrap_or(0))
        });
    }

    fn thread(&self, event: usize, sample: RawRecord<'_>, layouts: &Layouts) -> u64 {
        if self.of_threads.get(event) == Some(&true) {
            let task = sample.field(Field::Task, layouts.shared());
            task.unwrap_or(0)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::writer::ATTR_SIZE;
    use perf_event_open_sys::bindings as sys;

    /// Where the counters of a sample with a period are, the header included.
    const COUNTERS_AT: usize = 56;

    /// A group of the counters 70 and 71, with its number of lost samples.
    fn group(has_period: bool) -> (GroupValues, Layouts) {
        let mut attr = sys::perf_event_attr {
            size: ATTR_SIZE as u32,
            sample_type: u64::from(
                sys::PERF_SAMPLE_IDENTIFIER
                    | sys::PERF_SAMPLE_IP
                    | sys::PERF_SAMPLE_TID
                    | sys::PERF_SAMPLE_TIME
                    | sys::PERF_SAMPLE_CPU
                    | sys::PERF_SAMPLE_READ,
            ),
            read_format: u64::from(
                sys::PERF_FORMAT_GROUP | sys::PERF_FORMAT_ID | sys::PERF_FORMAT_LOST,
            ),
            ..Default::default()
        };
        attr.set_inherit(1);
        if has_period {
            attr.sample_type |= u64::from(sys::PERF_SAMPLE_PERIOD);
        }
        let events = [WriterEvent {
            name: "cpu-clock".into(),
            attr: crate::sampler::kernel::attr_bytes(&attr),
            ids: vec![70],
        }];
        (GroupValues::new(&events), Layouts::new(&events))
    }

    fn sample(thread: u64, has_period: bool, values: [u64; 2]) -> Vec<u8> {
        let counters = [2, values[0], 70, 0, values[1], 71, 0];
        let period = if has_period { &[1][..] } else { &[] };
        let words = [&[70, 1, thread, 5, 0], period, &counters].concat();
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        raw::oracle::record(sys::PERF_RECORD_SAMPLE, 2, &body)
    }

    fn record(bytes: &[u8]) -> RawRecord<'_> {
        RawRecord::first(bytes).unwrap()
    }

    #[test]
    fn later_samples_count_from_those_that_were_left_out() {
        for has_period in [true, false] {
            let (mut group, layouts) = group(has_period);
            assert!(layouts.has_counters());
            for values in [[100, 7], [150, 9]] {
                group.leave_out(&layouts, record(&sample(1, has_period, values)));
            }
            let adjusted = |thread, values| {
                let mut sample = sample(thread, has_period, values);
                group.adjust(&layouts, &mut sample);
                let (_, offsets) = layouts.event(record(&sample)).unwrap();
                let counters = record(&sample).counters(offsets);
                counters.map(|counter| counter.value).collect::<Vec<_>>()
            };
            assert_eq!(adjusted(1, [180, 9]), [30, 0]);
            assert_eq!(adjusted(2, [180, 9]), [180, 9], "another thread");
        }
    }

    #[test]
    fn broken_samples_are_passed_over() {
        let (mut group, layouts) = group(true);
        let mut short = sample(1, true, [1, 2]);
        short[COUNTERS_AT..COUNTERS_AT + 8].fill(0xff);
        for size in [0, 9, 40, 60, 70, 80, short.len()] {
            let mut cut = short[..size].to_vec();
            if size >= 8 {
                cut[6..8].copy_from_slice(&(size as u16).to_ne_bytes());
                group.leave_out(&layouts, record(&cut));
            }
            group.adjust(&layouts, &mut cut);
        }
    }
}
