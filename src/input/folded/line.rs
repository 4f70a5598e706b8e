//! A line of folded stacks: its stack, its weight, and the escapes in its names.

use std::borrow::Cow;
use std::io::BufRead;

use super::INFERRED;
use crate::base::{is_mark, is_unsafe_char, placeholder, utf8};

// The longest line that is read, in bytes.
pub(super) const MAX_LINE: usize = 64 << 20;
// The deepest stack that is read, in frames.
const MAX_FRAMES: usize = 1 << 20;

// Reads into `line`, which stays empty when it is too long; gives the number of bytes taken from
// the input.
pub(in crate::input) fn next_line(
    input: &mut impl BufRead,
    line: &mut Vec<u8>,
) -> std::io::Result<Option<u64>> {
    line.clear();
    let mut taken = 0u64;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            return Ok((taken > 0).then_some(taken));
        }
        let newline = chunk.iter().position(|&byte| byte == b'\n');
        let part = &chunk[..newline.unwrap_or(chunk.len())];
        let used = part.len() + usize::from(newline.is_some());
        taken += used as u64;
        if taken <= MAX_LINE as u64 {
            line.extend_from_slice(part);
        } else {
            line.clear();
        }
        input.consume(used);
        if newline.is_some() {
            return Ok(Some(taken));
        }
    }
}

pub(in crate::input) fn begins_with_stack(bytes: &[u8]) -> bool {
    let first = bytes.split(|&byte| byte == b'\n').next();
    first.is_some_and(|line| parse(utf8(line).trim_end(), false).is_ok())
}

pub(in crate::input) fn name_of_single(line: &str) -> Option<&str> {
    // Other texts have lines that end with a decimal number.
    let parsed = parse(line, false).ok();
    parsed.and_then(|(stack, weight)| matches!(weight, Weight::Whole(_)).then_some(stack))
}

pub(super) enum Weight {
    Whole(u64),
    Decimal(f64),
}

impl Weight {
    // `12`, and `12.5` as flamegraph.pl reads it.
    fn of(text: &str) -> Result<Weight, BadLine> {
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let weight = match text.split_once('.') {
            None if is_number(text) => text.parse().ok().map(Weight::Whole),
            Some((whole, parts)) if is_number(whole) && is_number(parts) => {
                text.parse().ok().map(Weight::Decimal)
            }
            _ => return Err(BadLine::form("the weight is not a plain number")),
        };
        weight.ok_or(BadLine::limit("the weight passes 64 bits"))
    }
}

pub(super) struct BadLine {
    pub(super) problem: &'static str,
    // A stack with a weight all the same: one that passes a limit.
    pub(super) is_stack: bool,
}

impl BadLine {
    fn form(problem: &'static str) -> BadLine {
        let is_stack = false;
        BadLine { problem, is_stack }
    }

    fn limit(problem: &'static str) -> BadLine {
        let is_stack = true;
        BadLine { problem, is_stack }
    }
}

pub(super) fn parse(text: &str, too_long: bool) -> Result<(&str, Weight), BadLine> {
    if too_long {
        return Err(BadLine::limit("it is longer than 64 MiB"));
    }
    let (stack, weight) = text
        .rsplit_once([' ', '\t'])
        .ok_or(BadLine::form("no weight at its end"))?;
    if stack.is_empty() {
        return Err(BadLine::form("no stack before the weight"));
    }
    let weight = Weight::of(weight)?;
    if stack.bytes().filter(|&byte| byte == b';').count() >= MAX_FRAMES {
        return Err(BadLine::limit("it has more than 1048576 frames"));
    }
    Ok((stack, weight))
}

pub(super) fn unescaped(name: &str) -> Cow<'_, str> {
    // A first character is escaped where the name would mean something else without.
    if let Some((first, rest)) = first_escaped(name) {
        let whole = format!("{first}{}", inner_unescaped(rest));
        if whole.starts_with(INFERRED) || is_mark(&whole) || placeholder(&whole).is_some() {
            return Cow::Owned(whole);
        }
    }
    inner_unescaped(name)
}

// The printable character whose escape a name begins with, and what is behind it.
fn first_escaped(name: &str) -> Option<(char, &str)> {
    let digits = name.strip_prefix("\\x")?.get(..2)?;
    let code = u8::from_str_radix(digits, 16).ok()?;
    let is_written = (b' '..=b'~').contains(&code) && digits == format!("{code:02x}");
    is_written.then(|| (char::from(code), &name[4..]))
}

fn inner_unescaped(name: &str) -> Cow<'_, str> {
    let Some(first) = name.find('\\') else {
        return Cow::Borrowed(name);
    };
    let mut out = String::from(&name[..first]);
    let mut rest = &name[first..];
    while let Some(c) = rest.chars().next() {
        let (c, len) = escape(rest).unwrap_or((c, c.len_utf8()));
        out.push(c);
        rest = &rest[len..];
    }
    Cow::Owned(out)
}

// The character that the escape at the start of `text` stands for, and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let (digits, len) = if let Some(rest) = text.strip_prefix("\\x") {
        (rest.get(..2)?, 4)
    } else {
        let rest = text.strip_prefix("\\u{")?;
        let digits = &rest[..rest.bytes().take(7).position(|byte| byte == b'}')?];
        (digits, digits.len() + 4)
    };
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    (is_unsafe_char(c) || c == ';' || c == '\\').then_some((c, len))
}
