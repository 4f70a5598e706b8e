//! An ELF file, without its debug information.
//!
//! This page has its skeleton: header, segments, sections and build id. The files below it read one
//! subject each: symbols and functions, code, linkage tables, slots, relocations, unwind sections.
//!
//! ```text
//!   e_ident   0x7f 'E' 'L' 'F', class (1: 32 bits, 2: 64), data (1: little, 2: big)
//!             64 bit   32 bit
//!   e_type      0x10     0x10   1 relocatable, 2 executable, 3 shared, 4 core
//!   e_machine   0x12     0x12
//!   e_entry     0x18     0x18   where the program begins
//!   e_phoff     0x20     0x1c   program headers: p_type p_offset p_vaddr p_filesz p_flags
//!   e_shoff     0x28     0x20   section headers: sh_name sh_type sh_flags sh_addr sh_offset …
//!   e_phentsize 0x36     0x2a   then e_phnum, e_shentsize, e_shnum, e_shstrndx, 2 bytes each
//! ```
//!
//! Only these are read when a file is opened, a few pages whatever its size. What is
//! damaged is left out and listed as a problem.

pub(super) mod build;
pub(super) mod code;
pub(super) mod data;
pub(super) mod fields;
pub(super) mod frames;
pub(super) mod functions;
pub(super) mod gprof;
mod headers;
mod inflate;
pub(super) mod landing_pads;
#[cfg(feature = "xz")]
pub(super) mod mini_debug;
#[cfg(not(feature = "xz"))]
pub(super) mod packed_mini_debug;
#[cfg(not(feature = "xz"))]
pub(super) use packed_mini_debug as mini_debug;
pub(super) mod needed;
pub(super) mod pclntab;
pub(super) mod plt;
pub(super) mod references;
mod relocations;
mod section;
pub(super) mod selected_functions;
pub(super) mod slot_target;
pub(super) mod slots;
pub(super) mod source;
pub(super) mod symbols;
pub(super) mod unwind_bounds;

use std::sync::{Arc, OnceLock};

use gimli::RunTimeEndian;
use object::elf;

use self::fields::Fields;
use self::headers::HeaderTables;
pub(super) use self::section::Section;
use self::source::Source;
use self::symbols::SymbolTable;
use super::Error;
use super::budget::Budget;
use crate::base::{BuildId, FileOffset, Svma};

// How many times larger than its bytes a table may be that is made of an inflated section.
const TABLE_FACTOR: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    file_size: u64,
    executable: bool,
}

// Its skeleton and where its bytes are.
#[derive(Debug)]
pub(super) struct Elf {
    pub(super) source: Source,
    // Its debug files have the same.
    pub(super) budget: Arc<Budget>,
    pub(super) endian: RunTimeEndian,
    pub(super) wide: bool,
    pub(super) machine: u16,
    pub(super) relocatable: bool,
    // The address at which the program begins, or 0.
    pub(super) entry: u64,
    // Whether its addresses are those in memory: an executable that is not moved.
    pub(super) fixed: bool,
    pub(super) sections: Vec<Section>,
    segments: Vec<Segment>,
    pub(super) build_id: Option<BuildId>,
    pub(super) problems: Vec<String>,
    // The symbols of `.dynsym`, or why they cannot be read; half a dozen tables are made of them.
    dynamic_symbols: OnceLock<Result<Arc<SymbolTable>, String>>,
    // What tells this build from others, by [`build::Used`].
    builds: [OnceLock<Option<Vec<u8>>>; 2],
}

impl Elf {
    pub(super) fn read(source: Source, budget: Arc<Budget>) -> Result<Elf, Error> {
        let head = source.read("the file header", 0, source.size().min(64))?;
        if head.get(..4) != Some(b"\x7fELF") {
            return Err(Error::NotElf);
        }
        let wide = match head.get(4) {
            Some(1) => false,
            Some(2) => true,
            Some(class) => {
                return Err(Error::Malformed {
                    problem: format!("ELF class {class} is unknown"),
                });
            }
            None => return Err(cut_header(&source)),
        };
        let endian = match head.get(5) {
            Some(1) => RunTimeEndian::Little,
            Some(2) => RunTimeEndian::Big,
            Some(data) => {
                return Err(Error::Malformed {
                    problem: format!("ELF byte order {data} is unknown"),
                });
            }
            None => return Err(cut_header(&source)),
        };
        let fields = Fields {
            bytes: &head,
            endian,
            wide,
        };
        // Up to the entry point, fields are at the same offsets in both classes.
        let kind = fields.u16(0x10).ok_or_else(|| cut_header(&source))?;
        let machine = fields.u16(0x12).ok_or_else(|| cut_header(&source))?;
        let tables = HeaderTables::of(fields).ok_or_else(|| cut_header(&source))?;
        let entry = fields.word(0x18).ok_or_else(|| cut_header(&source))?;
        let mut elf = Elf {
            source,
            budget,
            entry,
            endian,
            wide,
            machine,
            relocatable: kind == elf::ET_REL.0,
            fixed: kind == elf::ET_EXEC.0,
            sections: Vec::new(),
            segments: Vec::new(),
            build_id: None,
            problems: Vec::new(),
            dynamic_symbols: OnceLock::new(),
            builds: [const { OnceLock::new() }; 2],
        };
        // Segments also of files whose section headers are stripped: the build ID is in both.
        let notes = elf.read_segments(&tables);
        elf.read_sections(&tables);
        elf.read_build_id(&notes);
        Ok(elf)
    }

    pub(super) fn fields<'a>(&self, bytes: &'a [u8]) -> Fields<'a> {
        Fields {
            bytes,
            endian: self.endian,
            wide: self.wide,
        }
    }

    pub(super) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| &*section.name == name)
    }

    // Sections are believed as long as sound ones share no bytes, so that together they are no
    // larger than the file. What is left out is a problem; `what` names it.
    pub(super) fn believed(
        &self,
        what: &str,
        problems: &mut Vec<String>,
        pass: impl Fn(&Section) -> bool,
    ) -> Vec<&Section> {
        let mut room = self.source.size();
        let mut left_out: u64 = 0;
        let mut believed = Vec::new();
        for section in self.sections.iter().filter(|section| pass(section)) {
            if section.kind == elf::SHT_NOBITS.0 || section.size == 0 {
                continue;
            }
            let end = section.offset.saturating_add(section.size);
            match room.checked_sub(section.size) {
                Some(rest) if end <= self.source.size() => {
                    room = rest;
                    believed.push(section);
                }
                _ => left_out = left_out.saturating_add(1),
            }
        }
        if left_out > 0 {
            let problem = format!("{what}: {left_out} sections do not fit into the file");
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        believed
    }

    // An address in the width of the file's.
    pub(super) fn address(&self, wrapped: u64) -> u64 {
        if self.wide {
            wrapped
        } else {
            wrapped & 0xffff_ffff
        }
    }

    // Inflated when they are compressed, as long as the share of the file allows it. Linkers
    // compress only debug information, for which [`Elf::inflated`] is.
    pub(super) fn contents(&self, what: &'static str, section: &Section) -> Result<Vec<u8>, Error> {
        if section.is_compressed() {
            let size = self.full_size(section);
            if !self
                .budget
                .take_for_table(size.saturating_mul(TABLE_FACTOR))
            {
                let what = format!("{what}, inflated,");
                return Err(Error::BeyondShare { what, size });
            }
        }
        self.inflated(what, section)
    }

    // Read when first asked for; none in a file without them. The error is the text of an
    // [`Error`].
    pub(super) fn dynamic_symbols(&self) -> Result<&Arc<SymbolTable>, &str> {
        let symbols = self.dynamic_symbols.get_or_init(|| {
            let is_it = |section: &&Section| section.kind == elf::SHT_DYNSYM.0;
            match self.sections.iter().find(is_it) {
                Some(table) => SymbolTable::read(self, table)
                    .map(Arc::new)
                    .map_err(|error| error.to_string()),
                None => Ok(Arc::default()),
            }
        });
        symbols.as_ref().map_err(String::as_str)
    }

    // The contents of a section, inflated, where the caller has the bytes counted.
    pub(super) fn inflated(&self, what: &'static str, section: &Section) -> Result<Vec<u8>, Error> {
        if section.kind == elf::SHT_NOBITS.0 {
            return Ok(Vec::new());
        }
        let bytes = self.source.read(what, section.offset, section.size)?;
        if section.is_old_compressed {
            return inflate::old_section(what, &bytes);
        }
        if section.is_compressed() {
            return inflate::section(what, self.fields(&bytes));
        }
        Ok(bytes)
    }

    // Inflated, as headers state it. Nothing is inflated.
    pub(super) fn full_size(&self, section: &Section) -> u64 {
        if section.kind == elf::SHT_NOBITS.0 {
            return 0;
        }
        if !section.is_compressed() {
            return section.size;
        }
        let len = section.size.min(inflate::HEADER_SIZE);
        let head = self
            .source
            .read("compression header", section.offset, len)
            .unwrap_or_default();
        let size = if section.is_old_compressed {
            inflate::old_stated_size(&head)
        } else {
            inflate::stated_size(self.fields(&head))
        };
        size.unwrap_or(0)
    }

    // Whether a section of this name is in the file, with contents.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.section(name)
            .is_some_and(|s| s.kind != elf::SHT_NOBITS.0 && s.size > 0)
    }

    // The stated address of the byte at `offset`, by the loadable segments, executable ones first.
    // A relocatable file (`.o`, `.ko`) has no addresses yet: there it is the offset itself, if it
    // lies in code.
    pub(super) fn svma(&self, offset: FileOffset) -> Option<Svma> {
        if self.relocatable {
            let code = self.sections.iter().filter(|section| section.is_code());
            let mut inside = code.filter(|s| offset.0.wrapping_sub(s.offset) < s.size);
            return inside.next().map(|_| Svma(offset.0));
        }
        let contains = |segment: &&Segment| {
            offset.0 >= segment.offset && offset.0 - segment.offset < segment.file_size
        };
        let mut found = self.segments.iter().filter(contains);
        let first = found.clone().find(|segment| segment.executable);
        let segment = first.or_else(|| found.next())?;
        let distance = offset.0.checked_sub(segment.offset)?;
        Some(Svma(segment.address.wrapping_add(distance)))
    }

    // Where code is, as (start, end) of sections, sorted.
    pub(super) fn code_ranges(&self) -> Vec<(u64, u64)> {
        let code = self.sections.iter().filter(|section| section.is_code());
        let mut ranges: Vec<(u64, u64)> = code
            .map(|section| {
                let start = self.section_start(section);
                (start, start.saturating_add(section.size))
            })
            .collect();
        ranges.sort_unstable();
        ranges
    }

    // The stated address of a section's first byte; in relocatable files its offset in the file.
    pub(super) fn section_start(&self, section: &Section) -> u64 {
        if self.relocatable {
            section.offset
        } else {
            section.address
        }
    }
}

fn cut_header(source: &Source) -> Error {
    Error::Truncated {
        what: "the file header",
        needed: 64,
        size: source.size(),
    }
}
