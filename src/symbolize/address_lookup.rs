//! Looks addresses up, in parallel: by image, and large images by chunk.
//!
//! Debug information is read unit by unit as addresses need it, once for all workers. Addresses are
//! sorted, so workers seldom wait for one another's units.

use std::sync::OnceLock;

use crate::base::{Avma, FileOffset, IdVec, Interner, NameId, Svma, parallel};
use crate::binary::{
    Binary, DefinitionId, InlineFrame, JitDump, KernelFunction, Lines, PerfMap, SymbolSource,
};
use crate::trace::ImageId;

use super::distinct_addresses::DistinctAddresses;
use super::limits;
use super::name_source::NameSource;
use super::{Options, SourceLines};
use crate::cache::{Place, decode, encode};
use crate::scan::Unlisted;
use rustc_hash::{FxHashMap, FxHashSet};

// The number of addresses that a worker takes at once.
const CHUNK: usize = 1024;
// What the functions of a file that no symbol names are kept under.
const KEPT_UNLISTED: &str = "unlisted";

/// What the addresses of one chunk of one image are, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) physical: Vec<Physical>,
    /// Calls inlined there, outermost first; [`Physical::inlined`] counts how many are each
    /// address's. Each is a place among the [`definitions`](Answers::definitions).
    pub(super) inlined: Vec<u32>,
    pub(super) call_lines: Vec<Option<(NameId, u32)>>,
    /// The functions that debug information knows here, each once.
    pub(super) definitions: Vec<DefinitionId>,
    pub(super) names: Interner,
    /// The depth of inlined calls below which they were left out, if any were.
    pub(super) cut_below: Option<usize>,
    places: FxHashMap<DefinitionId, u32>,
}

impl Answers {
    fn definition(&mut self, id: DefinitionId) -> u32 {
        let next = self.definitions.len() as u32;
        let definitions = &mut self.definitions;
        *self.places.entry(id).or_insert_with(|| {
            definitions.push(id);
            next
        })
    }
}

/// The function that an address belongs to by its place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Physical {
    /// Where it starts, by symbol or unwind table, or by the code that leads there.
    pub(super) start: Option<u64>,
    pub(super) name: Option<NameId>,
    /// What it is by debug information, which names it if it has no symbol: a place among the
    /// [`definitions`](Answers::definitions).
    pub(super) definition: Option<u32>,
    /// How many inlined calls the address is inside of.
    pub(super) inlined: u32,
    /// The file and line of the innermost frame.
    pub(super) line: Option<(NameId, u32)>,
    /// Whether the name may belong to any of several functions.
    pub(super) is_ambiguous: bool,
}

/// A piece of work: addresses of an image.
struct Chunk {
    image: ImageId,
    from: usize,
    to: usize,
}

/// The debug information of each image, read when it is first asked for. Most of very many images
/// have none.
pub(super) type ImageLines<'h> = IdVec<ImageId, OnceLock<Box<Lines<'h>>>>;

/// The answers of all images.
pub(super) struct AllAnswers<'h> {
    /// What the addresses are.
    pub(super) by_chunk: ByChunk,
    pub(super) lines: ImageLines<'h>,
}

/// The answers for each chunk, in order of image and address; none where there is nothing to look
/// up in.
pub(super) struct ByChunk(Vec<(ImageId, Answers)>);

impl ByChunk {
    pub(super) fn of_image(&self, image: ImageId) -> impl Iterator<Item = &Answers> + Clone {
        let start = self.0.partition_point(|&(other, _)| other < image);
        let rest = self.0[start..].iter();
        rest.take_while(move |&&(other, _)| other == image)
            .map(|(_, answers)| answers)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(ImageId, Answers)> {
        self.0.iter()
    }
}

/// Looks everything up.
pub(super) fn all<'h>(
    addresses_of_images: &DistinctAddresses,
    name_sources: &'h IdVec<ImageId, NameSource>,
    options: &Options,
) -> AllAnswers<'h> {
    let mut chunks = Vec::new();
    for (image, plan) in addresses_of_images.enumerate() {
        if matches!(name_sources[image], NameSource::Mark | NameSource::None(_)) {
            continue;
        }
        let len = plan.len();
        let count = len.div_ceil(CHUNK);
        for part in 0..count {
            let (from, to) = (len * part / count, len * (part + 1) / count);
            chunks.push(Chunk { image, from, to });
        }
    }
    // The largest first, so that no worker ends long after the others.
    let mut order: Vec<usize> = (0..chunks.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(chunks[i].to - chunks[i].from));
    // What one worker has read of a file's debug information, the others need not.
    let lines: Vec<OnceLock<Box<Lines<'h>>>> =
        name_sources.iter().map(|_| OnceLock::new()).collect();
    let unlisted: Vec<OnceLock<Unlisted>> = name_sources.iter().map(|_| OnceLock::new()).collect();
    let answers = parallel::map(options.workers, &order, |&index| {
        let chunk = &chunks[index];
        let addresses = &addresses_of_images.of_image(chunk.image)[chunk.from..chunk.to];
        let addresses = addresses.iter().map(|&(address, _)| address);
        match &name_sources[chunk.image] {
            NameSource::Binary(binary, _) => {
                let lines = &lines[chunk.image.index()];
                let lines = options
                    .inlines
                    .then(|| &**lines.get_or_init(|| Box::new(binary.lines())));
                let unlisted = &unlisted[chunk.image.index()];
                let unlisted = || unlisted.get_or_init(|| unlisted_of(binary));
                in_binary(binary, (lines, options.lines), unlisted, addresses)
            }
            NameSource::Kernel(symbols, shift) => {
                // They are sorted: the next one is often in the same function.
                let mut last: Option<KernelFunction> = None;
                in_table(addresses, |address| {
                    let address = address.wrapping_add(*shift);
                    let is_inside = |it: &KernelFunction| {
                        address
                            .checked_sub(it.start.0)
                            .is_some_and(|at| at < it.size)
                    };
                    if !last.as_ref().is_some_and(is_inside) {
                        last = symbols.at(Avma(address));
                    }
                    last.map(|function| (function.start.0, function.name))
                })
            }
            NameSource::PerfMap(map) => in_map(map, addresses),
            NameSource::JitDump(dump) => in_dump(dump, addresses),
            NameSource::Ranges(ranges) => in_table(addresses, |address| {
                let (start, _, name) = in_ranges(ranges, address)?;
                Some((start, name))
            }),
            NameSource::Mark | NameSource::None(_) => Answers::default(),
        }
    });
    let mut by_index: Vec<(usize, Answers)> = order.into_iter().zip(answers).collect();
    by_index.sort_unstable_by_key(|&(index, _)| index);
    let images = chunks.iter().map(|chunk| chunk.image);
    let answers = by_index.into_iter().map(|(_, answers)| answers);
    let mut all: Vec<(ImageId, Answers)> = images.zip(answers).collect();
    let mut lines: ImageLines<'h> = lines.into();
    // What was read of such a file depends on which worker came first, so none of it is used. All
    // are asked before any is forgotten, which gives back what it took.
    let is_too_large = |image: &ImageId| match &name_sources[*image] {
        NameSource::Binary(binary, _) => binary.is_debug_info_too_large(),
        _ => false,
    };
    let too_large: FxHashSet<ImageId> = name_sources.ids().filter(is_too_large).collect();
    for (image, answers) in &mut all {
        if too_large.contains(image) {
            answers.forget_debug_info();
        }
    }
    for image in too_large {
        lines[image] = OnceLock::from(Box::new(Lines::none()));
    }
    AllAnswers {
        by_chunk: ByChunk(all),
        lines,
    }
}

impl Answers {
    /// Leaves what symbols say.
    fn forget_debug_info(&mut self) {
        self.inlined = Vec::new();
        self.call_lines = Vec::new();
        self.definitions = Vec::new();
        for physical in &mut self.physical {
            physical.inlined = 0;
            physical.definition = None;
            physical.line = None;
        }
    }

    /// Leaves inlined calls out below some depth, where the addresses have too many together. The
    /// place of an address is then that of the innermost call that is left.
    fn limit_inlined(&mut self) {
        let depths = self.physical.iter().map(|physical| physical.inlined);
        let Some(depth) = limits::depth_of_chunk(depths) else {
            return;
        };
        self.cut_below = Some(depth);
        let has_lines = !self.call_lines.is_empty();
        let (mut from, mut to) = (0, 0);
        for physical in &mut self.physical {
            let all = physical.inlined as usize;
            let kept = all.min(depth);
            if kept < all {
                let line = has_lines.then(|| self.call_lines[from + kept]);
                physical.line = line.flatten();
            }
            self.inlined.copy_within(from..from + kept, to);
            if has_lines {
                self.call_lines.copy_within(from..from + kept, to);
            }
            physical.inlined = kept as u32;
            from += all;
            to += kept;
        }
        self.inlined.truncate(to);
        self.inlined.shrink_to_fit();
        if has_lines {
            self.call_lines.truncate(to);
            self.call_lines.shrink_to_fit();
        }
    }
}

/// The range that holds an address: start, size and name.
pub(super) fn in_ranges(ranges: &[(u64, u64, String)], address: u64) -> Option<(u64, u64, &str)> {
    let after = ranges.partition_point(|&(start, ..)| start <= address);
    let (start, size, name) = ranges.get(after.checked_sub(1)?)?;
    (address - start < *size).then_some((*start, *size, name))
}

/// Looks up names that have a start and nothing else.
fn in_table<'n>(
    addresses: impl Iterator<Item = u64>,
    mut at: impl FnMut(u64) -> Option<(u64, &'n str)>,
) -> Answers {
    let mut answers = Answers::default();
    for address in addresses {
        let found = at(address).map(|(start, name)| Physical {
            start: Some(start),
            name: Some(answers.names.intern(name)),
            ..Physical::default()
        });
        answers.physical.push(found.unwrap_or_default());
    }
    answers
}

/// Looks up code made at run time. It is known by name: a function that was compiled several times
/// is at several addresses.
fn in_map(map: &PerfMap, addresses: impl Iterator<Item = u64>) -> Answers {
    let mut answers = Answers::default();
    for address in addresses {
        let found = map.at(Avma(address)).map(|names| Physical {
            name: Some(answers.names.intern(&names.label())),
            is_ambiguous: names.is_ambiguous(),
            ..Physical::default()
        });
        answers.physical.push(found.unwrap_or_default());
    }
    answers
}

fn in_dump(dump: &JitDump, addresses: impl Iterator<Item = u64>) -> Answers {
    let mut answers = Answers::default();
    for address in addresses {
        let names = &mut answers.names;
        let found = dump.at(address).map(|frame| Physical {
            name: Some(names.intern(frame.name)),
            line: frame.line.map(|(file, line)| (names.intern(file), line)),
            ..Physical::default()
        });
        answers.physical.push(found.unwrap_or_default());
    }
    answers
}

fn in_binary<'u>(
    binary: &Binary,
    (lines, wanted): (Option<&Lines<'_>>, SourceLines),
    unlisted: impl Fn() -> &'u Unlisted,
    addresses: impl Iterator<Item = u64>,
) -> Answers {
    let mut answers = Answers::default();
    let mut frames = Vec::new();
    for address in addresses {
        let physical = match binary.svma(FileOffset(address)) {
            Some(svma) => {
                let mut physical = by_symbol(binary, svma, &mut answers.names);
                if physical.start.is_none() {
                    physical.start = unlisted().function_at(svma).map(|start| start.0);
                }
                if let Some(lines) = lines {
                    match wanted {
                        SourceLines::None => lines.frames_without_lines(svma, &mut frames),
                        _ => lines.frames(svma, &mut frames),
                    }
                    let call_lines = wanted == SourceLines::OfCalls;
                    by_debug_info(&frames, call_lines, &mut physical, &mut answers);
                }
                physical
            }
            None => Physical::default(),
        };
        answers.physical.push(physical);
    }
    answers.limit_inlined();
    answers
}

// It takes all code of a file: that is kept for the next start.
fn unlisted_of(binary: &Binary) -> Unlisted {
    let place = binary.place_to_keep(KEPT_UNLISTED);
    let kept = place.as_ref().and_then(Place::load);
    kept.and_then(|kept| decode(kept.bytes()))
        .unwrap_or_else(|| {
            let found = Unlisted::find(binary);
            // It does not matter if that fails.
            let _ = place.and_then(|place| place.store(&encode(&found)?));
            found
        })
}

fn by_symbol(binary: &Binary, svma: Svma, names: &mut Interner) -> Physical {
    let Some(function) = binary.function_at(svma) else {
        return Physical::default();
    };
    let name = match function.source {
        SymbolSource::Unwind => None,
        _ => binary
            .function_name(function)
            .filter(|name| !name.is_empty()),
    };
    Physical {
        start: Some(function.start.0),
        name: name.map(|name| names.intern(&name)),
        ..Physical::default()
    }
}

/// Adds inlined calls and the source line; frames come innermost first.
fn by_debug_info(
    frames: &[InlineFrame<'_>],
    call_lines: bool,
    physical: &mut Physical,
    answers: &mut Answers,
) {
    let Some(outermost) = frames.last() else {
        return;
    };
    let definition = outermost.definition;
    physical.definition = definition.map(|definition| answers.definition(definition.id));
    for (definition, caller) in inlined_calls(frames) {
        let definition = answers.definition(definition);
        answers.inlined.push(definition);
        physical.inlined += 1;
        if call_lines {
            let line = line_of(caller, &mut answers.names);
            answers.call_lines.push(line);
        }
    }
    let names = &mut answers.names;
    if let Some(innermost) = frames.first() {
        physical.line = line_of(innermost, names);
    }
}

/// The calls that were inlined at an address, outermost first, each with the frame that makes it.
///
/// Inlined code whose function has no name stays part of what it was inlined into, and so does a
/// part of a function that the compiler split off and put back: the source has no such call.
pub(super) fn inlined_calls<'f, 'l>(
    frames: &'f [InlineFrame<'l>],
) -> impl Iterator<Item = (DefinitionId, &'f InlineFrame<'l>)> {
    let callers = frames.get(1..).unwrap_or_default();
    let calls = frames.iter().zip(callers).rev();
    calls.filter_map(|(frame, caller)| {
        frame.function.as_ref()?;
        let definition = frame.definition.filter(|_| !frame.is_split_off)?;
        Some((definition.id, caller))
    })
}

fn line_of(frame: &InlineFrame<'_>, names: &mut Interner) -> Option<(NameId, u32)> {
    let line = frame.line.filter(|&line| line > 0)?;
    Some((names.intern(frame.file?), line))
}
