//! Where the code of a Go program starts, if its table of functions does not say: from Go 1.26 on.
//!
//! The runtime has it from its description of the program, which begins with a pointer to the
//! table:
//!
//! ```text
//!   word 0 the table, 1 to 18 six slices, 19 an index, 20 first address, 21 last,
//!        22 where text starts
//! ```
//!
//! Source: `moduledata` in `src/runtime/symtab.go`. The first and last address are in the table as
//! well, so that nothing else is taken for it.

use super::Table;
use crate::binary::elf::slot_target::SlotTarget;
use crate::binary::elf::{Elf, slots};

// Words from the start of the description to the first address, the last one, and the start of the
// text.
const FIRST: usize = 20;
const LAST: usize = 21;
const TEXT: usize = 22;
// Pointers to the table that are looked at.
const POINTERS: usize = 64;

// The start of the code that belongs to the table at this address.
pub(super) fn of_module(
    elf: &Elf,
    table_address: u64,
    table: &Table,
    problems: &mut Vec<String>,
) -> Option<u64> {
    let word: u64 = if elf.wide { 8 } else { 4 };
    let mut modules: Vec<(u64, [u64; TEXT + 1])> = Vec::new();
    pointers(elf, problems, |at, value| {
        if value == table_address && modules.len() < POINTERS {
            modules.push((at, [0; TEXT + 1]));
        }
    });
    pointers(elf, problems, |at, value| {
        for (start, words) in &mut modules {
            let index = at.wrapping_sub(*start) / word;
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if let Some(slot) = words.get_mut(index) {
                *slot = value;
            }
        }
    });
    let first = table.start(0)?;
    let last = table.start(table.count())?;
    let mut texts = modules.iter().filter_map(|(_, words)| {
        // The table counts from the start of the text, as that is 0 in it.
        let text = words[TEXT];
        let is_right = text.checked_add(first) == Some(words[FIRST])
            && text.checked_add(last) == Some(words[LAST]);
        (is_right && text != 0).then_some(text)
    });
    texts.next()
}

// The words of data, and what the dynamic linker writes there, with their addresses.
fn pointers(elf: &Elf, problems: &mut Vec<String>, mut pointer: impl FnMut(u64, u64)) {
    slots::words(elf, problems, &|s| s.is_data(), &mut pointer);
    slots::visit(elf, problems, |at, target, _| {
        if let SlotTarget::Address(target) = target {
            pointer(at, target.0);
        }
    });
}
