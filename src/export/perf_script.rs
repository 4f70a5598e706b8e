//! The text of `perf script`, for tools that read it: stackcollapse-perf, speedscope, the Firefox
//! Profiler.
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
//! Each sample is a record, innermost frame first, with its period. Equal samples are added up in a
//! profile: their records share the weight evenly and have no time, so that all stand at 0. Where
//! the number of samples is not known, or all their records would take too many bytes
//! ([`records`]), a stack is one record with its whole weight, which a comment at the start says.
//! The address is that of the function's start in its file, and 0 where it is not known; inlined
//! functions are `(inlined)`.
//!
//! Before a record with frames that were not recorded but restored from the code, or between which
//! and their callers frames are missing, is a comment with their numbers, counted from the
//! innermost, which is 1: `# frames: inferred 2,3; missing 4`.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::analysis::call_stacks::{CallStacks, StackFrame, StackId, StackSample};
use crate::base::{Sampling, Unit, printable};
use crate::profile::FunctionId;
use crate::view::Subject;

use super::naming::{MERGED, Naming, PRODUCER};

/// What is a record of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Each sample, with its share of the weight of all equal ones.
    Samples,
    /// Each distinct stack of a thread, with the weight of all its samples.
    Stacks,
}

// What a reader has to know of [`Records::Stacks`].
const STACKS: &str = "each record is a distinct stack with the weight of all its samples";

// How a comment on frames begins.
const MARKED: &str = "# frames: ";

/// Returns what becomes a record where the text may have `limit` bytes: files from elsewhere may
/// state any number of samples. Also [`Records::Stacks`] where the number of samples is not known.
pub fn records(subject: &Subject, stacks: &CallStacks, limit: u64) -> Records {
    if subject.selection.sampling() == Sampling::Merged {
        return Records::Stacks;
    }
    let naming = Naming::new(subject, stacks);
    let mut texts = Texts::new(subject, stacks, &naming);
    let mut size: u64 = 0;
    for sample in &stacks.samples {
        let of_one = texts.of(sample).size();
        size = size.saturating_add(of_one.saturating_mul(sample.count));
        if size > limit {
            return Records::Stacks;
        }
    }
    Records::Samples
}

/// Writes the records.
pub fn write(
    out: &mut dyn Write,
    subject: &Subject,
    stacks: &CallStacks,
    records: Records,
) -> io::Result<()> {
    let naming = Naming::new(subject, stacks);
    let (name, version) = PRODUCER;
    // The Firefox Profiler takes a comment at the start for perf's only behind such a line.
    writeln!(out, "# ========\n# {name} {version}: {MERGED}")?;
    if records == Records::Stacks && subject.selection.sampling() != Sampling::Merged {
        writeln!(out, "# {STACKS}")?;
    }
    for caveat in naming.caveats() {
        writeln!(out, "# {caveat}")?;
    }
    writeln!(out, "# ========\n#")?;
    let mut texts = Texts::new(subject, stacks, &naming);
    for sample in &stacks.samples {
        let text = texts.of(sample);
        let records = match records {
            Records::Samples => sample.count.max(1),
            Records::Stacks => 1,
        };
        for record in 0..records {
            // The first ones take what is left over.
            let more = u64::from(record < sample.weight % records);
            text.write(out, sample.weight / records + more)?;
        }
    }
    Ok(())
}

// A record, up to its period and after it.
struct Text<'a> {
    marks: String,
    head: String,
    event: &'a str,
    body: &'a str,
}

impl Text<'_> {
    // The most bytes of a record.
    fn size(&self) -> u64 {
        // The digits of a period, and what is between the parts.
        const REST: usize = 40;
        let parts = [self.marks.len(), self.head.len(), self.event.len(), REST];
        (parts.iter().sum::<usize>() + self.body.len()) as u64
    }

    fn write(&self, out: &mut dyn Write, period: u64) -> io::Result<()> {
        out.write_all(self.marks.as_bytes())?;
        writeln!(out, "{} 0.000000: {period:10} {}:", self.head, self.event)?;
        out.write_all(self.body.as_bytes())
    }
}

struct Texts<'a> {
    subject: &'a Subject<'a>,
    stacks: &'a CallStacks,
    naming: &'a Naming<'a>,
    event: String,
    // Functions are on many stacks.
    lines: FxHashMap<(FunctionId, bool), String>,
    body: String,
}

impl<'a> Texts<'a> {
    fn new(subject: &'a Subject<'a>, stacks: &'a CallStacks, naming: &'a Naming<'a>) -> Texts<'a> {
        let event = subject.selection.event();
        Texts {
            subject,
            stacks,
            naming,
            event: match event.unit {
                Unit::Samples => "samples".to_owned(),
                _ => printable(&event.name).into_owned(),
            },
            lines: FxHashMap::default(),
            body: String::new(),
        }
    }

    fn of(&mut self, sample: &StackSample) -> Text<'_> {
        let (naming, profile) = (self.naming, self.subject.profile);
        let line = |(function, is_inlined): (FunctionId, bool)| {
            let module = match naming.module(function) {
                _ if is_inlined => "inlined".into(),
                Some(path) => printable(path),
                None => "[unknown]".into(),
            };
            let address = profile.functions[function].address.unwrap_or(0);
            let name = naming.printable(function);
            format!("\t{address:16x} {name} ({module})\n")
        };
        self.body.clear();
        for (_, frame) in self.stacks.outwards(sample.stack) {
            let key = (frame.function, frame.inlined);
            let lines = &mut self.lines;
            self.body
                .push_str(lines.entry(key).or_insert_with(|| line(key)));
        }
        self.body.push('\n');
        Text {
            marks: marks(self.stacks, sample.stack),
            head: match naming.thread(sample.thread) {
                Some(thread) => format!("{} {}/{}", comm(&thread.comm), thread.pid, thread.tid),
                None => "unknown 0/0".into(),
            },
            event: &self.event,
            body: &self.body,
        }
    }
}

// The comment on frames of a stack that are not as they were recorded.
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

// A command name as readers of the format take it: not empty, and not ending in what looks like an
// id.
fn comm(comm: &str) -> String {
    let comm = printable(comm.trim());
    if comm.is_empty() {
        ":unnamed".into()
    } else {
        comm.into_owned()
    }
}
