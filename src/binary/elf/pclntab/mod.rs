//! `.gopclntab`: the functions of a Go program. Its runtime needs them, so they are still there
//! when symbols and debug information are stripped.
//!
//! ```text
//!   magic 4, zeros 2, quantum 1, word size 1      then words:
//!   0xfffffffb  Go 1.2    functions; the list of functions follows
//!   0xfffffffa  Go 1.16   functions, files, names, units, files, numbers, list of functions
//!   0xfffffff0  Go 1.18   functions, files, text, names, units, files, numbers, list of functions
//!   0xfffffff1  Go 1.20   the same
//!
//!   list        address, record; each a word, from Go 1.18 on 4 bytes, addresses counted from
//!               text; behind the last one the address where it ends
//!   record      address, name 4, arguments 4, -, growth of the stack 4, …
//!   numbers     (change, length) each of seven bits in a byte: what is so for how many addresses
//! ```
//!
//! Source: `src/runtime/symtab.go` and `src/debug/gosym/pclntab.go` of Go 1.2 to 1.27.
//!
//! The section is `.gopclntab`; in a program that is moved when it is loaded, Go up to 1.25 calls
//! it `.data.rel.ro.gopclntab`, and a C linker merges that into `.data.rel.ro`.

pub(in crate::binary) mod table;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use object::elf::SHT_NOBITS;

use self::table::{Table, Version, is_header};
use super::functions::{FunctionSymbol, Functions, Rank, SymbolSource};
use super::slot_target::SlotTarget;
use super::symbols::NameRoom;
use super::{Elf, Section, slots};
use crate::base::Svma;
use crate::binary::Error;

pub(in crate::binary) fn is_of_go(elf: &Elf) -> bool {
    let names: [&[u8]; 3] = [
        b".gopclntab",
        b".data.rel.ro.gopclntab",
        b".note.go.buildid",
    ];
    names.iter().any(|name| elf.section(name).is_some())
}

pub(in crate::binary) fn read(elf: &Elf, into: &mut Functions) {
    match table(elf, &mut into.problems) {
        Some(Ok(table)) => add(elf, &table, into),
        Some(Err(error)) => into.problems.push(error.to_string()),
        None => {}
    }
}

// The table, with the addresses that it has when the program is loaded where its headers say;
// `None` where there is none.
pub(in crate::binary) fn table(
    elf: &Elf,
    problems: &mut Vec<String>,
) -> Option<Result<Table, Error>> {
    if elf.relocatable || !is_of_go(elf) {
        return None;
    }
    let (address, bytes) = match find(elf)? {
        Ok(found) => found,
        Err(error) => return Some(Err(error)),
    };
    let malformed = |problem: &str| {
        Err(Error::Malformed {
            problem: format!("table of Go functions: {problem}"),
        })
    };
    let bytes = relocated(elf, address, bytes, problems);
    let Some(mut table) = Table::read(bytes, elf.endian) else {
        return Some(malformed("unknown version, or cut short"));
    };
    if table.version == Version::Go18 && table.text == 0 {
        match text::of_module(elf, address, &table, problems) {
            Some(text) => table.text = text,
            None => return Some(malformed("where the code starts is not known")),
        }
    }
    Some(Ok(table))
}

fn find(elf: &Elf) -> Option<Result<(u64, Vec<u8>), Error>> {
    let names: [&[u8]; 2] = [b".gopclntab", b".data.rel.ro.gopclntab"];
    let own = names
        .iter()
        .find_map(|name| elf.section(name))
        .filter(|section| section.kind != SHT_NOBITS.0 && section.size > 0);
    let section = own.or_else(|| elf.section(b".data.rel.ro"))?;
    let bytes = match elf.contents("table of Go functions", section) {
        Ok(bytes) => bytes,
        Err(error) => return Some(Err(error)),
    };
    if own.is_some() {
        return Some(Ok((section.address, bytes)));
    }
    merged(elf, section, &bytes).map(Ok)
}

// The section has other contents, too: the table is where a header is.
fn merged(elf: &Elf, section: &Section, bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
    // Go aligns its tables so, in bytes.
    const ALIGNMENT: usize = 32;
    let skipped = usize::try_from(section.address.wrapping_neg() % ALIGNMENT as u64).ok()?;
    let aligned = (skipped..bytes.len()).step_by(ALIGNMENT);
    let mut headers = aligned.filter(|&at| {
        let head = bytes.get(at..).unwrap_or_default();
        is_header(elf.fields(head))
    });
    let at = headers.next()?;
    let table = bytes.get(at..)?.to_vec();
    Some((section.address.checked_add(at as u64)?, table))
}

// Addresses that the dynamic linker will write, where a linker has left that to it.
fn relocated(elf: &Elf, address: u64, mut bytes: Vec<u8>, problems: &mut Vec<String>) -> Vec<u8> {
    if elf.fixed {
        return bytes;
    }
    let word = if elf.wide { 8 } else { 4 };
    slots::visit(elf, problems, |at, target, _| {
        let SlotTarget::Address(Svma(target)) = target else {
            return;
        };
        let place = at.checked_sub(address).map(usize::try_from);
        let Some(Ok(place)) = place else {
            return;
        };
        let place = place.checked_add(word).map(|end| place..end);
        let Some(slot) = place.and_then(|place| bytes.get_mut(place)) else {
            return;
        };
        let ordered = match elf.endian {
            gimli::RunTimeEndian::Little => target.to_le_bytes(),
            gimli::RunTimeEndian::Big if elf.wide => target.to_be_bytes(),
            gimli::RunTimeEndian::Big => (target << 32).to_be_bytes(),
        };
        slot.copy_from_slice(ordered.get(..word).unwrap_or_default());
    });
    bytes
}

fn add(elf: &Elf, table: &Table, into: &mut Functions) {
    let code = elf.code_ranges();
    let strings = table.names();
    let mut room = NameRoom::new(strings.len());
    let names = into.add_names(Arc::new(strings.to_vec()));
    let mut left_out: u64 = 0;
    for index in 0..table.count() {
        let Some(function) = table.function(index) else {
            continue;
        };
        let after = code.partition_point(|&(begin, _)| begin <= function.start);
        let section = after.checked_sub(1).and_then(|i| code.get(i));
        let is_code = section.is_some_and(|&(_, end)| function.end <= end);
        let name = table.name_offset(function).filter(|&at| {
            let name = room.take(strings, at);
            name.is_some_and(|name| !name.is_empty())
        });
        match name.filter(|_| is_code) {
            Some(name) => into.push(FunctionSymbol {
                start: Svma(function.start),
                size: function.end - function.start,
                name,
                names,
                rank: Rank::GO,
                source: SymbolSource::Go,
            }),
            None => left_out = left_out.saturating_add(1),
        }
    }
    if left_out > 0 {
        into.problems.push(format!(
            "table of Go functions: {left_out} functions have no name, names too long together, or \
             no code"
        ));
    }
}
