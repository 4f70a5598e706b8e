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
//!   none                  in a program that is not moved, the address itself may stand in the slot
//! ```
//!
//! A slot in writable memory may be given another value by the program; those are left out.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use object::elf;
use rustc_hash::FxHashSet;

use super::references::{self, Form, Reference};
use super::relocations::{self, Dynamic, Memory};
use super::slot_target::SlotTarget;
use super::symbols::SymbolTable;
use super::{Elf, Section};
use crate::base::{Svma, utf8};
use crate::binary::Binary;

// The most slots of one file; more than the largest programs have.
const SLOT_LIMIT: usize = 1 << 23;
// The longest name of a symbol, in bytes; others are cut.
const NAME_LIMIT: usize = 8 << 10;
// Bytes of data that are searched for pointers at once; a multiple of all words.
const PIECE: u64 = 1 << 20;

/// The slots of a file by address.
#[derive(Debug, Default)]
pub struct Slots {
    // Each with its address; sorted.
    targets: Vec<(u64, SlotTarget)>,
    symbols: Arc<SymbolTable>,
    /// What could not be read; each a lower-case fragment.
    pub problems: Vec<String>,
}

impl Slots {
    /// What the slot at this address points to.
    pub fn target(&self, slot: Svma) -> Option<SlotTarget> {
        let place = self
            .targets
            .binary_search_by_key(&slot.0, |target| target.0);
        Some(self.targets.get(place.ok()?)?.1)
    }

    /// The linkage name of a symbol.
    pub fn name(&self, symbol: u32) -> Option<Cow<'_, str>> {
        let entry = self.symbols.entries.get(symbol as usize)?;
        let name = self.symbols.name(entry)?;
        Some(utf8(name.get(..NAME_LIMIT).unwrap_or(name)))
    }

    /// Where the file itself defines a symbol that others might define too.
    pub fn definition(&self, symbol: u32) -> Option<Svma> {
        let entry = self.symbols.entries.get(symbol as usize)?;
        let here = entry.section != u32::from(elf::SHN_UNDEF.0) && entry.kind == elf::STT_FUNC.0;
        here.then_some(Svma(entry.value))
    }

    /// Returns whether a symbol is a function. Files that are not linked do not mark the functions
    /// that they do not define; for these, and for data, the answer is no.
    pub fn is_function(&self, symbol: u32) -> bool {
        let kinds = [elf::STT_FUNC.0, elf::STT_GNU_IFUNC.0];
        let entry = self.symbols.entries.get(symbol as usize);
        entry.is_some_and(|entry| kinds.contains(&entry.kind))
    }

    /// The functions that choose what a slot points to, each once, in order of address.
    pub fn choosers(&self) -> Vec<Svma> {
        let chosen = self.targets.iter().filter_map(|target| match target.1 {
            SlotTarget::ChosenBy(at) => Some(at),
            _ => None,
        });
        chosen.collect::<BTreeSet<Svma>>().into_iter().collect()
    }

    /// The symbols that slots point to and that the file itself defines, each once, in order.
    pub fn defined(&self) -> Vec<u32> {
        let symbols = self.targets.iter().filter_map(|target| match target.1 {
            SlotTarget::Symbol(symbol) => Some(symbol),
            _ => None,
        });
        let defined = symbols.filter(|&symbol| self.definition(symbol).is_some());
        defined.collect::<BTreeSet<u32>>().into_iter().collect()
    }
}

impl Binary {
    /// The slots. Each call reads them again. Machines that [`Binary::code`] does not know have
    /// none.
    pub fn slots(&self) -> Slots {
        let elf = &self.elf;
        let mut slots = Slots::default();
        let constants = elf.believed("constant data", &mut slots.problems, is_constant);
        let constants = Ranges::of(elf, &constants);
        let Slots {
            targets, problems, ..
        } = &mut slots;
        // A program with a fixed address has no relocations for its own addresses. A word of its
        // constants is taken as a pointer if exactly there a function starts.
        if elf.fixed {
            let starts = self.functions().iter().map(|symbol| symbol.start.0);
            let all = starts.clone().min().unwrap_or(1)..=starts.clone().max().unwrap_or(0);
            let starts: FxHashSet<u64> = starts.collect();
            words(
                elf,
                problems,
                &|s| is_constant(s) || is_rodata(s),
                |at, word| {
                    // Most words are numbers or text.
                    let is_start = all.contains(&word) && starts.contains(&word);
                    if is_start && targets.len() < SLOT_LIMIT {
                        targets.push((at, SlotTarget::Address(Svma(word))));
                    }
                },
            );
        }
        visit(elf, problems, |slot, target, how| {
            // The linker's own slots are only written by the dynamic linker. Of all others, only
            // those in memory that is constant after loading keep what a relocation wrote.
            let fixed = matches!(how, Dynamic::Linkage | Dynamic::Chosen);
            if (fixed || constants.contain(slot)) && targets.len() < SLOT_LIMIT {
                targets.push((slot, target));
            }
        });
        keep_last(targets);
        if !elf.relocatable {
            match elf.dynamic_symbols() {
                Ok(symbols) => slots.symbols = Arc::clone(symbols),
                Err(error) => slots.problems.push(error.to_owned()),
            }
        } else if let Some(table) = elf.sections.iter().find(|s| s.kind == elf::SHT_SYMTAB.0) {
            match SymbolTable::read(elf, table) {
                Ok(symbols) => slots.symbols = Arc::new(symbols),
                Err(error) => slots.problems.push(error.to_string()),
            }
        }
        slots
    }

    /// Calls `pointer` with what each pointer in the file's data points to when the program starts,
    /// writable data included, linkage tables not: virtual tables, tables of callbacks, initialized
    /// variables. In a program that is not moved, where no relocation tells pointers from numbers,
    /// every aligned word counts as one. Returns what could not be read.
    pub fn data_pointers(&self, mut pointer: impl FnMut(SlotTarget)) -> Vec<String> {
        let elf = &self.elf;
        let mut problems = Vec::new();
        // What has no contents may lie where other sections do: variables of threads.
        let is_table = |s: &&Section| s.kind != elf::SHT_NOBITS.0 && !holds_pointers(s);
        let tables: Vec<&Section> = elf.sections.iter().filter(is_table).collect();
        let tables = Ranges::of(elf, &tables);
        visit(elf, &mut problems, |slot, target, how| {
            let wanted = matches!(how, Dynamic::Symbol | Dynamic::Relative);
            if wanted && !tables.contain(slot) {
                pointer(target);
            }
        });
        if elf.fixed {
            words(
                elf,
                &mut problems,
                &|s| s.is_data() && holds_pointers(s),
                |_, word| {
                    pointer(SlotTarget::Address(Svma(word)));
                },
            );
        }
        problems
    }
}

// Sorts slots by address and keeps, of those with the same, what was written last.
fn keep_last(targets: &mut Vec<(u64, SlotTarget)>) {
    // Linkers sort relocations, so that there is little to do.
    targets.sort_by_key(|target| target.0);
    targets.reverse();
    targets.dedup_by_key(|target| target.0);
    targets.reverse();
}

// Made read-only before the program's own code runs.
fn is_constant(section: &Section) -> bool {
    let name = &*section.name;
    matches!(name, b".got" | b".got.plt") || name.starts_with(b".data.rel.ro")
}

// It never was writable.
fn is_rodata(section: &Section) -> bool {
    let writable = section.flags & elf::SHF_WRITE.0 != 0;
    section.is_data() && !writable && holds_pointers(section)
}

// Words that a program uses: not those that only the dynamic linker, unwinders and tracers know.
pub(super) fn holds_pointers(section: &Section) -> bool {
    let kinds = [
        elf::SHT_PROGBITS.0,
        elf::SHT_INIT_ARRAY.0,
        elf::SHT_FINI_ARRAY.0,
        elf::SHT_PREINIT_ARRAY.0,
    ];
    // BOLT keeps sections that it has replaced.
    let name = section.name.strip_prefix(b".bolt.org");
    let name = name.unwrap_or(&section.name);
    let known = matches!(
        name,
        b".got" | b".got.plt" | b".interp" | b"__mcount_loc" | b"__patchable_function_entries"
    );
    let tables: [&[u8]; 4] = [b".eh_frame", b".gcc_except_table", b".plt", b".sframe"];
    kinds.contains(&section.kind) && !known && !tables.iter().any(|table| name.starts_with(table))
}

struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    // What these sections share is counted once.
    fn of(elf: &Elf, sections: &[&Section]) -> Ranges {
        let loaded = sections.iter().filter(|s| s.flags & elf::SHF_ALLOC.0 != 0);
        let mut sorted: Vec<(u64, u64)> = loaded
            .filter(|s| !(elf.relocatable && s.kind == elf::SHT_NOBITS.0))
            .map(|section| {
                let start = elf.section_start(section);
                (start, start.saturating_add(section.size))
            })
            .collect();
        sorted.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (start, end) in sorted {
            match ranges.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => ranges.push((start, end)),
            }
        }
        Ranges(ranges)
    }

    fn contain(&self, address: u64) -> bool {
        let after = self.0.partition_point(|&(start, _)| start <= address);
        let range = after.checked_sub(1).and_then(|i| self.0.get(i));
        range.is_some_and(|&(_, end)| address < end)
    }
}

// Hands on each pointer that relocations write into data: where it is, what it points to, and by
// which kind of record.
pub(in crate::binary) fn visit(
    elf: &Elf,
    problems: &mut Vec<String>,
    mut pointer: impl FnMut(u64, SlotTarget, Dynamic),
) {
    if elf.relocatable {
        references::visit(elf, problems, &Section::is_data, |at, form, reference| {
            if form == Form::Word
                && let Reference::To(target) = reference
            {
                pointer(at, target, Dynamic::Symbol);
            }
        });
        return;
    }
    let tables = elf.believed("relocations", problems, |section| {
        let records = relocations::is_table(section) || section.kind == elf::SHT_RELR.0;
        records && section.flags & elf::SHF_ALLOC.0 != 0
    });
    // RELA records have their addend. REL and RELR leave it in the place that they relocate, so the
    // data have to be read as well.
    let stated = tables.iter().all(|table| table.kind == elf::SHT_RELA.0);
    let sections = elf.believed("data", problems, |section| {
        !stated && section.is_data() && section.flags & elf::SHF_WRITE.0 != 0
    });
    let memory = Memory::read(elf, &sections);
    for table in tables {
        let Ok(bytes) = elf.source.read("relocations", table.offset, table.size) else {
            continue;
        };
        let contents = elf.fields(&bytes);
        if table.kind == elf::SHT_RELR.0 {
            relocations::packed(contents, |at| {
                if let Some(to) = memory.word(at) {
                    pointer(at, SlotTarget::Address(Svma(to)), Dynamic::Relative);
                }
            });
            continue;
        }
        for record in relocations::records(contents, table.kind) {
            let Some(how) = relocations::dynamic(elf.machine, elf.wide, record.kind) else {
                continue;
            };
            let addend = || match record.addend {
                Some(addend) => Some(elf.address(addend.cast_unsigned())),
                None => memory.word(record.at),
            };
            let target = match how {
                Dynamic::Linkage if record.symbol != 0 => SlotTarget::Symbol(record.symbol),
                Dynamic::Symbol if record.symbol != 0 && addend() == Some(0) => {
                    SlotTarget::Symbol(record.symbol)
                }
                Dynamic::Relative => match addend() {
                    Some(to) => SlotTarget::Address(Svma(to)),
                    None => continue,
                },
                Dynamic::Chosen => match addend() {
                    Some(by) => SlotTarget::ChosenBy(Svma(by)),
                    None => continue,
                },
                _ => continue,
            };
            pointer(record.at, target, how);
        }
    }
}

// Hands on the aligned words of some sections that are not zero, with their addresses.
pub(in crate::binary) fn words(
    elf: &Elf,
    problems: &mut Vec<String>,
    pass: &dyn Fn(&Section) -> bool,
    mut word: impl FnMut(u64, u64),
) {
    let size: usize = if elf.wide { 8 } else { 4 };
    // Programs have megabytes of data, and most machines this form.
    let is_usual = elf.wide && elf.fields(&[1, 0, 0, 0, 0, 0, 0, 0]).word(0) == Some(1);
    for section in elf.believed("data", problems, pass) {
        // A section need not begin at a whole word.
        let skipped = section.address.wrapping_neg() % size as u64;
        let mut from = skipped;
        while from < section.size {
            let length = section.size.saturating_sub(from).min(PIECE);
            let offset = section.offset.saturating_add(from);
            let Ok(bytes) = elf.source.read("data", offset, length) else {
                break;
            };
            let mut at = section.address.wrapping_add(from);
            if is_usual {
                let (words, _) = bytes.as_chunks::<8>();
                for bytes in words {
                    match u64::from_le_bytes(*bytes) {
                        0 => {}
                        value => word(at, value),
                    }
                    // A file may state that its data ends where addresses do.
                    at = at.wrapping_add(8);
                }
                from = from.saturating_add(length);
                continue;
            }
            for bytes in bytes.chunks_exact(size) {
                match elf.fields(bytes).word(0) {
                    Some(0) | None => {}
                    Some(value) => word(at, value),
                }
                at = at.wrapping_add(size as u64);
            }
            from = from.saturating_add(length);
        }
    }
}
