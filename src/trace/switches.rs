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
//! An interval is never made up. Where a thread enters that never left, or leaves twice, records
//! were lost, and nothing is known of the time between. Where the kernel says that it lost records
//! while a thread was off, the thread may have run unseen; the interval counts only if that was a
//! hundredth of it at most. (A loss that is told of only after the interval has ended, in another
//! processor's buffer, is not seen.)
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
    /// The stack with which it left, if one was recorded.
    pub(super) stack: Option<S>,
    /// Whether it had left before the recording began: `start` is then where the recording begins.
    pub(super) before: bool,
    /// The thread, by the name that it had as it left.
    pub(super) thread: TraceThreadId,
}

/// A part of an interval that lost records may fill, as `1 / SURE` of it, makes it unsure.
const SURE: u64 = 100;

/// How much was lost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Losses {
    /// Nanoseconds in which records of some processor were lost.
    time: u64,
    /// Losses of which nobody knows when they began.
    timeless: u64,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug)]
enum Place<S> {
    /// It was made and has not run yet.
    New,
    /// On a processor; with the stack of which it was said that it is leaving with it, and what had
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
    /// It has ended: what the kernel still does in its name is nobody's time.
    Ended,
}

/// The threads by their switches. `S` is what stands for a stack.
#[derive(Debug)]
pub(super) struct Switches<S> {
    places: FxHashMap<i32, Place<S>>,
    losses: Losses,
    /// The time of the last record of each processor.
    seen: FxHashMap<u32, u64>,
    first: Option<u64>,
    last: u64,
    /// Intervals that are not known as switches were lost.
    pub(super) unsure: u64,
    /// Threads that were off when the recording began, as their first switch tells.
    pub(super) before: u64,
    /// Threads that were off when the recording began, as the recorder told.
    pub(super) told: u64,
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
        }
    }

    /// A record was made at this time.
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

    /// A thread was made.
    pub(super) fn fork(&mut self, tid: i32) {
        self.places.insert(tid, Place::New);
    }

    /// There is a thread of which nothing else is known.
    pub(super) fn forget(&mut self, tid: i32) {
        self.places.remove(&tid);
    }

    /// A thread ended.
    pub(super) fn exit(&mut self, tid: i32) {
        self.places.insert(tid, Place::Ended);
    }

    /// A thread runs a new program. If it was not the first of its process it has the first one's
    /// number now, and that one has ended.
    pub(super) fn exec(&mut self, tid: i32) {
        if let Some(Place::Ended) = self.places.get(&tid) {
            self.places.insert(tid, Place::On(None));
        }
    }

    /// The stacks and threads of what is not known as an interval yet.
    pub(super) fn pending(
        &self,
    ) -> impl Iterator<Item = (Option<S>, Option<TraceThreadId>)> + use<'_, S> {
        self.places.values().filter_map(|place| match *place {
            Place::On(Some((stack, _))) => Some((Some(stack), None)),
            Place::Off { stack, thread, .. } => Some((stack, Some(thread))),
            Place::On(None) | Place::New | Place::Ended => None,
        })
    }

    /// Takes other names of stacks and threads.
    pub(super) fn rename(
        &mut self,
        new_stack: &dyn Fn(S) -> S,
        new_thread: &dyn Fn(TraceThreadId) -> TraceThreadId,
    ) {
        for place in self.places.values_mut() {
            match place {
                Place::On(Some((stack, _))) => *stack = new_stack(*stack),
                Place::Off { stack, thread, .. } => {
                    *stack = stack.map(new_stack);
                    *thread = new_thread(*thread);
                }
                Place::On(None) | Place::New | Place::Ended => {}
            }
        }
    }

    /// A thread was off the processor as the recording began.
    pub(super) fn was_off(&mut self, tid: i32, thread: TraceThreadId) {
        let off = Place::Off {
            since: None,
            preempted: false,
            stack: None,
            thread,
            losses: self.losses,
        };
        self.places.insert(tid, off);
        self.told += 1;
    }

    /// A thread was seen running its program.
    pub(super) fn runs(&mut self, tid: i32) {
        if let Some(place @ Place::Off { .. }) = self.places.get_mut(&tid) {
            // It was looked at a moment before it began to run, or after.
            let is_missed = matches!(place, Place::Off { since: Some(_), .. });
            *place = Place::On(None);
            self.unsure += u64::from(is_missed);
            self.told = self.told.saturating_sub(u64::from(!is_missed));
        }
    }

    /// A thread is about to leave with this stack.
    pub(super) fn leaves_with(&mut self, tid: i32, stack: S) {
        self.runs(tid);
        let now = Place::On(Some((stack, self.losses)));
        let place = self.places.entry(tid).or_insert(now);
        if !matches!(place, Place::Ended) {
            *place = now;
        }
    }

    /// A thread leaves its processor.
    pub(super) fn leaves(&mut self, tid: i32, time: u64, preempted: bool, thread: TraceThreadId) {
        let losses = self.losses;
        let stack = match self.places.get(&tid) {
            Some(Place::Ended) => return,
            Some(&Place::On(Some((stack, before)))) if before == losses => Some(stack),
            Some(Place::Off { since: Some(_), .. }) => {
                self.unsure += 1;
                None
            }
            // It had not left yet as the recording began.
            Some(Place::Off { since: None, .. }) => {
                self.told = self.told.saturating_sub(1);
                None
            }
            _ => None,
        };
        let off = Place::Off {
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
        let place = self.places.get(&tid).copied();
        if !matches!(place, Some(Place::Ended)) {
            self.places.insert(tid, Place::On(None));
        }
        match place {
            Some(off @ Place::Off { .. }) => self.interval(off, time),
            Some(Place::On(_)) => {
                self.unsure += 1;
                None
            }
            Some(Place::New | Place::Ended) => None,
            None => {
                self.before += 1;
                None
            }
        }
    }

    /// The intervals of threads that are off when the recording ends, up to its last record, in
    /// order of thread. `untold` is whether records were lost of which nobody said when.
    pub(super) fn finish(&mut self, untold: bool) -> Vec<Interval<S>> {
        self.losses.timeless += u64::from(untold);
        let mut places: Vec<(i32, Place<S>)> = self.places.drain().collect();
        places.sort_unstable_by_key(|(tid, _)| *tid);
        let off = places.into_iter().map(|(_, place)| place);
        let off = off.filter(|place| matches!(place, Place::Off { .. }));
        off.filter_map(|place| self.interval(place, self.last.max(1)))
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

    fn interval(&mut self, off: Place<S>, end: u64) -> Option<Interval<S>> {
        let interval = self.sure_interval(off, end);
        self.unsure += u64::from(interval.is_none());
        interval
    }

    /// How long a thread was off, if it was and is known to have been all the time.
    fn sure_interval(&self, off: Place<S>, end: u64) -> Option<Interval<S>> {
        let Place::Off {
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
mod tests {
    use super::*;
    use crate::base::Id;

    /// What records say, one after the other; a stack is a number that no other leave has.
    #[derive(Clone, Copy, Debug)]
    enum Told {
        LeavesWith(i32, u64),
        Leaves(i32, bool),
        Enters(i32),
        Runs(i32),
        Fork(i32),
        Exit(i32),
        Lost,
    }

    fn take_in(
        switches: &mut Switches<u64>,
        time: u64,
        cpu: u32,
        told: Told,
    ) -> Option<Interval<u64>> {
        if !matches!(told, Told::Lost) {
            switches.seen(time, Some(cpu));
        }
        match told {
            Told::LeavesWith(tid, stack) => switches.leaves_with(tid, stack),
            Told::Leaves(tid, preempted) => {
                switches.leaves(tid, time, preempted, TraceThreadId::new(tid as usize));
            }
            Told::Enters(tid) => return switches.enters(tid, time),
            Told::Runs(tid) => switches.runs(tid),
            Told::Fork(tid) => switches.fork(tid),
            Told::Exit(tid) => switches.exit(tid),
            Told::Lost => switches.lost(Some(time), Some(cpu)),
        }
        None
    }

    /// Marsaglia's xorshift.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % n
        }
    }

    /// What threads on some processors did: each thing with its time and processor, and the
    /// intervals that somebody who saw it all would tell.
    struct History {
        told: Vec<(u64, u32, Told)>,
        intervals: Vec<Interval<u64>>,
        /// When each thread ran: thread, start, end.
        runs: Vec<(i32, u64, u64)>,
    }

    /// Threads 1 to 5 are there and off from the start, others come and go.
    fn history(random: &mut Random, processors: u32) -> History {
        let mut all = History {
            told: Vec::new(),
            intervals: Vec::new(),
            runs: Vec::new(),
        };
        let (mut time, mut next_tid, mut next_stack) = (1000, 6, 0);
        // Thread; since when it is off, with what; `None` for those of which nobody can know.
        let mut off: Vec<(i32, Option<Interval<u64>>)> = (1..6).map(|tid| (tid, None)).collect();
        let mut on: Vec<Option<(i32, u64)>> = vec![None; processors as usize];
        for _ in 0..60 {
            let cpu = random.below(processors.into());
            // Few waits are long, so that a loss may be a small part of one.
            time += match random.below(8) {
                0 => 100_000,
                _ => 1 + random.below(50),
            };
            let mut tell = |time, told| all.told.push((time, cpu as u32, told));
            let Some((tid, since)) = on[cpu as usize] else {
                if !off.is_empty() {
                    let (tid, interval) = off.swap_remove(random.below(off.len() as u64) as usize);
                    tell(time, Told::Enters(tid));
                    all.intervals
                        .extend(interval.map(|i| Interval { end: time, ..i }));
                    on[cpu as usize] = Some((tid, time));
                }
                continue;
            };
            match random.below(8) {
                0 => tell(time, Told::Runs(tid)),
                1 => {
                    tell(time, Told::Fork(next_tid));
                    off.push((next_tid, None));
                    next_tid += 1;
                }
                2 => {
                    // The last that is heard of it: the rest of its work in the kernel.
                    tell(time, Told::Exit(tid));
                    tell(time + 1, Told::Leaves(tid, true));
                    tell(time + 2, Told::Enters(tid));
                    tell(time + 3, Told::LeavesWith(tid, u64::MAX));
                    tell(time + 4, Told::Leaves(tid, false));
                    on[cpu as usize] = None;
                    time += 4;
                    all.runs.push((tid, since, time));
                    if random.below(2) == 0 {
                        // Its number is used again.
                        tell(time + 1, Told::Fork(tid));
                        off.push((tid, None));
                        time += 1;
                    }
                }
                _ => {
                    let preempted = random.below(3) == 0;
                    let stack = (random.below(5) > 0).then_some(next_stack);
                    next_stack += 1;
                    if let Some(stack) = stack {
                        tell(time, Told::LeavesWith(tid, stack));
                    }
                    time += 1;
                    tell(time, Told::Leaves(tid, preempted));
                    let interval = Interval {
                        before: false,
                        start: time,
                        end: time,
                        preempted,
                        stack,
                        thread: TraceThreadId::new(tid as usize),
                    };
                    off.push((tid, Some(interval)));
                    all.runs.push((tid, since, time));
                    on[cpu as usize] = None;
                }
            }
        }
        let end = all.told.last().map_or(0, |(time, ..)| *time);
        let open = off.into_iter().filter_map(|(_, interval)| interval);
        all.intervals.extend(open.map(|i| Interval { end, ..i }));
        all.runs
            .extend(on.iter().flatten().map(|&(tid, since)| (tid, since, end)));
        all
    }

    fn sorted(mut intervals: Vec<Interval<u64>>) -> Vec<Interval<u64>> {
        intervals.sort_by_key(|i| (i.start, i.thread));
        intervals
    }

    #[test]
    fn what_is_told_in_full_is_known_in_full() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut known = 0;
        for round in 0..500 {
            let history = history(&mut random, 1 + round % 3);
            let mut switches = Switches::new();
            let mut found = Vec::new();
            for &(time, cpu, told) in &history.told {
                found.extend(take_in(&mut switches, time, cpu, told));
            }
            found.extend(switches.finish(false));
            known += found.len();
            assert_eq!(switches.unsure, 0);
            assert!(switches.before <= 5);
            assert_eq!(
                sorted(found),
                sorted(history.intervals),
                "{:?}",
                history.told
            );
        }
        assert!(known > 2000, "{known}");
    }

    /// A buffer has no room from time to time, until it is emptied; the kernel says so before the
    /// next record. The ends of threads are not lost here: what the kernel does in the name of one
    /// afterwards cannot be told from what it did before.
    #[test]
    fn what_was_lost_is_not_made_up() {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let (mut exact, mut longer, mut unsure) = (0, 0, 0);
        for _ in 0..2000 {
            let history = history(&mut random, 1);
            let mut switches = Switches::new();
            let mut found = Vec::new();
            let (mut losing, mut lost) = (false, false);
            for &(time, cpu, told) in &history.told {
                losing = random.below(if losing { 4 } else { 12 }) == 0
                    && !matches!(told, Told::Exit(_));
                lost |= losing;
                if losing {
                    continue;
                }
                if std::mem::take(&mut lost) {
                    take_in(&mut switches, time, cpu, Told::Lost);
                }
                found.extend(take_in(&mut switches, time, cpu, told));
            }
            // The last losses nobody tells when they were.
            found.extend(switches.finish(lost));
            for interval in &found {
                let truth = history
                    .intervals
                    .iter()
                    .find(|truth| (truth.start, truth.thread) == (interval.start, interval.thread));
                let Some(truth) = truth else {
                    panic!("nothing began there: {interval:?} in {:?}", history.told);
                };
                assert_eq!(truth.preempted, interval.preempted);
                assert!(interval.stack.is_none() || interval.stack == truth.stack);
                let tid = interval.thread.index() as i32;
                let runs = history.runs.iter().filter(|(thread, ..)| *thread == tid);
                let ran: u64 = runs
                    .map(|&(_, from, to)| {
                        to.min(interval.end)
                            .saturating_sub(from.max(interval.start))
                    })
                    .sum();
                let length = interval.end - interval.start;
                assert!(ran * SURE <= length, "{interval:?} in {:?}", history.told);
                match truth.end == interval.end {
                    true => exact += 1,
                    false => longer += 1,
                }
            }
            unsure += switches.unsure;
        }
        assert!(exact > 5000 && unsure > 1000, "{exact} {longer} {unsure}");
    }

    #[test]
    fn a_thread_that_execs_as_the_first_of_its_process_goes_on() {
        let mut switches = Switches::new();
        for (time, told) in [(1, Told::Enters(7)), (2, Told::Exit(7))] {
            take_in(&mut switches, time, 0, told);
        }
        switches.exec(7);
        take_in(&mut switches, 3, 0, Told::Leaves(7, false));
        let interval = take_in(&mut switches, 9, 0, Told::Enters(7)).unwrap();
        assert_eq!((interval.start, interval.end), (3, 9));
        assert_eq!((switches.before, switches.unsure), (1, 0));
    }

    #[test]
    fn threads_that_were_off_before_count_from_the_beginning_unless_they_ran_then() {
        let mut switches = Switches::new();
        for tid in 1..=4 {
            switches.was_off(tid, TraceThreadId::new(tid as usize));
        }
        // The second had not left yet, the third was running when it was looked at.
        take_in(&mut switches, 10, 0, Told::Leaves(2, false));
        take_in(&mut switches, 11, 0, Told::Runs(3));
        let first = take_in(&mut switches, 15, 0, Told::Enters(1)).unwrap();
        assert_eq!((first.start, first.end, first.before), (10, 15, true));
        let second = take_in(&mut switches, 17, 0, Told::Enters(2)).unwrap();
        assert_eq!((second.start, second.end, second.before), (10, 17, false));
        let open = switches.finish(false);
        let [fourth] = open[..] else {
            panic!("{open:?}");
        };
        assert_eq!((fourth.start, fourth.end, fourth.before), (10, 17, true));
        assert_eq!((switches.told, switches.before, switches.unsure), (2, 0, 0));
    }

    #[test]
    fn a_loss_that_may_have_been_at_any_time_makes_all_unsure() {
        let mut switches = Switches::new();
        take_in(&mut switches, 1, 0, Told::LeavesWith(7, 1));
        take_in(&mut switches, 2, 0, Told::Leaves(7, false));
        switches.lost(None, None);
        assert_eq!(take_in(&mut switches, 1_000_000, 0, Told::Enters(7)), None);
        assert_eq!(switches.unsure, 1);
    }

    #[test]
    fn times_that_go_back_and_numbers_at_their_limits_do_no_harm() {
        let mut random = Random(0x0123_4567_89ab_cdef);
        let mut switches = Switches::new();
        for _ in 0..20_000 {
            let time = [0, 1, 1000, u64::MAX][random.below(4) as usize];
            let tid = [1, 2, i32::MAX, i32::MIN][random.below(4) as usize];
            let told = match random.below(8) {
                7 => {
                    switches.was_off(1 + tid % 3, TraceThreadId::new(1));
                    continue;
                }
                0 => Told::LeavesWith(tid, time),
                1 => Told::Leaves(1 + tid % 3, time == 0),
                2 => Told::Enters(1 + tid % 3),
                3 => Told::Runs(tid),
                4 => Told::Fork(tid),
                5 => Told::Exit(tid),
                _ => Told::Lost,
            };
            let tid_is_row = !matches!(told, Told::Leaves(tid, _) if tid < 0);
            if tid_is_row && let Some(interval) = take_in(&mut switches, time, 1, told) {
                assert!(interval.start <= interval.end);
            }
        }
    }
}
