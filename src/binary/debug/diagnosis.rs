//! Which names and lines a file has, and where the missing ones were looked for.
//!
//! ```text
//!   .symtab            names of all functions      stripped: in the debug file, or nowhere
//!   .gnu_debugdata     the same, compressed
//!   .dynsym            names of what others call
//!   .debug_line        source lines                -g, or in the debug file
//!   .debug_info        inlined calls; a skeleton, if the debug information is split (.dwo)
//! ```

use std::path::PathBuf;

use object::elf;

use crate::binary::Binary;
use crate::binary::elf::Elf;
use crate::binary::host::search_directories::FileLocation;

// Enough to see how debug information is kept.
const HEAD: u64 = 64;

/// Where a part of a file's information is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoLocation {
    /// In the file itself.
    Here,
    DebugFile,
    Nowhere,
}

/// What a file has, and what it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Whether it is linked with no libraries, not even the dynamic linker.
    pub is_static: bool,
    /// Whether it has been linked at all.
    pub is_linked: bool,
    /// Where the names of all its functions are.
    pub symbols: InfoLocation,
    /// Whether it has a compressed table of names in place of a full one.
    pub mini_symbols: bool,
    /// Whether it has the names of its exported functions.
    pub exports: bool,
    /// Where source lines are.
    pub lines: InfoLocation,
    /// Whether most of the debug information is in files of its own (`-gsplit-dwarf`).
    pub is_split: bool,
    /// The debug file, if one was found.
    pub debug_file: Option<PathBuf>,
    /// Where a debug file was looked for, in order; empty if the file names none.
    pub looked: Vec<PathBuf>,
}

impl Binary {
    /// Finds out what the file has. Only headers are read.
    pub fn diagnosis(&self) -> Diagnosis {
        let own = &self.elf;
        let companion = self.with_section(b".symtab").or_else(|| {
            // Asked for once, whatever the answer: the debug file is then known.
            self.with_section(b".debug_info")
        });
        let companion = companion.filter(|elf| !std::ptr::eq(*elf, own));
        let kept = |name: &[u8]| {
            if own.has(name) {
                InfoLocation::Here
            } else if companion.is_some_and(|elf| elf.has(name)) {
                InfoLocation::DebugFile
            } else {
                InfoLocation::Nowhere
            }
        };
        let looked = self.places.debug_places(own, &self.place);
        let same = |place: &&FileLocation| {
            let found = place.elf(&own.budget);
            found.is_ok_and(|found| found.build_id == own.build_id)
        };
        let debug_file = companion.and_then(|_| looked.iter().find(same));
        Diagnosis {
            is_static: !own.relocatable
                && !own.sections.iter().any(|s| s.kind == elf::SHT_DYNAMIC.0),
            is_linked: !own.relocatable,
            symbols: kept(b".symtab"),
            mini_symbols: own.has(b".gnu_debugdata"),
            exports: own.has(b".dynsym"),
            lines: kept(b".debug_line"),
            is_split: is_split(self.with_section(b".debug_info").unwrap_or(own)),
            debug_file: debug_file.map(FileLocation::full),
            looked: looked.iter().map(FileLocation::full).collect(),
        }
    }
}

// Whether the first unit is a skeleton. Compressed debug information is not inflated for this.
//
//   DWARF 5   unit_length (4 or 12), u16 version 5, u8 unit_type: 4 is DW_UT_skeleton
//   DWARF 4   only -gsplit-dwarf makes a .debug_addr
fn is_split(elf: &Elf) -> bool {
    let Some(section) = elf.section(b".debug_info") else {
        return false;
    };
    if section.is_compressed() || section.kind == elf::SHT_NOBITS.0 {
        return false;
    }
    let length = section.size.min(HEAD);
    let Ok(head) = elf.source.read("debug information", section.offset, length) else {
        return false;
    };
    let fields = elf.fields(&head);
    let at = match fields.u32(0) {
        Some(u32::MAX) => 12,
        _ => 4,
    };
    match fields.u16(at) {
        Some(5) => head.get(at + 2) == Some(&4),
        Some(4) => elf.has(b".debug_addr"),
        _ => false,
    }
}
