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
//! Where periods are not printed, samples are counted; without an event, periods are those of
//! `events`. Frames are leaf first. A frame without a name is distinguished by its module and
//! address. Records without a stack have their one frame at the end of the line. Where a word could
//! be several of these, the columns in which perf aligns them tell. Events of tasks and mappings
//! (`PERF_RECORD_…`), modes, source lines and times are not read.
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

// Of tasks and mappings.
const NO_SAMPLE: &str = "PERF_RECORD_";
// How wide perf prints them at least.
const MISC_COLUMNS: usize = 6;
const PERIOD_COLUMNS: usize = 10;
const ADDRESS_COLUMNS: usize = 16;
// How many words are looked at for where a name ends, and where a frame begins.
const MOST_WORDS: usize = 16;

// A record begins with a line that has an event, or with one that has none and a frame behind it.
pub(super) fn begins_with_record<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut lines = texts(lines);
    let Some(first) = lines.next() else {
        return false;
    };
    let has_symbol = |line: &str| FrameText::of(line).is_some_and(|it| !it.symbol.is_empty());
    match Header::of(first) {
        Some(header) => {
            let is_sure = !header.is_doubtful() && !header.event.is_empty();
            header.is_no_sample
                || header.frame.is_some()
                || is_sure
                || lines.next().is_some_and(is_frame)
        }
        None if begins_indented(first) => is_frame(first) && has_symbol(first),
        None => lines
            .next()
            .is_some_and(|line| is_frame(line) && has_symbol(line)),
    }
}

// Whether one of the lines is the first of a record, and a frame is in it or below.
pub(super) fn has_record<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut lines = texts(lines).peekable();
    while let Some(line) = lines.next() {
        if let Some(header) = Header::of(line)
            && (header.frame.is_some() || lines.peek().copied().is_some_and(is_frame))
        {
            return true;
        }
    }
    false
}

fn texts<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let is_text = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    lines.filter(is_text).map(str::trim_end)
}

fn is_frame(line: &str) -> bool {
    begins_indented(line) && FrameText::of(line).is_some()
}

fn begins_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

#[derive(Default)]
struct Header<'a> {
    comm: &'a str,
    pid: i32,
    tid: i32,
    // Whether a thread, a processor, a mode or a time is printed.
    has_numbers: bool,
    is_timed: bool,
    period: Option<u64>,
    // Empty if it is not printed.
    event: &'a str,
    // A frame in the same line.
    frame: Option<FrameText<'a>>,
    // Whether it is about a task or a mapping.
    is_no_sample: bool,
}

impl<'a> Header<'a> {
    // `COMM PID/TID [CPU] MISC TIME: PERIOD EVENT: ARGUMENTS FRAME`, of which each may be missing,
    // but not all of the numbers, the period and the event.
    fn of(line: &'a str) -> Option<Header<'a>> {
        // A name may have spaces and numbers in it; what follows shows where it ends.
        let words = Words::of(line).take(MOST_WORDS);
        let mut headers = words.filter_map(|at| Header::behind_name(line, &at));
        let first = headers.next()?;
        if first.has_numbers {
            return Some(first);
        }
        Some(headers.find(|it| it.has_numbers).unwrap_or(first))
    }

    fn behind_name(line: &'a str, first: &Word<'a>) -> Option<Header<'a>> {
        let comm = line.get(..first.start)?.trim();
        let may_follow_name = ids(first.word).is_some()
            || first.word.ends_with([':', ']'])
            || first.word.starts_with(NO_SAMPLE)
            || first.is_misc();
        if !may_follow_name || comm.is_empty() && first.is_address() {
            return None;
        }
        let mut words = Words::behind(line, first.start).peekable();
        let mut id = words.next_if(|at| ids(at.word).is_some());
        let cpu = words.next_if(|at| is_cpu(at.word));
        let misc = words.next_if(Word::is_misc);
        let time = words.next_if(|at| is_time(at.word));
        let is_before_event = words
            .clone()
            .nth(1)
            .is_some_and(|at| at.word.ends_with(':'));
        let is_period = |at: &Word| is_number(at.word) && (is_before_event || !at.is_address());
        let mut period = words.next_if(is_period);
        let has_others = cpu.is_some() || misc.is_some() || time.is_some();
        if !has_others && period.is_none() {
            period = id.take_if(|at| at.fills_period());
        }
        let (pid, tid) = id.as_ref().and_then(|at| ids(at.word)).unwrap_or_default();
        let mut header = Header {
            comm,
            pid,
            tid,
            has_numbers: has_others || id.is_some(),
            is_timed: time.is_some(),
            period: period.as_ref().and_then(|at| at.word.parse().ok()),
            ..Header::default()
        };
        // Without an event behind it, any number could be a period.
        let is_whole = period.map_or(header.has_numbers, |at| at.fills_period());
        let Some(event) = words.next() else {
            return is_whole.then_some(header);
        };
        if event.word.starts_with(NO_SAMPLE) {
            header.is_no_sample = true;
            return Some(header);
        }
        if is_whole && event.is_address() {
            header.frame = FrameText::of(line.get(event.start..)?);
            return Some(header);
        }
        header.event = event.word.strip_suffix(':')?.trim_end_matches(':');
        if header.event.is_empty() || header.event.contains([';', '(', '`']) {
            return None;
        }
        let rest = line.get(event.end..)?.trim();
        let addresses = Words::behind(line, event.end).filter(Word::is_address);
        header.frame = match addresses.last() {
            Some(at) => FrameText::of(line.get(at.start..)?),
            None if header.has_numbers => FrameText::at_end_of(rest),
            None => None,
        };
        // A line of folded stacks may hold all of this in a name, and ends with a weight.
        let is_stack = rest.contains(';') && rest.ends_with(|c: char| c.is_ascii_digit());
        let is_sure = rest.is_empty() || header.is_timed || header.frame.is_some();
        (is_sure && !is_stack).then_some(header)
    }

    // Other lines end like this as well: only a frame below shows that it is a record.
    fn is_doubtful(&self) -> bool {
        let is_named = self.has_numbers && !self.event.is_empty();
        !is_named && !self.is_timed && self.frame.is_none()
    }
}

// The words of a line, and where they stand.
#[derive(Clone)]
struct Words<'a> {
    line: &'a str,
    from: usize,
}

#[derive(Clone)]
struct Word<'a> {
    word: &'a str,
    start: usize,
    end: usize,
    // With the blanks before it, of which the first is there anyway.
    columns: usize,
    // With the blanks behind it.
    padded: usize,
}

impl Word<'_> {
    // perf aligns addresses to the right, which distinguishes them from other numbers and words.
    fn is_address(&self) -> bool {
        self.columns > ADDRESS_COLUMNS && self.word.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    fn fills_period(&self) -> bool {
        self.columns > PERIOD_COLUMNS && is_number(self.word)
    }

    // The modes of a processor and kinds of records, in a column of their own.
    fn is_misc(&self) -> bool {
        self.padded >= MISC_COLUMNS && self.word.chars().all(|c| "KUHGgMESp".contains(c))
    }
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        Words { line, from: 0 }
    }

    fn behind(line: &'a str, from: usize) -> Words<'a> {
        Words { line, from }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let rest = self.line.get(self.from..)?;
        let start = self.from + rest.find(|c: char| !c.is_whitespace())?;
        let word = self.line.get(start..)?.split_whitespace().next()?;
        let end = start + word.len();
        self.from = end;
        let before = self.line.get(..start)?.trim_end().len();
        let behind = self.line.get(end..)?.trim_start();
        Some(Word {
            word,
            start,
            end,
            columns: end - before + usize::from(before == 0),
            padded: self.line.len() - behind.len() - start,
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

// `[002]`.
fn is_cpu(word: &str) -> bool {
    let number = word.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    number.is_some_and(|it| is_number(it.trim_start_matches('-')))
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
    // Whether the stack is the one frame in the first line of the record.
    is_in_line: bool,
    // A line that is the first of a record if a frame follows, and its number.
    doubtful: Option<(u64, String)>,
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
        let may_be_frame = (self.open.is_some() || self.doubtful.is_some()) && is_frame(text);
        let is_first = |header: &Header| {
            header.is_timed || header.is_no_sample || header.frame.is_some() || !may_be_frame
        };
        // perf writes a tab before frames only, and most lines are frames.
        let is_surely_frame = may_be_frame && text.starts_with('\t');
        let header = (!is_surely_frame).then(|| Header::of(text)).flatten();
        match header.filter(is_first) {
            Some(header) if header.is_no_sample => self.close(),
            Some(header) if header.is_doubtful() => {
                self.close();
                self.doubtful = Some((number, text.to_owned()));
            }
            Some(header) => {
                self.begin(&header);
                let frame = header.frame.map(|frame| frame.frame(&mut self.stacks));
                self.is_in_line = frame.is_some();
                self.stack.extend(frame);
            }
            None => self.rest(number, text),
        }
    }

    // A line that is not the first of a record, as far as is known.
    fn rest(&mut self, number: u64, text: &str) {
        if let Some(frame) = FrameText::of(text).filter(|_| begins_indented(text)) {
            if self.open.is_none() {
                let first = self.doubtful.take();
                let header = first.as_ref().and_then(|(_, line)| Header::of(line));
                self.begin(&header.unwrap_or_default());
            }
            // What looks like one was an address that the event is about.
            if std::mem::take(&mut self.is_in_line) {
                self.stack.clear();
            }
            self.stack.push(frame.frame(&mut self.stacks));
        } else if self.open.is_none() && self.doubtful.is_none() && !begins_indented(text) {
            self.doubtful = Some((number, text.to_owned()));
        } else if self.open.is_none() || !is_source_line(text) {
            self.bad(number);
        }
    }

    fn begin(&mut self, header: &Header) {
        self.close();
        self.count += 1;
        self.marks = std::mem::take(&mut self.next_marks);
        let name = match (header.event, header.period) {
            ("", None) => "samples",
            ("", Some(_)) => "events",
            (name, _) => name,
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
        if let Some((number, _)) = self.doubtful.take() {
            self.bad(number);
        }
        if let Some((event, thread, period)) = self.open.take() {
            self.marks.put_on(&mut self.stack);
            let sum = WeightSum::of(period);
            self.stacks.sample(event, thread, &self.stack, sum);
        }
        self.stack.clear();
        self.is_in_line = false;
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
