//! The tables of headers: segments and sections, and the build ID in their notes.

use gimli::RunTimeEndian;
use object::elf;

use super::fields::{Fields, c_string};
use super::{Elf, Section, Segment};
use crate::base::BuildId;
use crate::binary::Error;

// Sections and segments.
const TABLE_LIMIT: u64 = 1 << 20;
// The longest section name that is kept, in bytes.
const NAME_LIMIT: usize = 256;
// Bytes of one note section that are searched for a build id.
const NOTE_LIMIT: u64 = 1 << 20;

pub(super) struct HeaderTables {
    segments: (u64, u64, u64),
    sections: (u64, u64, u64),
    names: u64,
}

impl HeaderTables {
    pub(super) fn of(f: Fields<'_>) -> Option<HeaderTables> {
        let at = |wide, narrow| if f.wide { wide } else { narrow };
        let half = |wide, narrow| f.u16(at(wide, narrow)).map(u64::from);
        Some(HeaderTables {
            segments: (
                f.word(at(0x20, 0x1c))?,
                half(0x36, 0x2a)?,
                half(0x38, 0x2c)?,
            ),
            sections: (
                f.word(at(0x28, 0x20))?,
                half(0x3a, 0x2e)?,
                half(0x3c, 0x30)?,
            ),
            names: half(0x3e, 0x32)?,
        })
    }
}

impl Elf {
    // Returns where the notes are.
    pub(super) fn read_segments(&mut self, tables: &HeaderTables) -> Vec<(u64, u64)> {
        let mut notes = Vec::new();
        let Some(bytes) = self.table("program headers", tables.segments, 56, 32) else {
            return notes;
        };
        let entry = if self.wide { 56 } else { 32 };
        for header in bytes.chunks_exact(entry) {
            let f = self.fields(header);
            let at = |wide, narrow| if self.wide { wide } else { narrow };
            let (Some(kind), Some(flags)) = (f.u32(0), f.u32(at(4, 24))) else {
                continue;
            };
            let (Some(offset), Some(address), Some(file_size)) =
                (f.word(at(8, 4)), f.word(at(16, 8)), f.word(at(32, 16)))
            else {
                continue;
            };
            if kind == elf::PT_LOAD.0 {
                self.segments.push(Segment {
                    offset,
                    address,
                    file_size,
                    executable: flags & elf::PF_X.0 != 0,
                });
            } else if kind == elf::PT_NOTE.0 {
                notes.push((offset, file_size));
            }
        }
        notes
    }

    pub(super) fn read_sections(&mut self, tables: &HeaderTables) {
        let entry: usize = if self.wide { 64 } else { 40 };
        let (offset, stride, mut count) = tables.sections;
        let mut names = tables.names;
        if offset == 0 {
            return;
        }
        // More than 0xff00 sections: the real numbers are in the first header.
        if count == 0 || names == u64::from(elf::SHN_XINDEX.0) {
            let bytes = self
                .source
                .read("the first section header", offset, entry as u64)
                .unwrap_or_default();
            let first = self.fields(&bytes);
            let at = if self.wide {
                (0x20, 0x28)
            } else {
                (0x14, 0x18)
            };
            if count == 0 {
                count = first.word(at.0).unwrap_or(0);
            }
            if names == u64::from(elf::SHN_XINDEX.0) {
                names = first.u32(at.1).map_or(0, u64::from);
            }
        }
        let Some(bytes) = self.table("section headers", (offset, stride, count), 64, 40) else {
            return;
        };
        let mut name_offsets = Vec::new();
        for header in bytes.chunks_exact(entry) {
            let f = self.fields(header);
            let at = |wide, narrow| if self.wide { wide } else { narrow };
            let section = (|| {
                name_offsets.push(f.u32(0)?);
                Some(Section {
                    name: Box::default(),
                    kind: f.u32(4)?,
                    flags: f.word(8)?,
                    address: f.word(at(0x10, 0x0c))?,
                    offset: f.word(at(0x18, 0x10))?,
                    size: f.word(at(0x20, 0x14))?,
                    link: f.u32(at(0x28, 0x18))?,
                    info: f.u32(at(0x2c, 0x1c))?,
                    entry_size: f.word(at(0x38, 0x24))?,
                    is_old_compressed: false,
                })
            })();
            self.sections.extend(section);
        }
        let strings = usize::try_from(names)
            .ok()
            .and_then(|index| self.sections.get(index));
        let strings = match strings {
            Some(section) => self
                .source
                .read("section names", section.offset, section.size),
            None => Err(Error::Malformed {
                problem: format!(
                    "section {names} should hold the section names; there are {count} sections"
                ),
            }),
        };
        match strings {
            Ok(strings) => {
                for (section, &at) in self.sections.iter_mut().zip(&name_offsets) {
                    let name = c_string(&strings, at as usize).unwrap_or_default();
                    let name = name.get(..NAME_LIMIT).unwrap_or(name);
                    section.name = name.into();
                    if let Some(rest) = name.strip_prefix(b".zdebug") {
                        section.name = [b".debug", rest].concat().into();
                        section.is_old_compressed = true;
                    }
                }
            }
            Err(error) => self.problems.push(error.to_string()),
        }
    }

    // The bytes of a table of headers, if it can be believed.
    fn table(
        &mut self,
        what: &'static str,
        (offset, stride, count): (u64, u64, u64),
        wide: u64,
        narrow: u64,
    ) -> Option<Vec<u8>> {
        if count == 0 {
            return None;
        }
        let expected = if self.wide { wide } else { narrow };
        if stride != expected {
            self.problems
                .push(format!("{what} of {stride} bytes, expected {expected}"));
            return None;
        }
        if count > TABLE_LIMIT {
            self.problems
                .push(format!("{count} {what}, the limit is {TABLE_LIMIT}"));
            return None;
        }
        match self.source.read(what, offset, stride.saturating_mul(count)) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                self.problems.push(error.to_string());
                None
            }
        }
    }

    pub(super) fn read_build_id(&mut self, segments: &[(u64, u64)]) {
        let number = match self.endian {
            RunTimeEndian::Little => u32::from_le_bytes,
            RunTimeEndian::Big => u32::from_be_bytes,
        };
        let sections = self.sections.iter();
        let notes = sections
            .filter(|section| section.kind == elf::SHT_NOTE.0)
            .map(|section| (section.offset, section.size))
            .chain(segments.iter().copied());
        for (offset, size) in notes.take(64) {
            let Ok(bytes) = self.source.read("notes", offset, size.min(NOTE_LIMIT)) else {
                continue;
            };
            self.build_id = BuildId::in_notes_of(&bytes, number);
            if self.build_id.is_some() {
                return;
            }
        }
    }
}
