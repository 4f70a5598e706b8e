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
//! In a library of 100 MB this finds a thousand functions, evenly spread, in the time that reading
//! a tenth of the symbols takes.

use std::borrow::Cow;
use std::ops::Range;

use gimli::{EhFrameHdr, Pointer};

use super::frames::EntrySection;
use super::unwind_bounds::has_frame;
use crate::base::Svma;
use crate::binary::{Binary, FunctionSymbol, SymbolSource, demangle};

// What compilers append to the name of a function that they split.
const PARTS: [&str; 2] = [".cold", ".part."];
// What every program is linked with, whatever it was compiled with: written by hand, or compiled
// with the C library.
const STARTUP: [&str; 7] = [
    "_init",
    "_fini",
    "_start",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
];

// What a linkage name of Rust's own crates begins with when it is readable: they come compiled, and
// what a program adds to them may be compiled in another way. The last nine are parts of `std`.
const OF_RUST: [&str; 19] = [
    "std",
    "core",
    "alloc",
    "test",
    "proc_macro",
    "panic_unwind",
    "panic_abort",
    "std_detect",
    "compiler_builtins",
    "__rustc",
    "unwind",
    "hashbrown",
    "gimli",
    "addr2line",
    "object",
    "miniz_oxide",
    "adler2",
    "memchr",
    "rustc_demangle",
];

// The fewest rows of a table that is believed to tell of nearly all functions. Programs in which
// the language's own functions have no entries still have some, of what they were linked with.
const MANY: usize = 10_000;

impl Binary {
    /// Where functions of this file are, at most about `limit` of them and evenly spread: from the
    /// first byte to behind the last. Parts that compilers split off from functions (`.cold`), the
    /// stubs of linkage tables, what starts and ends every program, and in a program of Rust the
    /// functions of its standard library are left out.
    pub fn some_functions(&self, limit: usize) -> Vec<Range<Svma>> {
        self.by_unwind_table(limit)
            .unwrap_or_else(|| self.by_symbols(limit))
    }

    fn by_symbols(&self, limit: usize) -> Vec<Range<Svma>> {
        let functions = self.functions().iter().filter(|function| {
            function.source != SymbolSource::Plt
                && !function.begins_with_a_frame()
                && !self.function_name(function).is_some_and(|name| {
                    STARTUP.contains(&&*name) || PARTS.iter().any(|part| name.contains(part))
                })
        });
        let origins = functions.map(|f| (f, self.function_name(f).map_or(Origin::Other, origin)));
        let mut all: Vec<(&FunctionSymbol, Origin)> = origins.collect();
        // A small program of Rust has a hundred times as many functions of the standard library.
        if all.iter().any(|&(_, origin)| origin == Origin::Crate) {
            all.retain(|&(_, origin)| origin != Origin::OfRust);
        }
        let step = all.len().div_ceil(limit.max(1)).max(1);
        let some = all.iter().step_by(step);
        some.map(|(function, _)| function.start..function.end())
            .collect()
    }

    // `None` if the linker made no table, or only a short one.
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
            // Not by gimli's own `pointer_to_offset`, which takes for granted that the pointer
            // leads into the section: it subtracts and, where it does not, overflows.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    // Rust's standard library, or what a program made of its generic functions.
    OfRust,
    // Another crate.
    Crate,
    Other,
}

fn origin(name: Cow<'_, str>) -> Origin {
    if name.starts_with("rust_") || name.starts_with("__rust") || name.starts_with("__rdl_") {
        return Origin::OfRust;
    }
    let is_legacy = name.starts_with("_ZN") && name.contains("17h");
    if !(name.starts_with("_R") || is_legacy) {
        return Origin::Other;
    }
    let readable = demangle(&name);
    // `<&mut shares::Table as core::fmt::Debug>::fmt` is of the crate `shares`.
    let path = readable.trim_start_matches(['<', '&', '*', '[', '(']);
    let path = ["dyn ", "mut ", "const "]
        .iter()
        .fold(path, |path, word| path.strip_prefix(word).unwrap_or(path));
    match path.split_once("::") {
        Some((of, _)) if OF_RUST.contains(&of) => Origin::OfRust,
        Some((of, _)) if is_identifier(of) => Origin::Crate,
        // `<[T] as core::fmt::Debug>::fmt`
        _ => Origin::OfRust,
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '_' || c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_told_from_the_standard_library() {
        let cases = [
            ("_ZN4beta4sort17h4354e8a9c0032d9fE", Origin::Crate),
            (
                "_ZN3std2io5Write9write_all17h0123456789abcdefE",
                Origin::OfRust,
            ),
            (
                "_ZN9hashbrown3raw5inner17h0123456789abcdefE",
                Origin::OfRust,
            ),
            (
                "_ZN48_$LT$shares..Foo$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
                Origin::Crate,
            ),
            (
                "_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
                Origin::OfRust,
            ),
            ("_RNvCskwGfYPst2Cb_3foo3bar", Origin::Crate),
            ("_RNvCskwGfYPst2Cb_3std3bar", Origin::OfRust),
            ("rust_eh_personality", Origin::OfRust),
            ("_ZN3foo3barEv", Origin::Other),
            ("main", Origin::Other),
        ];
        for (name, expected) in cases {
            assert_eq!(origin(name.into()), expected, "{name}");
        }
    }
}
