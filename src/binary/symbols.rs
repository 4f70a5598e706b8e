//! The symbol tables `.symtab` and `.dynsym`, read for the functions they name.
//!
//! ```text
//!   Elf64_Sym   st_name 4, st_info 1, st_other 1, st_shndx 2, st_value 8, st_size 8
//!   Elf32_Sym   st_name 4, st_value 4, st_size 4, st_info 1, st_other 1, st_shndx 2
//!   st_info     binding << 4 | type      st_other & 3: visibility
//! ```

use object::elf;

use super::Error;
use super::elf::{Elf, Section};
use super::fields::{Fields, c_string};
use super::functions::{FunctionSymbol, Functions, Rank, SymbolSource};
use crate::base::Svma;

/// The most symbols that are read from one table.
pub(super) const SYMBOL_LIMIT: usize = 1 << 25;

/// One entry of a symbol table, as it stands there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) name: u32,
    pub(super) kind: u8,
    pub(super) binding: u8,
    visibility: u8,
    pub(super) section: u16,
    pub(super) value: u64,
    size: u64,
}

/// Reads one entry from exactly its bytes.
pub(super) fn entry(f: Fields<'_>) -> Option<Entry> {
    let at = |wide, narrow| if f.wide { wide } else { narrow };
    let info = f.u8(at(4, 12))?;
    Some(Entry {
        name: f.u32(0)?,
        kind: info & 0xf,
        binding: info >> 4,
        visibility: f.u8(at(5, 13))? & 3,
        section: f.u16(at(6, 14))?,
        value: f.word(at(8, 4))?,
        size: f.word(at(16, 8))?,
    })
}

/// The bytes of one entry.
pub(super) fn entry_size(wide: bool) -> usize {
    if wide { 24 } else { 16 }
}

/// The strings that a symbol table links to.
pub(super) fn strings(elf: &Elf, table: &Section) -> Result<Vec<u8>, Error> {
    let linked = elf.sections.get(table.link as usize);
    match linked.filter(|section| section.kind == elf::SHT_STRTAB.0) {
        Some(section) => elf.contents("symbol names", section),
        None => Err(Error::Malformed(format!(
            "symbol names: section {} is not a string table",
            table.link
        ))),
    }
}

/// Adds the functions of every table of `kind` (`SHT_SYMTAB` or `SHT_DYNSYM`).
pub(super) fn read(elf: &Elf, kind: u32, source: SymbolSource, into: &mut Functions) {
    let Some(table) = elf.sections.iter().find(|section| section.kind == kind) else {
        return;
    };
    if let Err(error) = read_table(elf, table, source, into) {
        into.problems.push(error.to_string());
    }
}

fn read_table(
    elf: &Elf,
    table: &Section,
    source: SymbolSource,
    into: &mut Functions,
) -> Result<(), Error> {
    let size = entry_size(elf.wide);
    if table.entry_size != size as u64 {
        return Err(Error::Malformed(format!(
            "symbols of {} bytes, expected {size}",
            table.entry_size
        )));
    }
    let bytes = elf.contents("symbols", table)?;
    let strings = strings(elf, table)?;
    let names = into.add_names(strings);
    let mut unnamed: u64 = 0;
    for record in bytes.chunks_exact(size).take(SYMBOL_LIMIT) {
        let Some(symbol) = entry(elf.fields(record)) else {
            continue;
        };
        let Some(mut function) = function(elf, &symbol) else {
            continue;
        };
        function.source = source;
        function.name = symbol.name;
        function.names = names;
        match into.name_bytes(&function) {
            Some(name) if is_mapping(elf.machine, name) => {}
            Some(name) if function.rank.is_label() && name.starts_with(b".L") => {}
            Some([]) => {}
            Some(_) => into.push(function),
            None => unnamed = unnamed.saturating_add(1),
        }
    }
    if unnamed > 0 {
        return Err(Error::Malformed(format!(
            "{unnamed} symbols have names outside their string table"
        )));
    }
    Ok(())
}

/// What a symbol says about a function: still without its name.
fn function(elf: &Elf, symbol: &Entry) -> Option<FunctionSymbol> {
    let is_function = symbol.kind == elf::STT_FUNC.0 || symbol.kind == elf::STT_GNU_IFUNC.0;
    let is_label = symbol.kind == elf::STT_NOTYPE.0;
    if symbol.section == elf::SHN_UNDEF.0 || symbol.name == 0 || !(is_function || is_label) {
        return None;
    }
    // Labels of hand-written assembly count when others may see them.
    let hidden = [elf::STV_HIDDEN.0, elf::STV_INTERNAL.0].contains(&symbol.visibility);
    if is_label && hidden {
        return None;
    }
    let section = elf.sections.get(usize::from(symbol.section));
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

/// Marks that tell code from data for disassemblers: `$x`, `$d.12`, `$a`, `$t`.
fn is_mapping(machine: u16, name: &[u8]) -> bool {
    let marked = [elf::EM_ARM.0, elf::EM_AARCH64.0, elf::EM_RISCV.0].contains(&machine);
    let kind = matches!(name, [b'$', b'a' | b'd' | b't' | b'x', ..]);
    marked && kind && matches!(name.get(2), None | Some(b'.' | b'r'))
}

/// The name that starts at `at` in a table of strings.
pub(super) fn name(strings: &[u8], at: u32) -> Option<&[u8]> {
    c_string(strings, at as usize)
}
