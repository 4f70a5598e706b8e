//! What pointers in memory point to when the program starts, as far as they cannot change later.
//!
//! Compilers call through such slots: `call *slot(%rip)`. Relocations say what the dynamic linker
//! writes into them:
//!
//! ```text
//!   JUMP_SLOT, GLOB_DAT   the address of a symbol of .dynsym, here or in another file
//!   64, ABS64             the same, in a table of pointers
//!   RELATIVE              an address in this file: the addend
//!   IRELATIVE             what the function at the addend chooses
//!   .relr.dyn             RELATIVE without records: the addend stands in the slot itself
//! ```
//!
//! A slot in writable memory may be given another value by the program; those are left out.

use std::borrow::Cow;

use object::elf;
use rustc_hash::FxHashMap;

use super::elf::{Elf, Section};
use super::{Binary, symbols};
use crate::base::{Svma, utf8};

/// The most slots of one file; more than the largest programs have.
const SLOT_LIMIT: usize = 1 << 23;
/// The longest name of a symbol, in bytes; others are cut.
const NAME_LIMIT: usize = 8 << 10;

/// What a slot points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotTarget {
    /// This entry of the dynamic symbols: see [`Slots::name`] and [`Slots::definition`].
    Symbol(u32),
    /// This address of the same file.
    Address(Svma),
    /// What the function at this address chooses when the program starts.
    ChosenBy(Svma),
}

/// The slots of a file by address.
#[derive(Debug, Default)]
pub struct Slots {
    targets: FxHashMap<u64, SlotTarget>,
    symbols: Vec<symbols::Entry>,
    strings: Vec<u8>,
}

impl Slots {
    /// What the slot at this address points to.
    pub fn target(&self, slot: Svma) -> Option<SlotTarget> {
        self.targets.get(&slot.0).copied()
    }

    /// The linkage name of a symbol.
    pub fn name(&self, symbol: u32) -> Option<Cow<'_, str>> {
        let entry = self.symbols.get(symbol as usize)?;
        let name = symbols::name(&self.strings, entry.name)?;
        let name = name.get(..NAME_LIMIT).unwrap_or(name);
        (!name.is_empty()).then(|| utf8(name))
    }

    /// Where the file itself defines a symbol that others might define too.
    pub fn definition(&self, symbol: u32) -> Option<Svma> {
        let entry = self.symbols.get(symbol as usize)?;
        let here = entry.section != elf::SHN_UNDEF.0 && entry.kind == elf::STT_FUNC.0;
        here.then_some(Svma(entry.value))
    }

    /// The symbols that slots point to and that the file itself defines, each once, in order.
    pub fn defined(&self) -> Vec<u32> {
        let mut defined: Vec<u32> = self
            .targets
            .values()
            .filter_map(|target| match target {
                SlotTarget::Symbol(symbol) => Some(*symbol),
                _ => None,
            })
            .filter(|&symbol| self.definition(symbol).is_some())
            .collect();
        defined.sort_unstable();
        defined.dedup();
        defined
    }
}

impl Binary {
    /// The slots, from the relocations. They are read at once and not kept. Files of 32 bits and
    /// machines other than x86-64 and AArch64 have none here.
    pub fn slots(&self) -> Slots {
        let elf = &self.elf;
        let mut slots = Slots::default();
        let known = [elf::EM_X86_64.0, elf::EM_AARCH64.0].contains(&elf.machine);
        if !known || !elf.wide || elf.relocatable {
            return slots;
        }
        let constant = elf.believed(is_constant);
        let tables = elf.believed(|section| {
            let kinds = [elf::SHT_RELA.0, elf::SHT_RELR.0];
            kinds.contains(&section.kind) && section.flags & elf::SHF_ALLOC.0 != 0
        });
        for table in tables {
            let Ok(bytes) = elf.contents("relocations", table) else {
                continue;
            };
            if table.kind == elf::SHT_RELA.0 {
                read_records(elf, &bytes, &constant, &mut slots.targets);
            } else {
                read_packed(elf, &bytes, &constant, &mut slots.targets);
            }
        }
        let dynsym = elf.sections.iter().find(|s| s.kind == elf::SHT_DYNSYM.0);
        if let Some(table) = dynsym {
            let size = symbols::entry_size(elf.wide);
            let bytes = elf.contents("symbols", table).unwrap_or_default();
            let records = bytes.chunks_exact(size);
            let entries = records.map_while(|record| symbols::entry(elf.fields(record)));
            slots.symbols = entries.collect();
            slots.strings = symbols::strings(elf, table).unwrap_or_default();
        }
        slots
    }
}

/// Whether a section is made read-only before the program's own code runs.
fn is_constant(section: &Section) -> bool {
    let name = &*section.name;
    matches!(name, b".got" | b".got.plt") || name.starts_with(b".data.rel.ro")
}

/// Reads records `r_offset 8, r_info 8 (symbol << 32 | type), r_addend 8`.
fn read_records(
    elf: &Elf,
    bytes: &[u8],
    constant: &[&Section],
    into: &mut FxHashMap<u64, SlotTarget>,
) {
    let within = |section: &&Section, slot: u64| slot.wrapping_sub(section.address) < section.size;
    let constant = |slot: u64| constant.iter().any(|section| within(section, slot));
    for record in bytes.chunks_exact(24) {
        let f = elf.fields(record);
        let (Some(slot), Some(info), Some(addend)) = (f.u64(0), f.u64(8), f.u64(16)) else {
            return;
        };
        let kind = u32::try_from(info & 0xffff_ffff).unwrap_or(0);
        let symbol = u32::try_from(info >> 32).unwrap_or(0);
        let target = match meaning(elf.machine, kind) {
            Some(Meaning::Linked) if symbol != 0 => SlotTarget::Symbol(symbol),
            Some(Meaning::Symbol) if symbol != 0 && addend == 0 && constant(slot) => {
                SlotTarget::Symbol(symbol)
            }
            Some(Meaning::Relative) if constant(slot) => SlotTarget::Address(Svma(addend)),
            Some(Meaning::Chosen) => SlotTarget::ChosenBy(Svma(addend)),
            _ => continue,
        };
        if into.len() >= SLOT_LIMIT {
            return;
        }
        into.insert(slot, target);
    }
}

/// What a relocation writes.
enum Meaning {
    /// A symbol's address, into a slot that the linker made for calls.
    Linked,
    /// A symbol's address and the addend, anywhere.
    Symbol,
    /// The addend, moved to where the file is loaded.
    Relative,
    /// What the function at the addend returns.
    Chosen,
}

fn meaning(machine: u16, kind: u32) -> Option<Meaning> {
    // 64, GLOB_DAT, JUMP_SLOT, RELATIVE, IRELATIVE
    let kinds = if machine == elf::EM_X86_64.0 {
        [
            elf::R_X86_64_64.0,
            elf::R_X86_64_GLOB_DAT.0,
            elf::R_X86_64_JUMP_SLOT.0,
            elf::R_X86_64_RELATIVE.0,
            elf::R_X86_64_IRELATIVE.0,
        ]
    } else {
        [
            elf::R_AARCH64_ABS64.0,
            elf::R_AARCH64_GLOB_DAT.0,
            elf::R_AARCH64_JUMP_SLOT.0,
            elf::R_AARCH64_RELATIVE.0,
            elf::R_AARCH64_IRELATIVE.0,
        ]
    };
    match kinds.iter().position(|&k| k == kind)? {
        0 => Some(Meaning::Symbol),
        1 | 2 => Some(Meaning::Linked),
        3 => Some(Meaning::Relative),
        _ => Some(Meaning::Chosen),
    }
}

/// Reads the packed form: an even word is the address of a slot, an odd word has a bit for each
/// of the 63 words behind the last one it spoke of (`elf.h`, `SHT_RELR`).
fn read_packed(
    elf: &Elf,
    bytes: &[u8],
    constant: &[&Section],
    into: &mut FxHashMap<u64, SlotTarget>,
) {
    let mut memory: Vec<(u64, Vec<u8>)> = constant
        .iter()
        .filter_map(|s| Some((s.address, elf.contents("constant pointers", s).ok()?)))
        .collect();
    memory.sort_by_key(|&(address, _)| address);
    let mut add = |slot: u64| {
        let after = memory.partition_point(|&(address, _)| address <= slot);
        let Some((address, bytes)) = after.checked_sub(1).and_then(|i| memory.get(i)) else {
            return;
        };
        let at = usize::try_from(slot.wrapping_sub(*address)).unwrap_or(usize::MAX);
        if let Some(target) = elf.fields(bytes).u64(at)
            && into.len() < SLOT_LIMIT
        {
            into.insert(slot, SlotTarget::Address(Svma(target)));
        }
    };
    let mut next: u64 = 0;
    for word in bytes.chunks_exact(8).take(SLOT_LIMIT) {
        let Some(word) = elf.fields(word).u64(0) else {
            return;
        };
        if word & 1 == 0 {
            add(word);
            next = word.wrapping_add(8);
            continue;
        }
        for bit in 1..64_u64 {
            if word >> bit & 1 == 1 {
                add(next.wrapping_add(bit.wrapping_sub(1).wrapping_mul(8)));
            }
        }
        next = next.wrapping_add(63 * 8);
    }
}
