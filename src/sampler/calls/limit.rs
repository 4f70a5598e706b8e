//! Keeps the slowdown by counting below a limit: the most frequent calls are no longer counted.
//!
//! ```text
//!   counters ─▶ calls since the last look × cost of one ─┐
//!                                                        ├─▶ slowdown so far, and since then
//!   task-clock ─▶ processor time of all that counts ─────┘       │ both too near to the limit
//!                                                                ▼
//!                   the stubs of the most frequent sites:  incq counter; jmp lex
//!                                              become      jmp lex
//! ```
//!
//! Stubs are in memory that all processes share: one write changes them for all, for threads and
//! for processes that were forked, and no thread has to stop. The first eight bytes of a stub are
//! one instruction, so no thread is inside of them; they are aligned, and are written at once.
//! x86-64 processors notice writes to code by themselves. LLVM's XRay changes its sleds in running
//! code in the same way (Dean Michael Berris et al., "XRay: a function call tracing system", 2016).
//!
//! A site that was given up costs one jump more than before, until the call is made as before
//! (`past_stubs`). Where threads share a counter and wait for each other, counting costs more than
//! is measured here.
//!
//! The limit applies to the whole run. Time that counting took before the first site was given up
//! is compensated later: as long as the slowdown so far is above the limit, counting may take half
//! of it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};

use super::cost::Cost;
use crate::perfdata::writer::ATTR_SIZE;
use crate::sampler::kernel::{self, Who};

// How long apart the counters are looked at: at least and at most.
const APART: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(150));
// Looking takes at most one part in so many of the recorder's time.
const PARTS: u32 = 20;
// The least processor time between two looks, in nanoseconds: less says little about what comes.
const LEAST: u64 = 5_000_000;
// So much time is spent on counting before anything is given up, in nanoseconds: programs that are
// over soon keep all their counts.
const FREE: f64 = 1e8;
// From this part of the limit on, something is given up. What is left slows the program down by
// less than this part again.
const NEAR: f64 = 0.9;
// The part of the limit that counting may take while the slowdown so far is above the limit.
const OVER: f64 = 0.5;
// So many of the most frequent sites have their stubs and counters in the processor's nearest
// cache.
const HOT: usize = 512;
// How much longer it takes to count a call at another site, in multiples of what counting without a
// lock takes. In cc1plus, 51 million calls at 49 000 sites took 3 nanoseconds each on a processor
// where a loop takes 1.3, and two thirds of them were made at 1000 sites.
const MISS: f64 = 3.0;

#[derive(Debug)]
pub(super) struct Limit {
    slowdown: Slowdown,
    clocks: Vec<OwnedFd>,
    looked: Instant,
    apart: Duration,
}

#[derive(Debug)]
struct Slowdown {
    /// The most, as a part of the time that the program needs without counting.
    most: f64,
    cost: f64,
    locked: f64,
    /// What it takes longer at a site that is called seldom.
    miss: f64,
    /// Processor time at the last look, and what of it was spent on counting, in nanoseconds.
    time: u64,
    spent: f64,
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
        let Cost { unlocked, locked } = Cost::measured();
        Ok(Limit {
            slowdown: Slowdown {
                most,
                cost: if locks { locked } else { unlocked },
                locked,
                miss: unlocked * MISS,
                time: 0,
                spent: 0.0,
                counters: Vec::new(),
            },
            clocks,
            looked: Instant::now(),
            apart: APART.0,
        })
    }

    pub(super) fn due(&self) -> Duration {
        self.apart.saturating_sub(self.looked.elapsed())
    }

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
        if !self.due().is_zero() {
            return Ok(());
        }
        let begin = Instant::now();
        let mut time = 0;
        for clock in &self.clocks {
            let value = kernel::read_event(clock.as_fd(), 1)?;
            time += value.first().copied().unwrap_or(0);
        }
        if time.saturating_sub(self.slowdown.time) >= LEAST {
            self.slowdown.add(time, read()?, give_up);
        }
        self.looked = Instant::now();
        // Each processor may spend all of its time on counting.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let least = begin.elapsed().saturating_mul(PARTS).max(APART.0);
        let apart = self.slowdown.left() / (2 * processors) as u32;
        self.apart = apart.clamp(least.min(APART.1), APART.1);
        Ok(())
    }
}

impl Slowdown {
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
        calls.sort_unstable_by(|a, b| b.cmp(a));
        let costs = calls.iter().enumerate().map(|(rank, (calls, _))| {
            let miss = if rank < HOT { 0.0 } else { self.miss };
            *calls as f64 * (self.cost + miss)
        });
        let costs: Vec<f64> = costs.collect();
        let mut spent = costs.iter().sum::<f64>();
        self.spent += spent;
        if self.left() > Duration::ZERO {
            return;
        }
        let is_over = self.spent > self.most * own(self.time as f64, self.spent);
        let part = if is_over { OVER } else { NEAR };
        let allowed = self.most * own(elapsed, spent) * part;
        if spent <= allowed {
            return;
        }
        for ((_, site), cost) in calls.into_iter().zip(costs) {
            if spent <= allowed * NEAR {
                break;
            }
            if give_up(site) {
                spent -= cost;
            }
        }
    }

    fn left(&self) -> Duration {
        let most = self.most * own(self.time as f64, self.spent) * NEAR;
        let left = most.max(FREE) - self.spent;
        Duration::from_nanos(left.max(0.0) as u64)
    }
}

/// The time without that spent on counting, which is an estimate.
fn own(time: f64, spent: f64) -> f64 {
    (time - spent).max(time / 20.0)
}

// The processor time of a thread and of what it starts.
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
            miss: 6.0,
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
        // 0.09 are allowed for the other 0.6, as that is too much already; without the first, 0.1
        // are left.
        let mut all = slowdown();
        assert_eq!(given_up(&mut all, SECOND, &counters, &[]), [(1, 0), (0, 2)]);
        // Another is given up if the first cannot be.
        let mut one = slowdown();
        assert_eq!(
            given_up(&mut one, SECOND, &counters, &[(1, 0)]),
            [(0, 2), (0, 1), (0, 0)]
        );
        // Not while little was spent in sum.
        let little: [&[u64]; 1] = [&[40_000_000]];
        assert_eq!(given_up(&mut slowdown(), SECOND / 10, &little, &[]), []);
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

    #[test]
    fn seldom_called_sites_take_longer() {
        let mut slowdown = slowdown();
        let counters = vec![1_000_000; HOT + 10];
        given_up(&mut slowdown, 100 * SECOND, &[&counters], &[]);
        assert_eq!(slowdown.spent, (HOT * 2 + 10 * 8) as f64 * 1e6);
    }

    /// Counts calls as a program makes them that spends all of its time so: each site at a rate per
    /// second of its own time. Returns the slowdown from its second `after` on, at most, with looks
    /// so far apart (in nanoseconds).
    fn greatest_slowdown(phases: &[(f64, &[f64])], look: f64, after: f64) -> f64 {
        let mut slowdown = slowdown();
        let (mut time, mut spent, mut greatest) = (0.0, 0.0, 0.0f64);
        let mut counters = [0.0; 4];
        let mut is_given_up = [false; 4];
        for (seconds, rates) in phases {
            let mut left = seconds * 1e9;
            while left > 0.0 {
                let rates = rates.iter().zip(is_given_up);
                let rates: Vec<f64> = rates
                    .map(|(rate, given_up)| if given_up { 0.0 } else { *rate })
                    .collect();
                let slower = rates.iter().sum::<f64>() * slowdown.cost / 1e9;
                let own = look / (1.0 + slower);
                left -= own;
                time += look;
                spent += own * slower;
                for (counter, rate) in counters.iter_mut().zip(&rates) {
                    *counter += rate * own / 1e9;
                }
                let now = counters.iter().map(|counter| *counter as u64).collect();
                slowdown.add(time as u64, vec![now], &mut |(_, site)| {
                    is_given_up[site] = true;
                    true
                });
                if time - spent > after * 1e9 {
                    greatest = greatest.max(spent / (time - spent));
                }
            }
        }
        greatest
    }

    #[test]
    fn the_limit_holds_for_the_whole_run() {
        // Calls that double the time it takes, more, at several sites, and after a quiet time.
        let hot: &[f64] = &[5e8];
        let all: &[f64] = &[1e9, 3e8, 1e8, 1e8];
        let mild: &[f64] = &[1e8, 0.8e8];
        let quiet: &[f64] = &[1e6];
        for (phases, after) in [
            (&[(10.0, hot)][..], 0.7),
            (&[(10.0, all)], 0.7),
            (&[(10.0, mild)], 2.0),
            (&[(5.0, quiet), (20.0, all)], 1.0),
            (&[(3.0, mild), (20.0, hot)], 2.0),
        ] {
            for look in [1e7, 5e7] {
                let greatest = greatest_slowdown(phases, look, after);
                assert!(greatest <= 0.3, "{phases:?} {look}: {greatest}");
            }
        }
    }
}
