//! When threads and functions had their weight: sums by buckets of equal length.
//!
//! Each sample is in one bucket, so the sums of several buckets are those of the time from the first to
//! the last: the same as of the samples that were taken then.

use rustc_hash::FxHashMap;

use crate::analysis::tree::{CallTree, NodeId};
use crate::base::IdVec;
use crate::profile::{FunctionId, Links, PathId, Profile, Step, ThreadId, TimedRow, TimedRows};

/// How many buckets there are at most.
const BUCKETS: u32 = 256;
/// How many sums of functions there are at most; with more, buckets are made longer.
const SUMS: usize = 400_000;
/// How many threads have a row of their own.
const THREADS: usize = 48;

/// What a function had in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The function.
    pub function: FunctionId,
    /// The number of the bucket.
    pub bucket: u32,
    /// The weight of the samples taken in it.
    pub self_weight: u64,
    /// The weight of the samples with it on the stack, each once.
    pub total: u64,
}

/// Weights by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The length of a bucket in nanoseconds. The first begins with the first sample of the recording.
    pub bucket: u64,
    /// The weight of each bucket.
    pub weights: Vec<u64>,
    /// The weight of each bucket for each thread, the heaviest first; `None` for all others together.
    pub threads: Vec<(Option<ThreadId>, Vec<u64>)>,
    /// What functions had, in order of function and bucket; nothing that is 0.
    pub sums: Vec<Sum>,
}

impl Timeline {
    /// Sums up rows. Linear in rows and, for each bucket, in the paths of its samples.
    pub fn of(profile: &Profile, timed: &TimedRows) -> Timeline {
        let (rows, slices) = (timed.rows(), timed.slices());
        let mut shift = 0;
        while slices >> shift > BUCKETS {
            shift += 1;
        }
        let mut sums = sums(profile, rows, shift);
        // Wider buckets join the sums of a function that ran in both; the slices alone may be too
        // many for a page.
        while sums.len() > SUMS && slices >> shift > 1 {
            sums = merged(sums);
            shift += 1;
        }
        let buckets = (slices >> shift) as usize + 1;
        let mut timeline = Timeline {
            bucket: timed.slice() << shift,
            weights: vec![0; buckets],
            threads: Vec::new(),
            sums,
        };
        let mut of_threads: FxHashMap<ThreadId, Vec<u64>> = FxHashMap::default();
        for row in rows {
            let bucket = (row.slice >> shift) as usize;
            timeline.weights[bucket] += row.weight;
            of_threads
                .entry(row.thread)
                .or_insert_with(|| vec![0; buckets])[bucket] += row.weight;
        }
        while timeline.weights.len() > 1 && timeline.weights.last() == Some(&0) {
            timeline.weights.pop();
        }
        let buckets = timeline.weights.len();
        let mut threads: Vec<(ThreadId, Vec<u64>)> = of_threads.into_iter().collect();
        threads.iter_mut().for_each(|row| row.1.truncate(buckets));
        threads.sort_by_key(|(id, weights)| (std::cmp::Reverse(weights.iter().sum::<u64>()), *id));
        let others = threads.split_off(threads.len().min(THREADS));
        let named = threads.into_iter().map(|(id, weights)| (Some(id), weights));
        timeline.threads = named.collect();
        if !others.is_empty() {
            let mut together = vec![0; buckets];
            for (_, weights) in others {
                together
                    .iter_mut()
                    .zip(weights)
                    .for_each(|(sum, it)| *sum += it);
            }
            timeline.threads.push((None, together));
        }
        timeline
    }
}

/// What ended in a node of a call tree in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSum {
    /// The node.
    pub node: NodeId,
    /// The number of the bucket.
    pub bucket: u32,
    /// The weight of the samples taken in it.
    pub weight: u64,
}

impl Timeline {
    /// Sums up the rows of which the timeline was made by the nodes of the tree in which every call
    /// is a node; `None` if there are too many sums. Linear in rows, paths and nodes, but for sorting.
    pub fn by_node(
        &self,
        profile: &Profile,
        timed: &TimedRows,
        tree: &CallTree,
    ) -> Option<Vec<NodeSum>> {
        let nodes: FxHashMap<(Option<NodeId>, FunctionId), NodeId> = tree
            .nodes
            .enumerate()
            .map(|(id, node)| ((node.parent, node.function), id))
            .collect();
        let mut of_paths: IdVec<PathId, Option<NodeId>> = IdVec::new();
        for (_, path) in profile.paths.enumerate() {
            let parent = path.caller.map(|caller| of_paths[caller]);
            of_paths.push(match parent {
                Some(None) => None,
                parent => nodes.get(&(parent.flatten(), path.function)).copied(),
            });
        }
        let slices = (self.bucket / timed.slice().max(1)).max(1);
        let mut sums: Vec<NodeSum> = Vec::new();
        for row in timed.rows() {
            sums.extend(of_paths[row.path].map(|node| NodeSum {
                node,
                bucket: (u64::from(row.slice) / slices) as u32,
                weight: row.weight,
            }));
        }
        sums.sort_unstable_by_key(|sum| (sum.node, sum.bucket));
        sums.dedup_by(|next, kept| {
            let is_same = (next.node, next.bucket) == (kept.node, kept.bucket);
            kept.weight += if is_same { next.weight } else { 0 };
            is_same
        });
        (sums.len() <= SUMS).then_some(sums)
    }
}

/// The sums of two buckets each.
fn merged(sums: Vec<Sum>) -> Vec<Sum> {
    let halved = sums.into_iter().map(|sum| Sum {
        bucket: sum.bucket / 2,
        ..sum
    });
    let mut merged: Vec<Sum> = halved.collect();
    merged.dedup_by(|next, kept| {
        let is_same = (next.function, next.bucket) == (kept.function, kept.bucket);
        if is_same {
            kept.self_weight += next.self_weight;
            kept.total += next.total;
        }
        is_same
    });
    merged
}

/// The sums of functions in buckets of `1 << shift` slices.
fn sums(profile: &Profile, rows: &[TimedRow], shift: u32) -> Vec<Sum> {
    let paths = &profile.paths;
    let is_outermost = outermost(profile);
    let mut weights: IdVec<PathId, u64> = IdVec::filled(0, paths.len());
    let mut is_taken: IdVec<PathId, bool> = IdVec::filled(false, paths.len());
    let mut taken: Vec<PathId> = Vec::new();
    let mut of_functions: IdVec<FunctionId, (u64, u64)> =
        IdVec::filled((0, 0), profile.functions.len());
    let mut functions: Vec<FunctionId> = Vec::new();
    let mut sums = Vec::new();
    for bucket in rows.chunk_by(|a, b| a.slice >> shift == b.slice >> shift) {
        for row in bucket {
            weights[row.path] += row.weight;
            of_functions[paths[row.path].function].0 += row.weight;
            let mut at = Some(row.path);
            while let Some(path) = at.filter(|&path| !is_taken[path]) {
                is_taken[path] = true;
                taken.push(path);
                at = paths[path].caller;
            }
        }
        // Callees before their callers.
        taken.sort_unstable_by(|a, b| b.cmp(a));
        for path in taken.drain(..) {
            let weight = std::mem::take(&mut weights[path]);
            is_taken[path] = false;
            if let Some(caller) = paths[path].caller {
                weights[caller] += weight;
            }
            let function = paths[path].function;
            if is_outermost[path] {
                of_functions[function].1 += weight;
            }
            functions.push(function);
        }
        functions.sort_unstable();
        functions.dedup();
        let number = bucket.first().map_or(0, |row| row.slice >> shift);
        sums.extend(functions.drain(..).filter_map(|function| {
            let (self_weight, total) = std::mem::take(&mut of_functions[function]);
            (total > 0).then_some(Sum {
                function,
                bucket: number,
                self_weight,
                total,
            })
        }));
    }
    sums.sort_unstable_by_key(|sum| (sum.function, sum.bucket));
    sums
}

/// Whether the function of each path stands on it nowhere else.
fn outermost(profile: &Profile) -> IdVec<PathId, bool> {
    let mut is_outermost = IdVec::filled(false, profile.paths.len());
    let mut depth = IdVec::filled(0u32, profile.functions.len());
    let links = Links::through(&profile.paths, |_| true);
    links.walk(&profile.paths, |step| match step {
        Step::Enter(path) => {
            let depth = &mut depth[profile.paths[path].function];
            is_outermost[path] = *depth == 0;
            *depth += 1;
        }
        Step::Leave(path) => depth[profile.paths[path].function] -= 1,
    });
    is_outermost
}
