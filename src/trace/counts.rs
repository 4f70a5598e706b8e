//! The weights of all samples of an event, held against what the recorder read from its counter.
//!
//! The kernel chooses the periods of events that are sampled by frequency: where an event comes in
//! bursts, their sum may be twice what happened. The counter of the same event tells.

use linux_perf_event_reader::AttrFlags;

use crate::base::{Caveats, Counted, Counting};
use crate::perfdata::{Attr, Reader, Sample};

/// What the samples of one event add up to, and what its counter says.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    weight: u64,
    samples: u64,
    counted: Option<u64>,
}

/// The sums of all samples of a recording, by event; of a part of its time, too.
#[derive(Debug, Default)]
pub(super) struct Counts {
    events: Vec<Sum>,
}

impl Counts {
    /// A sample was read.
    pub(super) fn sample(&mut self, event: usize, weight: u64) {
        let sum = self.sum(event);
        sum.weight = sum.weight.saturating_add(weight);
        sum.samples += 1;
    }

    /// The counter of the event with this id was read.
    pub(super) fn read(&mut self, reader: &Reader, id: u64, value: u64) {
        let Some(event) = reader.event_of_id(id) else {
            return;
        };
        let counted = &mut self.sum(event).counted;
        *counted = Some(counted.unwrap_or(0).saturating_add(value));
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
            let Some(counted) = sum.counted else {
                continue;
            };
            let counting = counting(&event.attr);
            let counted = Counted {
                counting,
                counted,
                sampled: sum.weight,
                samples: sum.samples,
                period: counting.period(
                    event.attr.flags().contains(AttrFlags::FREQ),
                    event.attr.period_or_frequency,
                ),
            };
            if let Some((kind, detail)) = counted.caveat(&event.name) {
                caveats.add_detail(kind, 1, detail);
            }
        }
    }
}

/// What a sample stands for.
pub(super) fn weight_of(reader: &Reader, sample: &Sample<'_>) -> u64 {
    let attr = &reader.events()[sample.event].attr;
    sample.period.or(attr.fixed_period()).unwrap_or(1)
}

/// What an event counts.
pub(super) fn counting(attr: &Attr) -> Counting {
    let excludes_kernel = attr.flags().contains(AttrFlags::EXCLUDE_KERNEL);
    Counting::of(attr.kind, attr.config, excludes_kernel)
}
