//! What counters of groups had counted before a part of a recording that stands for itself.
//!
//! A sample of a group tells what each of its counters has counted since the beginning. Whoever reads
//! only later samples would take all of that for what the first of them counted.
//!
//! ```text
//!   a sample: header │ IDENTIFIER │ IP │ TID │ TIME │ CPU [│ PERIOD] │ nr │ { value, id [, lost] } × nr
//! ```

use perf_event_open_sys::bindings as sys;
use rustc_hash::FxHashMap;

use super::tally::word;
use crate::perfdata::writer::EventDescription;

/// Where the id is, in bytes: the first field of each sample.
const ID_AT: usize = 8;
/// What stands before the thread, and before the counters, if it was asked for.
const BEFORE_THREAD: u32 = sys::PERF_SAMPLE_IDENTIFIER | sys::PERF_SAMPLE_IP;
const BEFORE_COUNTERS: u32 = BEFORE_THREAD
    | sys::PERF_SAMPLE_TID
    | sys::PERF_SAMPLE_TIME
    | sys::PERF_SAMPLE_ADDR
    | sys::PERF_SAMPLE_ID
    | sys::PERF_SAMPLE_STREAM_ID
    | sys::PERF_SAMPLE_CPU
    | sys::PERF_SAMPLE_PERIOD;
/// Where they are in an attr.
const SAMPLE_TYPE_AT: usize = 24;
const READ_FORMAT_AT: usize = 32;
const FLAGS_AT: usize = 40;
/// `inherit`, the second of the flags.
const INHERIT: u64 = 2;

/// How the samples of an event tell of its group.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Where the process and thread are in a sample, in bytes.
    thread_at: usize,
    /// Where the number of counters is, with them behind it.
    counters_at: usize,
    /// Words of each counter.
    stride: usize,
    /// Whether each thread has counters of its own.
    of_threads: bool,
}

/// The counters of groups.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupValues {
    /// By the ids of the leaders.
    groups: FxHashMap<u64, Group>,
    /// By process and thread (0 where they do not matter) and id.
    values: FxHashMap<(u64, u64), u64>,
}

impl GroupValues {
    /// Nothing has been counted.
    pub(super) fn new(events: &[EventDescription]) -> GroupValues {
        let mut groups = FxHashMap::default();
        for event in events {
            let field = |at| word(&event.attr, at).unwrap_or(0);
            let format = field(READ_FORMAT_AT);
            let has = |bits: u64, bit: u32| bits & u64::from(bit) != 0;
            let is_group = has(field(SAMPLE_TYPE_AT), sys::PERF_SAMPLE_READ)
                && has(format, sys::PERF_FORMAT_GROUP);
            if is_group {
                let asked = field(SAMPLE_TYPE_AT);
                let group = Group {
                    thread_at: behind(asked, BEFORE_THREAD),
                    counters_at: behind(asked, BEFORE_COUNTERS),
                    stride: 2 + usize::from(has(format, sys::PERF_FORMAT_LOST)),
                    of_threads: field(FLAGS_AT) & INHERIT != 0,
                };
                groups.extend(event.ids.iter().map(|&id| (id, group)));
            }
        }
        GroupValues {
            groups,
            values: FxHashMap::default(),
        }
    }

    /// Whether there are groups.
    pub(super) fn is_any(&self) -> bool {
        !self.groups.is_empty()
    }

    /// A sample is left out: later ones count from its values.
    pub(super) fn leave_out(&mut self, sample: &[u8]) {
        let values = &mut self.values;
        each(&self.groups, sample, |thread, id, at| {
            values.insert((thread, id), word(sample, at).unwrap_or(0));
        });
    }

    /// A sample stays: its values become what was counted since those that were left out.
    pub(super) fn adjust(&self, sample: &mut [u8]) {
        let mut changes = Vec::new();
        each(&self.groups, sample, |thread, id, at| {
            if let Some(before) = self.values.get(&(thread, id)) {
                let value = word(sample, at).unwrap_or(0);
                changes.push((at, value.saturating_sub(*before)));
            }
        });
        for (at, value) in changes {
            if let Some(place) = sample.get_mut(at..at + 8) {
                place.copy_from_slice(&value.to_ne_bytes());
            }
        }
    }
}

/// Where a field of a sample is that comes behind these, of which only those asked for are there.
fn behind(asked: u64, fields: u32) -> usize {
    8 + 8 * (asked & u64::from(fields)).count_ones() as usize
}

/// Tells of each counter in a sample: the thread, the id, and where its value is.
fn each(groups: &FxHashMap<u64, Group>, sample: &[u8], mut tell: impl FnMut(u64, u64, usize)) {
    let group = word(sample, ID_AT).and_then(|id| groups.get(&id));
    let Some(group) = group else {
        return;
    };
    let Some(count) = word(sample, group.counters_at) else {
        return;
    };
    let thread = match group.of_threads {
        true => word(sample, group.thread_at).unwrap_or(0),
        false => 0,
    };
    let mut at = group.counters_at + 8;
    for _ in 0..count {
        let Some(id) = word(sample, at + 8) else {
            return;
        };
        tell(thread, id, at);
        at += 8 * group.stride;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::writer::ATTR_SIZE;

    const COUNTERS_AT: usize = 56;

    /// A group of the counters 70 and 71, told with what was lost.
    fn group(has_period: bool) -> GroupValues {
        let mut attr = [0; ATTR_SIZE];
        let mut asked = BEFORE_THREAD
            | sys::PERF_SAMPLE_TID
            | sys::PERF_SAMPLE_TIME
            | sys::PERF_SAMPLE_CPU
            | sys::PERF_SAMPLE_READ;
        if has_period {
            asked |= sys::PERF_SAMPLE_PERIOD;
        }
        attr[SAMPLE_TYPE_AT..SAMPLE_TYPE_AT + 4].copy_from_slice(&asked.to_ne_bytes());
        attr[READ_FORMAT_AT] = (sys::PERF_FORMAT_GROUP | sys::PERF_FORMAT_LOST) as u8;
        attr[FLAGS_AT] = INHERIT as u8;
        GroupValues::new(&[EventDescription {
            name: "cpu-clock".into(),
            attr,
            ids: vec![70],
        }])
    }

    fn sample(thread: u64, values: [u64; 2]) -> Vec<u8> {
        let counters = [values[0], 70, 0, values[1], 71, 0];
        let words = [&[9, 70, 1, thread, 5, 0, 1, 2][..], &counters].concat();
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn later_samples_count_from_those_that_were_left_out() {
        let mut group = group(true);
        assert!(group.is_any());
        group.leave_out(&sample(1, [100, 7]));
        group.leave_out(&sample(1, [150, 9]));
        let adjusted = |thread, values| {
            let mut sample = sample(thread, values);
            group.adjust(&mut sample);
            [word(&sample, 64), word(&sample, 88)].map(Option::unwrap)
        };
        assert_eq!(adjusted(1, [180, 9]), [30, 0]);
        assert_eq!(adjusted(2, [180, 9]), [180, 9], "another thread");
    }

    #[test]
    fn counters_are_found_where_samples_have_no_period() {
        let mut group = group(false);
        let without_period = |thread, values| {
            let mut bytes = sample(thread, values);
            bytes.drain(COUNTERS_AT - 8..COUNTERS_AT);
            bytes
        };
        group.leave_out(&without_period(1, [100, 7]));
        let mut later = without_period(1, [180, 9]);
        group.adjust(&mut later);
        let values = [word(&later, 56), word(&later, 80)].map(Option::unwrap);
        assert_eq!(values, [80, 2]);
    }

    #[test]
    fn broken_samples_do_no_harm() {
        let mut group = group(true);
        let mut short = sample(1, [1, 2]);
        short[COUNTERS_AT..COUNTERS_AT + 8].fill(0xff);
        for size in [0, 9, 40, 60, 70, 80, short.len()] {
            group.leave_out(&short[..size]);
            group.adjust(&mut short[..size]);
        }
    }
}
