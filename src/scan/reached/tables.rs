//! The tables of switches that code takes the addresses of, and where their entries lead.

use super::Follower;
use crate::base::Svma;
use crate::binary::SlotTarget;
use crate::scan::CodeFunctionId;

// The bytes of a table that are read at once, and how many entries it may have.
const PIECE: usize = 256;
const ENTRIES: usize = 1 << 16;

impl Follower<'_, '_> {
    /// Adds the addresses of tables that stand in memory operands with nothing but an index:
    /// `jmp *table(,%rax,8)` and `mov table(,%rax,8),%rax`.
    pub(super) fn add_absolute(&mut self, bytes: &[u8], bit: usize) {
        for (index, window) in bytes.windows(7).enumerate() {
            let (is_jump, is_load) = (
                window[0] == 0xff && window[1] == 0x24,
                window[0] == 0x8b && window[1] & 0xc7 == 4,
            );
            // The scale is 8 and there is no base.
            if !(is_jump || is_load) || window[2] & 0xc7 != 0xc5 {
                continue;
            }
            // Prefixes stand before the opcode.
            let begins = (0..3).any(|before| {
                let bit = index
                    .checked_sub(before)
                    .and_then(|index| bit.checked_add(index));
                bit.is_some_and(|bit| self.reached.has(bit))
            });
            if begins && let Some(field) = window[3..].first_chunk() {
                let address = i64::from(i32::from_le_bytes(*field)).cast_unsigned();
                self.addresses.push(address);
            }
        }
    }

    /// Takes the addresses that the code of a stretch takes for those of tables, and adds where
    /// their entries lead.
    pub(super) fn read_tables(&mut self, stretch: usize) {
        let mut tables = std::mem::take(&mut self.addresses);
        tables.sort_unstable();
        tables.dedup();
        let Some(whole) = self.lots.get(stretch).map(|lot| self.whole(lot.caller)) else {
            return;
        };
        for (place, &table) in tables.iter().enumerate() {
            // The next table ends this one.
            let end = tables.get(place + 1).copied().unwrap_or(u64::MAX);
            let first = self.tables.binary.bytes_at::<4>(Svma(table));
            let Some(first) = first else { continue };
            let to = table.wrapping_add_signed(i64::from(i32::from_le_bytes(first)));
            if self.reached.place(to).is_some() {
                self.read_distances(table, end, (stretch, whole));
            }
            let pointed = self.tables.slots().target(Svma(table)).is_some();
            let low = u64::from(u32::from_le_bytes(first));
            if pointed || self.reached.place(low).is_some() {
                self.read_pointers(table, end, (stretch, whole));
            }
        }
        self.addresses = tables;
        self.addresses.clear();
    }

    fn whole(&self, id: CodeFunctionId) -> CodeFunctionId {
        let function = self.calls.functions.get(id);
        function.and_then(|function| function.part_of).unwrap_or(id)
    }

    /// A table of distances from itself.
    fn read_distances(&mut self, table: u64, end: u64, own: (usize, CodeFunctionId)) {
        let mut at = table;
        for _ in 0..ENTRIES * 4 / PIECE {
            let Some(piece) = self.tables.binary.bytes_at::<PIECE>(Svma(at)) else {
                break;
            };
            for entry in piece.as_chunks::<4>().0 {
                let to = table.wrapping_add_signed(i64::from(i32::from_le_bytes(*entry)));
                if at >= end || !self.add_entry(to, own) {
                    return;
                }
                at = at.saturating_add(4);
            }
        }
        // Near the end of the section.
        for _ in 0..PIECE / 4 {
            let Some(entry) = self.tables.binary.bytes_at::<4>(Svma(at)) else {
                return;
            };
            let to = table.wrapping_add_signed(i64::from(i32::from_le_bytes(entry)));
            if at >= end || !self.add_entry(to, own) {
                return;
            }
            at = at.saturating_add(4);
        }
    }

    fn read_pointers(&mut self, table: u64, end: u64, own: (usize, CodeFunctionId)) {
        let binary = self.tables.binary;
        let mut at = table;
        let mut piece = Vec::new();
        for number in 0..ENTRIES {
            // Reading each entry by itself would take a third of all time.
            let place = number * 8 % PIECE;
            if place == 0 {
                let read = binary.bytes_at::<PIECE>(Svma(at));
                piece = read.map(Vec::from).unwrap_or_default();
            }
            let entry = piece.get(place..).and_then(<[u8]>::first_chunk);
            let to = match self.tables.slots().target(Svma(at)) {
                Some(SlotTarget::Address(to)) => to.0,
                Some(_) => return,
                None => match entry.copied().or_else(|| binary.bytes_at(Svma(at))) {
                    Some(bytes) => u64::from_le_bytes(bytes),
                    None => return,
                },
            };
            if at >= end || !self.add_entry(to, own) {
                return;
            }
            at = at.saturating_add(8);
        }
    }

    /// Adds an address that an entry leads to. Returns whether it is one of the function or of its
    /// parts.
    fn add_entry(&mut self, to: u64, (stretch, whole): (usize, CodeFunctionId)) -> bool {
        let Some((found, bit)) = self.reached.place(to) else {
            return false;
        };
        let Some(lot) = self.lots.get(found) else {
            return false;
        };
        // A part that was moved elsewhere, of which nothing else may say whose it is.
        let is_moved = lot.symbol.begins_with_a_frame();
        if lot.caller != whole && self.whole(lot.caller) != whole && !is_moved {
            return false;
        }
        if !self.reached.has(bit) {
            match self.reached.stretches.get(stretch) {
                Some(&(start, _, _)) if found == stretch => {
                    self.local.push(to.wrapping_sub(start) as usize);
                }
                _ => self.elsewhere.push(to),
            }
        }
        true
    }
}
