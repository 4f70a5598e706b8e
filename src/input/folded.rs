//! Folded stacks: one line a stack, the outermost function first, and its weight.
//!
//! ```text
//!   main;parse;lex 12
//!   main;parse;a name with spaces 3
//!              └──── the weight is what follows the last space or tab
//! ```
//!
//! Flame graphs and the tests use this format. Every name is a function; functions of one name are
//! one function, as nothing distinguishes them. `[truncated]`, `[broken stack]` and the other marks
//! of proftool are read as marks. A name after `~` is that of a restored function. `[frames
//! missing]` is no function: it stands between two functions of which the outer one did not call
//! the inner one, as frames are missing between them. The weight counts samples. If some
//! are not whole (`main;parse 0.5`), all are counted in parts of their unit: tenths, hundredths and
//! so on, as few digits as keep their shares.
//!
//! # Frames without a name
//!
//! `[unknown]`, `unknown`, `??`, an empty frame, and `[libc.so.6]`, a module in place of a
//! function, stand for functions that a profiler could not name: possibly a different one each
//! time. One node for all of them would be called by everything and call everything, and join all
//! functions into one cycle. They are distinguished by their callers:
//!
//! | the frame stands | it is | and is called |
//! |---|---|---|
//! | below a function | what it calls; one node for each caller | `[unknown] called by parse` |
//! | below another such frame | what that frame calls | `[unknown] 2 calls below parse` |
//! | outermost, or below a mark | what calls the first named one | `[unknown] that calls main` |
//! | on a stack without any name | its place on the stack | `[unknown] at depth 1` |
//!
//! So a node without a name has one caller at most. A cycle through it is one through that caller,
//! and stacks show that it called whatever the node calls. So every cycle is one that the stacks
//! have. Its total is that of code without a name below one function, and each stack with such a
//! frame is counted in a caveat. Frames with an address, such as `[libc.so.6 <7f12>]` or
//! `[unmapped]+0x12`, are distinguished by it.
//!
//! Where a name could not stand as it is, [`export::folded`](crate::export::folded) writes `\xNN`
//! or `\u{N}`; exactly these are read back: for `;`, for the backslash, for characters that are not
//! safe to print, and for the first character of a name that would mean something else without. Any
//! other backslash is itself.
//!
//! A line that cannot be read is counted, with its number, and the others are kept.

mod line;

use std::collections::HashMap;
use std::io::BufRead;

use crate::base::{
    CaveatKind, Event, FRAMES_MISSING, IdVec, Interner, Language, NameId, Sampling, Standing, Unit,
    WeightSum, is_mark, placeholder, utf8,
};
use crate::names::of_text;
use crate::profile::{
    Builder, Function, FunctionId, FunctionKind, Module, ModuleId, PathId, Profile, Thread,
};

use self::line::{BadLine, MAX_LINE, Weight, parse, unescaped};
pub(super) use self::line::{begins_with_stack, name_of_single, next_line};
use super::Reason;
use super::parts::{Parts, within_64_bits};

const INFERRED: char = '~';
const STEP: u64 = 1 << 14;

/// What the weights of folded stacks are. The format does not state it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Not known. They are taken as numbers of samples.
    #[default]
    Unstated,
    /// Numbers of samples.
    Samples,
    /// Time, in units of this number of nanoseconds.
    Time(u64),
    /// Bytes.
    Bytes,
}

impl Weights {
    fn event(self) -> Event {
        let (name, unit) = match self {
            Weights::Unstated | Weights::Samples => ("samples", Unit::Samples),
            Weights::Time(_) => ("time", Unit::Nanoseconds),
            Weights::Bytes => ("bytes", Unit::Count("bytes".into())),
        };
        Event {
            name: name.into(),
            unit,
        }
    }

    fn sampling(self) -> Sampling {
        match self {
            Weights::Samples => Sampling::Unknown,
            Weights::Unstated | Weights::Time(_) | Weights::Bytes => Sampling::Merged,
        }
    }

    fn factor(self) -> u64 {
        match self {
            Weights::Time(unit) => unit,
            Weights::Unstated | Weights::Samples | Weights::Bytes => 1,
        }
    }
}

/// Reads folded stacks whose weights are taken as samples; `progress` gets the number of bytes
/// read.
///
/// # Errors
///
/// [`Reason::Io`]; [`Reason::Folded`] when all stacks pass a limit, and [`Reason::Unknown`] when
/// not one line is a stack with a weight.
pub fn read(input: impl BufRead, progress: &mut dyn FnMut(u64)) -> Result<Profile, Reason> {
    read_as(Weights::default(), input, progress)
}

/// [`read`], with weights of this kind.
///
/// ```
/// use proftool::input::folded::{Weights, read_as};
/// let profile = read_as(Weights::Time(1_000), "main;a 25\n".as_bytes(), &mut |_| {})?;
/// assert_eq!(profile.samples.iter().map(|s| s.weight).sum::<u64>(), 25_000);
/// # Ok::<(), proftool::input::Reason>(())
/// ```
pub fn read_as(
    unit: Weights,
    mut input: impl BufRead,
    progress: &mut dyn FnMut(u64),
) -> Result<Profile, Reason> {
    let mut reader = Reader::default();
    let mut lines = Lines::default();
    let mut line = Vec::new();
    let (mut number, mut done) = (0u64, 0u64);
    let mut stacks = 0u64;
    let mut too_large = None;
    while let Some(taken) = next_line(&mut input, &mut line)? {
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
            Err(BadLine { problem, is_stack }) => {
                let problem = || format!("line {number}: {problem}");
                // If no other line is a stack, the file is refused for this one, not as an unknown
                // format.
                if is_stack {
                    too_large.get_or_insert_with(problem);
                }
                builder.caveats().add_with(CaveatKind::BadLine, 1, problem);
            }
            // A stack without weight still shows that the file is of this format.
            Ok((_, Weight::Whole(0))) => stacks += 1,
            Ok((stack, weight)) => {
                stacks += 1;
                let (path, has_nameless) = reader.path(stack);
                let count = match weight {
                    Weight::Whole(weight) => {
                        lines.whole.push((path, weight));
                        weight
                    }
                    Weight::Decimal(weight) => {
                        lines.decimal.push((path, weight));
                        1
                    }
                };
                if has_nameless {
                    let caveats = reader.builder.caveats();
                    caveats.add(CaveatKind::NamelessFrames, count);
                }
            }
        }
    }
    progress(done);
    if stacks == 0 {
        return Err(too_large.map_or(Reason::Unknown, |problem| Reason::Folded { problem }));
    }
    lines.add_to(&mut reader.builder, unit);
    Ok(reader.builder.finish())
}

// The stacks and weights of all lines. In which parts of the unit they are counted is known when
// the last one is read.
#[derive(Default)]
struct Lines {
    whole: Vec<(PathId, u64)>,
    decimal: Vec<(PathId, f64)>,
}

impl Lines {
    fn add_to(&self, builder: &mut Builder, unit: Weights) {
        let factor = unit.factor();
        let whole = self.whole.iter().map(|&(_, weight)| weight as f64);
        let decimal = self.decimal.iter().map(|&(_, weight)| weight);
        let parts = Parts::of(whole.chain(decimal).map(|weight| weight * factor as f64));
        let mut event = unit.event();
        event.unit = parts.unit(event.unit);
        // Time, bytes and parts do not state how many samples a line counts as.
        let weights_are_counts = event.unit == Unit::Samples;
        let sampling = if weights_are_counts {
            unit.sampling()
        } else {
            Sampling::Merged
        };
        let event = builder.sampled_event(event, sampling);
        let thread = builder.thread(Thread::new(0, 0, ""));
        let whole = self.whole.iter().map(|&(path, weight)| {
            let weight = weight.checked_mul(factor);
            (path, weight.and_then(|it| it.checked_mul(parts.number)))
        });
        let decimal = self.decimal.iter().map(|&(path, weight)| {
            let weight = weight * factor as f64 * parts.number as f64;
            (path, within_64_bits(weight))
        });
        let mut is_zero = true;
        for (path, weight) in whole
            .chain(decimal)
            .filter(|(_, weight)| *weight != Some(0))
        {
            is_zero = false;
            let is_held = weight.is_some_and(|weight| {
                let count = if weights_are_counts { weight } else { 1 };
                builder.sample(event, thread, path, None, WeightSum::equal(weight, count))
            });
            if !is_held {
                builder.caveats().add(CaveatKind::WeightLimit, 1);
            }
        }
        if is_zero {
            builder.caveats().add(CaveatKind::ZeroWeights, 1);
        }
    }
}

#[derive(Default)]
struct Reader {
    builder: Builder,
    names: Interner,
    functions: IdVec<NameId, FunctionId>,
    // For each function the path of it alone, once it has been outermost.
    roots: IdVec<FunctionId, Option<PathId>>,
    module: Option<ModuleId>,
    nameless: HashMap<Nameless, FunctionId>,
    // The last stack, and its frames. Neighbours in a file have most of their frames in common, and
    // these need no look-up.
    last: String,
    frames: Vec<Frame>,
}

// What distinguishes frames without a name, apart from the text in place of the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Nameless {
    // Their caller.
    Below(FunctionId, String),
    // The first function with a name that is further in, and how far.
    Above(FunctionId, usize, String),
    // How far they are from the outermost.
    Alone(usize, String),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    end: usize,
    path: PathId,
    function: FunctionId,
    // The innermost function with a name up to here, and how many frames further in this one is.
    named: Option<(FunctionId, usize)>,
    // Whether it or one further out has no name.
    has_nameless: bool,
}

impl Reader {
    fn path(&mut self, stack: &str) -> (PathId, bool) {
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
        let common = self.frames.partition_point(|f| ends_alike(f.end));
        self.frames.truncate(common);
        // What frames are that have no name outside of them depends on what is further in.
        if self.frames.last().is_some_and(|last| last.named.is_none()) {
            self.frames.clear();
        }
        let mut end = self.frames.last().map_or(0, |last| last.end);
        let rest = if self.frames.is_empty() {
            Some(stack)
        } else {
            stack[end..].strip_prefix(';')
        };
        let mut rest = rest.map(|rest| rest.split(';'));
        // The first function with a name further in, and the number of calls to it; looked for
        // once, and not from each frame outside of it.
        let mut inner: Option<Option<(&str, usize)>> = None;
        while let Some(text) = rest.as_mut().and_then(Iterator::next) {
            let last = self.frames.last().copied();
            end += text.len() + usize::from(last.is_some());
            // Before the first and behind the last function nothing can be missing between two.
            let mut text = text;
            let mut across_gap = false;
            while text == FRAMES_MISSING
                && last.is_some()
                && let Some(inner) = rest.as_mut().and_then(Iterator::next)
            {
                end += inner.len() + 1;
                text = inner;
                across_gap = true;
            }
            let (name, inferred) = match text.strip_prefix(INFERRED) {
                Some(name) if !name.is_empty() => (name, true),
                _ => (text, false),
            };
            let named_outside = last.and_then(|last| last.named);
            let (function, named) = match placeholder(name) {
                None if is_mark(name) => (self.function(name, FunctionKind::Mark), None),
                None => {
                    let function = self.function(name, FunctionKind::Named);
                    inner = inner.filter(Option::is_none);
                    (function, Some((function, 0)))
                }
                Some(stands) => match (named_outside, last) {
                    (Some((outer, calls)), Some(last)) => {
                        let key = Nameless::Below(last.function, stands.to_owned());
                        let function = self.nameless(key, Some(outer), calls + 1);
                        (function, Some((outer, calls + 1)))
                    }
                    _ => {
                        let inside = || rest.clone().into_iter().flatten();
                        let first = *inner.get_or_insert_with(|| first_named(inside()));
                        inner = Some(first.map(|(name, calls)| (name, calls - 1)));
                        (self.outermost(stands, first), None)
                    }
                },
            };
            let caller = last.map(|last| last.path);
            let path = match caller {
                Some(caller) if across_gap => self.builder.path_across_gap(caller, function),
                _ if inferred => self.builder.inferred_path(caller, function, false),
                Some(_) => self.builder.path(caller, function, false),
                None => self.root(function),
            };
            let is_nameless = named.is_none_or(|(named, _)| named != function) && !is_mark(name);
            self.frames.push(Frame {
                end,
                path,
                function,
                named,
                has_nameless: is_nameless || last.is_some_and(|last| last.has_nameless),
            });
        }
        self.last.clear();
        self.last.push_str(stack);
        let last = self.frames.last().expect("a stack has at least one frame");
        (last.path, last.has_nameless)
    }

    // The path of a function that is outermost. Among many stacks the tree's own look-up waits for
    // memory.
    fn root(&mut self, function: FunctionId) -> PathId {
        while self.roots.len() <= function.index() {
            self.roots.push(None);
        }
        let builder = &mut self.builder;
        *self.roots[function].get_or_insert_with(|| builder.path(None, function, false))
    }

    // `first` is the first function with a name further in, and the number of calls to it.
    fn outermost(&mut self, stands: &str, first: Option<(&str, usize)>) -> FunctionId {
        let stands = stands.to_owned();
        match first {
            Some((name, calls)) => {
                let inner = self.function(name, FunctionKind::Named);
                let key = Nameless::Above(inner, calls, stands);
                self.nameless(key, Some(inner), calls)
            }
            None => {
                let depth = self.frames.len() + 1;
                self.nameless(Nameless::Alone(depth, stands), None, depth)
            }
        }
    }

    // `calls` is the number of calls from one that has a name, or from the outermost frame.
    fn nameless(&mut self, key: Nameless, near: Option<FunctionId>, calls: usize) -> FunctionId {
        if let Some(&function) = self.nameless.get(&key) {
            return function;
        }
        let near = near.map_or("", |near| self.builder.function_name(near));
        let (stands, standing) = match &key {
            Nameless::Below(_, stands) => (stands, Standing::Below(near, calls)),
            Nameless::Above(.., stands) => (stands, Standing::Above(near, calls)),
            Nameless::Alone(_, stands) => (stands, Standing::Alone(calls)),
        };
        let function = self.add(format!("{stands}{standing}"), FunctionKind::Unknown);
        self.nameless.insert(key, function);
        function
    }

    fn function(&mut self, name: &str, kind: FunctionKind) -> FunctionId {
        let name = unescaped(name);
        let id = self.names.intern(&name);
        if let Some(&function) = self.functions.get(id) {
            return function;
        }
        let function = self.add(name.into_owned(), kind);
        self.functions.push(function);
        function
    }

    fn add(&mut self, name: String, kind: FunctionKind) -> FunctionId {
        let builder = &mut self.builder;
        let module = *self.module.get_or_insert_with(|| {
            builder.module(Module {
                name: String::new(),
                path: String::new(),
            })
        });
        builder.function(Function {
            linkage_name: None,
            declared_at: None,
            module,
            address: None,
            language: match kind {
                FunctionKind::Named => of_text(&name),
                _ => Language::Unknown,
            },
            name,
            kind,
        })
    }
}

// The first of these frames that has a name, and the number of calls to it from the frame outside.
fn first_named<'t>(inside: impl Iterator<Item = &'t str>) -> Option<(&'t str, usize)> {
    let strip = |text: &'t str| match text.strip_prefix(INFERRED) {
        Some(name) if !name.is_empty() => name,
        _ => text,
    };
    let is_function = |name: &&str| !is_mark(name) && *name != FRAMES_MISSING;
    let names = inside.map(strip).filter(is_function);
    let first = (1..)
        .zip(names)
        .find(|(_, name)| placeholder(name).is_none());
    first.map(|(calls, name)| (name, calls))
}
