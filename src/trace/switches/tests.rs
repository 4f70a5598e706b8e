//! Histories of threads, and what their records tell of them.

use super::{Interval, SURE, Switches, TraceThreadId};

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

fn take_in(switches: &mut Switches<u64>, time: u64, cpu: u32, told: Told) -> Option<Interval<u64>> {
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
    // Thread; since when it is off, with what; `None` for those that cannot be known.
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
fn with_complete_switches_all_intervals_are_found() {
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

/// A buffer has no room from time to time, until it is emptied; the kernel reports that before the
/// next record.
#[test]
fn lost_intervals_are_not_invented() {
    // The ends of threads are not lost here: what the kernel does for a thread after its end cannot
    // be distinguished from what it did before.
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut exact, mut longer, mut unsure) = (0, 0, 0);
    for _ in 0..2000 {
        let history = history(&mut random, 1);
        let mut switches = Switches::new();
        let mut found = Vec::new();
        let (mut losing, mut lost) = (false, false);
        for &(time, cpu, told) in &history.told {
            losing =
                random.below(if losing { 4 } else { 12 }) == 0 && !matches!(told, Told::Exit(_));
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
            if truth.end == interval.end {
                exact += 1
            } else {
                longer += 1
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
fn a_loss_at_an_unknown_time_makes_all_intervals_unsure() {
    let mut switches = Switches::new();
    take_in(&mut switches, 1, 0, Told::LeavesWith(7, 1));
    take_in(&mut switches, 2, 0, Told::Leaves(7, false));
    switches.lost(None, None);
    assert_eq!(take_in(&mut switches, 1_000_000, 0, Told::Enters(7)), None);
    assert_eq!(switches.unsure, 1);
}

#[test]
fn times_that_go_back_and_extreme_numbers_are_handled() {
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
