//! The DWARF sections of a file, loaded into memory: only those that lookups need.

use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId};

use super::elf::Elf;

/// The sections that are read. Types, locations and macros are not.
const WANTED: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// Owned DWARF sections.
#[derive(Debug)]
pub(super) struct Dwarf {
    sections: DwarfSections<Vec<u8>>,
    endian: RunTimeEndian,
}

impl Dwarf {
    /// Loads what is there; `None` when there is no `.debug_info`.
    pub(super) fn load(elf: &Elf, problems: &mut Vec<String>) -> Option<Dwarf> {
        let mut found = false;
        let sections = DwarfSections::load(|id| -> Result<Vec<u8>, gimli::Error> {
            if !WANTED.contains(&id) {
                return Ok(Vec::new());
            }
            let Some(section) = elf.section(id.name().as_bytes()) else {
                return Ok(Vec::new());
            };
            let bytes = elf.contents(id.name(), section).unwrap_or_else(|error| {
                problems.push(error.to_string());
                Vec::new()
            });
            found |= id == SectionId::DebugInfo && !bytes.is_empty();
            Ok(bytes)
        });
        let sections = sections.ok()?;
        found.then_some(Dwarf {
            sections,
            endian: elf.endian,
        })
    }

    /// A reader over the sections.
    pub(super) fn borrow(&self) -> gimli::Dwarf<EndianSlice<'_, RunTimeEndian>> {
        self.sections
            .borrow(|bytes| EndianSlice::new(bytes, self.endian))
    }
}
