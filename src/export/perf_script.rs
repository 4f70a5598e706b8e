//! The text of `perf script`, for tools that read it: stackcollapse-perf, speedscope, the Firefox Profiler.
//!
//! ```text
//! # ========
//! # proftool 0.1.0: equal stacks are added up: samples are in no order, and have no time
//! # ========
//! #
//! app 4711/4712 0.000000:    1000000 cpu-clock:
//!                 1139 lex (/opt/app)
//!                 1180 parse (/opt/app)
//!                    0 [truncated] ([unknown])
//!
//! ```
//!
//! Each sample is a record, innermost frame first, with its period. Equal samples are added up in a profile:
//! their records share the weight evenly and have no time, so that all stand at 0. Where the number of
//! samples is not known, or exceeds 2^27, a stack is one record with its whole weight. The address is that of the function's
//! start in its file, and 0 where it is not known; inlined functions are `(inlined)`.
//!
//! Before a record with frames that were not recorded but restored from the code, or between which and their
//! callers frames are missing, is a comment with their numbers, counted from the innermost, which is 1:
//! `# frames: inferred 2,3; missing 4`.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::analysis::call_stacks::{CallStacks, StackFrame, StackId};
use crate::base::{Sampling, Unit, printable};
use crate::profile::FunctionId;
use crate::view::Subject;

use super::naming::{MERGED, Naming, PRODUCER};

/// The most samples for which each is a record: files from elsewhere may state any number.
const MAX_RECORDS: u64 = 1 << 27;

/// How a comment on frames begins.
const MARKED: &str = "# frames: ";

/// Writes the records.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, subject: &Subject, stacks: &CallStacks) -> io::Result<()> {
    let naming = Naming::new(subject, stacks);
    let (name, version) = PRODUCER;
    // The Firefox Profiler takes a comment at the start for perf's only behind such a line.
    writeln!(out, "# ========\n# {name} {version}: {MERGED}")?;
    for caveat in naming.caveats() {
        writeln!(out, "# {caveat}")?;
    }
    writeln!(out, "# ========\n#")?;
    let event = subject.selection.event();
    let event_name = match event.unit {
        Unit::Samples => "samples".into(),
        _ => printable(&event.name),
    };
    let is_merged = subject.selection.sampling() == Sampling::Merged
        || subject.selection.samples() > MAX_RECORDS;
    let line = |(function, is_inlined): (FunctionId, bool)| {
        let module = match naming.module(function) {
            _ if is_inlined => "inlined".into(),
            Some(path) => printable(path),
            None => "[unknown]".into(),
        };
        let address = subject.profile.functions[function].address.unwrap_or(0);
        let name = naming.printable(function);
        format!("\t{address:16x} {name} ({module})\n")
    };
    // Functions are on many stacks.
    let mut lines: FxHashMap<(FunctionId, bool), String> = FxHashMap::default();
    let mut body = String::new();
    for sample in &stacks.samples {
        body.clear();
        for (_, frame) in stacks.outwards(sample.stack) {
            let key = (frame.function, frame.inlined);
            body.push_str(lines.entry(key).or_insert_with(|| line(key)));
        }
        body.push('\n');
        let head = match naming.thread(sample.thread) {
            Some(thread) => format!("{} {}/{}", comm(&thread.comm), thread.pid, thread.tid),
            None => "unknown 0/0".into(),
        };
        let marks = marks(stacks, sample.stack);
        let records = if is_merged { 1 } else { sample.count.max(1) };
        for record in 0..records {
            // The first ones take what is left over.
            let more = u64::from(record < sample.weight % records);
            let period = sample.weight / records + more;
            out.write_all(marks.as_bytes())?;
            writeln!(out, "{head} 0.000000: {period:10} {event_name}:")?;
            out.write_all(body.as_bytes())?;
        }
    }
    Ok(())
}

/// The comment on frames of a stack that are not as they were recorded.
fn marks(stacks: &CallStacks, stack: StackId) -> String {
    let numbers = |is: fn(&StackFrame) -> bool| {
        let frames = stacks.outwards(stack).zip(1..);
        let numbers: Vec<String> = frames
            .filter(|((_, frame), _)| is(frame))
            .map(|(_, n): (_, u64)| n.to_string())
            .collect();
        numbers.join(",")
    };
    let inferred = numbers(|frame| frame.inferred);
    let missing = numbers(|frame| frame.across_gap);
    let parts: Vec<String> = [("inferred", inferred), ("missing", missing)]
        .iter()
        .filter(|(_, numbers)| !numbers.is_empty())
        .map(|(mark, numbers)| format!("{mark} {numbers}"))
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("{MARKED}{}\n", parts.join("; "))
    }
}

/// A command name as readers of the format take it: not empty, and not ending in what looks like an id.
fn comm(comm: &str) -> String {
    let comm = printable(comm.trim());
    if comm.is_empty() {
        ":unnamed".into()
    } else {
        comm.into_owned()
    }
}
