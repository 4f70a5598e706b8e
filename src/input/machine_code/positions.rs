//! The source positions of machine code.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::{NameId, Svma};
use crate::binary::{InlineFrame, Lines, demangle};
use crate::profile::{Listing, Position};

// The most frames of inlined calls that are read for its source positions.
const MOST_FRAMES: usize = 1 << 24;
const MOST_TEXT: usize = 64 << 20;

// The position of each instruction, the lines of the function itself, and what the debug
// information has of the source. `stated` tells where the file has what is listed at an address.
pub(super) fn add_positions(listing: &mut Listing, lines: &Lines, stated: impl Fn(u64) -> Svma) {
    add_lines(listing, lines, &stated);
    add_embedded(listing, lines, &stated);
}

/// Tells whether the code at an address is of a function that is inlined there, or inlined into
/// that, by the function's name for people.
pub(super) fn inlined_at<'l>(lines: &'l Lines<'_>, name: &'l str) -> impl FnMut(Svma) -> bool + 'l {
    // By the names in debug information.
    let mut known: FxHashMap<String, bool> = FxHashMap::default();
    let mut frames: Vec<InlineFrame> = Vec::new();
    move |at| {
        lines.frames(at, &mut frames);
        let around = frames.len().saturating_sub(1);
        let mut inlined = frames[..around]
            .iter()
            .filter_map(|it| it.function.as_deref());
        inlined.any(|linkage_name| match known.get(linkage_name) {
            Some(&is_it) => is_it,
            None => {
                let is_it = demangle(linkage_name) == name;
                known.insert(linkage_name.to_owned(), is_it);
                is_it
            }
        })
    }
}

fn add_embedded(listing: &mut Listing, lines: &Lines, stated: &impl Fn(u64) -> Svma) {
    // All code of a function is of one unit.
    let Some(first) = listing.instructions.first() else {
        return;
    };
    let of_code = listing.positions.iter().map(|position| position.file);
    let of_lines = listing.lines.iter().map(|&(file, _)| file);
    let mut files: Vec<NameId> = of_code.chain(of_lines).collect();
    files.sort_unstable();
    files.dedup();
    let mut left = MOST_TEXT;
    for file in files {
        let path = &listing.names[file];
        let text = lines.embedded_source(stated(first.address), path, left);
        if let Some(text) = text {
            left = left.saturating_sub(text.len());
            listing.embedded.push((file, text.into()));
        }
    }
}

fn add_lines(listing: &mut Listing, lines: &Lines, stated: &impl Fn(u64) -> Svma) {
    let mut known: FxHashMap<Position, u32> = FxHashMap::default();
    let mut own: FxHashSet<(NameId, u32)> = FxHashSet::default();
    let mut inlined_names: FxHashMap<String, NameId> = FxHashMap::default();
    let mut frames: Vec<InlineFrame> = Vec::new();
    let mut left = MOST_FRAMES;
    for instruction in &mut listing.instructions {
        lines.frames(stated(instruction.address), &mut frames);
        let Some(rest) = left.checked_sub(frames.len()) else {
            break;
        };
        left = rest;
        let names = &mut listing.names;
        let mut line_of = |frame: &InlineFrame| {
            let (file, line) = frame.file.zip(frame.line)?;
            Some((names.intern(file), line))
        };
        // Parts that a compiler has split off and put back are code of the function itself.
        let is_inlined = |frame: &InlineFrame| !frame.is_split_off;
        let whole = frames.iter().rev();
        own.extend(whole.take(1).filter_map(&mut line_of));
        let Some(innermost) = frames.first() else {
            continue;
        };
        let Some((file, line)) = line_of(innermost) else {
            continue;
        };
        // A part of a function that is inlined is inlined with it.
        let inner = &frames[..frames.len() - 1];
        let inlined = innermost
            .function
            .as_deref()
            .filter(|_| inner.iter().any(is_inlined))
            .map(|name| match inlined_names.get(name) {
                Some(&known) => known,
                None => {
                    let known = names.intern(&demangle(name));
                    inlined_names.insert(name.to_owned(), known);
                    known
                }
            });
        let position = Position {
            file,
            line,
            inlined,
        };
        let next = listing.positions.len() as u32;
        let place = *known.entry(position).or_insert(next);
        if place == next {
            listing.positions.push(position);
        }
        instruction.position = Some(place);
    }
    listing.lines = own.into_iter().collect();
    let names = &listing.names;
    listing
        .lines
        .sort_unstable_by(|a, b| (&names[a.0], a.1).cmp(&(&names[b.0], b.1)));
}
