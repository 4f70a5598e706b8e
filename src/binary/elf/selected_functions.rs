//! Where some of a file's functions are, without reading about all of them.
//!
//! The linker writes a table of functions for unwinders, sorted by address
//! (`.eh_frame_hdr`, Linux Standard Base 5.0, section 10.6.2):
//!
//! ```text
//!   u8 version (1), u8 ×3 encodings, pointer to .eh_frame, number of rows
//!   i32 start of function    i32 its entry in .eh_frame        from the start of the table
//!   …                        …                                 a sample of the rows is read
//! ```
//!
//! In a library of 100 MB this tells of a thousand functions, evenly spread, in the time in which a
//! tenth of the symbols are read.

use std::ops::Range;

use gimli::{EhFrameHdr, Pointer};

use super::frames::EntrySection;
use super::unwind_bounds::has_frame;
use crate::base::Svma;
use crate::binary::{Binary, SymbolSource};

/// What compilers append to the name of a function that they split.
const PARTS: [&str; 2] = [".cold", ".part."];
/// What every program is linked with, whatever it was compiled with: written by hand, or compiled
/// with the C library.
const STARTUP: [&str; 7] = [
    "_init",
    "_fini",
    "_start",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
];

/// The fewest rows of a table that is believed to tell of nearly all functions. Programs in which
/// the language's own functions have no entries still have some, of what they were linked with.
const MANY: usize = 10_000;

impl Binary {
    /// Where functions of this file are, at most about `limit` of them and evenly spread: from the
    /// first byte to behind the last. Parts that compilers split off from functions (`.cold`), the
    /// stubs of linkage tables and what starts and ends every program are left out.
    pub fn some_functions(&self, limit: usize) -> Vec<Range<Svma>> {
        self.by_unwind_table(limit)
            .unwrap_or_else(|| self.by_symbols(limit))
    }

    fn by_symbols(&self, limit: usize) -> Vec<Range<Svma>> {
        let functions = self.functions();
        let step = functions.len().div_ceil(limit.max(1)).max(1);
        let whole = functions.iter().step_by(step).filter(|function| {
            function.source != SymbolSource::Plt
                && !function.begins_with_a_frame()
                && !self.function_name(function).is_some_and(|name| {
                    STARTUP.contains(&&*name) || PARTS.iter().any(|part| name.contains(part))
                })
        });
        whole.map(|f| f.start..f.end()).collect()
    }

    /// By the linker's table; `None` if there is none, or only a short one.
    fn by_unwind_table(&self, limit: usize) -> Option<Vec<Range<Svma>>> {
        let elf = &self.elf;
        let (header, frames) = (elf.section(b".eh_frame_hdr")?, elf.section(b".eh_frame")?);
        let table = elf.contents(".eh_frame_hdr", header).ok()?;
        let entries = elf.contents(".eh_frame", frames).ok()?;
        let section = EntrySection::new(elf, frames, &entries);
        let width = if elf.wide { 8 } else { 4 };
        let table = EhFrameHdr::new(&table, elf.endian)
            .parse(&section.bases, width)
            .ok()?;
        let table = table.table()?;
        let mut at = table.iter(&section.bases);
        // A row takes at least four bytes, whatever number of rows is stated.
        let rows = at.size_hint().0;
        if rows < MANY || rows as u64 > header.size / 4 {
            return None;
        }
        let step = rows.div_ceil(limit.max(1)).max(1);
        let mut found = Vec::new();
        let mut next = at.next();
        while let Ok(Some((_, pointer))) = next {
            next = at.nth(step.saturating_sub(1));
            // Not by gimli's own `pointer_to_offset`, which takes for granted that the pointer leads
            // into the section: it subtracts and, where it does not, overflows.
            let Pointer::Direct(address) = pointer else {
                continue;
            };
            let offset = address.checked_sub(frames.address);
            let Some(offset) = offset.and_then(|offset| usize::try_from(offset).ok()) else {
                continue;
            };
            let Ok(entry) = section.entry_at(offset) else {
                continue;
            };
            let start = entry.initial_address();
            let end = start.saturating_add(entry.len());
            if !has_frame(entry.instructions(&section.frames, &section.bases)) {
                found.push(Svma(start)..Svma(end));
            }
        }
        Some(found)
    }
}
