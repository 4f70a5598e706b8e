//! The symbol tables `.symtab` and `.dynsym`, read for the functions they name.
//!
//! ```text
//!   Elf64_Sym   st_name 4, st_info 1, st_other 1, st_shndx 2, st_value 8, st_size 8
//!   Elf32_Sym   st_name 4, st_value 4, st_size 4, st_info 1, st_other 1, st_shndx 2
//!   st_info     binding << 4 | type      st_other & 3: visibility
//! ```

use std::ffi::CStr;
use std::sync::Arc;

use object::elf;

use super::fields::{Fields, c_string};
use super::functions::{FunctionSymbol, Functions, Rank, SymbolSource};
use super::{Elf, Section};
use crate::base::Svma;
use crate::binary::Error;

// The most symbols that are read from one table.
const SYMBOL_LIMIT: usize = 1 << 25;
// How many times longer than their table names may be together. Linkers let some share their ends;
// a damaged file could have a million names that end at the same byte.
const SHARING_LIMIT: usize = 16;
// The bytes that names of any table may have together.
const NAMES_AT_LEAST: usize = 1 << 20;
// The size of the blocks in which ends of names are first looked for.
const BLOCK: usize = 256;

// How many bytes the names of one table may yet have together.
#[derive(Debug)]
pub(in crate::binary) struct NameRoom(usize);

impl NameRoom {
    // For a table with this number of bytes of names.
    pub(in crate::binary) fn new(strings: usize) -> NameRoom {
        let room = strings.saturating_mul(SHARING_LIMIT);
        NameRoom(room.saturating_add(NAMES_AT_LEAST))
    }

    // The name that starts here, if it ends, and fits.
    pub(in crate::binary) fn take<'a>(&mut self, strings: &'a [u8], at: u32) -> Option<&'a [u8]> {
        let within = strings.get(at as usize..)?;
        let within = within.get(..self.0).unwrap_or(within);
        let name = CStr::from_bytes_until_nul(within).ok()?.to_bytes();
        self.0 = self.0.saturating_sub(name.len());
        Some(name)
    }

    // Whether all these names end, and fit, as far as that can be told without looking for the end
    // of each: of half a million names that takes as long as all else that is read of a file.
    fn has_room_for(&self, strings: &[u8], entries: &[Entry]) -> bool {
        let ends = ends_after_blocks(strings);
        let mut room = self.0;
        entries.iter().filter(|entry| entry.name != 0).all(|entry| {
            let at = entry.name as usize;
            let end = ends.get(at / BLOCK).copied().flatten();
            let rest = end.and_then(|end| room.checked_sub(end.checked_sub(at)?));
            room = rest.unwrap_or(room);
            rest.is_some()
        })
    }
}

// For each block of strings, where the first of them that reaches its end ends, at the latest;
// `None` where none does. What starts in the block ends there or before.
fn ends_after_blocks(strings: &[u8]) -> Vec<Option<usize>> {
    let mut ends = vec![None; strings.len().div_ceil(BLOCK)];
    let mut end = None;
    for (index, block) in strings.chunks(BLOCK).enumerate().rev() {
        let start = index.saturating_mul(BLOCK);
        if let Some(known) = ends.get_mut(index) {
            // The last block has none behind it: its last byte ends what starts in it.
            let is_ended = end.is_none() && block.last() == Some(&0);
            let last = start.saturating_add(block.len()).saturating_sub(1);
            *known = if is_ended { Some(last) } else { end };
        }
        let first = memchr::memchr(0, block);
        end = first.map_or(end, |first| Some(start.saturating_add(first)));
    }
    ends
}

// One entry of a symbol table, as it stands there.
#[derive(Clone, Copy, Debug)]
pub(in crate::binary) struct Entry {
    pub(in crate::binary) name: u32,
    pub(in crate::binary) kind: u8,
    pub(in crate::binary) binding: u8,
    pub(in crate::binary) visibility: u8,
    // An index of the sections, or one of the reserved values above 0xff00.
    pub(in crate::binary) section: u32,
    pub(in crate::binary) value: u64,
    size: u64,
}

// Reads one entry from exactly its bytes.
pub(in crate::binary) fn entry(f: Fields<'_>) -> Option<Entry> {
    let at = |wide, narrow| if f.wide { wide } else { narrow };
    let info = f.u8(at(4, 12))?;
    Some(Entry {
        name: f.u32(0)?,
        kind: info & 0xf,
        binding: info >> 4,
        visibility: f.u8(at(5, 13))? & 3,
        section: f.u16(at(6, 14))?.into(),
        value: f.word(at(8, 4))?,
        size: f.word(at(16, 8))?,
    })
}

pub(in crate::binary) fn entries(elf: &Elf, table: &Section) -> Result<Vec<Entry>, Error> {
    let size = entry_size(elf.wide);
    if table.entry_size != size as u64 {
        return Err(Error::Malformed {
            problem: format!("symbols of {} bytes, expected {size}", table.entry_size),
        });
    }
    let bytes = elf.contents("symbols", table)?;
    let records = bytes.chunks_exact(size).take(SYMBOL_LIMIT);
    let mut entries: Vec<Entry> = records
        .map_while(|record| entry(elf.fields(record)))
        .collect();
    let elsewhere = u32::from(elf::SHN_XINDEX.0);
    if entries.iter().any(|entry| entry.section == elsewhere) {
        // More than 0xff00 sections: the real numbers are in another table.
        let is_it = |s: &&Section| s.kind == elf::SHT_SYMTAB_SHNDX.0;
        let numbers = elf
            .sections
            .iter()
            .find(is_it)
            .map(|s| elf.source.read("section numbers", s.offset, s.size))
            .transpose()?
            .unwrap_or_default();
        for (entry, number) in entries.iter_mut().zip(numbers.chunks_exact(4)) {
            if entry.section == elsewhere {
                entry.section = elf.fields(number).u32(0).unwrap_or(elsewhere);
            }
        }
    }
    Ok(entries)
}

pub(in crate::binary) fn entry_size(wide: bool) -> usize {
    if wide { 24 } else { 16 }
}

fn strings(elf: &Elf, table: &Section) -> Result<Vec<u8>, Error> {
    let linked = elf.sections.get(table.link as usize);
    match linked.filter(|section| section.kind == elf::SHT_STRTAB.0) {
        Some(section) => elf.contents("symbol names", section),
        None => Err(Error::Malformed {
            problem: format!("symbol names: section {} is not a string table", table.link),
        }),
    }
}

#[derive(Debug, Default)]
pub(in crate::binary) struct SymbolTable {
    pub(in crate::binary) entries: Vec<Entry>,
    // Shared with the functions that have these names.
    pub(in crate::binary) strings: Arc<Vec<u8>>,
    // Damaged names; their symbols have no name.
    unnamed: u64,
}

impl SymbolTable {
    // Names that would together exceed a multiple of the file's size are dropped, so callers may
    // copy the others.
    pub(in crate::binary) fn read(elf: &Elf, table: &Section) -> Result<SymbolTable, Error> {
        let mut entries = entries(elf, table)?;
        let strings = strings(elf, table)?;
        let mut room = NameRoom::new(strings.len());
        let mut unnamed: u64 = 0;
        if !room.has_room_for(&strings, &entries) {
            for entry in entries.iter_mut().filter(|entry| entry.name != 0) {
                if room.take(&strings, entry.name).is_none() {
                    entry.name = 0;
                    unnamed = unnamed.saturating_add(1);
                }
            }
        }
        Ok(SymbolTable {
            entries,
            strings: Arc::new(strings),
            unnamed,
        })
    }

    pub(in crate::binary) fn name(&self, entry: &Entry) -> Option<&[u8]> {
        let name = c_string(&self.strings, entry.name as usize)?;
        (entry.name != 0 && !name.is_empty()).then_some(name)
    }
}

// Adds the functions of every table of `kind` (`SHT_SYMTAB` or `SHT_DYNSYM`).
pub(in crate::binary) fn read(elf: &Elf, kind: u32, source: SymbolSource, into: &mut Functions) {
    let Some(table) = elf.sections.iter().find(|section| section.kind == kind) else {
        return;
    };
    let read;
    let table = if kind == elf::SHT_DYNSYM.0 {
        elf.dynamic_symbols()
    } else {
        read = SymbolTable::read(elf, table)
            .map(Arc::new)
            .map_err(|error| error.to_string());
        read.as_ref().map_err(String::as_str)
    };
    match table {
        Ok(table) => add(elf, table, source, into),
        Err(error) => into.problems.push(error.to_owned()),
    }
}

fn add(elf: &Elf, table: &SymbolTable, source: SymbolSource, into: &mut Functions) {
    let names = into.add_names(Arc::clone(&table.strings));
    for symbol in &table.entries {
        let Some(mut function) = function(elf, symbol) else {
            continue;
        };
        function.source = source;
        function.name = symbol.name;
        function.names = names;
        // Its first bytes say enough: to look for the ends of a million names takes time.
        match into.bytes_from_name(&function) {
            Some(name) if is_mapping(elf.machine, name) => {}
            Some(name) if function.rank.is_label() && name.starts_with(b".L") => {}
            Some([] | [0, ..]) | None => {}
            Some(_) => {
                if symbol.kind == elf::STT_GNU_IFUNC.0 {
                    into.push_chooser(function);
                }
                into.push(function);
            }
        }
    }
    if table.unnamed > 0 {
        let error = Error::Malformed {
            problem: format!(
                "{} symbols have names outside their string table, or too long together",
                table.unnamed
            ),
        };
        into.problems.push(error.to_string());
    }
}

// Still without its name.
fn function(elf: &Elf, symbol: &Entry) -> Option<FunctionSymbol> {
    let is_function = symbol.kind == elf::STT_FUNC.0 || symbol.kind == elf::STT_GNU_IFUNC.0;
    let is_label = symbol.kind == elf::STT_NOTYPE.0;
    if symbol.section == u32::from(elf::SHN_UNDEF.0)
        || symbol.name == 0
        || !(is_function || is_label)
    {
        return None;
    }
    let section = elf.sections.get(symbol.section as usize);
    let mut start = symbol.value;
    let mut size = symbol.size;
    match section {
        Some(section) if !section.is_code() => return None,
        Some(section) => {
            if elf.relocatable {
                start = start.wrapping_add(section.offset);
            }
            let end = elf.section_start(section).saturating_add(section.size);
            if start < elf.section_start(section) || start >= end {
                return None;
            }
            size = size.min(end.saturating_sub(start));
        }
        None if is_label => return None,
        None => size = size.min(u64::MAX.saturating_sub(start)),
    }
    if elf.machine == elf::EM_ARM.0 && is_function {
        // The lowest bit says that the code is Thumb code.
        start &= !1;
    }
    Some(FunctionSymbol {
        start: Svma(start),
        size,
        name: 0,
        names: 0,
        rank: Rank::new(is_label, size, symbol.binding),
        source: SymbolSource::Symtab,
    })
}

// Marks that tell code from data for disassemblers: `$x`, `$d.12`, `$a`, `$t`. A zero ends the
// name.
fn is_mapping(machine: u16, name: &[u8]) -> bool {
    let marked = [elf::EM_ARM.0, elf::EM_AARCH64.0, elf::EM_RISCV.0].contains(&machine);
    let kind = matches!(name, [b'$', b'a' | b'd' | b't' | b'x', ..]);
    marked && kind && matches!(name.get(2), None | Some(0 | b'.' | b'r'))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::any;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn entry_of(name: u32) -> Entry {
        Entry {
            name,
            kind: 0,
            binding: 0,
            visibility: 0,
            section: 0,
            value: 0,
            size: 0,
        }
    }

    proptest! {
        // What is said to fit does, name by name; and what a linker writes is said to fit.
        #[test]
        fn names_that_are_said_to_fit_do(
            lengths in vec(0usize..700, 1..40),
            is_ended in any::<bool>(),
            room in 0usize..20_000,
            at in vec(0u32..9_000, 0..30),
        ) {
            let mut strings: Vec<u8> = vec![0];
            for length in &lengths {
                strings.extend(vec![b'a'; *length]);
                strings.push(0);
            }
            if !is_ended {
                strings.push(b'z');
            }
            let entries: Vec<Entry> = at.into_iter().map(entry_of).collect();
            let mut exact = NameRoom(room);
            let fits = exact.has_room_for(&strings, &entries);
            let mut named = entries.iter().filter(|entry| entry.name != 0);
            let all = named.all(|entry| exact.take(&strings, entry.name).is_some());
            prop_assert!(all || !fits);

            let ends = strings.iter().enumerate().filter(|&(_, &byte)| byte == 0);
            let starts = ends.map(|(at, _)| at + 1).filter(|&at| at < strings.len());
            let entries: Vec<Entry> = starts.map(|at| entry_of(at as u32)).collect();
            let whole = NameRoom::new(strings.len());
            prop_assert_eq!(whole.has_room_for(&strings, &entries), is_ended);
        }
    }
}
