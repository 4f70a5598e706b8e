//! Relocation records: where a linker writes which address.
//!
//! ```text
//!   Elf64_Rela             r_offset 8, r_info 8 (symbol << 32 | type), r_addend 8
//!   Elf32_Rela             r_offset 4, r_info 4 (symbol << 8 | type),  r_addend 4
//!   Elf64_Rel, Elf32_Rel   without r_addend: it stands in the place that is written
//!   SHT_RELR               words: an even one is the address of a pointer, an odd one has a bit
//!                          for each of the 63 (31) pointers behind the last address;
//!                          all are RELATIVE
//! ```

use object::elf;

use super::fields::Fields;
use super::{Elf, Section};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::binary) struct Record {
    // What is written: an address; in relocatable files an offset in a section.
    pub(in crate::binary) at: u64,
    // Each machine numbers types in its own way.
    pub(in crate::binary) kind: u32,
    // An index of the symbol table; 0 means no symbol.
    pub(in crate::binary) symbol: u32,
    // `None` where it stands in the place that is written.
    pub(in crate::binary) addend: Option<i64>,
}

// Packed records are not in such a section.
pub(in crate::binary) fn is_table(section: &Section) -> bool {
    section.kind == elf::SHT_RELA.0 || section.kind == elf::SHT_REL.0
}

pub(in crate::binary) fn records(contents: Fields<'_>, kind: u32) -> impl Iterator<Item = Record> {
    let stated = kind == elf::SHT_RELA.0;
    let word: usize = if contents.wide { 8 } else { 4 };
    let size = if stated { 3 * word } else { 2 * word };
    let records = contents.bytes.chunks_exact(size);
    records.map_while(move |bytes| {
        let f = Fields { bytes, ..contents };
        let info = f.word(word)?;
        let (symbol, kind) = if f.wide {
            (info >> 32, info & 0xffff_ffff)
        } else {
            (info >> 8, info & 0xff)
        };
        let addend = match (stated, f.wide) {
            (false, _) => None,
            (true, true) => Some(f.u64(16)?.cast_signed()),
            (true, false) => Some(i64::from(f.u32(8)?.cast_signed())),
        };
        Some(Record {
            at: f.word(0)?,
            kind: u32::try_from(kind).ok()?,
            symbol: u32::try_from(symbol).ok()?,
            addend,
        })
    })
}

// Packed tables are RELR: at most one pointer for each bit of `contents`.
pub(in crate::binary) fn packed(contents: Fields<'_>, mut pointer: impl FnMut(u64)) {
    let size: u64 = if contents.wide { 8 } else { 4 };
    let bits = size * 8;
    let mut next: u64 = 0;
    for word in contents
        .bytes
        .chunks_exact(if contents.wide { 8 } else { 4 })
    {
        let f = Fields {
            bytes: word,
            ..contents
        };
        let Some(word) = f.word(0) else {
            return;
        };
        if word & 1 == 0 {
            pointer(word);
            next = word.wrapping_add(size);
            continue;
        }
        let mut rest = word >> 1;
        let mut at = next;
        while rest != 0 {
            if rest & 1 == 1 {
                pointer(at);
            }
            rest >>= 1;
            at = at.wrapping_add(size);
        }
        next = next.wrapping_add((bits - 1) * size);
    }
}

// What a record of a linked file has the dynamic linker write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::binary) enum Dynamic {
    // A symbol's address and the addend, anywhere.
    Symbol,
    // A symbol's address, into a slot that the linker made for calls or loads by name.
    Linkage,
    // The addend, moved to where the file is loaded.
    Relative,
    // What the function at the addend returns.
    Chosen,
}

pub(in crate::binary) fn dynamic(machine: u16, wide: bool, kind: u32) -> Option<Dynamic> {
    // 64 or 32, GLOB_DAT, JUMP_SLOT, RELATIVE, IRELATIVE
    let kinds = if machine == elf::EM_X86_64.0 {
        [
            elf::R_X86_64_64.0,
            elf::R_X86_64_GLOB_DAT.0,
            elf::R_X86_64_JUMP_SLOT.0,
            elf::R_X86_64_RELATIVE.0,
            elf::R_X86_64_IRELATIVE.0,
        ]
    } else if machine == elf::EM_AARCH64.0 {
        [
            elf::R_AARCH64_ABS64.0,
            elf::R_AARCH64_GLOB_DAT.0,
            elf::R_AARCH64_JUMP_SLOT.0,
            elf::R_AARCH64_RELATIVE.0,
            elf::R_AARCH64_IRELATIVE.0,
        ]
    } else if machine == elf::EM_386.0 {
        [
            elf::R_386_32.0,
            elf::R_386_GLOB_DAT.0,
            elf::R_386_JMP_SLOT.0,
            elf::R_386_RELATIVE.0,
            elf::R_386_IRELATIVE.0,
        ]
    } else if machine == elf::EM_RISCV.0 {
        // Slots in .got have the type of any other pointer there.
        let pointer = if wide {
            elf::R_RISCV_64.0
        } else {
            elf::R_RISCV_32.0
        };
        [
            pointer,
            pointer,
            elf::R_RISCV_JUMP_SLOT.0,
            elf::R_RISCV_RELATIVE.0,
            elf::R_RISCV_IRELATIVE.0,
        ]
    } else {
        return None;
    };
    match kinds.iter().position(|&k| k == kind)? {
        0 => Some(Dynamic::Symbol),
        1 | 2 => Some(Dynamic::Linkage),
        3 => Some(Dynamic::Relative),
        _ => Some(Dynamic::Chosen),
    }
}

pub(in crate::binary) struct Memory<'a> {
    elf: &'a Elf,
    // Sorted by address.
    sections: Vec<(u64, Vec<u8>)>,
}

impl<'a> Memory<'a> {
    // Reads these sections of a linked file.
    pub(in crate::binary) fn read(elf: &'a Elf, sections: &[&Section]) -> Memory<'a> {
        let contents = |section: &&Section| {
            let bytes = elf.source.read("data", section.offset, section.size);
            Some((section.address, bytes.ok()?))
        };
        let mut sections: Vec<_> = sections.iter().filter_map(contents).collect();
        sections.sort_by_key(|&(address, _)| address);
        Memory { elf, sections }
    }

    pub(in crate::binary) fn word(&self, address: u64) -> Option<u64> {
        let after = self.sections.partition_point(|&(at, _)| at <= address);
        let (at, bytes) = self.sections.get(after.checked_sub(1)?)?;
        let at = usize::try_from(address.wrapping_sub(*at)).ok()?;
        self.elf.fields(bytes).word(at)
    }
}

#[cfg(test)]
mod tests {
    use gimli::RunTimeEndian;

    use super::*;

    fn fields(bytes: &[u8], wide: bool) -> Fields<'_> {
        Fields {
            bytes,
            endian: RunTimeEndian::Little,
            wide,
        }
    }

    #[test]
    fn packed_tables_are_unpacked_in_both_widths() {
        let wide: Vec<u8> = [0x1000_u64, 0b1011, 1 << 63 | 1]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let mut found = Vec::new();
        packed(fields(&wide, true), |at| found.push(at));
        let last = 0x1008 + 63 * 8 + 62 * 8;
        assert_eq!(found, [0x1000, 0x1008, 0x1018, last]);

        let narrow: Vec<u8> = [0x1000_u32, 1 << 31 | 1, 0b11]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        found.clear();
        packed(fields(&narrow, false), |at| found.push(at));
        let next = 0x1004 + 31 * 4;
        assert_eq!(found, [0x1000, 0x1004 + 30 * 4, next]);
    }

    #[test]
    fn records_are_read_in_all_four_layouts() {
        let words: Vec<u8> = [0x10_u64, 7 << 32 | 2, u64::MAX - 3]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let record = |addend| Record {
            at: 0x10,
            kind: 2,
            symbol: 7,
            addend,
        };
        let read = |bytes, wide, kind| records(fields(bytes, wide), kind).collect::<Vec<_>>();
        assert_eq!(read(&words, true, elf::SHT_RELA.0), [record(Some(-4))]);
        assert_eq!(read(&words[..16], true, elf::SHT_REL.0), [record(None)]);
        let words: Vec<u8> = [0x10_u32, 7 << 8 | 2, u32::MAX - 3]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(read(&words, false, elf::SHT_RELA.0), [record(Some(-4))]);
        assert_eq!(read(&words[..8], false, elf::SHT_REL.0), [record(None)]);
    }
}
