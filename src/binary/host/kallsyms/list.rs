//! The lines of a list of symbols, sorted, and looked up where they are: a recording asks for a
//! few of a hundred thousand.

use std::borrow::Cow;
use std::iter;

use memchr::{memchr, memchr_iter, memchr2, memrchr};

use super::KernelFunction;
use crate::base::{Avma, utf8};
use crate::cache::Contents;

/// The digits of an address.
pub(super) const DIGITS: usize = 16;

// Longer lines are passed over, in bytes.
const LINE_LIMIT: usize = 8 << 10;
// The last symbol of all reaches to the end of its page.
const PAGE: u64 = 4096;

/// Lines in the form that the kernel writes, sorted by address.
#[derive(Debug)]
pub(super) struct List {
    contents: Contents,
    // Where the lines begin in the contents.
    from: usize,
    // What was taken off all addresses.
    base: u64,
}

/// A symbol: `ffffffffc0a01000 t nf_hook\t[nf_tables]`.
#[derive(Clone, Copy)]
pub(super) struct Line<'l> {
    pub(super) text: &'l [u8],
    pub(super) start: u64,
    kind: u8,
    pub(super) name: &'l [u8],
    pub(super) module: Option<&'l [u8]>,
}

impl<'l> Line<'l> {
    fn parse(line: &'l [u8]) -> Option<Line<'l>> {
        let line = (line.len() <= LINE_LIMIT).then_some(line)?;
        let is_end = |&byte: &u8| byte == b' ';
        let digits = match line.get(DIGITS) {
            Some(b' ') => DIGITS,
            _ => line.iter().take(DIGITS).position(is_end)?,
        };
        let start = number(line.get(..digits)?)?;
        let [kind @ b'!'..=b'~', b' ', rest @ ..] = line.get(digits.checked_add(1)?..)? else {
            return None;
        };
        let (name, module) = match memchr2(b' ', b'\t', rest) {
            None => (rest, None),
            Some(end) => {
                let (name, rest) = rest.split_at(end);
                let module = rest.strip_prefix(b"\t[")?.strip_suffix(b"]")?;
                let is_one_word = memchr2(b' ', b'\t', module).is_none();
                is_one_word.then_some((name, Some(module)))?
            }
        };
        (!name.is_empty()).then_some(Line {
            text: line,
            start,
            kind: *kind,
            name,
            module,
        })
    }

    /// Whether it is a function; other symbols only end what stands before them.
    pub(super) fn is_code(&self) -> bool {
        matches!(self.kind, b'T' | b't' | b'W' | b'w')
    }

    fn has_all_digits(&self) -> bool {
        self.text.get(DIGITS) == Some(&b' ')
    }
}

impl List {
    /// The lines of a list in any order, `seen` when they are sorted, with whether it is the first:
    /// it may begin again. Those that are not understood are passed over.
    pub(super) fn sorted(list: Vec<u8>, mut seen: impl FnMut(bool, &Line)) -> List {
        let mut before = None;
        // The kernel sorts its own symbols, not those of a module.
        let is_sorted = is_plain(&list)
            && list.last().is_none_or(|&last| last == b'\n')
            && lines_of(&list).all(|line| {
                let is_next = |line: &Line| line.has_all_digits() && Some(line.start) >= before;
                let Some(line) = line.filter(is_next) else {
                    return false;
                };
                seen(before.is_none(), &line);
                before = Some(line.start);
                true
            });
        if is_sorted {
            return List::kept(list.into(), 0, 0);
        }
        let list = rewritten(&list);
        let lines = lines_of(&list).flatten().enumerate();
        lines.for_each(|(place, line)| seen(place == 0, &line));
        List::kept(list.into(), 0, 0)
    }

    /// The lines in contents that were kept, from here on, whose addresses lack this base.
    pub(super) fn kept(contents: Contents, from: usize, base: u64) -> List {
        List {
            contents,
            from,
            base,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.contents.bytes().get(self.from..).unwrap_or_default()
    }

    /// The symbols. Of those of one address the last that is a function counts, as perf has it: the
    /// kernel lists `__do_sys_read`, `__ia32_sys_read`, `__x64_sys_read` in this order.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Line<'_>> {
        let mut lines = lines_of(self.bytes()).flatten().peekable();
        iter::from_fn(move || {
            let mut symbol = lines.next()?;
            while let Some(line) = lines.next_if(|line| line.start == symbol.start) {
                if line.is_code() {
                    symbol = line;
                }
            }
            Some(symbol)
        })
    }

    /// The function that contains an address.
    pub(super) fn at(&self, address: u64) -> Option<KernelFunction<'_>> {
        let (before, behind) = self.split_behind(address.checked_sub(self.base)?)?;
        let mut lines = before.rsplit(|&byte| byte == b'\n').skip(1);
        let last = Line::parse(lines.next()?)?;
        let others = lines.map_while(|line| {
            let line = Line::parse(line)?;
            (line.start == last.start).then_some(line)
        });
        let line = iter::once(last).chain(others).find(Line::is_code)?;
        let start = self.base.checked_add(line.start)?;
        let next = lines_of(behind).next().flatten();
        let next = next.and_then(|line| self.base.checked_add(line.start));
        let page = || start.saturating_add(1).checked_next_multiple_of(PAGE);
        let end = next.or_else(page).unwrap_or(u64::MAX);
        let text = |bytes| str::from_utf8(bytes).ok();
        (address < end).then_some(KernelFunction {
            start: Avma(start),
            size: end.saturating_sub(start),
            name: text(line.name)?,
            module: line.module.map_or(Some(None), |it| text(it).map(Some))?,
        })
    }

    // The lines up to those of an address, and the ones behind; `None` where a line is none.
    fn split_behind(&self, address: u64) -> Option<(&[u8], &[u8])> {
        let bytes = self.bytes();
        let (mut from, mut to) = (0, bytes.len());
        while from < to {
            let middle = from.midpoint(to);
            let start = memrchr(b'\n', bytes.get(from..middle)?).map_or(from, |at| from + at + 1);
            let end = memchr(b'\n', bytes.get(middle..to)?).map_or(to, |at| middle + at + 1);
            let line = bytes.get(start..end)?;
            let line = Line::parse(line.strip_suffix(b"\n").unwrap_or(line))?;
            if line.start <= address {
                from = end;
            } else {
                to = start;
            }
        }
        bytes.split_at_checked(from)
    }
}

// Whether text has only characters that the kernel writes.
fn is_plain(text: &[u8]) -> bool {
    text.is_ascii() && memchr2(b'\r', b'\x0c', text).is_none()
}

// Each line, `None` for one that is not in the form that the kernel writes.
fn lines_of(list: &[u8]) -> impl Iterator<Item = Option<Line<'_>>> {
    let mut from = 0;
    memchr_iter(b'\n', list).map(move |end| {
        let line = list.get(from..end)?;
        from = end + 1;
        Line::parse(line)
    })
}

// The lines that are understood, in the form that the kernel writes, sorted.
fn rewritten(list: &[u8]) -> Vec<u8> {
    let lines = list.split(|&byte| byte == b'\n');
    let mut lines: Vec<(u64, Cow<[u8]>)> = lines.filter_map(understood).collect();
    lines.sort_by_key(|&(start, _)| start);
    let mut list = Vec::with_capacity(list.len());
    for (_, line) in lines {
        list.extend_from_slice(&line);
        list.push(b'\n');
    }
    list
}

// A line in the form that the kernel writes, and its address.
fn understood(line: &[u8]) -> Option<(u64, Cow<'_, [u8]>)> {
    if let Some(line) =
        Line::parse(line).filter(|line| line.has_all_digits() && is_plain(line.text))
    {
        return Some((line.start, line.text.into()));
    }
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let start = number(words.next()?)?;
    let kind = match words.next()? {
        &[kind @ b'!'..=b'~'] => char::from(kind),
        _ => '?',
    };
    let name = utf8(words.next()?);
    let module = words.next().map(utf8).map(|module| {
        let module = module.trim_matches(['[', ']']);
        format!("\t[{module}]")
    });
    let module = module.unwrap_or_default();
    let line = format!("{start:016x} {kind} {name}{module}");
    (line.len() <= LINE_LIMIT).then(|| (start, line.into_bytes().into()))
}

// A number of up to 16 hexadecimal digits. All lines are read, so this is without branches.
fn number(word: &[u8]) -> Option<u64> {
    let digits = (1..=DIGITS).contains(&word.len()).then_some(word)?;
    let values = digits.iter().map(|&digit| VALUES[usize::from(digit)]);
    let (number, seen) = values.fold((0, 0), |(number, seen), value| {
        (number << 4 | u64::from(value), seen | value)
    });
    (seen < 16).then_some(number)
}

// What each character is worth as a hexadecimal digit; 255 for those that are none.
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};
