//! Traces a program so that its stubs can count without locks, which takes a fraction of the time.
//!
//! ```text
//!   one thread        incq counter           nobody else adds to it
//!        │ clone: both threads stand still
//!        ▼
//!   several threads   incq %gs:counter       each thread has counters of its own, gs away
//!        │ a signal, a process, a library, a program to be executed, too many threads
//!        ▼
//!   traced no more    lock incq counter      all threads stand still while that is changed
//! ```
//!
//! One instruction is never interrupted in the middle, so a thread that has a counter for itself
//! needs no lock. While the program is traced, the kernel stops it before another thread runs: it
//! tells the tracer of `clone`, `fork` and `vfork`, whoever makes the system call, and the new
//! thread stands still as well. It does not with `CLONE_UNTRACED`, which is for the kernel's own
//! threads; the records of the sampled process show such threads at the end, and what was counted
//! is then a lower bound. Programs for Linux have no use for the segment `gs` themselves, except
//! for emulators; where it has one, stubs lock.
//!
//! Each signal would stop a traced program, so the first one ends the tracing. A program that is
//! executed under a tracer without privileges gains none, so tracing ends before an `execve`, and
//! does not begin where an `execve` would not be reported. A direct system call is not noticed in
//! time: the executed program may lack privileges, which is reported.

use std::fs;
use std::io;
use std::time::Duration;

use super::counting::Counting;
use super::install::{Stopped, change, open_memory};
use super::place::Place;
use super::refusals::{own_user, refuse_gains};
use super::threads::{PATIENCE, is_thread, signal, stopped};
use super::traced::{Standing, Thread, Traced, Unlocked, first_stop, set_segment};
use crate::patch::{Adding, CallCounter, Change};
use crate::sampler::targets::tracee::{Stop, Tracee};

// The most threads that are traced, those included that have ended: each takes some tenths of a
// millisecond to begin.
const MOST: usize = 1000;
// How long threads may take to stop for a change that need not be made: the others wait meanwhile.
const SHORT: Duration = Duration::from_millis(100);
// Counters are made for so many threads at once.
const AT_ONCE: usize = 4;

impl Counting {
    /// Lets a program run that has just been started. If it can be traced on, it counts without
    /// locks.
    pub(super) fn go_on(&mut self, stopped: Box<Stopped>) {
        let reports_execs = self.agents.iter().any(|agent| agent.on_execs != 0);
        let stayed = if reports_execs || own_user() == 0 {
            stopped.stay()
        } else {
            Err(stopped)
        };
        match stayed {
            Ok(tracee) => {
                self.unlocked = Some(Unlocked::begin(tracee.pid()));
                self.traced = Some(Traced {
                    pid: tracee.pid(),
                    threads: vec![Thread {
                        tracee,
                        distance: 0,
                    }],
                    free: Vec::new(),
                    made: 0,
                });
                self.bell.hear_execs(true);
            }
            Err(stopped) => {
                self.share_counters();
                stopped.release(&mut self.left);
            }
        }
    }

    pub(super) fn look_at_traced(&mut self, planner: &mut CallCounter) {
        while let Some(mut traced) = self.traced.take() {
            let mut threads = traced.threads.iter().enumerate();
            let found = threads.find_map(|(place, thread)| match stopped(&thread.tracee) {
                Ok(None) => None,
                Ok(stop) => Some((place, stop)),
                Err(_) => Some((place, None)),
            });
            let Some((place, stop)) = found else {
                self.traced = Some(traced);
                return;
            };
            let thread = traced.threads.swap_remove(place);
            match stop {
                Some(Stop::Ended(status)) => {
                    self.left.has_ended(thread.tracee.pid(), status);
                    traced.free.push(thread.distance);
                    if !traced.threads.is_empty() {
                        self.traced = Some(traced);
                        continue;
                    }
                    self.share(traced, Vec::new());
                }
                Some(Stop::Made) => match self.take_in(&mut traced, thread) {
                    Ok(()) => self.traced = Some(traced),
                    Err(standing) => self.share(traced, standing),
                },
                stop => {
                    if stop == Some(Stop::Exec) {
                        report_exec(thread.tracee.pid(), planner);
                    }
                    self.share(traced, vec![(thread, stop)]);
                }
            }
        }
    }

    /// Gives a thread that was just made counters of its own, and lets both run. If that is not
    /// possible, returns those that stand still.
    fn take_in(&mut self, traced: &mut Traced, maker: Thread) -> Result<(), Standing> {
        traced.made += 1;
        self.note_made(&maker.tracee);
        // A thread has the segment of its maker.
        let segment = maker
            .tracee
            .registers()
            .map(|registers| registers.segment());
        let Ok(made) = maker.tracee.made() else {
            // It was killed.
            return Err(vec![(maker, Some(Stop::Asked))]);
        };
        let distance = maker.distance;
        let has_own = !segment.is_ok_and(|segment| segment == distance);
        // Stubs of several threads would count at a segment that the program has. One that may
        // restrict its system calls does not report what it loads, which may set it.
        let has_own = has_own || self.omens.sets_segment || self.omens.filters;
        let stop = { traced.made <= MOST && is_thread(traced.pid, made.pid()) && !has_own }
            .then(|| first_stop(&made))
            .flatten();
        if stop != Some(Stop::Asked) {
            let tracee = made;
            let made = Thread { tracee, distance };
            return Err(vec![(maker, Some(Stop::Asked)), (made, stop)]);
        }
        let made = match Stopped::of_made(traced.pid, made) {
            Ok(mut stopped) => {
                if traced.free.is_empty() {
                    let added = self.own_counters(&mut stopped);
                    traced.free.extend(added.unwrap_or_default());
                }
                stopped.into_thread()
            }
            Err((made, _)) => Some((made, 0)),
        };
        // If it is the first, nobody executes stubs now.
        let distance = traced.free.pop().filter(|_| {
            let apart = self.areas.set_adding(&self.shared, Adding::Apart);
            apart.is_ok()
        });
        let set = |made: &Tracee| distance.is_some_and(|it| set_segment(made, it).is_ok());
        let (tracee, distance) = match (made, distance) {
            (Some((tracee, 0)), Some(distance)) if set(&tracee) => (tracee, distance),
            // It was killed, gets a signal, or has the segment of its maker.
            (made, _) => {
                let made = made.map(|(tracee, signal)| {
                    let distance = maker.distance;
                    let stop = if signal == 0 {
                        Stop::Asked
                    } else {
                        Stop::Signal(signal)
                    };
                    (Thread { tracee, distance }, Some(stop))
                });
                let both = [Some((maker, Some(Stop::Asked))), made];
                return Err(both.into_iter().flatten().collect());
            }
        };
        let thread = Thread { tracee, distance };
        for thread in [&thread, &maker] {
            // What fails was killed, which is reported as well.
            let _ = thread.tracee.resume(0);
        }
        traced.threads.extend([thread, maker]);
        Ok(())
    }

    fn own_counters(&mut self, stopped: &mut Stopped) -> io::Result<Vec<u64>> {
        let descriptor = self.open_in(stopped).map_err(io::Error::other)?;
        let mut memory = stopped.loaded()?;
        let mut place = Place {
            stopped,
            memory: &mut memory,
            shared: &self.shared,
            descriptor,
        };
        let added = self.areas.add_own(&mut place, AT_ONCE);
        self.close(stopped, descriptor).map_err(io::Error::other)?;
        added
    }

    pub(super) fn end_traced(&mut self) {
        if let Some(traced) = self.traced.take() {
            self.share(traced, Vec::new());
        }
    }

    pub(super) fn leave_traced(&mut self) {
        if let Some(mut traced) = self.traced.take() {
            let standing = traced.halt(PATIENCE);
            self.end_unlocked();
            self.let_go(standing);
        }
    }

    pub(super) fn is_traced(&self, pid: i32) -> bool {
        let traced = self.traced.as_ref();
        traced.is_some_and(|traced| traced.pid == pid)
    }

    /// Makes changes in the code of the program that is traced. All threads stop for that. `None`
    /// if one did not.
    pub(super) fn change_traced(&mut self, changes: &[Vec<Change>]) -> Option<()> {
        let mut traced = self.traced.take()?;
        let standing = traced.halt(SHORT);
        // What waits in the kernel may come back at any moment.
        let all_stand = standing.iter().all(|(_, stop)| stop.is_some());
        let mut alive = standing
            .iter()
            .filter(|(_, stop)| !matches!(stop, Some(Stop::Ended(_))));
        let memory = alive
            .next()
            .map(|(thread, _)| open_memory(thread.tracee.pid()));
        let memory = memory.filter(|_| all_stand).and_then(Result::ok);
        let changed = memory.and_then(|memory| {
            let mut changes = changes.iter();
            changes
                .try_for_each(|changes| change(&memory, changes).map(drop))
                .ok()
        });
        let may_go_on = |stop| matches!(stop, Some(Stop::Asked | Stop::Ended(_)));
        if standing.iter().all(|(_, stop)| may_go_on(*stop)) {
            for (thread, stop) in standing {
                if let Some(Stop::Ended(status)) = stop {
                    self.left.has_ended(thread.tracee.pid(), status);
                    traced.free.push(thread.distance);
                    continue;
                }
                let _ = thread.tracee.begin_call_again();
                // One that was killed is reported as well.
                let _ = thread.tracee.resume(0);
                traced.threads.push(thread);
            }
            self.traced = Some(traced);
        } else {
            self.share(traced, standing);
        }
        changed
    }

    /// All threads add to the same counters from now on. Some stand still already.
    fn share(&mut self, mut traced: Traced, mut standing: Standing) {
        standing.extend(traced.halt(PATIENCE));
        self.end_unlocked();
        self.share_counters();
        self.bell.hear_execs(self.follows);
        self.let_go(standing);
    }

    fn note_made(&mut self, maker: &Tracee) {
        if let (Some(unlocked), Ok(made)) = (&mut self.unlocked, maker.made()) {
            unlocked.told.insert(made.pid());
        }
    }

    fn end_unlocked(&mut self) {
        if let Some(unlocked) = &mut self.unlocked {
            unlocked.end();
        }
    }

    fn let_go(&mut self, standing: Standing) {
        for (Thread { tracee, distance }, stop) in standing {
            match stop {
                Some(Stop::Ended(status)) => {
                    self.left.has_ended(tracee.pid(), status);
                    continue;
                }
                None => {
                    self.left.release_soon(tracee);
                    continue;
                }
                Some(Stop::Made) => {
                    self.note_made(&tracee);
                    if let Ok(made) = tracee.made() {
                        self.left.release_soon(made);
                    }
                }
                Some(_) => {}
            }
            if distance != 0 {
                // If that fails, it was killed.
                let _ = set_segment(&tracee, 0);
            }
            self.left.release(tracee, stop.map_or(0, signal));
        }
    }

    fn share_counters(&mut self) {
        if let Some(limit) = &mut self.limit {
            limit.lock();
        }
        let shared = self.areas.set_adding(&self.shared, Adding::Together);
        if shared.is_err() {
            // Some counts may be lost.
            self.areas.refuse_any();
        }
    }
}

/// A traced process has executed a program past the function that would have been reported before.
fn report_exec(pid: i32, planner: &mut CallCounter) {
    let Ok(program) = fs::read_link(format!("/proc/{pid}/exe")) else {
        return;
    };
    if refuse_gains(&program).is_err() {
        let reason = "it was executed by a system call of the program's own while that was traced, \
            and has not gained the privileges of its file";
        planner.refused(&program, reason);
    }
}
