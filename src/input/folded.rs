//! Folded stacks: one line a stack, the outermost function first, and its weight.
//!
//! ```text
//!   main;parse;lex 12
//!   main;parse;a name with spaces 3
//!              └──── the weight is what follows the last space or tab
//! ```
//!
//! It is the language of flame graphs and of the tests. Every name is a function; two functions
//! of one name are the same here, as nothing tells them apart. The weight counts samples.
//!
//! Where a name could not stand as it is, [`export::folded`](crate::export::folded) writes
//! `\xNN` or `\u{N}`; exactly these are read back: for `;`, for the backslash, and for
//! characters that are not safe to print. Any other backslash is itself.
//!
//! A line that cannot be read is counted, with its number, and the others are kept.

use std::borrow::Cow;
use std::io::BufRead;

use rustc_hash::FxHashMap;

use crate::base::{CaveatKind, Event, Unit, is_unsafe_char, utf8};
use crate::profile::{Builder, Function, FunctionId, FunctionKind, Module, Profile, Thread};

use super::Error;

/// The longest line that is read, in bytes.
const MAX_LINE: usize = 64 << 20;
/// The deepest stack that is read, in frames.
const MAX_FRAMES: usize = 1 << 18;
/// After how many lines progress is told.
const STEP: u64 = 1 << 14;

/// Reads folded stacks; `progress` is told the number of bytes read.
///
/// # Errors
///
/// [`Error::Io`], and [`Error::Unknown`] when not one line is a stack with a weight.
pub fn read(mut input: impl BufRead, progress: &mut dyn FnMut(u64)) -> Result<Profile, Error> {
    let mut builder = Builder::default();
    let event = builder.event(Event {
        name: "samples".into(),
        unit: Unit::Samples,
    });
    let module = builder.module(Module {
        name: String::new(),
        path: String::new(),
    });
    let thread = builder.thread(Thread {
        pid: 0,
        tid: 0,
        comm: String::new(),
    });
    let mut functions: FxHashMap<String, FunctionId> = FxHashMap::default();
    let mut line = Vec::new();
    let (mut number, mut done) = (0u64, 0u64);
    let (mut stacks, mut samples) = (0u64, 0u64);
    while let Some(taken) = next_line(&mut input, &mut line).map_err(Error::Io)? {
        number += 1;
        done += taken;
        if number.is_multiple_of(STEP) {
            progress(done);
        }
        let text = utf8(&line);
        let text = text.trim_end();
        if text.is_empty() && taken <= MAX_LINE as u64 {
            continue;
        }
        let (stack, weight) = match parse(text, taken) {
            Ok(parts) => parts,
            Err(reason) => {
                let caveats = builder.caveats();
                caveats.add_with(CaveatKind::BadLine, 1, || {
                    format!("line {number}: {reason}")
                });
                continue;
            }
        };
        stacks += 1;
        if weight == 0 {
            continue;
        }
        samples = samples.saturating_add(weight);
        let mut path = None;
        for name in stack.split(';') {
            let name = unescaped(name);
            let function = match functions.get(&*name) {
                Some(&function) => function,
                None => {
                    let function = builder.function(Function {
                        name: name.clone().into_owned(),
                        linkage_name: None,
                        module,
                        address: None,
                        kind: FunctionKind::Named,
                    });
                    functions.insert(name.into_owned(), function);
                    function
                }
            };
            path = Some(builder.path(path, function, false));
        }
        let path = path.expect("a split has at least one part");
        if !builder.sample(event, thread, path, None, weight, weight) {
            builder.caveats().add(CaveatKind::WeightLimit, 1);
        }
    }
    progress(done);
    if stacks == 0 {
        return Err(Error::Unknown);
    }
    if samples == 0 {
        builder.caveats().add(CaveatKind::NoSamples, 1);
    }
    Ok(builder.finish())
}

/// Reads the next line into `line`, which stays empty when it is too long; gives the number of
/// bytes that were taken from the input, `None` at its end.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Option<u64>> {
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

/// The stack and the weight of a line, or what is wrong with it.
fn parse(text: &str, taken: u64) -> Result<(&str, u64), &'static str> {
    if taken > MAX_LINE as u64 {
        return Err("it is longer than 64 MiB");
    }
    let (stack, weight) = text
        .rsplit_once([' ', '\t'])
        .ok_or("no weight at its end")?;
    if stack.is_empty() {
        return Err("no stack before the weight");
    }
    let digits = !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err("the weight is not a whole number");
    }
    if stack.bytes().filter(|&byte| byte == b';').count() >= MAX_FRAMES {
        return Err("more than 262144 frames");
    }
    let weight = weight.parse().map_err(|_| "the weight passes 64 bits")?;
    Ok((stack, weight))
}

/// The name with its escapes resolved.
fn unescaped(name: &str) -> Cow<'_, str> {
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

/// The character that the escape at the start of `text` stands for, and the escape's length.
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
