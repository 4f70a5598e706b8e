//! Weights by time in a page.
//!
//! The columns are: the greatest common divisor of all weights, by which they are divided; the number
//! of buckets, and their weights; for each thread the same; the number of sums of functions, and of
//! each function and bucket the steps from the one before, the self weight and what the total is more.

use std::io;

use serde::Serialize;

use crate::analysis::threads::timeline::Timeline;
use crate::base::printable;
use crate::profile::{FunctionId, Profile};

use super::packed::{Columns, divisor};

/// The weights of an event by time.
#[derive(Serialize)]
pub(super) struct Time {
    /// The length of a bucket in nanoseconds.
    bucket: u64,
    /// The names of threads.
    threads: Vec<String>,
    /// Places of functions, in the order in which they stand in the columns.
    functions: Vec<u64>,
    columns: String,
}

impl Time {
    pub fn of(
        profile: &Profile,
        timeline: &Timeline,
        place: &dyn Fn(FunctionId) -> u64,
    ) -> io::Result<Time> {
        let name = |(id, _): &(Option<_>, _)| match id.map(|id| &profile.threads[id]) {
            Some(thread) => format!("{} {}/{}", printable(&thread.comm), thread.pid, thread.tid),
            None => "other threads".to_owned(),
        };
        let sums = &timeline.sums;
        let all = (timeline.weights.iter().copied())
            .chain(
                timeline
                    .threads
                    .iter()
                    .flat_map(|row| row.1.iter().copied()),
            )
            .chain(sums.iter().flat_map(|sum| [sum.self_weight, sum.total]));
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
            let mut before = 0;
            columns.column(sums.iter().map(|sum| {
                let step = u64::from(sum.bucket - before);
                before = sum.bucket;
                step
            }))?;
        }
        columns.column(sums.iter().map(|sum| sum.self_weight / unit))?;
        columns.column(sums.iter().map(|sum| (sum.total - sum.self_weight) / unit))?;
        Ok(Time {
            bucket: timeline.bucket,
            threads: timeline.threads.iter().map(name).collect(),
            functions: of_function.map(|sums| place(sums[0].function)).collect(),
            columns: columns.finish()?,
        })
    }
}
