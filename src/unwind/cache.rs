//! A cache of unwind rows: nearly every frame of a recording is at one of a few thousand
//! addresses.

use hashbrown::HashMap;

use super::arch::Arch;
use super::code::{CodeAt, ProcessCode};
use super::row::UnwindRow;
use super::rules::Scratch;
use crate::base::{Distinct, Svma, define_id};

define_id! {
    /// A distinct row.
    RowId
}

/// What is known of an address.
pub(super) enum Known<'a> {
    /// Nothing is mapped there.
    Unmapped,
    /// Code without rules.
    Unruled,
    /// The file at hand is for another machine than the code: nothing is known of it.
    Foreign,
    /// The first instructions of a program, which nothing calls; without rules.
    Entry,
    Row(&'a UnwindRow),
}

/// A row as it is kept, in the fewest bytes.
#[derive(Clone, Copy)]
enum Kept {
    Unruled,
    Foreign,
    Entry,
    Row(RowId),
}

/// Rows by address, in two levels: by the address in memory, where each slot holds the row that was
/// used last; and by the address in the file, where every row is kept.
pub(super) struct Cache {
    recent: Box<[Recent]>,
    known: HashMap<(u32, Svma), Kept>,
    rows: Distinct<RowId, UnwindRow>,
    scratch: Scratch,
}

/// The answer for an address in the memory of one process.
#[derive(Clone, Copy)]
struct Recent {
    address: u64,
    code: u32,
    kept: Kept,
}

// The number of recent answers, as a power of two: 256 KiB of them.
const RECENT_BITS: u32 = 14;

impl Cache {
    pub(super) fn new() -> Cache {
        let none = Recent {
            address: 0,
            code: u32::MAX,
            kept: Kept::Unruled,
        };
        Cache {
            recent: vec![none; 1 << RECENT_BITS].into(),
            known: HashMap::new(),
            rows: Distinct::default(),
            scratch: Scratch::default(),
        }
    }

    pub(super) fn row<C: ProcessCode>(&mut self, code: &C, address: u64, arch: Arch) -> Known<'_> {
        // The bits of a product that depend on all bits of the address.
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_BITS);
        let at = hash as usize & (self.recent.len() - 1);
        let recent = self.recent[at];
        if recent.address == address && recent.code == code.number() {
            return self.known_as(recent.kept);
        }
        let kept = match code.place(address) {
            CodeAt::Unmapped => return Known::Unmapped,
            CodeAt::Unruled => Kept::Unruled,
            CodeAt::Ruled { rules, .. } if rules.arch() != arch => Kept::Foreign,
            CodeAt::Ruled {
                file,
                rules,
                address,
            } => match self.known.get(&(file, address)) {
                Some(&kept) => kept,
                None => {
                    let kept = match rules.row_with(address, &mut self.scratch) {
                        Some(row) => Kept::Row(self.rows.id_of(row)),
                        None if rules.is_entry(address) => Kept::Entry,
                        None => Kept::Unruled,
                    };
                    self.known.insert((file, address), kept);
                    kept
                }
            },
        };
        self.recent[at] = Recent {
            address,
            code: code.number(),
            kept,
        };
        self.known_as(kept)
    }

    fn known_as(&self, kept: Kept) -> Known<'_> {
        match kept {
            Kept::Unruled => Known::Unruled,
            Kept::Foreign => Known::Foreign,
            Kept::Entry => Known::Entry,
            Kept::Row(row) => Known::Row(&self.rows.rows()[row]),
        }
    }
}
