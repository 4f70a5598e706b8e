//! The weights of all samples of an event, compared with what the recorder read from its counter.
//!
//! The kernel chooses the periods of events that are sampled by frequency: where an event comes in
//! bursts, their sum may be twice what happened. The counter of the same event shows that.
//!
//! Our recorder writes what was counted into READ records, each with what has come since the one
//! before, at the end or, where a recording is watched, a few times a second. A first count of zero
//! says where counting begins: what was sampled before it is not compared, nor what is sampled
//! after the last one.

use linux_perf_event_reader::{AttrFlags, constants};

use crate::base::{Caveats, Counted, Counting, Periods};
use crate::perfdata::{Attr, Reader, Sample};

/// What the samples of one event add up to, and what its counter says.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    weight: u64,
    samples: u64,
    /// What was counted at the last READ record, and the two above as they were there.
    read: Option<Read>,
}

#[derive(Clone, Copy, Debug)]
struct Read {
    counted: u64,
    weight: u64,
    samples: u64,
}

/// The sums of all samples of a recording, by event; of a part of its time, too.
#[derive(Debug, Default)]
pub(super) struct Counts {
    events: Vec<Sum>,
    /// Whether the first count has begun before the samples have.
    is_part: bool,
    periods: Vec<Periods>,
}

impl Counts {
    /// Starts over, at the current values of the counters.
    pub(super) fn reset(&mut self) {
        *self = Counts {
            is_part: true,
            ..Counts::default()
        };
    }

    pub(super) fn sample(&mut self, event: usize, weight: u64) {
        let sum = self.sum(event);
        sum.weight = sum.weight.saturating_add(weight);
        sum.samples += 1;
    }

    pub(super) fn period(&mut self, event: usize, period: u64) {
        if event >= self.periods.len() {
            self.periods.resize(event + 1, Periods::default());
        }
        self.periods[event].add(period);
    }

    pub(super) fn periods(&self) -> &[Periods] {
        &self.periods
    }

    pub(super) fn read(&mut self, reader: &Reader, id: u64, value: u64) {
        let Some(event) = reader.event_of_id(id) else {
            return;
        };
        let is_part = self.is_part;
        let sum = self.sum(event);
        let counted = match sum.read {
            Some(read) => read.counted.saturating_add(value),
            None if is_part || value == 0 => {
                (sum.weight, sum.samples) = (0, 0);
                0
            }
            None => value,
        };
        sum.read = Some(Read {
            counted,
            weight: sum.weight,
            samples: sum.samples,
        });
    }

    fn sum(&mut self, event: usize) -> &mut Sum {
        if event >= self.events.len() {
            self.events.resize(event + 1, Sum::default());
        }
        &mut self.events[event]
    }

    /// Adds a caveat for each event whose samples do not add up.
    pub(super) fn compare(&self, reader: &Reader, caveats: &mut Caveats) {
        for (sum, event) in self.events.iter().zip(reader.events()) {
            let Some(read) = sum.read else {
                continue;
            };
            let counting = counting(&event.attr);
            let counted = Counted {
                counting,
                counted: read.counted,
                sampled: read.weight,
                samples: read.samples,
                period: counting.period(
                    event.attr.flags().contains(AttrFlags::FREQ),
                    event.attr.period_or_frequency,
                ),
                ended: reader
                    .counts()
                    .get(&constants::PERF_RECORD_EXIT)
                    .copied()
                    .unwrap_or(0),
                switches: reader.features().switches,
            };
            if let Some((kind, detail)) = counted.caveat(&event.name) {
                caveats.add_detail(kind, 1, detail);
            }
        }
    }
}

pub(super) fn weight_of(reader: &Reader, sample: &Sample<'_>) -> u64 {
    let attr = &reader.events()[sample.event].attr;
    sample.period.or(attr.fixed_period()).unwrap_or(1)
}

pub(super) fn counting(attr: &Attr) -> Counting {
    let excludes_kernel = attr.flags().contains(AttrFlags::EXCLUDE_KERNEL);
    Counting::of(attr.kind, attr.config, excludes_kernel)
}
