//! Weights by time in a page.
//!
//! The columns are: the greatest common divisor of all weights, by which they are divided; the
//! number of buckets, and their weights; for each thread the same; the number of sums of functions,
//! for each function how many it has, and of each sum the step from the bucket before, the self
//! weight, what the total is more, and how much of the total has other members of the function's
//! cycle further in.
//!
//! Those of calls are: the divisor; the number of calls, the caller (0 for none, or one more than
//! its place) and the callee of each; the number of sums, for each call how many it has, and of
//! each sum the step, the weight, what of it the callee does not contribute to the caller, what of
//! it did not come into the callee's cycle by this call (0 for calls inside of a cycle), and the
//! self weight of what is called. Behind them stand the number of cycles, and for each its number,
//! how many sums it has, their steps and their totals.
//!
//! Those of source lines and instructions are: the divisor; the number of parts, for each how many
//! sums it has, and of each sum the step, the self weight, and what the total is more.

use std::io;

use serde::Serialize;

use crate::analysis::graph::Model;
use crate::analysis::threads::timeline::{CallSum, CycleSum, PartSum, Timeline};
use crate::base::printable;
use crate::profile::{FunctionId, Profile};
use crate::view::graph::GraphView;

use super::packed::{Columns, divisor, maybe};

#[derive(Serialize)]
pub(super) struct Time {
    // The length of a bucket in nanoseconds.
    bucket: u64,
    // Where the first one begins, in nanoseconds after the first sample of the recording.
    start: u64,
    // Where the part of time ends that the page is about; none for the end of the recording.
    end: Option<u64>,
    threads: Vec<String>,
    // Places of functions, in the order in which they stand in the columns.
    functions: Vec<u64>,
    columns: String,
    // None where weights of calls are estimates, or there is no room.
    calls: Option<String>,
    // There is no room.
    is_without_calls: bool,
    // Columns of source lines and instructions.
    parts: String,
}

impl Time {
    pub fn of(
        profile: &Profile,
        timeline: &Timeline,
        graph: &GraphView<'_>,
        place: &dyn Fn(FunctionId) -> u64,
    ) -> io::Result<Time> {
        let name = |(id, _): &(Option<_>, _)| match id.map(|id| &profile.threads[id]) {
            Some(thread) => format!("{} {}/{}", printable(&thread.comm), thread.pid, thread.tid),
            None => "other threads".to_owned(),
        };
        let sums = &timeline.of_functions;
        let all = (timeline.weights.iter().copied())
            .chain(
                timeline
                    .threads
                    .iter()
                    .flat_map(|row| row.1.iter().copied()),
            )
            .chain(
                sums.iter()
                    .flat_map(|sum| [sum.self_weight, sum.total, sum.innermost]),
            );
        let unit = all.fold(0, divisor).max(1);
        let mut columns = Columns::new();
        columns.number(unit)?;
        columns.number(timeline.weights.len() as u64)?;
        columns.column(timeline.weights.iter().map(|weight| weight / unit))?;
        for (_, weights) in &timeline.threads {
            columns.column(weights.iter().map(|weight| weight / unit))?;
        }
        columns.number(sums.len() as u64)?;
        let of_function = sums.chunk_by(|a, b| a.function == b.function);
        columns.column(of_function.clone().map(|sums| sums.len() as u64))?;
        for sums in of_function.clone() {
            steps(&mut columns, sums.iter().map(|sum| sum.bucket))?;
        }
        columns.column(sums.iter().map(|sum| sum.self_weight / unit))?;
        columns.column(sums.iter().map(|sum| (sum.total - sum.self_weight) / unit))?;
        columns.column(sums.iter().map(|sum| (sum.total - sum.innermost) / unit))?;
        let is_measured = graph.summary.model == Model::Measured;
        let calls = is_measured.then(|| calls(timeline, graph, place));
        Ok(Time {
            bucket: timeline.bucket,
            start: timeline.start,
            end: timeline.end,
            threads: timeline.threads.iter().map(name).collect(),
            functions: of_function.map(|sums| place(sums[0].function)).collect(),
            columns: columns.finish()?,
            calls: calls.transpose()?,
            is_without_calls: false,
            parts: parts(&timeline.of_parts)?,
        })
    }

    pub fn len(&self) -> usize {
        let calls = self.calls.as_ref().map_or(0, String::len);
        self.columns.len() + calls + self.parts.len()
    }

    pub fn leave_out_calls(&mut self) {
        self.is_without_calls = self.calls.take().is_some();
    }
}

// Adds the steps from one bucket to the next.
fn steps(columns: &mut Columns, buckets: impl Iterator<Item = u32>) -> io::Result<()> {
    let mut before = 0;
    columns.column(buckets.map(|bucket| {
        let step = u64::from(bucket - before);
        before = bucket;
        step
    }))
}

fn calls(
    timeline: &Timeline,
    graph: &GraphView<'_>,
    place: &dyn Fn(FunctionId) -> u64,
) -> io::Result<String> {
    let (sums, of_cycles) = (&timeline.of_calls, &timeline.of_cycles);
    let weights = |sum: &CallSum| [sum.weight, sum.contributed, sum.total, sum.self_weight];
    let all = sums.iter().flat_map(weights);
    let all = all.chain(of_cycles.iter().map(|sum| sum.total));
    let unit = all.fold(0, divisor).max(1);
    let of_call = sums.chunk_by(|a, b| a.call == b.call);
    let seen = || of_call.clone().map(|sums| timeline.calls[sums[0].call]);
    let mut columns = Columns::new();
    columns.number(unit)?;
    columns.number(seen().count() as u64)?;
    columns.column(seen().map(|(caller, _)| maybe(caller.map(place))))?;
    columns.column(seen().map(|(_, callee)| place(callee)))?;
    columns.number(sums.len() as u64)?;
    columns.column(of_call.clone().map(|sums| sums.len() as u64))?;
    for sums in of_call.clone() {
        steps(&mut columns, sums.iter().map(|sum| sum.bucket))?;
    }
    columns.column(sums.iter().map(|sum| sum.weight / unit))?;
    columns.column(sums.iter().map(|sum| (sum.weight - sum.contributed) / unit))?;
    columns.column(sums.iter().map(|sum| {
        let (caller, callee) = timeline.calls[sum.call];
        let is_within = caller
            .is_some_and(|caller| caller == callee || graph.summary.cycles.share(caller, callee));
        match is_within {
            true => 0,
            false => (sum.weight - sum.total) / unit,
        }
    }))?;
    columns.column(sums.iter().map(|sum| sum.self_weight / unit))?;
    let of_cycle = || of_cycles.chunk_by(|a: &CycleSum, b| a.cycle == b.cycle);
    columns.number(of_cycle().count() as u64)?;
    columns.column(of_cycle().map(|sums| graph.summary.number(sums[0].cycle) as u64))?;
    columns.column(of_cycle().map(|sums| sums.len() as u64))?;
    for sums in of_cycle() {
        steps(&mut columns, sums.iter().map(|sum| sum.bucket))?;
    }
    columns.column(of_cycles.iter().map(|sum| sum.total / unit))?;
    columns.finish()
}

fn parts(sums: &[PartSum]) -> io::Result<String> {
    let all = sums.iter().flat_map(|sum| [sum.self_weight, sum.total]);
    let unit = all.fold(0, divisor).max(1);
    let count = sums.last().map_or(0, |sum| sum.part.index() + 1);
    let mut counts = vec![0; count];
    sums.iter().for_each(|sum| counts[sum.part.index()] += 1);
    let mut columns = Columns::new();
    columns.number(unit)?;
    columns.number(count as u64)?;
    columns.column(counts)?;
    for sums in sums.chunk_by(|a, b| a.part == b.part) {
        steps(&mut columns, sums.iter().map(|sum| sum.bucket))?;
    }
    columns.column(sums.iter().map(|sum| sum.self_weight / unit))?;
    columns.column(sums.iter().map(|sum| (sum.total - sum.self_weight) / unit))?;
    columns.finish()
}
