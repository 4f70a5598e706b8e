//! Stops all threads of a process, and lets them continue.
//!
//! Threads start and end meanwhile, and the process may end while some of them are stopped. The
//! kernel reports the end of a process only when each of its traced threads was waited for, so none
//! may be forgotten: a thread that does not stop in time, or was killed while it was stopped, is
//! [`Left`] for later.
//!
//! A thread that waits in the kernel and cannot be interrupted, as in `vfork` until its child
//! executes a program, stops as soon as it comes back, before it executes another instruction. So
//! nobody waits for it. The child of a `vfork` runs in the same memory until then, and is stopped
//! like a thread.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use crate::sampler::status::field;
use crate::sampler::targets::child::Child;
use crate::sampler::targets::tracee::{self, Stop, Tracee};

// How long threads may take to stop.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
// How long they may take until it is checked whether they wait in the kernel.
pub(super) const SOON: Duration = Duration::from_millis(2);
// How long apart they are looked at.
pub(super) const APART: Duration = Duration::from_micros(200);

#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Each with a signal that it is about to get, or 0.
    standing: Vec<(Tracee, i32)>,
    asked: Vec<Tracee>,
    /// They were asked, and wait in the kernel: they stop when they come back.
    waiting: Vec<Tracee>,
}

impl Threads {
    /// Stops the threads of a process, those included that are made meanwhile. If that fails, they
    /// run on.
    pub(super) fn stop(pid: i32, patience: Duration, left: &mut Left) -> io::Result<Threads> {
        let mut threads = Threads::default();
        match threads.stop_all(pid, patience, left) {
            Ok(()) => Ok(threads),
            Err(error) => {
                threads.release(left);
                Err(error)
            }
        }
    }

    fn stop_all(&mut self, pid: i32, patience: Duration, left: &mut Left) -> io::Result<()> {
        let begin = Instant::now();
        let deadline = begin + patience;
        loop {
            let mut has_new = self.ask(pid, left)?;
            self.look(pid, left)?;
            if begin.elapsed() > SOON {
                has_new |= self.pass_over_waiting(left)?;
            }
            if !has_new && self.asked.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                let reason = "a thread of it does not stop: it waits in the kernel";
                return Err(io::Error::other(reason));
            }
            if !self.asked.is_empty() {
                std::thread::sleep(APART);
            }
        }
        if self.standing.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    }

    /// Asks threads to stop that were not asked before. Returns whether there are any.
    fn ask(&mut self, pid: i32, left: &mut Left) -> io::Result<bool> {
        let mut has_new = false;
        let mut tasks = tasks(pid)?;
        // As long as the first thread is traced, the kernel keeps signals of the process that are
        // ignored, and may wake another thread with them: none that is not traced.
        tasks.sort_by_key(|&tid| tid == pid);
        for tid in tasks {
            has_new |= self.ask_one(pid, tid, left)?;
        }
        Ok(has_new)
    }

    fn ask_one(&mut self, pid: i32, tid: i32, left: &mut Left) -> io::Result<bool> {
        let standing = self.standing.iter().map(|(thread, _)| thread);
        let mut known = standing.chain(&self.asked).chain(&self.waiting);
        if known.any(|known| known.pid() == tid) {
            return Ok(false);
        }
        let was_asked = left.threads.iter().position(|late| late.pid() == tid);
        if let Some(place) = was_asked.filter(|_| !has_ended(pid, tid)) {
            self.asked.push(left.threads.swap_remove(place));
            return Ok(true);
        }
        match Tracee::interrupt(tid) {
            Ok(thread) => {
                self.asked.push(thread);
                Ok(true)
            }
            // It has ended. The first thread is there until all have.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(_) if has_ended(pid, tid) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Does not wait for threads that wait in the kernel. Returns whether there are others to ask:
    /// the processes that they have made in the same memory.
    fn pass_over_waiting(&mut self, left: &mut Left) -> io::Result<bool> {
        let mut has_new = false;
        for thread in std::mem::take(&mut self.asked) {
            if !waits_in_kernel(thread.pid()) {
                self.asked.push(thread);
                continue;
            }
            let tid = thread.pid();
            self.waiting.push(thread);
            let mut made = made_by(tid);
            made.retain(|&made| tracee::share_memory(tid, made));
            for made in made {
                // What it has become by then, or is not allowed, needs no stop.
                has_new |= self.ask_one(made, made, left).unwrap_or(false);
            }
        }
        Ok(has_new)
    }

    fn look(&mut self, pid: i32, left: &mut Left) -> io::Result<()> {
        // Somebody may have killed the process.
        for (thread, signal) in std::mem::take(&mut self.standing) {
            if let Some(Stop::Ended(status)) = stopped(&thread)? {
                left.ended.push((thread.pid(), status));
            } else {
                self.standing.push((thread, signal));
            }
        }
        let asked = std::mem::take(&mut self.asked);
        for thread in asked.into_iter().chain(std::mem::take(&mut self.waiting)) {
            match stopped(&thread)? {
                Some(Stop::Ended(status)) => left.ended.push((thread.pid(), status)),
                Some(stop) => {
                    // At once: this process may be killed. If it fails, so does what comes later.
                    let _ = thread.begin_call_again();
                    self.standing.push((thread, signal(stop)));
                }
                // It runs no more, and is reported when all others have ended.
                None if thread.pid() == pid && has_ended(pid, pid) => left.threads.push(thread),
                None => self.asked.push(thread),
            }
        }
        Ok(())
    }

    // Takes one of them out to be waited for alone. It is one that is not about to get a signal, if
    // there is one, and not the first: if the process is killed, the end of the first thread is
    // reported only when all others were waited for.
    pub(super) fn take(&mut self, pid: i32) -> Option<(Tracee, i32)> {
        let threads = tasks(pid).unwrap_or_default();
        let is_of_it = |&place: &usize| {
            let thread = self.standing.get(place);
            thread.is_some_and(|(thread, _)| threads.contains(&thread.pid()))
        };
        let places = (0..self.standing.len()).filter(is_of_it);
        let best = places.min_by_key(|&place| {
            let thread = self.standing.get(place);
            thread.map(|(thread, signal)| (thread.pid() == pid, *signal != 0))
        });
        best.map(|place| self.standing.swap_remove(place))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.standing.is_empty() && self.asked.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn release(mut self, left: &mut Left) {
        // The first thread first, for the reason why it is the last to be traced.
        self.standing.sort_by_key(|(thread, _)| thread.pid());
        for (thread, signal) in self.standing {
            left.release(thread, signal);
        }
        left.threads.extend(self.asked);
        left.threads.extend(self.waiting);
        left.look();
    }
}

#[derive(Debug, Default)]
pub(super) struct Left {
    /// They are to be let go when they stop, or to be waited for when they end.
    threads: Vec<Tracee>,
    /// First threads that have ended, and with them their processes, each with the status of
    /// `waitpid`, which is given once. Other threads do not matter.
    ended: Vec<(i32, i32)>,
}

impl Left {
    pub(super) fn release(&mut self, thread: Tracee, signal: i32) {
        // If that fails, so does what comes now.
        let _ = thread.begin_call_again();
        // It may have been killed.
        if thread.detach_with(signal).is_err() {
            self.threads.push(thread);
        }
    }

    /// Lets a thread run as soon as it has stopped, which it is about to.
    pub(super) fn release_soon(&mut self, thread: Tracee) {
        self.threads.push(thread);
        self.look();
    }

    pub(super) fn has_ended(&mut self, tid: i32, status: i32) {
        self.ended.push((tid, status));
    }

    /// Looks after threads that had not stopped in time. If the command has ended, it takes note of
    /// its status.
    pub(super) fn settle(&mut self, child: Option<&mut Child>, traced: &[i32]) {
        self.look();
        self.adopt(traced);
        let ended = std::mem::take(&mut self.ended);
        let Some(child) = child else { return };
        let own = child.pid();
        for (_, status) in ended.into_iter().filter(|(pid, _)| *pid == own) {
            child.has_ended(status);
        }
    }

    // Takes in tracees that nobody knows: the kernel traces what a traced thread makes also if that
    // thread is killed before it is known what it has made.
    fn adopt(&mut self, traced: &[i32]) {
        while let Some(tid) = tracee::waiting() {
            let is_known = traced.contains(&tid) || self.threads.iter().any(|it| it.pid() == tid);
            // The kernel names one of several: what is known is looked at before the next turn.
            let Some(thread) = Tracee::adopt(tid).filter(|_| !is_known) else {
                return;
            };
            self.threads.push(thread);
            self.look();
        }
    }

    fn look(&mut self) {
        for thread in std::mem::take(&mut self.threads) {
            match stopped(&thread) {
                Ok(Some(Stop::Ended(status))) => self.ended.push((thread.pid(), status)),
                Ok(Some(stop)) => self.release(thread, signal(stop)),
                Ok(None) => self.threads.push(thread),
                // It is not traced any more.
                Err(_) => {}
            }
        }
    }
}

/// Whether a thread has stopped or ended since it was looked at last.
pub(super) fn stopped(thread: &Tracee) -> io::Result<Option<Stop>> {
    match thread.has_stopped() {
        // It has become the first thread by executing a program, or somebody else has waited for
        // it.
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
            Ok(Some(Stop::Ended(tracee::GONE)))
        }
        stop => stop,
    }
}

pub(super) fn signal(stop: Stop) -> i32 {
    match stop {
        Stop::Signal(signal) => signal,
        // It has made no step.
        Stop::Trap => libc::SIGTRAP,
        Stop::Exec | Stop::Made | Stop::Asked | Stop::Call | Stop::Other | Stop::Ended(_) => 0,
    }
}

/// Whether a signal waits for this thread, not for its process.
pub(super) fn is_pending(tid: i32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let waiting = field(&status, "SigPnd").and_then(|set| u64::from_str_radix(set, 16).ok());
    waiting.is_some_and(|set| set >> (signal - 1) & 1 == 1)
}

// A thread of a process that has not ended, whose `/proc` shows what all of them have: if the first
// thread has ended before the others, its own shows nothing.
pub(super) fn living(pid: i32) -> i32 {
    let mut tasks = tasks(pid).unwrap_or_default().into_iter();
    tasks.find(|&tid| !has_ended(pid, tid)).unwrap_or(pid)
}

fn tasks(pid: i32) -> io::Result<Vec<i32>> {
    let mut tasks = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = entry?.file_name();
        tasks.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(tasks)
}

pub(super) fn is_thread(pid: i32, tid: i32) -> bool {
    fs::metadata(format!("/proc/{pid}/task/{tid}")).is_ok()
}

/// Whether a thread waits in the kernel for something that signals do not interrupt. If it was
/// asked to stop, it does so before it executes another instruction.
pub(super) fn waits_in_kernel(tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat"));
    stat.is_ok_and(|stat| state(&stat) == Some('D'))
}

fn made_by(tid: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{tid}/task/{tid}/children"));
    let list = list.unwrap_or_default();
    let numbers = list.split_ascii_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

pub(super) fn has_ended(pid: i32, tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat"));
    let state = stat.map(|stat| state(&stat));
    matches!(state, Err(_) | Ok(Some('Z' | 'X')))
}

// The state in a line of `/proc/PID/stat`, which follows a name that may have parentheses itself.
fn state(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_thread_follows_its_name() {
        assert_eq!(state("12 (a) Z (b) S 1 2"), Some('S'));
        assert_eq!(state("12 (main) Z 1 2"), Some('Z'));
        assert_eq!(state("12"), None);
        assert!(!has_ended(
            std::process::id() as i32,
            std::process::id() as i32
        ));
        assert!(has_ended(std::process::id() as i32, 0));
    }
}
