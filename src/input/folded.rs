//! Folded stacks: one line a stack, the outermost function first, and its weight.
//!
//! ```text
//!   main;parse;lex 12
//!   main;parse;a name with spaces 3
//!              └──── the weight is what follows the last space or tab
//! ```
//!
//! It is the language of flame graphs and of the tests. Every name is a function; two functions
//! of one name are the same here, as nothing tells them apart. `[truncated]` and `[broken stack]`
//! are the marks under which stacks hang that are not whole. The weight counts samples.
//!
//! Where a name could not stand as it is, [`export::folded`](crate::export::folded) writes
//! `\xNN` or `\u{N}`; exactly these are read back: for `;`, for the backslash, and for
//! characters that are not safe to print. Any other backslash is itself.
//!
//! A line that cannot be read is counted, with its number, and the others are kept.

use std::borrow::Cow;
use std::io::BufRead;

use std::collections::HashMap;

use crate::base::{BROKEN, CaveatKind, Event, TRUNCATED, Unit, WeightSum, is_unsafe_char, utf8};
use crate::profile::{
    Builder, Function, FunctionId, FunctionKind, Module, PathId, Profile, Thread,
};

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
    let mut reader = Reader::default();
    let event = reader.builder.event(Event {
        name: "samples".into(),
        unit: Unit::Samples,
    });
    let thread = reader.builder.thread(Thread {
        pid: 0,
        tid: 0,
        comm: String::new(),
    });
    let mut line = Vec::new();
    let (mut number, mut done) = (0u64, 0u64);
    let (mut stacks, mut weights) = (0u64, 0u64);
    while let Some(taken) = next_line(&mut input, &mut line).map_err(Error::Io)? {
        number += 1;
        done += taken;
        if number.is_multiple_of(STEP) {
            progress(done);
        }
        let text = utf8(&line);
        let text = text.trim_end();
        let too_long = taken > MAX_LINE as u64;
        if text.is_empty() && !too_long {
            continue;
        }
        let builder = &mut reader.builder;
        match parse(text, too_long) {
            Err(reason) => builder.caveats().add_with(CaveatKind::BadLine, 1, || {
                format!("line {number}: {reason}")
            }),
            Ok((_, 0)) => stacks += 1,
            Ok((stack, weight)) => {
                stacks += 1;
                weights = weights.saturating_add(weight);
                let path = reader.path(stack);
                let builder = &mut reader.builder;
                if !builder.sample(event, thread, path, None, WeightSum::equal(weight, weight)) {
                    builder.caveats().add(CaveatKind::WeightLimit, 1);
                }
            }
        }
    }
    progress(done);
    if stacks == 0 {
        return Err(Error::Unknown);
    }
    if weights == 0 {
        reader.builder.caveats().add(CaveatKind::NoSamples, 1);
    }
    Ok(reader.builder.finish())
}

/// What is known from the lines so far.
#[derive(Default)]
struct Reader {
    builder: Builder,
    functions: HashMap<String, FunctionId>,
    /// The last stack, and for each of its frames where it ends in the text and its path.
    /// Neighbours in a file have most of their frames in common, and these need no look-up.
    last: String,
    frames: Vec<(usize, PathId)>,
}

impl Reader {
    /// The path of a stack.
    fn path(&mut self, stack: &str) -> PathId {
        let mut same = 0;
        for (a, b) in self.last.bytes().zip(stack.bytes()) {
            if a != b {
                break;
            }
            same += 1;
        }
        let ends_alike = |end: usize| {
            let ends = |text: &str| matches!(text.as_bytes().get(end), None | Some(b';'));
            end <= same && ends(&self.last) && ends(stack)
        };
        let common = self.frames.partition_point(|&(end, _)| ends_alike(end));
        self.frames.truncate(common);
        let (mut end, mut path) = match self.frames.last() {
            Some(&(end, path)) => (end, Some(path)),
            None => (0, None),
        };
        let rest = match path {
            Some(_) => stack[end..].strip_prefix(';'),
            None => Some(stack),
        };
        for name in rest.into_iter().flat_map(|rest| rest.split(';')) {
            end += name.len() + usize::from(path.is_some());
            let function = self.function(name);
            let longer = self.builder.path(path, function, false);
            self.frames.push((end, longer));
            path = Some(longer);
        }
        self.last.clear();
        self.last.push_str(stack);
        path.expect("a stack has at least one frame")
    }

    /// The function of this name, which may have escapes.
    fn function(&mut self, name: &str) -> FunctionId {
        let name = unescaped(name);
        if let Some(&function) = self.functions.get(&*name) {
            return function;
        }
        let module = self.builder.module(Module {
            name: String::new(),
            path: String::new(),
        });
        let function = self.builder.function(Function {
            name: name.clone().into_owned(),
            linkage_name: None,
            declared_at: None,
            module,
            address: None,
            kind: match &*name {
                // As the export of folded stacks writes them.
                TRUNCATED | BROKEN => FunctionKind::Mark,
                _ => FunctionKind::Named,
            },
        });
        self.functions.insert(name.into_owned(), function);
        function
    }
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
fn parse(text: &str, too_long: bool) -> Result<(&str, u64), &'static str> {
    if too_long {
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
