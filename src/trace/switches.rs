//! When threads were off the processor: from records of switches to intervals.
//!
//! ```text
//!              fork                     leaves with a stack
//!   (unknown) ─────▶ New ──┐           ┌───────┐
//!       │                  ├─ enters ─▶│  On   │── leaves ──▶ Off ── enters ──▶ On, an interval
//!       └──── any ─────────┘           └───────┘               │
//!                                          │ exit              │ runs, leaves again: one was lost
//!                                          ▼                   ▼
//!                                        Ended                 On, no interval
//! ```
//!
//! An interval is never guessed. Where a thread enters that never left, or leaves twice, records
//! were lost, and nothing is known of the time between. Where the kernel says that it lost records
//! while a thread was off, the thread may have run unseen; the interval counts only if that was a
//! hundredth of it at most. (A loss that is reported only after the interval has ended, in another
//! processor's buffer, is not noticed.)
//!
//! A recorder that attaches to threads may say which of them were off as it began: their intervals
//! start there.

use rustc_hash::FxHashMap;

use super::TraceThreadId;

/// Time that a thread was off the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval<S> {
    /// When it left, in nanoseconds of the recording's clock.
    pub(super) start: u64,
    /// When it came back, or where the recording ends.
    pub(super) end: u64,
    /// Whether it could have gone on, and another thread had the processor.
    pub(super) preempted: bool,
    pub(super) stack: Option<S>,
    /// Whether it had left before the recording began: `start` is then where the recording begins.
    pub(super) before: bool,
    pub(super) thread: TraceThreadId,
}

// A part of an interval that lost records may fill, as `1 / SURE` of it, makes it unsure.
const SURE: u64 = 100;

/// How much was lost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Losses {
    /// Nanoseconds in which records of some processor were lost.
    time: u64,
    /// Losses whose beginning is unknown.
    timeless: u64,
}

#[derive(Clone, Copy, Debug)]
enum ThreadState<S> {
    /// It was made and has not run yet.
    New,
    /// On a processor; with the stack of the sample that announced its switch away, and what had
    /// been lost by then.
    On(Option<(S, Losses)>),
    /// Off, since a time.
    Off {
        /// `None` for since before the recording began.
        since: Option<u64>,
        preempted: bool,
        stack: Option<S>,
        thread: TraceThreadId,
        losses: Losses,
    },
    /// It has ended: what the kernel still does for it is not counted.
    Ended,
}

/// The threads by their switches. `S` is what stands for a stack.
#[derive(Debug)]
pub(super) struct Switches<S> {
    places: FxHashMap<i32, ThreadState<S>>,
    losses: Losses,
    /// The time of the last record of each processor.
    seen: FxHashMap<u32, u64>,
    first: Option<u64>,
    last: u64,
    /// Intervals that are not known as switches were lost.
    pub(super) unsure: u64,
    /// Threads that were off when the recording began, as their first switch tells.
    pub(super) before: u64,
    /// Threads that were off when the recording began, according to the recorder.
    pub(super) told: u64,
    /// Whether there was a switch of any thread.
    pub(super) is_any: bool,
}

impl<S: Copy> Switches<S> {
    pub(super) fn new() -> Self {
        Switches {
            places: FxHashMap::default(),
            losses: Losses::default(),
            seen: FxHashMap::default(),
            first: None,
            last: 0,
            unsure: 0,
            before: 0,
            told: 0,
            is_any: false,
        }
    }

    pub(super) fn seen(&mut self, time: u64, cpu: Option<u32>) {
        self.first.get_or_insert(time);
        self.last = self.last.max(time);
        if let Some(cpu) = cpu {
            self.seen.insert(cpu, time);
        }
    }

    /// The kernel says that it could not write records: since the last one of this processor.
    pub(super) fn lost(&mut self, time: Option<u64>, cpu: Option<u32>) {
        match (time, cpu) {
            (Some(time), Some(cpu)) => {
                let since = self.seen.get(&cpu).copied().or(self.first);
                let lost = time.saturating_sub(since.unwrap_or(time)).max(1);
                self.losses.time = self.losses.time.saturating_add(lost);
                self.seen(time, Some(cpu));
            }
            _ => self.losses.timeless += 1,
        }
    }

    pub(super) fn fork(&mut self, tid: i32) {
        self.places.insert(tid, ThreadState::New);
    }

    /// A thread exists, and nothing else is known about it.
    pub(super) fn forget(&mut self, tid: i32) {
        self.places.remove(&tid);
    }

    pub(super) fn exit(&mut self, tid: i32) {
        self.places.insert(tid, ThreadState::Ended);
    }

    /// A thread runs a new program.
    pub(super) fn exec(&mut self, tid: i32) {
        // If it was not the first of its process it has the first one's number now, and that one
        // has ended.
        if let Some(ThreadState::Ended) = self.places.get(&tid) {
            self.places.insert(tid, ThreadState::On(None));
        }
    }

    /// The stacks and threads of what is not known as an interval yet.
    pub(super) fn pending(
        &self,
    ) -> impl Iterator<Item = (Option<S>, Option<TraceThreadId>)> + use<'_, S> {
        self.places.values().filter_map(|place| match *place {
            ThreadState::On(Some((stack, _))) => Some((Some(stack), None)),
            ThreadState::Off { stack, thread, .. } => Some((stack, Some(thread))),
            ThreadState::On(None) | ThreadState::New | ThreadState::Ended => None,
        })
    }

    pub(super) fn rename(
        &mut self,
        new_stack: &dyn Fn(S) -> S,
        new_thread: &dyn Fn(TraceThreadId) -> TraceThreadId,
    ) {
        for place in self.places.values_mut() {
            match place {
                ThreadState::On(Some((stack, _))) => *stack = new_stack(*stack),
                ThreadState::Off { stack, thread, .. } => {
                    *stack = stack.map(new_stack);
                    *thread = new_thread(*thread);
                }
                ThreadState::On(None) | ThreadState::New | ThreadState::Ended => {}
            }
        }
    }

    pub(super) fn was_off(&mut self, tid: i32, thread: TraceThreadId) {
        let off = ThreadState::Off {
            since: None,
            preempted: false,
            stack: None,
            thread,
            losses: self.losses,
        };
        self.places.insert(tid, off);
        self.told += 1;
        self.is_any = true;
    }

    /// A thread was seen running its program.
    pub(super) fn runs(&mut self, tid: i32) {
        if let Some(place @ ThreadState::Off { .. }) = self.places.get_mut(&tid) {
            // It was looked at a moment before it began to run, or after.
            let is_missed = matches!(place, ThreadState::Off { since: Some(_), .. });
            *place = ThreadState::On(None);
            self.unsure += u64::from(is_missed);
            self.told = self.told.saturating_sub(u64::from(!is_missed));
        }
    }

    pub(super) fn leaves_with(&mut self, tid: i32, stack: S) {
        self.runs(tid);
        let now = ThreadState::On(Some((stack, self.losses)));
        let place = self.places.entry(tid).or_insert(now);
        if !matches!(place, ThreadState::Ended) {
            *place = now;
        }
    }

    pub(super) fn leaves(&mut self, tid: i32, time: u64, preempted: bool, thread: TraceThreadId) {
        self.is_any = true;
        let losses = self.losses;
        let stack = match self.places.get(&tid) {
            Some(ThreadState::Ended) => return,
            Some(&ThreadState::On(Some((stack, before)))) if before == losses => Some(stack),
            Some(ThreadState::Off { since: Some(_), .. }) => {
                self.unsure += 1;
                None
            }
            // It had not left yet as the recording began.
            Some(ThreadState::Off { since: None, .. }) => {
                self.told = self.told.saturating_sub(1);
                None
            }
            _ => None,
        };
        let off = ThreadState::Off {
            since: Some(time),
            preempted,
            stack,
            thread,
            losses,
        };
        self.places.insert(tid, off);
    }

    /// A thread enters a processor. Gives the time that it was off, where that is known.
    pub(super) fn enters(&mut self, tid: i32, time: u64) -> Option<Interval<S>> {
        self.is_any = true;
        let place = self.places.get(&tid).copied();
        if !matches!(place, Some(ThreadState::Ended)) {
            self.places.insert(tid, ThreadState::On(None));
        }
        match place {
            Some(off @ ThreadState::Off { .. }) => self.interval(off, time),
            Some(ThreadState::On(_)) => {
                self.unsure += 1;
                None
            }
            Some(ThreadState::New | ThreadState::Ended) => None,
            None => {
                self.before += 1;
                None
            }
        }
    }

    /// The intervals of threads that are off when the recording ends, up to its last record, in
    /// order of thread. `untold` states whether records were lost at an unknown time.
    pub(super) fn finish(&mut self, untold: bool) -> Vec<Interval<S>> {
        self.losses.timeless += u64::from(untold);
        let mut places: Vec<(i32, ThreadState<S>)> = self.places.drain().collect();
        places.sort_unstable_by_key(|(tid, _)| *tid);
        places
            .into_iter()
            .map(|(_, place)| place)
            .filter(|place| matches!(place, ThreadState::Off { .. }))
            .filter_map(|place| self.interval(place, self.last.max(1)))
            .collect()
    }

    /// The intervals of threads that are off at the last record, up to it, which go on.
    pub(super) fn open(&self) -> impl Iterator<Item = Interval<S>> + use<'_, S> {
        let off = self.places.values();
        off.filter_map(|&place| self.sure_interval(place, self.last.max(1)))
    }

    /// Where threads are is not known any more.
    pub(super) fn forget_all(&mut self) {
        self.places.clear();
        self.unsure = 0;
        self.before = 0;
        self.told = 0;
    }

    fn interval(&mut self, off: ThreadState<S>, end: u64) -> Option<Interval<S>> {
        let interval = self.sure_interval(off, end);
        self.unsure += u64::from(interval.is_none());
        interval
    }

    fn sure_interval(&self, off: ThreadState<S>, end: u64) -> Option<Interval<S>> {
        let ThreadState::Off {
            since,
            preempted,
            stack,
            thread,
            losses,
        } = off
        else {
            return None;
        };
        let start = since.or(self.first).unwrap_or(end);
        let unseen = self.losses.time - losses.time;
        let is_sure =
            self.losses.timeless == losses.timeless && unseen <= end.saturating_sub(start) / SURE;
        is_sure.then_some(Interval {
            start,
            end: end.max(start),
            preempted,
            stack,
            before: since.is_none(),
            thread,
        })
    }
}

#[cfg(test)]
mod tests;
