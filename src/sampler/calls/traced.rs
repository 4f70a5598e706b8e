//! The threads of a program that is traced while its stubs count without locks (`without_locks`).

use std::io;
use std::time::{Duration, Instant};

use super::threads::{APART, PATIENCE, SOON, stopped, waits_in_kernel};
use crate::sampler::targets::tracee::{Stop, Tracee};

/// The threads of a program that is traced.
#[derive(Debug)]
pub(super) struct Traced {
    pub(super) pid: i32,
    pub(super) threads: Vec<Thread>,
    /// How far counters are that no thread uses, from those that the stubs state.
    pub(super) free: Vec<u64>,
    /// How many threads were made.
    pub(super) made: usize,
}

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) tracee: Tracee,
    /// How far its counters are from those that the stubs state.
    pub(super) distance: u64,
}

/// Threads that were stopped; those without a stop wait in the kernel, and stop before they execute another
/// instruction.
pub(super) type Standing = Vec<(Thread, Option<Stop>)>;

impl Traced {
    /// Its threads, by number.
    pub(super) fn numbers(&self) -> Vec<i32> {
        let threads = self.threads.iter();
        threads.map(|thread| thread.tracee.pid()).collect()
    }

    /// Stops all threads. Some may not have stopped in time.
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
