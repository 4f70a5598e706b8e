//! Bounding the tables of a trace that grows for as long as something runs.
//!
//! ```text
//!   samples, those met most often first ──▶ kept, until half of what is allowed is taken
//!                                       ──▶ the others: one row under [seldom]
//!   kept samples ──▶ their paths and callers ──▶ their frames and images, in new tables
//!   processes    ──▶ with the images of their mappings
//! ```

use std::cmp::Reverse;

use crate::base::{IdVec, SELDOM};
use crate::perfdata::Reader;

use super::copies::Copies;
use super::remembered::Remembered;
use super::samples::{SampleId, SampleKey};
use super::threads::TraceThread;
use super::tracer::Tracer;
use super::{AddressPathId, TraceThreadId};

/// Records are never so far behind, in nanoseconds.
const BEHIND: u64 = 10_000_000_000;

/// A thread that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// The time at which it was seen that nobody has its number.
    pub(super) gone: Option<u64>,
}

/// How large tables may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Rows of samples.
    pub(super) samples: usize,
    /// Paths.
    pub(super) paths: usize,
    /// Images.
    pub(super) images: usize,
    /// Threads.
    pub(super) threads: usize,
    /// Chains that are remembered.
    pub(super) chains: usize,
}

impl Default for Limits {
    /// Some 100 MB in all.
    fn default() -> Limits {
        Limits {
            samples: 400_000,
            paths: 1_000_000,
            images: 20_000,
            threads: 50_000,
            chains: 200_000,
        }
    }
}

impl Limits {
    /// Limits that leave room for twice as much as there is: what does not depend on samples is not
    /// less after a compaction.
    pub(super) fn raised_to(&self, tracer: &Tracer<'_, '_, '_>) -> Limits {
        Limits {
            images: self.images.max(2 * tracer.stacks.images.rows().len()),
            ..self.clone()
        }
    }
}

/// What is kept.
struct Kept {
    samples: IdVec<SampleId, bool>,
    paths: IdVec<AddressPathId, bool>,
    threads: IdVec<TraceThreadId, bool>,
}

impl<'scope, 'env> Tracer<'_, 'scope, 'env> {
    /// Forgets processes and threads that have ended. The number of one may be another's by now, or
    /// a process may have threads that outlive its first: what `is_there` stays. What is not may
    /// still have records that are to come, as those are some time behind; `now` is the time up to
    /// which they have come, in nanoseconds.
    pub(super) fn forget_ended(&mut self, now: u64, is_there: &dyn Fn(i32) -> bool) {
        let mut ended = self.ended.replace(Vec::new()).unwrap_or_default();
        ended.retain_mut(|ended| {
            if is_there(ended.tid) {
                // A process of which threads go on, else another one by its number.
                ended.gone = None;
                return ended.tid == ended.pid;
            }
            let gone = *ended.gone.get_or_insert(now);
            let is_past = now.saturating_sub(gone) > BEHIND;
            if is_past {
                self.threads.forget(ended.pid, ended.tid);
                if ended.tid == ended.pid {
                    self.stacks.processes.remove(&ended.pid);
                }
            }
            !is_past
        });
        self.ended.get_or_insert_default().append(&mut ended);
    }

    /// Whether a table is larger than it may be.
    pub(super) fn passes(&mut self, limits: &Limits) -> bool {
        if self.remembered.len() > limits.chains {
            // They are found anew.
            self.remembered = Remembered::new();
        }
        self.samples.keys().len() > limits.samples
            || self.stacks.paths.rows().len() > limits.paths
            || self.stacks.images.rows().len() > limits.images
            || self.threads.table.rows().len() > limits.threads
    }

    /// Makes the tables half as large as `limits` at most, as far as it depends on samples. `copies`
    /// take the place of those that know images by their old ids. Returns for each row of samples
    /// the row that it is part of now, and how many samples stand under `[seldom]`.
    pub(super) fn compact(
        &mut self,
        reader: &Reader,
        copies: Copies<'scope, 'env>,
        limits: &Limits,
        is_there: &dyn Fn(i32) -> bool,
    ) -> (Vec<SampleId>, u64) {
        self.settle(reader);
        self.copies = Some(copies);
        let kept = self.kept(limits);
        let (mut stacks, mut images) = self.stacks.emptied();
        let paths = stacks.take_paths(&self.stacks, &mut images, &kept.paths);
        let seldom = stacks.mark(SELDOM);
        self.stacks = stacks;
        let threads = self.threads.keep(&kept.threads);
        let nobody = self.threads.table.id_of(TraceThread {
            pid: -1,
            tid: -1,
            comm: SELDOM.to_owned(),
        });
        let old = std::mem::take(&mut self.samples);
        let events = self.events();
        (0..events).for_each(|_| self.samples.add_event());
        let rows = old.keys().enumerate().zip(old.sums().iter());
        let moved = rows.map(|((id, key), &(weight, count))| {
            let place = kept.samples[id].then(|| Some((threads[key.thread]?, paths[key.path]?)));
            let (thread, path) = place.flatten().unwrap_or((nobody, seldom));
            let event = key.event;
            let key = SampleKey {
                event,
                thread,
                path,
            };
            self.samples.add_many(key, weight, count)
        });
        let moved = moved.collect();
        self.remembered = Remembered::new();
        self.counters
            .retain(|thread, _| thread.is_none_or(is_there));
        let rows = self.samples.keys().iter().zip(self.samples.sums().iter());
        let seldom = rows.filter(|(key, _)| key.path == seldom);
        (moved, seldom.map(|(_, &(_, count))| count).sum())
    }

    /// What is met most often, as much as there is room for.
    fn kept(&self, limits: &Limits) -> Kept {
        let (keys, sums) = (self.samples.keys(), self.samples.sums());
        let paths = self.stacks.paths.rows();
        let mut kept = Kept {
            samples: IdVec::filled(false, keys.len()),
            paths: IdVec::filled(false, paths.len()),
            threads: IdVec::filled(false, self.threads.table.rows().len()),
        };
        let mut order: Vec<SampleId> = keys.ids().collect();
        order.sort_unstable_by_key(|&id| (Reverse(sums[id].1), id));
        order.truncate(limits.samples / 2);
        let (mut path_room, mut thread_room) = (limits.paths / 2, limits.threads / 2);
        for id in order {
            let key = keys[id];
            if !kept.threads[key.thread] {
                if thread_room == 0 {
                    continue;
                }
                thread_room -= 1;
                kept.threads[key.thread] = true;
            }
            kept.samples[id] = true;
            let mut next = Some(key.path).filter(|&path| !kept.paths[path]);
            while let Some(path) = next {
                kept.paths[path] = true;
                path_room = path_room.saturating_sub(1);
                next = paths[path].caller.filter(|&path| !kept.paths[path]);
            }
            if path_room == 0 {
                break;
            }
        }
        kept
    }
}
