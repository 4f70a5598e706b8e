//! The threads of a program that is traced while its stubs count without locks (`without_locks`).

use std::io;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use super::threads::{APART, PATIENCE, SOON, stopped, waits_in_kernel};
use crate::sampler::kernel;
use crate::sampler::output::tally::Began;
use crate::sampler::targets::tracee::{Stop, Tracee};

#[derive(Debug)]
pub(super) struct Traced {
    pub(super) pid: i32,
    pub(super) threads: Vec<Thread>,
    /// How far counters are that no thread uses, from those that the stubs state.
    pub(super) free: Vec<u64>,
    pub(super) made: usize,
}

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) tracee: Tracee,
    pub(super) distance: u64,
}

// The most threads and processes of which note is taken. Before, so many are traced no more.
const NOTED: usize = 1 << 16;

// A program that counts without locks, or has done so at its beginning: all threads and processes
// that it made then are to be traced. The kernel reports those to its tracer that may be traced,
// and all to who samples it.
#[derive(Debug)]
pub(super) struct Unlocked {
    pub(super) pid: i32,
    pub(super) told: FxHashSet<i32>,
    began: Vec<i32>,
    until: Option<u64>,
}

impl Unlocked {
    pub(super) fn begin(pid: i32) -> Unlocked {
        Unlocked {
            pid,
            told: FxHashSet::default(),
            began: Vec::new(),
            until: None,
        }
    }

    pub(super) fn end(&mut self) {
        self.until.get_or_insert_with(kernel::now);
    }

    pub(super) fn note_began(&mut self, began: &[Began]) {
        let is_meant = |began: &&Began| {
            began.parent == self.pid && self.until.is_none_or(|until| began.time <= until)
        };
        let room = NOTED.saturating_sub(self.began.len());
        let meant = began.iter().filter(is_meant).map(|began| began.tid);
        self.began.extend(meant.take(room));
    }

    pub(super) fn has_untraced(&self) -> bool {
        self.began.iter().any(|tid| !self.told.contains(tid))
    }
}

/// Threads that were stopped; those without a stop wait in the kernel, and stop before they execute
/// another instruction.
pub(super) type Standing = Vec<(Thread, Option<Stop>)>;

impl Traced {
    pub(super) fn numbers(&self) -> Vec<i32> {
        let threads = self.threads.iter();
        threads.map(|thread| thread.tracee.pid()).collect()
    }

    pub(super) fn halt(&mut self, patience: Duration) -> Standing {
        let mut standing = Standing::new();
        let mut running = std::mem::take(&mut self.threads);
        for thread in &running {
            // It may have ended, or have stopped already.
            let _ = thread.tracee.stop();
        }
        let begin = Instant::now();
        loop {
            for thread in std::mem::take(&mut running) {
                match stopped(&thread.tracee) {
                    Ok(None) => running.push(thread),
                    Ok(stop) => standing.push((thread, stop)),
                    Err(_) => standing.push((thread, None)),
                }
            }
            let elapsed = begin.elapsed();
            // Nobody waits for what waits in the kernel.
            let waits = |thread: &Thread| waits_in_kernel(thread.tracee.pid());
            if running.is_empty()
                || elapsed > patience
                || elapsed > SOON && running.iter().all(waits)
            {
                break;
            }
            std::thread::sleep(APART);
        }
        standing.extend(running.into_iter().map(|thread| (thread, None)));
        standing
    }
}

/// Sets what its stubs add to the addresses of counters.
pub(super) fn set_segment(thread: &Tracee, base: u64) -> io::Result<()> {
    let mut registers = thread.registers()?;
    registers.set_segment(base);
    thread.set_registers(&registers)
}

/// The stop in which a thread begins that was just made; `None` if it does not come in time.
pub(super) fn first_stop(made: &Tracee) -> Option<Stop> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        match stopped(made) {
            Ok(None) => std::thread::yield_now(),
            Ok(stop) => return stop,
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_began_without_being_traced_is_found() {
        let began = |parent, tid, time| Began { parent, tid, time };
        let mut unlocked = Unlocked::begin(7);
        unlocked.note_began(&[began(7, 8, 10), began(3, 4, 10)]);
        assert!(unlocked.has_untraced());
        unlocked.told.insert(8);
        assert!(!unlocked.has_untraced());
        // From here on counters are locked.
        unlocked.end();
        unlocked.note_began(&[began(7, 9, u64::MAX)]);
        assert!(!unlocked.has_untraced());
        unlocked.note_began(&[began(7, 9, 11)]);
        assert!(unlocked.has_untraced());
    }
}
