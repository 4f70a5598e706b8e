//! A program that has only one thread: its stubs count without locks, which takes a fraction of the time.
//!
//! ```text
//!   the command is traced ─▶ it makes a thread or a process, gets a signal, loads a library, is about
//!                            to execute a program
//!                               │ it stands still, and what it has made as well
//!                               ▼
//!                            all stubs get the lock; it is traced no more
//! ```
//!
//! Nobody else adds to its counters, and one instruction is never interrupted in the middle. While it is
//! traced, the kernel stops it before a second thread runs: it tells the tracer of `clone`, `fork` and
//! `vfork`, whoever makes the system call (but not of `CLONE_UNTRACED`, which is for the kernel's own
//! threads). Signals would stop a traced program each time, so the first one ends that state, too; and
//! a program that is executed under a tracer without privileges gains none, so it ends before an
//! `execve`, and does not begin where that would not be reported.

use std::time::Instant;

use super::CallPlanner;
use super::counting::Counting;
use super::install::Stopped;
use super::refusals::own_user;
use super::threads::{APART, PATIENCE, signal, stopped};
use crate::sampler::targets::tracee::{Stop, Tracee};

impl Counting {
    /// Lets a program run that has just been started. If it can be traced on, it counts without locks.
    pub(super) fn go_on(&mut self, stopped: Box<Stopped>, planner: &mut dyn CallPlanner) {
        let reports_execs = self.agents.iter().any(|agent| agent.on_execs != 0);
        let stayed = if reports_execs || own_user() == 0 {
            stopped.stay()
        } else {
            Err(stopped)
        };
        match stayed {
            Ok(tracee) => {
                self.single_thread = Some(tracee);
                self.bell.hear_execs(true);
            }
            Err(stopped) => {
                self.lock_stubs(planner);
                stopped.release(&mut self.left);
            }
        }
    }

    /// Takes note of what the program with one thread has come to, if it has stopped.
    pub(super) fn look_at_single_thread(&mut self, planner: &mut dyn CallPlanner) {
        let Some(tracee) = self.single_thread.take() else {
            return;
        };
        match stopped(&tracee) {
            Ok(None) => self.single_thread = Some(tracee),
            Ok(Some(stop)) => self.lock(tracee, Some(stop), planner),
            Err(_) => self.lock(tracee, None, planner),
        }
    }

    /// The stubs count with locks from now on, and the program is traced no more.
    pub(super) fn end_single_thread(&mut self, planner: &mut dyn CallPlanner) {
        if let Some(tracee) = self.single_thread.take() {
            let stop = wait_for_stop(&tracee);
            self.lock(tracee, stop, planner);
        }
    }

    /// Nothing more is recorded: the program is traced no more.
    pub(super) fn leave_single_thread(&mut self) {
        if let Some(tracee) = self.single_thread.take() {
            let stop = wait_for_stop(&tracee);
            self.let_go(tracee, stop);
        }
    }

    /// Without a stop it waits in the kernel, and stops before it executes another instruction.
    fn lock(&mut self, tracee: Tracee, stop: Option<Stop>, planner: &mut dyn CallPlanner) {
        self.lock_stubs(planner);
        self.bell.hear_execs(self.follows);
        self.let_go(tracee, stop);
    }

    fn let_go(&mut self, tracee: Tracee, stop: Option<Stop>) {
        if stop == Some(Stop::Made)
            && let Ok(made) = tracee.made()
        {
            self.left.release_soon(made);
        }
        match stop {
            Some(Stop::Ended(status)) => self.left.has_ended(tracee.pid(), status),
            Some(stop) => self.left.release(tracee, signal(stop)),
            None => self.left.release_soon(tracee),
        }
    }

    fn lock_stubs(&mut self, planner: &mut dyn CallPlanner) {
        if let Some(limit) = &mut self.limit {
            limit.lock();
        }
        if self.areas.lock(&self.shared, planner).is_err() {
            // Some counts may be lost.
            self.areas.refuse_any();
        }
    }
}

/// Stops a thread that runs; `None` if it does not stop in time.
fn wait_for_stop(tracee: &Tracee) -> Option<Stop> {
    // It may have ended, or have stopped already.
    let _ = tracee.stop();
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(stop) = stopped(tracee).ok()? {
            return Some(stop);
        }
        std::thread::sleep(APART);
    }
    None
}
