//! The text of `perf script`, and of tools that write the same.
//!
//! ```text
//! app  4711/4712  [002]  1234.567890:    1000000 cpu-clock:u:
//!             55d0c1139a lex+0x2a (/opt/app)
//!             55d0c11808 parse (inlined)
//!             7f12a90210 [unknown] (/usr/lib/libc.so.6)
//!
//! ```
//!
//! Each record is a sample; its period is 1 where it is not printed. Frames are leaf first. A frame
//! without a name is distinguished by its module and address. Records without a stack have their
//! one frame behind the event. Times are not read.
//!
//! A comment `# frames: inferred 2,3; missing 4` before a record, as
//! [`export::perf_script`](crate::export::perf_script) writes it, marks frames of the record.

use std::io::BufRead;

use crate::base::{CaveatKind, Event, WeightSum, utf8};
use crate::profile::{EventId, Profile, ThreadId};

use super::Reason;
use super::folded::next_line;
use super::stacks::{Frame, StackBuilder};

/// Whether a line is the first of a record.
pub(super) fn is_header(line: &str) -> bool {
    header(line).is_some()
}

/// The first line of a record.
struct Header<'a> {
    comm: &'a str,
    pid: i32,
    tid: i32,
    period: u64,
    event: &'a str,
    /// A frame behind the event.
    frame: &'a str,
}

fn header(line: &str) -> Option<Header<'_>> {
    if line.starts_with('#') || !(line.ends_with(':') || line.contains(": ")) {
        return None;
    }
    // The time is the first word that is a number with a point and a colon.
    let is_time = |word: &str| {
        let digits = word.strip_suffix(':').and_then(|time| time.split_once('.'));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.is_some_and(|(whole, rest)| is_number(whole) && is_number(rest))
    };
    let mut from = 0;
    let (before, after) = loop {
        let rest = line.get(from..)?;
        let start = from + rest.find(|c: char| !c.is_whitespace())?;
        let word = line[start..].split_whitespace().next()?;
        let end = start + word.len();
        if start > 0 && is_time(word) {
            break (line[..start].trim(), line[end..].trim());
        }
        from = end;
    };
    // A processor in brackets may stand between.
    let ids = match before.rsplit_once(char::is_whitespace) {
        Some((ids, cpu)) if cpu.starts_with('[') => ids.trim_end(),
        _ => before,
    };
    let (comm, ids) = ids.rsplit_once(char::is_whitespace)?;
    let (pid, tid) = match ids.split_once('/') {
        Some((pid, tid)) => (pid.parse().ok()?, tid.parse().ok()?),
        None => (ids.parse().ok()?, ids.parse().ok()?),
    };
    let (period, rest) = match after.split_once(char::is_whitespace) {
        Some((period, rest)) if period.parse::<u64>().is_ok() => {
            (period.parse().ok()?, rest.trim_start())
        }
        _ => (1, after),
    };
    let (event, frame) = match rest.split_once(": ") {
        Some((event, frame)) => (event, frame.trim()),
        None => (rest.strip_suffix(':')?, ""),
    };
    let is_event = !event.is_empty() && !event.contains(char::is_whitespace);
    // A line of folded stacks may hold all of this in a name, and ends with a weight.
    let has_end = frame.is_empty() || frame.ends_with(')');
    (is_event && has_end).then_some(Header {
        comm: comm.trim(),
        pid,
        tid,
        period,
        event: event.trim_end_matches(':'),
        frame,
    })
}

/// Reads the records; `progress` gets the number of bytes read.
///
/// # Errors
///
/// [`Reason::Io`], and [`Reason::Unknown`] if there is not one record.
pub(super) fn read(
    mut input: impl BufRead,
    progress: &mut dyn FnMut(u64),
) -> Result<Profile, Reason> {
    let mut stacks = StackBuilder::default();
    let mut open: Option<(EventId, ThreadId, u64)> = None;
    let mut stack: Vec<Frame> = Vec::new();
    // The marks of the open record, and those of the next.
    let (mut marks, mut next_marks) = (Marks::default(), Marks::default());
    let mut line = Vec::new();
    let (mut done, mut number, mut records) = (0u64, 0u64, 0u64);
    let close =
        |stacks: &mut StackBuilder, open: &mut Option<_>, stack: &mut Vec<Frame>, marks: &Marks| {
            if let Some((event, thread, period)) = open.take() {
                marks.put_on(stack);
                stacks.sample(event, thread, stack, WeightSum::of(period));
            }
            stack.clear();
        };
    while let Some(taken) = next_line(&mut input, &mut line)? {
        done += taken;
        number += 1;
        if number.is_multiple_of(1 << 14) {
            progress(done);
        }
        let text = utf8(&line);
        let text = text.trim_end();
        if text.is_empty() {
            close(&mut stacks, &mut open, &mut stack, &marks);
        } else if let Some(comment) = text.strip_prefix('#') {
            if let Some(found) = Marks::of(comment) {
                next_marks = found;
            }
        } else if let Some(header) = header(text) {
            close(&mut stacks, &mut open, &mut stack, &marks);
            records += 1;
            marks = std::mem::take(&mut next_marks);
            let event = stacks.event(Event::named(header.event));
            let thread = stacks.thread(header.pid, header.tid, header.comm);
            open = Some((event, thread, header.period));
            stack.extend(frame(&mut stacks, header.frame));
        } else if open.is_some()
            && let Some(frame) = frame(&mut stacks, text)
        {
            stack.push(frame);
        } else {
            let caveats = stacks.builder.caveats();
            caveats.add_with(CaveatKind::BadLine, 1, || {
                format!("line {number}: neither a record nor a frame")
            });
        }
    }
    close(&mut stacks, &mut open, &mut stack, &marks);
    progress(done);
    if records == 0 {
        return Err(Reason::Unknown);
    }
    Ok(stacks.finish())
}

/// `55d0c1139a lex+0x2a (/opt/app)`.
fn frame(stacks: &mut StackBuilder, text: &str) -> Option<Frame> {
    let (address, rest) = text.trim().split_once(char::is_whitespace)?;
    u64::from_str_radix(address, 16).ok()?;
    let (symbol, home) = rest.trim().rsplit_once(" (")?;
    let home = home.strip_suffix(')')?;
    let inlined = home == "inlined";
    let path = if inlined || home == "[unknown]" {
        ""
    } else {
        home
    };
    let module = stacks.module(path);
    let symbol = match symbol.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|b| b.is_ascii_hexdigit()) => name,
        _ => symbol,
    };
    let function = match symbol {
        "[unknown]" | "" => {
            let what = format!("{path} 0x{address}");
            stacks.unnamed(what.trim_start(), module)
        }
        name => stacks.function(name, module),
    };
    Some(Frame {
        inlined,
        ..Frame::of(function)
    })
}

/// Places of frames that are not as they were recorded, counted from the innermost.
#[derive(Default)]
struct Marks {
    inferred: Vec<usize>,
    missing: Vec<usize>,
}

impl Marks {
    /// The marks of a comment, without its `#`; `None` for any other.
    fn of(comment: &str) -> Option<Marks> {
        let mut marks = Marks::default();
        for part in comment.strip_prefix(" frames: ")?.split("; ") {
            let (mark, numbers) = part.split_once(' ')?;
            let places = match mark {
                "inferred" => &mut marks.inferred,
                "missing" => &mut marks.missing,
                _ => return None,
            };
            for number in numbers.split(',') {
                places.push(number.parse::<usize>().ok()?.checked_sub(1)?);
            }
        }
        Some(marks)
    }

    fn put_on(&self, stack: &mut [Frame]) {
        for &place in &self.inferred {
            if let Some(frame) = stack.get_mut(place) {
                frame.inferred = true;
            }
        }
        for &place in &self.missing {
            if let Some(frame) = stack.get_mut(place) {
                frame.across_gap = true;
            }
        }
    }
}
