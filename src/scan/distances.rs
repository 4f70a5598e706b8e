//! Functions whose addresses code computes, where no whole pointer to them exists.
//!
//! ```text
//!   lea    table(%rip),%rdx     table: .long f - table    from where code refers to: dispatch
//!   movslq (%rdx,%rax,4),%rax                             tables, relative virtual tables
//!   add    %rdx,%rax                   .long f - .        from the word itself
//!   call   *%rax                       .long f            in code that is not moved
//!
//!   movabs $f - slots,%rax; add %rbx,%rax; call *%rax     the large code model
//! ```
//!
//! That such a number is a distance is a guess, unlike what relocations and operands show. So it is
//! only for those who have to know all ways into a function: a wrong guess takes away a certainty,
//! and adds no false one. Instructions are looked for at each byte for the same reason.
//!
//! The table of a switch looks the same. Its first entry leads into the middle of the function that
//! refers to it.

use std::ops::{Range, RangeInclusive};

use rustc_hash::FxHashSet;

use super::file_tables::FileTables;
use super::resolve::{Resolver, Target};
use super::{Calls, CodeFunctionId};
use crate::base::Svma;
use crate::binary::{DataBytes, SlotTarget};

/// What may be called through an address that code computes.
#[derive(Debug, Default)]
pub struct TakenByDistance {
    pub functions: FxHashSet<CodeFunctionId>,
    /// Imports by linkage name.
    pub imports: FxHashSet<String>,
}

/// Finds them in a file for x86-64 of which these are all calls. `code` gives the code from an
/// address on.
pub fn taken_by_distance<'c>(
    tables: &FileTables,
    calls: &Calls,
    code: &dyn Fn(Svma) -> Option<&'c [u8]>,
) -> TakenByDistance {
    let resolver = tables.resolver();
    let data = tables.binary.data();
    let mut finder = Finder {
        tables,
        calls,
        resolver: &resolver,
        places: Places {
            range: tables.code.range(),
            data_range: data.first().map_or(0, |first| first.start.0)..=data_end(&data),
            data: &data,
            code,
        },
        slot_tables: &tables.binary.slot_tables(),
        bases: Vec::new(),
        switches: Vec::new(),
        taken: TakenByDistance::default(),
    };
    for (start, _) in tables.code.sections() {
        finder.read_code(start.0, code(start).unwrap_or_default());
    }
    tables.binary.data_pointers(|to| {
        if let SlotTarget::Address(base) = to {
            finder.refer(base.0, None);
        }
    });
    finder.read_tables();
    finder.read_words();
    finder.taken
}

struct Places<'a, 'c> {
    range: RangeInclusive<u64>,
    /// Most numbers are outside, and need no search.
    data_range: RangeInclusive<u64>,
    data: &'a [DataBytes],
    code: &'a dyn Fn(Svma) -> Option<&'c [u8]>,
}

impl<'a> Places<'a, '_> {
    fn leads_to_code(&self, to: u64) -> bool {
        self.range.contains(&to)
    }

    fn data_from(&self, at: u64) -> Option<&'a [u8]> {
        if !self.data_range.contains(&at) {
            return None;
        }
        let after = self.data.partition_point(|section| section.start.0 <= at);
        let section = self.data.get(after.checked_sub(1)?)?;
        let from = usize::try_from(at - section.start.0).ok()?;
        section.bytes.get(from..).filter(|rest| !rest.is_empty())
    }
}

struct Finder<'a, 'c> {
    tables: &'a FileTables<'a>,
    calls: &'a Calls,
    resolver: &'a Resolver<'a>,
    places: Places<'a, 'c>,
    slot_tables: &'a [Svma],
    /// What code and data refer to, and where code does.
    bases: Vec<(u64, Option<u64>)>,
    /// The tables of switches, in order of address.
    switches: Vec<Range<u64>>,
    taken: TakenByDistance,
}

impl Finder<'_, '_> {
    fn read_code(&mut self, start: u64, bytes: &[u8]) {
        let is_fixed = self.tables.binary.is_fixed();
        for (index, rest) in (0..bytes.len()).filter_map(|at| Some((at, bytes.get(at..)?))) {
            let at = start.wrapping_add(index as u64);
            match rest {
                // lea, relative to the next instruction
                [0x48..=0x4f, 0x8d, modrm, field @ ..] if modrm & 0xc7 == 5 => {
                    if let Some(distance) = word(field) {
                        let to = at.wrapping_add(7).wrapping_add_signed(distance);
                        self.refer(to, Some(at));
                    }
                }
                // movabs
                [0x48 | 0x49, 0xb8..=0xbf, field @ ..] => {
                    if let Some(field) = field.first_chunk() {
                        self.add_large(u64::from_le_bytes(*field), at);
                    }
                }
                _ => {}
            }
            if is_fixed && let Some(to) = word(rest) {
                let to = to.cast_unsigned();
                if self.places.data_from(to).is_some() {
                    self.bases.push((to, Some(at)));
                }
            }
        }
    }

    fn add_large(&mut self, number: u64, at: u64) {
        for slots in self.slot_tables {
            let to = slots.0.wrapping_add(number);
            match self.tables.slots().target(Svma(to)) {
                Some(SlotTarget::Symbol(symbol)) if !self.tables.slots().is_function(symbol) => {}
                Some(slot) => self.take(slot),
                None => self.take(SlotTarget::Address(Svma(to))),
            }
            self.refer(to, Some(at));
        }
    }

    fn refer(&mut self, to: u64, at: Option<u64>) {
        if self.places.leads_to_code(to) || self.places.data_from(to).is_some() {
            self.bases.push((to, at));
        }
    }

    /// Reads the distances from all that is referred to, each as far as to the next.
    fn read_tables(&mut self) {
        let mut bases = std::mem::take(&mut self.bases);
        bases.sort_unstable();
        bases.dedup();
        let mut groups = bases.chunk_by(|a, b| a.0 == b.0).peekable();
        while let Some(group) = groups.next() {
            let base = group[0].0;
            let end = groups.peek().map_or(u64::MAX, |next| next[0].0);
            let in_data = self.places.data_from(base);
            let bytes = in_data.or_else(|| (self.places.code)(Svma(base)));
            let bytes = bytes.unwrap_or_default();
            let bytes = bytes.get(..(end - base) as usize).unwrap_or(bytes);
            let words = bytes.chunks_exact(4).filter_map(word);
            let mut targets = words.map(|word| base.wrapping_add_signed(word)).peekable();
            let first = targets.peek().copied();
            if first.is_some_and(|first| self.is_of_switch(first, group)) {
                let entries = targets
                    .take_while(|&to| self.places.leads_to_code(to))
                    .count();
                let end = base.saturating_add(4 * entries as u64);
                self.switches.push(base..end);
                continue;
            }
            for to in targets {
                if self.places.leads_to_code(to) {
                    self.take(SlotTarget::Address(Svma(to)));
                } else if in_data.is_none() {
                    // Instructions, not a table among them.
                    break;
                }
            }
        }
    }

    /// Reads all words of data as distances from themselves, and as short pointers.
    fn read_words(&mut self) {
        let is_fixed = self.tables.binary.is_fixed();
        for section in self.places.data {
            let skipped = (section.start.0.wrapping_neg() % 4) as usize;
            let words = section.bytes.get(skipped..).unwrap_or_default();
            let words = words.chunks_exact(4).filter_map(word);
            for (word, from) in words.zip((skipped as u64..).step_by(4)) {
                if word == 0 {
                    continue;
                }
                // A file may state that its data ends where addresses do.
                let at = section.start.0.wrapping_add(from);
                let to = at.wrapping_add_signed(word);
                if self.places.leads_to_code(to) && !self.is_in_switch(at) {
                    self.take(SlotTarget::Address(Svma(to)));
                }
                if is_fixed {
                    self.take(SlotTarget::Address(Svma(word.cast_unsigned())));
                }
            }
        }
    }

    fn is_in_switch(&self, at: u64) -> bool {
        let after = self.switches.partition_point(|table| table.start <= at);
        let table = after.checked_sub(1).and_then(|i| self.switches.get(i));
        table.is_some_and(|table| table.contains(&at))
    }

    fn is_of_switch(&self, first: u64, group: &[(u64, Option<u64>)]) -> bool {
        let Some(whole) = self
            .whole_at(first)
            .filter(|_| self.places.leads_to_code(first))
        else {
            return false;
        };
        let places = group.iter().filter_map(|&(_, at)| at);
        self.calls.functions[whole].symbol.start.0 != first && { places }
            .any(|at| self.whole_at(at) == Some(whole))
    }

    /// The function that has this address, itself or by a part.
    fn whole_at(&self, at: u64) -> Option<CodeFunctionId> {
        let id = self.tables.id_at(Svma(at))?;
        Some(self.calls.functions[id].part_of.unwrap_or(id))
    }

    fn take(&mut self, to: SlotTarget) {
        match self.resolver.target(to) {
            // Parts are only jumped to.
            Some(Target::Function(id)) if self.calls.functions[id].part_of.is_none() => {
                self.taken.functions.insert(id);
            }
            Some(Target::Import(import)) => {
                self.taken.imports.insert(self.resolver.import_name(import));
            }
            _ => {}
        }
    }
}

fn data_end(data: &[DataBytes]) -> u64 {
    let end = |section: &DataBytes| section.start.0.saturating_add(section.bytes.len() as u64);
    data.iter().map(end).max().unwrap_or(0)
}

fn word(bytes: &[u8]) -> Option<i64> {
    Some(i64::from(i32::from_le_bytes(*bytes.first_chunk()?)))
}
