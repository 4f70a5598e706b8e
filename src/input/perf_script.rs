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
//! Which fields are printed is up to who called it (`perf script -F`): each of the words of the
//! first line, and the line itself, may be missing, as may names, offsets and modules of frames.
//! Where periods are not printed, samples are counted. Frames are leaf first. A frame without a
//! name is distinguished by its module and address. Records without a stack have their one frame
//! behind the event and its arguments. Events of tasks and mappings (`PERF_RECORD_…`), source lines
//! and times are not read.
//!
//! A comment `# frames: inferred 2,3; missing 4` before a record, as
//! [`export::perf_script`](crate::export::perf_script) writes it, marks frames of the record.

use std::collections::HashMap;
use std::io::BufRead;

use crate::base::{CaveatKind, Event, Periods, Unit, WeightSum, utf8};
use crate::profile::{EventId, Profile, ThreadId};

use super::Reason;
use super::folded::next_line;
use super::stacks::{Frame, StackBuilder};

// How many words are looked at for where a name ends, and where a frame begins.
const MOST_WORDS: usize = 16;

// A record begins with a line that has an event, or with one that has none and a frame behind it.
pub(super) fn begins_with_record<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let is_text = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let mut lines = lines.filter(is_text).map(str::trim_end);
    let Some(first) = lines.next() else {
        return false;
    };
    let is_frame = |line: &str| begins_indented(line) && FrameText::of(line).is_some();
    let has_symbol = |line: &str| FrameText::of(line).is_some_and(|it| !it.symbol.is_empty());
    match Header::of(first) {
        Some(header) => {
            let is_sure = header.is_no_sample || !header.event.is_empty();
            is_sure || lines.next().is_some_and(is_frame)
        }
        None if begins_indented(first) => is_frame(first) && has_symbol(first),
        None => lines
            .next()
            .is_some_and(|line| is_frame(line) && has_symbol(line)),
    }
}

fn begins_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

#[derive(Default)]
struct Header<'a> {
    comm: &'a str,
    pid: i32,
    tid: i32,
    is_timed: bool,
    period: Option<u64>,
    // Empty if it is not printed.
    event: &'a str,
    // A frame behind the event.
    frame: Option<FrameText<'a>>,
    // Whether it is about a task or a mapping.
    is_no_sample: bool,
}

impl<'a> Header<'a> {
    // `COMM PID/TID [CPU] TIME: PERIOD EVENT: ARGUMENTS FRAME`, of which each may be missing, but
    // not both the numbers and the event.
    fn of(line: &'a str) -> Option<Header<'a>> {
        // A name may have spaces and numbers in it; what follows shows where it ends.
        let behind_name = |at: Word<'a>| {
            let ids = ids(at.word);
            let from = match ids {
                Some(_) => at.end,
                // Without numbers only a time tells.
                None if is_time(at.word) => at.start,
                None => return None,
            };
            let (pid, tid) = ids.unwrap_or_default();
            Some(Header {
                comm: line[..at.start].trim(),
                pid,
                tid,
                ..Header::behind_ids(line, from, true)?
            })
        };
        let named = Words::of(line).take(MOST_WORDS).find_map(behind_name);
        named.or_else(|| Header::behind_ids(line, 0, false))
    }

    // What follows the numbers of a process and a thread, or stands without them.
    fn behind_ids(line: &'a str, from: usize, has_ids: bool) -> Option<Header<'a>> {
        let mut words = Words { line, from }.peekable();
        words.next_if(|at| at.word.starts_with('[') && at.word.ends_with(']'));
        let mut header = Header {
            is_timed: words.next_if(|at| is_time(at.word)).is_some(),
            ..Header::default()
        };
        let period = words.next_if(|at| is_number(at.word));
        header.period = period.and_then(|at| at.word.parse().ok());
        let Some(event) = words.next() else {
            return (has_ids && header.period.is_none()).then_some(header);
        };
        if event.word.starts_with("PERF_RECORD_") {
            header.is_no_sample = true;
            return Some(header);
        }
        header.event = event.word.strip_suffix(':')?.trim_end_matches(':');
        if header.event.is_empty() || header.event.contains([';', '(', '`']) {
            return None;
        }
        let rest = line[event.end..].trim();
        header.frame = FrameText::at_end_of(rest);
        // A line of folded stacks may hold all of this in a name, and ends with a weight.
        let is_stack = rest.contains(';') && rest.ends_with(|c: char| c.is_ascii_digit());
        let is_sure = rest.is_empty() || has_ids && (header.is_timed || header.frame.is_some());
        (is_sure && !is_stack).then_some(header)
    }
}

// The words of a line, and where they stand.
#[derive(Clone)]
struct Words<'a> {
    line: &'a str,
    from: usize,
}

struct Word<'a> {
    word: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        Words { line, from: 0 }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let rest = self.line.get(self.from..)?;
        let start = self.from + rest.find(|c: char| !c.is_whitespace())?;
        let word = self.line[start..].split_whitespace().next()?;
        self.from = start + word.len();
        let end = self.from;
        Some(Word { word, start, end })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

// `1234.567890:`.
fn is_time(word: &str) -> bool {
    let parts = word.strip_suffix(':').and_then(|it| it.split_once('.'));
    parts.is_some_and(|(whole, rest)| is_number(whole) && is_number(rest))
}

// `4711/4712`, or one of them.
fn ids(word: &str) -> Option<(i32, i32)> {
    let number = |text: &str| match text {
        // A process that perf could not name.
        "-1" => Some(-1),
        text => is_number(text).then(|| text.parse().ok()).flatten(),
    };
    match word.split_once('/') {
        Some((pid, tid)) => Some((number(pid)?, number(tid)?)),
        None => number(word).map(|id| (id, id)),
    }
}

// [`Reason::Io`], and [`Reason::Unknown`] if there is not one record.
pub(super) fn read(
    mut input: impl BufRead,
    progress: &mut dyn FnMut(u64),
) -> Result<Profile, Reason> {
    let mut records = Records::default();
    let mut line = Vec::new();
    let (mut done, mut number) = (0u64, 0u64);
    while let Some(taken) = next_line(&mut input, &mut line)? {
        done += taken;
        number += 1;
        if number.is_multiple_of(1 << 14) {
            progress(done);
        }
        records.line(number, utf8(&line).trim_end());
    }
    records.close();
    progress(done);
    if records.count == 0 {
        return Err(Reason::Unknown);
    }
    records.note_outlying_periods();
    Ok(records.stacks.finish())
}

#[derive(Default)]
struct Records {
    stacks: StackBuilder,
    events: HashMap<String, EventId>,
    // The periods of each event that are printed.
    periods: HashMap<EventId, Periods>,
    count: u64,
    // The event, thread and weight of the record to which frames belong, its frames and their
    // marks.
    open: Option<(EventId, ThreadId, u64)>,
    stack: Vec<Frame>,
    marks: Marks,
    next_marks: Marks,
    // The number of a line that is the first of a record if a frame follows.
    doubtful: Option<u64>,
}

impl Records {
    fn line(&mut self, number: u64, text: &str) {
        if text.is_empty() {
            return self.close();
        }
        if let Some(comment) = text.strip_prefix('#') {
            if let Some(found) = Marks::of(comment) {
                self.next_marks = found;
            }
            return;
        }
        // A name may look like an address.
        let may_be_frame = (self.open.is_some() || self.doubtful.is_some())
            && begins_indented(text)
            && FrameText::of(text).is_some();
        match Header::of(text) {
            Some(header) if header.is_no_sample => self.close(),
            Some(header) if header.is_timed || !may_be_frame => {
                self.begin(&header);
                let frame = header.frame.map(|frame| frame.frame(&mut self.stacks));
                self.stack.extend(frame);
            }
            _ => self.rest(number, text),
        }
    }

    // A line that is not the first of a record, as far as is known.
    fn rest(&mut self, number: u64, text: &str) {
        if let Some(frame) = FrameText::of(text).filter(|_| begins_indented(text)) {
            if self.open.is_none() {
                self.doubtful = None;
                self.begin(&Header::default());
            }
            self.stack.push(frame.frame(&mut self.stacks));
        } else if self.open.is_none() && self.doubtful.is_none() && !begins_indented(text) {
            self.doubtful = Some(number);
        } else if self.open.is_none() || !is_source_line(text) {
            self.bad(number);
        }
    }

    fn begin(&mut self, header: &Header) {
        self.close();
        self.count += 1;
        self.marks = std::mem::take(&mut self.next_marks);
        let name = match header.event {
            "" => "samples",
            name => name,
        };
        let event = match self.events.get(name) {
            Some(&event) => event,
            None => self.event(name, header.period),
        };
        let thread = self.stacks.thread(header.pid, header.tid, header.comm);
        if let Some(period) = header.period {
            self.periods.entry(event).or_default().add(period);
        }
        self.open = Some((event, thread, header.period.unwrap_or(1)));
    }

    // Its first record tells whether periods are printed.
    fn event(&mut self, name: &str, period: Option<u64>) -> EventId {
        let mut event = Event::named(name);
        if period.is_none() {
            event.unit = Unit::Samples;
        }
        let id = self.stacks.event(event);
        self.events.insert(name.to_owned(), id);
        id
    }

    fn close(&mut self) {
        if let Some(number) = self.doubtful.take() {
            self.bad(number);
        }
        if let Some((event, thread, period)) = self.open.take() {
            self.marks.put_on(&mut self.stack);
            let sum = WeightSum::of(period);
            self.stacks.sample(event, thread, &self.stack, sum);
        }
        self.stack.clear();
    }

    fn note_outlying_periods(&mut self) {
        let mut events: Vec<_> = self.events.iter().collect();
        events.sort_by_key(|(_, id)| **id);
        for (name, id) in events {
            let event = Event::named(name);
            let is_clock = matches!(event.base(), "cpu-clock" | "task-clock");
            let periods = self.periods.get(id);
            if let Some(outlying) = periods.and_then(|periods| periods.outlying(is_clock)) {
                let detail = outlying.detail(name, event.unit == Unit::Nanoseconds);
                let caveats = self.stacks.builder.caveats();
                caveats.add_detail(CaveatKind::OutlyingPeriod, outlying.count, detail);
            }
        }
    }

    fn bad(&mut self, number: u64) {
        let caveats = self.stacks.builder.caveats();
        caveats.add_with(CaveatKind::BadLine, 1, || {
            format!("line {number}: neither a record nor a frame")
        });
    }
}

// `  parse.c:12`, as `-F srcline` prints it behind a frame; where no line is known `  f+0x2a` or
// `  libc.so.6[2724a]`.
fn is_source_line(text: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let behind_last = |mark: &str| Some(text.rsplit_once(mark)?.1);
    let line = behind_last(":").and_then(|line| line.split(' ').next());
    let in_file = behind_last("[").and_then(|address| address.strip_suffix(']'));
    begins_indented(text)
        && (line.is_some_and(is_number)
            || in_file.is_some_and(is_hex)
            || behind_last("+0x").is_some_and(is_hex))
}

// `55d0c1139a lex+0x2a (/opt/app)`; all but the address may be missing.
struct FrameText<'a> {
    address: &'a str,
    symbol: &'a str,
    // The module's path, or `inlined`.
    home: &'a str,
}

impl<'a> FrameText<'a> {
    fn of(text: &'a str) -> Option<FrameText<'a>> {
        let text = text.trim();
        let (address, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let address = address.strip_prefix("0x").unwrap_or(address);
        u64::from_str_radix(address, 16).ok()?;
        let (symbol, home) = in_last_parentheses(rest.trim()).unwrap_or((rest.trim(), ""));
        let home = home.strip_suffix(" (deleted)").unwrap_or(home);
        Some(FrameText {
            address,
            symbol: without_offset(symbol),
            home: without_offset(home),
        })
    }

    // A frame behind an event, or behind its arguments.
    fn at_end_of(text: &'a str) -> Option<FrameText<'a>> {
        in_last_parentheses(text)?;
        FrameText::of(text).or_else(|| {
            let is_address = |at: &Word| u64::from_str_radix(at.word, 16).is_ok();
            let starts: Vec<usize> = Words::of(text)
                .filter(is_address)
                .map(|at| at.start)
                .collect();
            let last = starts.iter().rev().take(MOST_WORDS);
            // A symbol may look like an address, which has one behind it.
            let mut frames = last.filter_map(|&start| FrameText::of(&text[start..]));
            frames.find(|frame| !frame.symbol.is_empty())
        })
    }

    fn frame(&self, stacks: &mut StackBuilder) -> Frame {
        let inlined = self.home == "inlined";
        let path = if inlined || self.home == "[unknown]" {
            ""
        } else {
            self.home
        };
        let module = stacks.module(path);
        let function = match self.symbol {
            "[unknown]" | "" => {
                let what = format!("{path} 0x{}", self.address);
                stacks.unnamed(what.trim_start(), module)
            }
            name => stacks.function(name, module),
        };
        Frame {
            inlined,
            ..Frame::of(function)
        }
    }
}

// `f(int) (/opt/a (b)/c)`: the text, and what it ends with in parentheses, behind a space.
fn in_last_parentheses(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_suffix(')')?;
    let mut open = 1;
    for (at, c) in inside.char_indices().rev() {
        open += match c {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        if open == 0 {
            let before = &text[..at];
            let is_apart = before.is_empty() || before.ends_with(' ');
            return is_apart.then(|| (before.trim_end(), &inside[at + 1..]));
        }
    }
    None
}

// Without `+0x2a`.
fn without_offset(name: &str) -> &str {
    match name.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => name,
    }
}

// Frames that are not as they were recorded, counted from the innermost.
#[derive(Default)]
struct Marks {
    inferred: Vec<usize>,
    missing: Vec<usize>,
}

impl Marks {
    // Without its `#`; `None` for any other comment.
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
