//! The weights of all samples of an event, held against what the recorder read from its counter.
//!
//! The kernel chooses the periods of events that are sampled by frequency: where an event comes in
//! bursts, their sum may be twice what happened. The counter of the same event tells.

use linux_perf_event_reader::{AttrFlags, constants};

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
        if event >= self.events.len() {
            self.events.resize(event + 1, Sum::default());
        }
        let sum = &mut self.events[event];
        sum.weight = sum.weight.saturating_add(weight);
        sum.samples += 1;
    }

    /// The counter of the event with this id was read.
    pub(super) fn read(&mut self, reader: &Reader, id: u64, value: u64) {
        let Some(event) = reader.event_of_id(id) else {
            return;
        };
        if event >= self.events.len() {
            self.events.resize(event + 1, Sum::default());
        }
        let counted = self.events[event].counted.unwrap_or(0);
        self.events[event].counted = Some(counted.saturating_add(value));
    }

    /// Adds a caveat for each event whose samples do not add up.
    pub(super) fn compare(&self, reader: &Reader, caveats: &mut Caveats) {
        for (sum, event) in self.events.iter().zip(reader.events()) {
            let Some(counted) = sum.counted else {
                continue;
            };
            let excludes_kernel = event.attr.flags().contains(AttrFlags::EXCLUDE_KERNEL);
            let counting = match counting(&event.attr) {
                Counting::Clock if excludes_kernel => Counting::UserClock,
                other => other,
            };
            let counted = Counted {
                counting,
                counted,
                sampled: sum.weight,
                samples: sum.samples,
                period: period(&event.attr),
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
    const CLOCKS: [u64; 2] = [
        constants::PERF_COUNT_SW_CPU_CLOCK,
        constants::PERF_COUNT_SW_TASK_CLOCK,
    ];
    match attr.kind {
        constants::PERF_TYPE_SOFTWARE if CLOCKS.contains(&attr.config) => Counting::Clock,
        constants::PERF_TYPE_SOFTWARE
        | constants::PERF_TYPE_TRACEPOINT
        | constants::PERF_TYPE_BREAKPOINT => Counting::Occurrences,
        _ => Counting::Hardware,
    }
}

/// The period that was asked for. The kernel makes one of the frequency of a clock at once.
fn period(attr: &Attr) -> Option<u64> {
    let frequency = attr.period_or_frequency;
    let is_clock = counting(attr) == Counting::Clock;
    match attr.flags().contains(AttrFlags::FREQ) && is_clock {
        true => 1_000_000_000u64.checked_div(frequency),
        false => attr.fixed_period(),
    }
}
