//! The text of `perf script`, for tools that read it: stackcollapse-perf, speedscope, the Firefox Profiler.
//!
//! ```text
//! app 4711/4712 0.000000:    1000000 cpu-clock:
//!                 1139 lex (/opt/app)
//!                 1180 parse (/opt/app)
//!                    0 [truncated] ([unknown])
//!
//! ```
//!
//! Each sample is a record, innermost frame first, with its period. Equal samples are added up in a profile:
//! their records share the weight evenly and have no time, so that all stand at 0. Where the number of
//! samples is not known, a stack is one record with its whole weight. The address is that of the function's
//! start in its file, and 0 where it is not known; inlined functions are `(inlined)`.

use std::io::{self, Write};

use crate::analysis::call_stacks::CallStacks;
use crate::base::{Sampling, Unit, printable};
use crate::view::Subject;

use super::naming::{MERGED, Naming, PRODUCER};

/// Writes the records.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, subject: &Subject, stacks: &CallStacks) -> io::Result<()> {
    let naming = Naming::new(subject, stacks);
    let (name, version) = PRODUCER;
    writeln!(out, "# {name} {version}: {MERGED}")?;
    for caveat in naming.caveats() {
        writeln!(out, "# {caveat}")?;
    }
    let event = subject.selection.event();
    let event_name = match event.unit {
        Unit::Samples => "samples".into(),
        _ => printable(&event.name),
    };
    let is_merged = subject.selection.sampling() == Sampling::Merged;
    let mut body = String::new();
    for sample in &stacks.samples {
        body.clear();
        for (_, frame) in stacks.outwards(sample.stack) {
            let function = &subject.profile.functions[frame.function];
            let module = match naming.module(frame.function) {
                _ if frame.inlined => "inlined".into(),
                Some(path) => printable(path),
                None => "[unknown]".into(),
            };
            let address = function.address.unwrap_or(0);
            let name = naming.printable(frame.function);
            body.push_str(&format!("\t{address:16x} {name} ({module})\n"));
        }
        body.push('\n');
        let head = match naming.thread(sample.thread) {
            Some(thread) => format!("{} {}/{}", comm(&thread.comm), thread.pid, thread.tid),
            None => "unknown 0/0".into(),
        };
        let records = if is_merged { 1 } else { sample.count.max(1) };
        for record in 0..records {
            // The first ones take what is left over.
            let more = u64::from(record < sample.weight % records);
            let period = sample.weight / records + more;
            writeln!(out, "{head} 0.000000: {period:10} {event_name}:")?;
            out.write_all(body.as_bytes())?;
        }
    }
    Ok(())
}

/// A command name as readers of the format take it: not empty, and not ending in what looks like an id.
fn comm(comm: &str) -> String {
    let comm = printable(comm.trim());
    match comm.is_empty() {
        true => ":unnamed".into(),
        false => comm.into_owned(),
    }
}
