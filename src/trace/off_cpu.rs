//! Off-CPU time as samples of two events, in nanoseconds.
//!
//! ```text
//!   sample of context-switches   the stack with which a thread leaves its processor
//!   SWITCH out                   when it does, and whether it could have gone on
//!   SWITCH in                    when it is back
//!                                 ══▶ one sample of `off-cpu`, or of `preempted`, on that stack
//! ```
//!
//! A recording has these events if one of its events records switches and there are some. The
//! interval is that between the two records: a thread that was woken counts as off until it has a
//! processor again. The idle thread of a processor, number 0, is not waiting for anything.
//!
//! A thread that is off at the end counts up to the last record, which in recordings of proftool
//! marks their end. A thread that was off when the recording began has no stack: its interval
//! counts from the beginning if the recorder recorded that, and does not count otherwise. The time
//! between the creation of a thread and its first step does not count. With `--time`, intervals are
//! cut to the range.
//!
//! A stack that is a copy is known later than its interval; whichever comes first waits.

use std::ops::Range;

use linux_perf_event_reader::constants::{PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_TYPE_SOFTWARE};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::{BLOCKED_BEFORE, CaveatKind, Caveats, Event, NO_SWITCH_STACK, Sampling};
use crate::perfdata::{Attr, EventDescription};

use super::samples::{SampleKey, Samples};
use super::switches::{self, Switches};
use super::time_range::TimeRange;
use super::timed::TimedSamples;
use super::{AddressPathId, Trace, TraceEventId, TraceSample, TraceThreadId};

/// Whether each sample of an event is of a thread that leaves its processor.
pub(super) fn is_of_switches(event: &EventDescription) -> bool {
    let Attr { kind, config, .. } = event.attr;
    let switches = (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
    (kind, config) == switches || event.name.starts_with("sched:sched_switch")
}

/// Names a stack that is being unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ticket(u64);

/// The stack with which a thread leaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum SwitchStack {
    Known(AddressPathId),
    /// It will be.
    Awaited(Ticket),
}

/// Time that a thread was off the processor.
pub(super) type Interval = switches::Interval<SwitchStack>;

/// What waits for the other half.
#[derive(Debug)]
enum Half {
    /// The path of a stack whose interval goes on.
    Path(AddressPathId),
    /// The interval of a stack that is being unwound: event, thread, weight, and when it was, from
    /// where the part of time begins.
    Interval(TraceEventId, TraceThreadId, u64, Range<u64>),
}

/// Time off the processor, as far as it is known.
#[derive(Debug)]
pub(super) struct OffCpu {
    switches: Switches<SwitchStack>,
    /// Which events of the recording are of switches.
    sources: Vec<bool>,
    samples: Samples,
    timed: Option<TimedSamples>,
    tickets: u64,
    halves: FxHashMap<Ticket, Half>,
}

// The two events, by their order.
const BLOCKED: usize = 0;
const PREEMPTED: usize = 1;
/// How many they are.
pub(super) const EVENTS: usize = 2;

impl OffCpu {
    pub(super) fn new(keeps_times: bool) -> OffCpu {
        OffCpu {
            switches: Switches::new(),
            sources: Vec::new(),
            samples: empty(),
            timed: keeps_times.then(TimedSamples::new),
            tickets: 0,
            halves: FxHashMap::default(),
        }
    }

    pub(super) fn switches(&mut self) -> &mut Switches<SwitchStack> {
        &mut self.switches
    }

    /// Whether each sample of this event is of a thread that leaves its processor.
    pub(super) fn is_source(&mut self, event: usize, events: &[EventDescription]) -> bool {
        let known = self.sources.len();
        if let Some(more) = events.get(known..) {
            self.sources.extend(more.iter().map(is_of_switches));
        }
        self.sources.get(event).copied().unwrap_or(false)
    }

    /// A thread is about to leave with a stack that is being unwound. Gives the name for it.
    pub(super) fn awaits(&mut self, tid: i32) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.switches.leaves_with(tid, SwitchStack::Awaited(ticket));
        ticket
    }

    /// The stack that has this name is known.
    pub(super) fn resolve(&mut self, ticket: Ticket, path: AddressPathId, caveats: &mut Caveats) {
        match self.halves.remove(&ticket) {
            Some(Half::Interval(event, thread, weight, when)) => {
                self.add((event, thread, path), weight, when, caveats);
            }
            _ => {
                self.halves.insert(ticket, Half::Path(path));
            }
        }
    }

    /// Counts what of an interval lies in a part of time, which is counted from `first` on.
    /// `mark` makes the path for those without a stack.
    pub(super) fn count(
        &mut self,
        interval: Interval,
        (part, first): (TimeRange, u64),
        mark: impl FnOnce(&'static str) -> AddressPathId,
        caveats: &mut Caveats,
    ) {
        let Some(inside) = part.overlap(first, interval.start, interval.end) else {
            return;
        };
        let weight = inside.end - inside.start;
        let event = event_of(&interval);
        let thread = interval.thread;
        let since = |time: u64| time.saturating_sub(part.begin(first));
        let when = since(inside.start)..since(inside.end);
        let path = match interval.stack {
            Some(SwitchStack::Known(path)) => path,
            Some(SwitchStack::Awaited(ticket)) => match self.halves.remove(&ticket) {
                Some(Half::Path(path)) => path,
                _ => {
                    let half = Half::Interval(event, thread, weight, when);
                    self.halves.insert(ticket, half);
                    return;
                }
            },
            None if interval.before => mark(BLOCKED_BEFORE),
            None => {
                caveats.add(CaveatKind::NoSwitchStack, 1);
                mark(NO_SWITCH_STACK)
            }
        };
        self.add((event, thread, path), weight, when, caveats);
    }

    fn add(
        &mut self,
        (event, thread, path): (TraceEventId, TraceThreadId, AddressPathId),
        weight: u64,
        when: Range<u64>,
        caveats: &mut Caveats,
    ) {
        let key = SampleKey {
            event,
            thread,
            path,
        };
        if let Some(timed) = &mut self.timed {
            timed.add_interval(key, when.start, when.end);
        }
        let is_whole = self.samples.add(key, weight);
        if !is_whole {
            caveats.add(CaveatKind::WeightLimit, 1);
        }
    }

    pub(super) fn take_times(&mut self) -> Option<TimedSamples> {
        self.timed.take().filter(|_| self.switches.is_any)
    }

    pub(super) fn samples(&self) -> &Samples {
        &self.samples
    }

    pub(super) fn reset(&mut self) {
        self.samples = empty();
        self.switches.forget_all();
    }

    /// A sample for each interval that goes on, up to the last record. `mark` makes the path of
    /// those without a stack.
    pub(super) fn open_samples(
        &self,
        mut mark: impl FnMut(&'static str) -> AddressPathId,
    ) -> Vec<TraceSample> {
        let mut samples = empty();
        for interval in self.switches.open() {
            let path = match interval.stack {
                Some(SwitchStack::Known(path)) => path,
                Some(SwitchStack::Awaited(ticket)) => match self.halves.get(&ticket) {
                    Some(Half::Path(path)) => *path,
                    _ => continue,
                },
                None if interval.before => mark(BLOCKED_BEFORE),
                None => mark(NO_SWITCH_STACK),
            };
            let key = SampleKey {
                event: event_of(&interval),
                thread: interval.thread,
                path,
            };
            samples.add(key, interval.end - interval.start);
        }
        samples.rows()
    }

    pub(super) fn append_to(&self, trace: &mut Trace, rows: Vec<TraceSample>) {
        if !self.switches.is_any {
            return;
        }
        for (kind, count) in [
            (CaveatKind::UnsureSwitch, self.switches.unsure),
            (CaveatKind::OffBefore, self.switches.before),
            (CaveatKind::BlockedBefore, self.switches.told),
        ] {
            if count > 0 {
                trace.caveats.add(kind, count);
            }
        }
        let behind = trace.events.len();
        for event in [Event::off_cpu(), Event::preempted()] {
            trace.events.push(event);
            trace.sampling.push(Sampling::Census);
        }
        trace
            .samples
            .extend(rows.into_iter().map(|row| TraceSample {
                event: TraceEventId::new(behind + row.event.index()),
                ..row
            }));
    }

    /// Forgets stacks whose interval cannot come any more.
    pub(super) fn prune(&mut self) {
        let pending: FxHashSet<Ticket> = self
            .switches
            .pending()
            .filter_map(|(stack, _)| match stack {
                Some(SwitchStack::Awaited(ticket)) => Some(ticket),
                _ => None,
            })
            .collect();
        let is_needed = |ticket: &Ticket, half: &mut Half| match half {
            Half::Path(_) => pending.contains(ticket),
            Half::Interval(..) => true,
        };
        self.halves.retain(is_needed);
    }

    pub(super) fn each_pending(
        &self,
        tell: &mut dyn FnMut(Option<AddressPathId>, Option<TraceThreadId>),
    ) {
        for (stack, thread) in self.switches.pending() {
            let path = match stack {
                Some(SwitchStack::Known(path)) => Some(path),
                _ => None,
            };
            tell(path, thread);
        }
        for half in self.halves.values() {
            match *half {
                Half::Path(path) => tell(Some(path), None),
                Half::Interval(_, thread, ..) => tell(None, Some(thread)),
            }
        }
    }

    /// Takes other ids of paths and threads. `samples` are those that are counted, by these ids.
    pub(super) fn rename(
        &mut self,
        samples: Samples,
        path: &dyn Fn(AddressPathId) -> AddressPathId,
        thread: &dyn Fn(TraceThreadId) -> TraceThreadId,
    ) {
        self.samples = samples;
        self.switches.rename(
            &|stack| match stack {
                SwitchStack::Known(known) => SwitchStack::Known(path(known)),
                awaited => awaited,
            },
            thread,
        );
        for half in self.halves.values_mut() {
            match half {
                Half::Path(known) => *known = path(*known),
                Half::Interval(_, of, ..) => *of = thread(*of),
            }
        }
    }

    pub(super) fn forget(&mut self, tid: i32) {
        self.switches.forget(tid);
    }
}

fn event_of(interval: &Interval) -> TraceEventId {
    TraceEventId::new(if interval.preempted {
        PREEMPTED
    } else {
        BLOCKED
    })
}

fn empty() -> Samples {
    let mut samples = Samples::default();
    (0..EVENTS).for_each(|_| samples.add_event());
    samples
}
