//! When threads, functions and calls had their weight: sums by buckets of equal length.
//!
//! Each sample is in one bucket, so the sums of several buckets are those of the time from the
//! first to the last: the same as of the samples that were taken then.
//!
//! A total that counts each sample once cannot be computed from other such totals. So everything
//! that is shown of a part of time is summed up by bucket, including calls and the cycles of the
//! whole recording.

mod frames;
mod sums;
mod within;

use rustc_hash::FxHashMap;

use crate::analysis::tree::{CallTree, NodeId};
use crate::base::IdVec;
use crate::callgraph::{CycleId, Cycles};
use crate::profile::{FunctionId, PathId, Profile, ThreadId, TimedRows};

pub use self::frames::{Call, CallId};
pub use self::within::{AskedFunction, Part, PartId};

const BUCKETS: u32 = 256;
// How many sums there are at most; with more, buckets are made longer.
const SUMS: usize = 1_000_000;
// How many threads have a row of their own.
const THREADS: usize = 48;

/// The weights of a function in a bucket.
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
    /// The part of it without those samples that have other members of its cycle further in.
    pub innermost: u64,
}

/// The weights of a call in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSum {
    /// The call.
    pub call: CallId,
    /// The number of the bucket.
    pub bucket: u32,
    /// The weight of the samples that show it, each once.
    pub weight: u64,
    /// What the callee contributes to the caller: without what the caller itself takes further in.
    pub contributed: u64,
    /// The weight that came into the callee's cycle, or the callee alone, by this call.
    pub total: u64,
    /// The self weight of the callee's cycle, or of the callee alone, in it.
    pub self_weight: u64,
}

/// The weight of a cycle in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleSum {
    /// The cycle.
    pub cycle: CycleId,
    /// The number of the bucket.
    pub bucket: u32,
    /// The weight of the samples with any of its members on the stack, each once.
    pub total: u64,
}

/// The weight of the samples in a bucket whose stacks end alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndSum {
    /// The number of the end: see [`Asked::ends`].
    pub end: u32,
    /// The number of the bucket.
    pub bucket: u32,
    /// The weight of the samples taken in it.
    pub weight: u64,
}

/// The weights of a part of a function's source or machine code in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSum {
    /// The part.
    pub part: PartId,
    /// The number of the bucket.
    pub bucket: u32,
    /// The weight of the samples taken in it.
    pub self_weight: u64,
    /// The weight of the samples taken in it and in what it calls, each once.
    pub total: u64,
}

/// Weights by time. Sums of 0 are left out; the sums of each kind are in order of their subject,
/// then of the bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The length of a bucket in nanoseconds.
    pub bucket: u64,
    /// Where the first bucket begins, in nanoseconds after the first sample of the recording.
    pub start: u64,
    /// The end of the selected part of time, if it is before the end of the recording.
    pub end: Option<u64>,
    /// The weight of each bucket.
    pub weights: Vec<u64>,
    /// Of each bucket by thread, the heaviest first; `None` for all others together.
    pub threads: Vec<(Option<ThreadId>, Vec<u64>)>,
    /// The calls on the stacks.
    pub calls: IdVec<CallId, Call>,
    /// The sums of functions.
    pub of_functions: Vec<Sum>,
    /// The sums of calls.
    pub of_calls: Vec<CallSum>,
    /// The sums of cycles.
    pub of_cycles: Vec<CycleSum>,
    /// The sums of stacks that end alike.
    pub ends: Vec<EndSum>,
    /// The sums of parts of functions.
    pub of_parts: Vec<PartSum>,
}

/// What is summed up besides functions, calls and cycles.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Numbers of where stacks end: samples are added up that have the same number.
    pub ends: &'a IdVec<PathId, Option<u32>>,
    /// The functions of whose source and machine code parts are asked for.
    pub functions: &'a [AskedFunction],
}

impl Timeline {
    /// Sums up rows. Linear in rows and, for each bucket, in the paths of its samples, apart from
    /// sorting.
    pub fn of(
        profile: &Profile,
        timed: &TimedRows<'_>,
        cycles: &Cycles,
        asked: &Asked<'_>,
    ) -> Timeline {
        let slices = timed.len();
        let mut shift = 0;
        while slices >> shift > BUCKETS {
            shift += 1;
        }
        let sums = sums::of(profile, timed, shift, cycles, asked);
        let mut timeline = Timeline {
            bucket: timed.slices().length << shift,
            start: timed.slices().start,
            end: timed.slices().end,
            weights: sums.weights,
            threads: Vec::new(),
            calls: sums.calls,
            of_functions: sums.of_functions,
            of_calls: sums.of_calls,
            of_cycles: sums.of_cycles,
            ends: sums.ends,
            of_parts: sums.of_parts,
        };
        while timeline.weights.len() > 1 && timeline.weights.last() == Some(&0) {
            timeline.weights.pop();
        }
        timeline.threads = heaviest(&sums.of_threads, timeline.weights.len());
        while timeline.sums() > SUMS && timeline.weights.len() > 1 {
            timeline.halve_buckets();
        }
        timeline
    }

    /// The number of sums.
    pub fn sums(&self) -> usize {
        let of_groups = self.of_functions.len() + self.of_cycles.len();
        of_groups + self.of_calls.len() + self.ends.len() + self.of_parts.len()
    }

    /// Joins each two adjacent buckets to one.
    pub fn halve_buckets(&mut self) {
        fn pairs(weights: &mut Vec<u64>) {
            *weights = weights.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        self.bucket *= 2;
        pairs(&mut self.weights);
        self.threads.iter_mut().for_each(|row| pairs(&mut row.1));
        sums::halve(&mut self.of_functions);
        sums::halve(&mut self.of_calls);
        sums::halve(&mut self.of_cycles);
        sums::halve(&mut self.ends);
        sums::halve(&mut self.of_parts);
    }
}

// The rows of the heaviest threads, and one of all others, each with this number of buckets.
fn heaviest(
    of_threads: &IdVec<ThreadId, Vec<u64>>,
    buckets: usize,
) -> Vec<(Option<ThreadId>, Vec<u64>)> {
    let threads = of_threads.enumerate().filter(|(_, it)| !it.is_empty());
    let mut threads: Vec<(ThreadId, Vec<u64>)> = threads
        .map(|(id, weights)| (id, weights[..buckets].to_vec()))
        .collect();
    threads.sort_by_key(|(id, weights)| (std::cmp::Reverse(weights.iter().sum::<u64>()), *id));
    let others = threads.split_off(threads.len().min(THREADS));
    let named = threads.into_iter().map(|(id, weights)| (Some(id), weights));
    let mut rows: Vec<_> = named.collect();
    if !others.is_empty() {
        let mut together = vec![0; buckets];
        for (_, weights) in others {
            together
                .iter_mut()
                .zip(weights)
                .for_each(|(sum, it)| *sum += it);
        }
        rows.push((None, together));
    }
    rows
}

/// For each path, the node in which its samples end, of the tree in which every call is a node.
/// Linear in paths and nodes.
pub fn nodes_of_paths(profile: &Profile, tree: &CallTree) -> IdVec<PathId, Option<NodeId>> {
    let nodes = tree.nodes.enumerate();
    let nodes: FxHashMap<(Option<NodeId>, FunctionId), NodeId> = nodes
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
    of_paths
}
