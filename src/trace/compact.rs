//! Bounding the tables of a trace that grows for as long as something runs.
//!
//! ```text
//!   samples, the most frequent first    ──▶ kept, until half of what is allowed is taken
//!                                       ──▶ the others: one row under [seldom]
//!   kept samples ──▶ their paths and callers ──▶ their frames and images, in new tables
//!   processes    ──▶ with the images of their mappings
//! ```

use std::cmp::Reverse;

use crate::base::{IdVec, SELDOM, WeightSum};
use crate::perfdata::Reader;

use super::known_chains::KnownChains;
use super::off_cpu::{EVENTS as OFF_CPU_EVENTS, OffCpu};
use super::samples::{SampleId, SampleKey, Samples};
use super::stack_copies::StackCopies;
use super::threads::TraceThread;
use super::tracer::Tracer;
use super::{AddressPathId, AddressPaths, TraceThreadId};

// Records are never so far behind, in nanoseconds.
const BEHIND: u64 = 10_000_000_000;

/// How large tables may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) samples: usize,
    pub(super) paths: usize,
    pub(super) images: usize,
    pub(super) threads: usize,
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

/// The new places of rows of samples.
#[derive(Debug, Default)]
pub(super) struct Compacted {
    /// For each row of samples the row that it is part of now.
    pub(super) samples: Vec<SampleId>,
    pub(super) off_cpu: Vec<SampleId>,
    /// How many samples stand under `[seldom]`.
    pub(super) seldom: u64,
}

/// What is kept, and what there is room for.
struct Kept<'a> {
    tree: &'a AddressPaths,
    paths: IdVec<AddressPathId, bool>,
    threads: IdVec<TraceThreadId, bool>,
    path_room: usize,
    thread_room: usize,
}

impl Kept<'_> {
    fn path(&mut self, path: AddressPathId) {
        let mut next = Some(path).filter(|&path| !self.paths[path]);
        while let Some(path) = next {
            self.paths[path] = true;
            self.path_room = self.path_room.saturating_sub(1);
            let caller = self.tree[path].caller;
            next = caller.filter(|&path| !self.paths[path]);
        }
    }

    fn thread(&mut self, thread: TraceThreadId) {
        if !std::mem::replace(&mut self.threads[thread], true) {
            self.thread_room = self.thread_room.saturating_sub(1);
        }
    }

    /// Keeps rows up to this number, those that `weigh` most first, as far as there is room.
    fn samples(&mut self, samples: &Samples, most: usize, weigh: fn(&WeightSum) -> u64) {
        let (keys, sums) = (samples.keys(), samples.sums());
        let mut order: Vec<SampleId> = keys.ids().collect();
        order.sort_unstable_by_key(|&id| (Reverse(weigh(&sums[id])), id));
        for id in order.into_iter().take(most) {
            if self.path_room == 0 || self.thread_room == 0 {
                break;
            }
            self.thread(keys[id].thread);
            self.path(keys[id].path);
        }
    }
}

impl<'scope, 'env> Tracer<'_, 'scope, 'env> {
    /// Forgets processes and threads that have ended.
    pub(super) fn forget_ended(&mut self, now: u64, is_there: &dyn Fn(i32) -> bool) {
        // The number of one may be another's by now, or a process may have threads that outlive its
        // first: what `is_there` stays. What is not may still have records that are to come, as
        // those are some time behind; `now` is the time up to which they have come, in nanoseconds.
        let mut ended = self.ended.replace(Vec::new()).unwrap_or_default();
        ended.retain_mut(|ended| {
            if is_there(ended.tid) {
                // A process whose other threads go on, or a new process with this number.
                ended.gone = None;
                return ended.tid == ended.pid;
            }
            let gone = *ended.gone.get_or_insert(now);
            let is_past = now.saturating_sub(gone) > BEHIND;
            if is_past {
                self.threads.forget(ended.pid, ended.tid);
                self.counters.remove(&Some(ended.tid));
                if let Some(off_cpu) = &mut self.off_cpu {
                    off_cpu.forget(ended.tid);
                }
                if ended.tid == ended.pid {
                    self.stacks.forget_process(ended.pid);
                }
            }
            !is_past
        });
        self.ended.get_or_insert_default().append(&mut ended);
    }

    /// Whether a table is larger than it may be.
    pub(super) fn passes(&mut self, limits: &Limits) -> bool {
        if self.known_chains.len() > limits.chains {
            // They are looked up again.
            self.count_chains();
            self.known_chains = KnownChains::new();
        }
        let off_cpu = self
            .off_cpu
            .as_ref()
            .map_or(0, |off_cpu| off_cpu.samples().keys().len());
        self.samples.keys().len() + off_cpu > limits.samples
            || self.stacks.paths.rows().len() > limits.paths
            || self.stacks.images.rows().len() > limits.images
            || self.threads.table.rows().len() > limits.threads
    }

    /// Makes the tables half as large as `limits` at most, as far as it depends on samples.
    /// `copies` take the place of those that know images by their old ids. Returns for each row of
    /// samples the row that it is part of now, and how many samples stand under `[seldom]`.
    pub(super) fn compact(
        &mut self,
        reader: &Reader,
        copies: StackCopies<'scope, 'env>,
        limits: &Limits,
    ) -> Compacted {
        self.settle(reader);
        self.count_chains();
        self.copies = Some(copies);
        let (wanted_paths, wanted_threads) = self.kept(limits);
        let (mut stacks, mut images) = self.stacks.emptied();
        let paths = stacks.take_paths(&self.stacks, &mut images, &wanted_paths);
        let seldom = stacks.mark(SELDOM);
        self.stacks = stacks;
        let threads = self.threads.keep(&wanted_threads);
        let nobody = self.threads.table.id_of(TraceThread {
            pid: -1,
            tid: -1,
            comm: SELDOM.into(),
            job: None,
        });
        let place = |key: &SampleKey| {
            let place = threads[key.thread].zip(paths[key.path]);
            let (thread, path) = place.unwrap_or((nobody, seldom));
            SampleKey {
                event: key.event,
                thread,
                path,
            }
        };
        let mut compacted = Compacted::default();
        (self.samples, compacted.samples) = self.samples.moved(self.events(), &place);
        if let Some(off_cpu) = &mut self.off_cpu {
            let (samples, moved) = off_cpu.samples().moved(OFF_CPU_EVENTS, &place);
            compacted.off_cpu = moved;
            let path = |path| paths[path].unwrap_or(seldom);
            off_cpu.rename(samples, &path, &|thread| threads[thread].unwrap_or(nobody));
        }
        // It has the old ids of paths and rows.
        self.known_chains = KnownChains::new();
        let off_cpu = self.off_cpu.as_ref().map(OffCpu::samples);
        let all = std::iter::once(&self.samples).chain(off_cpu);
        let rows = all
            .flat_map(|samples| samples.keys().iter().zip(samples.sums().iter()))
            .filter(|(key, _)| key.path == seldom);
        compacted.seldom = rows.map(|(_, sum)| sum.count).sum();
        compacted
    }

    fn kept(&self, limits: &Limits) -> (IdVec<AddressPathId, bool>, IdVec<TraceThreadId, bool>) {
        let paths = self.stacks.paths.rows();
        let mut kept = Kept {
            tree: paths,
            paths: IdVec::filled(false, paths.len()),
            threads: IdVec::filled(false, self.threads.table.rows().len()),
            path_room: limits.paths / 2,
            thread_room: limits.threads / 2,
        };
        if let Some(off_cpu) = &self.off_cpu {
            off_cpu.each_pending(&mut |path, thread| {
                path.into_iter().for_each(|path| kept.path(path));
                thread.into_iter().for_each(|thread| kept.thread(thread));
            });
            kept.samples(off_cpu.samples(), limits.samples / 4, |sum| sum.weight);
        }
        kept.samples(&self.samples, limits.samples / 4, |sum| sum.count);
        (kept.paths, kept.threads)
    }
}
