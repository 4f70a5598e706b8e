//! The sums of all buckets.

use super::frames::{Call, CallId, Frame, Frames};
use super::within::{self, PartId};
use super::{Asked, CallSum, CycleSum, EndSum, PartSum, Sum};
use crate::base::IdVec;
use crate::callgraph::{CycleId, Cycles};
use crate::profile::{FunctionId, PathId, Profile, ThreadId, TimedRow, TimedRows};

pub(super) struct Sums {
    pub weights: Vec<u64>,
    // The weight of each bucket for each thread; empty for those without.
    pub of_threads: IdVec<ThreadId, Vec<u64>>,
    pub calls: IdVec<CallId, Call>,
    pub of_functions: Vec<Sum>,
    pub of_calls: Vec<CallSum>,
    pub of_cycles: Vec<CycleSum>,
    pub ends: Vec<EndSum>,
    pub of_parts: Vec<PartSum>,
}

pub(super) trait Bucketed: Copy + PartialEq {
    type Of: Ord;
    fn of(&self) -> Self::Of;
    fn bucket(&mut self) -> &mut u32;
    fn add(&mut self, other: &Self);
}

macro_rules! bucketed {
    ($sum:ty, $of:ident: $id:ty, $($weight:ident),+) => {
        impl Bucketed for $sum {
            type Of = $id;
            fn of(&self) -> $id {
                self.$of
            }
            fn bucket(&mut self) -> &mut u32 {
                &mut self.bucket
            }
            fn add(&mut self, other: &Self) {
                $(self.$weight += other.$weight;)+
            }
        }
    };
}

bucketed!(Sum, function: FunctionId, self_weight, total, innermost);
bucketed!(CallSum, call: CallId, weight, contributed, total, self_weight);
bucketed!(CycleSum, cycle: CycleId, total);
bucketed!(EndSum, end: u32, weight);
bucketed!(PartSum, part: PartId, self_weight, total);

// Those that are of the same and in the same bucket, where they follow each other.
fn add_up<S: Bucketed>(sums: &mut Vec<S>) {
    sums.dedup_by(|next, kept| {
        let is_same = next.of() == kept.of() && next.bucket() == kept.bucket();
        if is_same {
            kept.add(next);
        }
        is_same
    });
}

pub(super) fn halve<S: Bucketed>(sums: &mut Vec<S>) {
    sums.iter_mut().for_each(|sum| *sum.bucket() /= 2);
    add_up(sums);
}

// What a path has in the bucket that is summed up.
#[derive(Clone, Copy, Default)]
struct Weights {
    own: u64,
    // Its own weight and that of paths further in, as far as they were seen.
    total: u64,
    // Self weight that its function takes further in.
    recursive: u64,
    is_taken: bool,
}

// What functions and calls have in the bucket that is summed up.
struct Bucket<'a> {
    profile: &'a Profile,
    cycles: &'a Cycles,
    frames: &'a Frames,
    paths: IdVec<PathId, Weights>,
    taken: Vec<PathId>,
    functions: IdVec<FunctionId, OfFunction>,
    seen_functions: Vec<FunctionId>,
    calls: IdVec<CallId, OfCall>,
    seen_calls: Vec<CallId>,
    totals: IdVec<CycleId, u64>,
}

#[derive(Clone, Copy, Default)]
struct OfFunction {
    self_weight: u64,
    total: u64,
    // Sums with several frames of a stack, and the weight of those frames that have others of their
    // cycle outwards, which is less.
    passed: u64,
    further_in: u64,
    is_seen: bool,
}

#[derive(Clone, Copy, Default)]
struct OfCall {
    weight: u64,
    taken_further_in: u64,
    total: u64,
    self_weight: u64,
    is_seen: bool,
}

// Sums up rows in buckets of `1 << shift` slices.
pub(super) fn of(
    profile: &Profile,
    timed: &TimedRows<'_>,
    shift: u32,
    cycles: &Cycles,
    asked: &Asked<'_>,
) -> Sums {
    let frames = Frames::of(profile, cycles);
    let mut bucket = Bucket {
        profile,
        cycles,
        frames: &frames,
        paths: IdVec::filled(Weights::default(), profile.paths.len()),
        taken: Vec::new(),
        functions: IdVec::filled(OfFunction::default(), profile.functions.len()),
        seen_functions: Vec::new(),
        calls: IdVec::filled(OfCall::default(), frames.calls.len()),
        seen_calls: Vec::new(),
        totals: IdVec::filled(0, cycles.members().len()),
    };
    let buckets = (timed.len() >> shift) as usize + 1;
    let mut sums = Sums {
        weights: vec![0; buckets],
        of_threads: IdVec::filled(Vec::new(), profile.threads.len()),
        calls: IdVec::new(),
        of_functions: Vec::new(),
        of_calls: Vec::new(),
        of_cycles: Vec::new(),
        ends: Vec::new(),
        of_parts: Vec::new(),
    };
    let functions = within::Numbered::all(asked.functions);
    let mut parts = within::Parts::of(profile, &functions);
    for (number, rows) in timed.by_bucket(shift) {
        for row in rows {
            sums.add_to_threads(number, &row);
            bucket.take(&row);
            if let Some(parts) = &mut parts {
                parts.take(&row);
            }
        }
        bucket.sum_up(number, asked.ends, &mut sums.ends);
        bucket.finish(number, &mut sums);
        if let Some(parts) = &mut parts {
            parts.finish(number, &mut sums.of_parts);
        }
    }
    sums.of_functions
        .sort_unstable_by_key(|sum| (sum.function, sum.bucket));
    sums.of_calls
        .sort_unstable_by_key(|sum| (sum.call, sum.bucket));
    sums.of_cycles
        .sort_unstable_by_key(|sum| (sum.cycle, sum.bucket));
    sums.ends.sort_unstable_by_key(|sum| (sum.end, sum.bucket));
    sums.of_parts
        .sort_unstable_by_key(|sum| (sum.part, sum.bucket));
    add_up(&mut sums.ends);
    sums.calls = frames.calls;
    sums
}

impl Sums {
    fn add_to_threads(&mut self, bucket: u32, row: &TimedRow) {
        let bucket = bucket as usize;
        self.weights[bucket] += row.weight;
        let of_thread = &mut self.of_threads[row.thread];
        if of_thread.is_empty() {
            of_thread.resize(self.weights.len(), 0);
        }
        of_thread[bucket] += row.weight;
    }
}

impl Bucket<'_> {
    fn take(&mut self, row: &TimedRow) {
        self.paths[row.path].own += row.weight;
        self.paths[row.path].total += row.weight;
        let mut at = Some(row.path);
        while let Some(path) = at.filter(|&path| !self.paths[path].is_taken) {
            self.paths[path].is_taken = true;
            self.taken.push(path);
            at = self.profile.paths[path].caller;
        }
    }

    // Callees before their callers.
    fn sum_up(&mut self, number: u32, ends: &IdVec<PathId, Option<u32>>, sums: &mut Vec<EndSum>) {
        let mut taken = std::mem::take(&mut self.taken);
        taken.sort_unstable_by(|a, b| b.cmp(a));
        for path in taken.drain(..) {
            let weights = std::mem::take(&mut self.paths[path]);
            if let Some(caller) = self.profile.paths[path].caller {
                self.paths[caller].total += weights.total;
            }
            let function = self.profile.paths[path].function;
            let frame = &self.frames.of_paths[path];
            if weights.own > 0 {
                sums.extend(ends[path].map(|end| EndSum {
                    end,
                    bucket: number,
                    weight: weights.own,
                }));
            }
            self.add_to_functions(function, frame, &weights);
            self.add_to_calls(frame, &weights);
        }
        self.taken = taken;
    }

    fn function(&mut self, id: FunctionId) -> &mut OfFunction {
        let sum = &mut self.functions[id];
        if !std::mem::replace(&mut sum.is_seen, true) {
            self.seen_functions.push(id);
        }
        sum
    }

    fn call(&mut self, id: CallId) -> &mut OfCall {
        let sum = &mut self.calls[id];
        if !std::mem::replace(&mut sum.is_seen, true) {
            self.seen_calls.push(id);
        }
        sum
    }

    fn add_to_functions(&mut self, id: FunctionId, frame: &Frame, weights: &Weights) {
        let sum = self.function(id);
        sum.self_weight += weights.own;
        if frame.is_first_of_function {
            sum.total += weights.total;
        }
        sum.passed += weights.total;
        match frame.outer {
            // What goes through this frame has left its cycle from here, if at all.
            Some(outer) => {
                let outer = self.profile.paths[outer].function;
                self.function(outer).further_in += weights.total;
            }
            None => {
                if let Some(cycle) = self.cycles.of()[id] {
                    self.totals[cycle] += weights.total;
                }
            }
        }
    }

    fn add_to_calls(&mut self, frame: &Frame, weights: &Weights) {
        if frame.is_first_of_call {
            let sum = self.call(frame.call);
            sum.weight += weights.total;
            if frame.outer.is_none() {
                sum.total += weights.total;
            }
        }
        if weights.own > 0 {
            self.call(frame.arrival).self_weight += weights.own;
        }
        // Of equal calls in one another the outermost has all samples.
        if let Some((outer, called)) = frame.recursion {
            let taken = weights.own + weights.recursive;
            self.paths[outer].recursive += taken;
            let called = &self.frames.of_paths[called];
            if called.is_first_of_call {
                self.call(called.call).taken_further_in += taken;
            }
        }
    }

    fn finish(&mut self, bucket: u32, sums: &mut Sums) {
        for function in self.seen_functions.drain(..) {
            let sum = std::mem::take(&mut self.functions[function]);
            if sum.total > 0 {
                sums.of_functions.push(Sum {
                    function,
                    bucket,
                    self_weight: sum.self_weight,
                    total: sum.total,
                    innermost: sum.passed - sum.further_in,
                });
            }
        }
        for call in self.seen_calls.drain(..) {
            let sum = std::mem::take(&mut self.calls[call]);
            if sum.weight > 0 {
                sums.of_calls.push(CallSum {
                    call,
                    bucket,
                    weight: sum.weight,
                    contributed: sum.weight - sum.taken_further_in,
                    total: sum.total,
                    self_weight: sum.self_weight,
                });
            }
        }
        for (cycle, total) in self.totals.ids().zip(self.totals.iter().copied()) {
            if total > 0 {
                sums.of_cycles.push(CycleSum {
                    cycle,
                    bucket,
                    total,
                });
            }
        }
        self.totals.iter_mut().for_each(|total| *total = 0);
    }
}
