//! Keeps the slowdown by counting below a limit: calls that are too frequent are counted no more.
//!
//! ```text
//!   counters ─▶ calls since the last look × cost of one ─┐
//!                                                        ├─▶ slowdown so far, and since the last look
//!   task-clock ─▶ processor time of all that counts ─────┘       │ both above the limit
//!                                                                ▼
//!                   the stubs of the most frequent sites:  incq counter; jmp lex
//!                                              become      jmp lex
//! ```
//!
//! Stubs are in memory that all processes share: one write changes them for all, for threads and for
//! processes that were forked, and no thread has to stop. The first eight bytes of a stub are one
//! instruction, so no thread is inside of them; they are aligned, and are written at once. Processors
//! of x86-64 see writes to code without being told. That running code is changed in this way is not
//! new: the sleds of LLVM's XRay are (Dean Michael Berris et al., "XRay: a function call tracing
//! system", 2016).
//!
//! A site that was given up costs one jump more than before. Where threads share a counter and wait for
//! each other, counting costs more than is measured here.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};

use super::cost;
use crate::perfdata::writer::ATTR_SIZE;
use crate::sampler::kernel::{self, Who};

/// How long apart the counters are looked at.
const APART: Duration = Duration::from_millis(150);
/// The least processor time between two looks, in nanoseconds: less says little about what comes.
const LEAST: u64 = 50_000_000;
/// So much time is spent on counting before anything is given up, in nanoseconds: programs that are
/// over soon keep all their counts.
const FREE: f64 = 5e8;
/// When something is given up, what is left slows the program down by this part of the limit.
const LEFT: f64 = 0.9;

/// A limit on the slowdown.
#[derive(Debug)]
pub(super) struct Limit {
    slowdown: Slowdown,
    /// The counters of the processor time of what counts.
    clocks: Vec<OwnedFd>,
    looked: Instant,
}

/// What counting has cost so far.
#[derive(Debug)]
struct Slowdown {
    /// The most, as a part of the time that the program needs without counting.
    most: f64,
    /// The nanoseconds of one counted call.
    cost: f64,
    /// The same, if it is counted with a lock.
    locked: f64,
    /// Processor time at the last look, and what of it was spent on counting, in nanoseconds.
    time: u64,
    spent: f64,
    /// The counters at the last look.
    counters: Vec<Vec<u64>>,
}

/// The place of a file and the number of a site in it.
pub(super) type SiteOfFile = (usize, usize);

impl Limit {
    /// Begins to watch a process, whose threads stand still. What they start is watched, too.
    pub(super) fn begin(pid: i32, most: f64, locks: bool) -> io::Result<Limit> {
        let mut clocks = Vec::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let name = entry?.file_name();
            let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match kernel::open_event(&clock(), Who::Task(tid), -1, None) {
                Ok(clock) => clocks.push(clock),
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Limit {
            slowdown: Slowdown {
                most,
                cost: cost::of_one_call(locks),
                locked: cost::of_one_call(true),
                time: 0,
                spent: 0.0,
                counters: Vec::new(),
            },
            clocks,
            looked: Instant::now(),
        })
    }

    /// From now on calls are counted with a lock.
    pub(super) fn lock(&mut self) {
        self.slowdown.cost = self.slowdown.locked;
    }

    /// Looks how much time counting takes, if it is time for that. `read` reads the counters, and
    /// `give_up` gives a site up, if that is possible.
    pub(super) fn look(
        &mut self,
        read: &mut dyn FnMut() -> io::Result<Vec<Vec<u64>>>,
        give_up: &mut dyn FnMut(SiteOfFile) -> bool,
    ) -> io::Result<()> {
        if self.looked.elapsed() < APART {
            return Ok(());
        }
        self.looked = Instant::now();
        let mut time = 0;
        for clock in &self.clocks {
            let value = kernel::read_event(clock.as_fd(), 1)?;
            time += value.first().copied().unwrap_or(0);
        }
        if time.saturating_sub(self.slowdown.time) >= LEAST {
            self.slowdown.add(time, read()?, give_up);
        }
        Ok(())
    }
}

impl Slowdown {
    /// Adds what has come since the last look.
    fn add(
        &mut self,
        time: u64,
        counters: Vec<Vec<u64>>,
        give_up: &mut dyn FnMut(SiteOfFile) -> bool,
    ) {
        let before = std::mem::replace(&mut self.counters, counters);
        let elapsed = time.saturating_sub(self.time) as f64;
        self.time = time;
        let mut calls = Vec::new();
        for (file, counters) in self.counters.iter().enumerate() {
            let before = before.get(file).map(Vec::as_slice).unwrap_or_default();
            for (site, now) in counters.iter().enumerate() {
                let before = before.get(site).copied().unwrap_or(0);
                if *now > before {
                    calls.push((now - before, (file, site)));
                }
            }
        }
        let mut spent = calls.iter().map(|(calls, _)| *calls as f64).sum::<f64>() * self.cost;
        self.spent += spent;
        let own = |time: f64, spent: f64| (time - spent).max(time / 20.0);
        let allowed = self.most * own(elapsed, spent);
        let is_over = self.spent > self.most * own(self.time as f64, self.spent);
        if self.spent < FREE || !is_over || spent <= allowed {
            return;
        }
        calls.sort_unstable_by(|a, b| b.cmp(a));
        for (calls, site) in calls {
            if spent <= allowed * LEFT {
                break;
            }
            if give_up(site) {
                spent -= calls as f64 * self.cost;
            }
        }
    }
}

/// The processor time of a thread and of what it starts.
fn clock() -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: sys::PERF_TYPE_SOFTWARE,
        config: u64::from(sys::PERF_COUNT_SW_TASK_CLOCK),
        size: ATTR_SIZE as u32,
        ..Default::default()
    };
    // It counts the time in the kernel all the same; only who has privileges may ask for it.
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr.set_inherit(1);
    attr
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn slowdown() -> Slowdown {
        Slowdown {
            most: 0.3,
            cost: 2.0,
            locked: 6.0,
            time: 0,
            spent: 0.0,
            counters: Vec::new(),
        }
    }

    fn given_up(
        slowdown: &mut Slowdown,
        time: u64,
        counters: &[&[u64]],
        cannot: &[SiteOfFile],
    ) -> Vec<SiteOfFile> {
        let mut sites = Vec::new();
        let counters = counters.iter().map(|counters| counters.to_vec()).collect();
        slowdown.add(time, counters, &mut |site| {
            let can = !cannot.contains(&site);
            if can {
                sites.push(site);
            }
            can
        });
        sites
    }

    #[test]
    fn the_fewest_sites_are_given_up() {
        // 200 million calls a second cost 0.4 of 1 second: 67 % more than without.
        let counters: [&[u64]; 2] = [&[5, 10_000_000, 40_000_000], &[150_000_000]];
        let mut all = slowdown();
        // Not while little was spent in sum.
        assert_eq!(given_up(&mut all, SECOND, &counters, &[]), []);
        let later: [&[u64]; 2] = [&[10, 20_000_000, 80_000_000], &[300_000_000]];
        // 0.18 are allowed for the other 0.6; without the first, 0.1 are left.
        let mut one = slowdown();
        one.spent = FREE;
        assert_eq!(given_up(&mut all, 2 * SECOND, &later, &[]), [(1, 0)]);
        // Another is given up if the first cannot be.
        assert_eq!(
            given_up(&mut one, SECOND, &counters, &[(1, 0)]),
            [(0, 2), (0, 1), (0, 0)]
        );
    }

    #[test]
    fn nothing_is_given_up_for_a_moment_that_is_busy() {
        let mut slowdown = slowdown();
        let quiet = given_up(&mut slowdown, 100 * SECOND, &[&[1_000_000_000]], &[]);
        assert_eq!(quiet, []);
        // All of a second is spent on counting, which is little of all.
        let busy = given_up(&mut slowdown, 101 * SECOND, &[&[1_500_000_000]], &[]);
        assert_eq!(busy, []);
        // Nor is it when the moment is over.
        slowdown.spent = 99e9;
        let quiet = given_up(&mut slowdown, 102 * SECOND, &[&[1_500_000_001]], &[]);
        assert_eq!(quiet, []);
    }
}
