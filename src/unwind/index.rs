//! Where the entry of an address stands in a section of call frame information.
//!
//! ```text
//! .eh_frame_hdr   u8 version = 1, eh_frame_ptr_enc, fde_count_enc, table_enc
//!                 the address of .eh_frame, the number of entries
//!                 { start, entry }[number], sorted by start
//! ```
//!
//! The table of `.eh_frame_hdr` is used where linkers write it as they all do: 32-bit numbers,
//! counted from the start of the section (`table_enc` 0x3b), in order. Else the entries are
//! gone through once, which costs some ten times the memory and reading all of the section.

use gimli::{BaseAddresses, CommonInformationEntry, EndianSlice, LittleEndian, UnwindSection};

use crate::binary::{FrameSection, common_entry};

/// How a section's entries are found.
#[derive(Debug)]
pub(super) enum Index {
    /// By the table that the linker made.
    Linked(Linked),
    /// By one that was made here.
    Made(Vec<Span>),
}

/// What an entry covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) entry: usize,
}

/// Where an address may be covered: by the last entry that does not begin behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Where the entry should begin.
    pub(super) start: u64,
    pub(super) entry: usize,
    /// Where the next entry begins: another candidate covers addresses from here on.
    pub(super) next: u64,
}

/// The table of `.eh_frame_hdr`.
#[derive(Debug)]
pub(super) struct Linked {
    bytes: Vec<u8>,
    /// Where in `bytes` the table begins.
    from: usize,
    /// The address of the section.
    base: u64,
    /// The address of `.eh_frame`.
    entries: u64,
}

// `DW_EH_PE_datarel | DW_EH_PE_sdata4`.
const RELATIVE: u8 = 0x3b;
// `DW_EH_PE_udata4`.
const COUNT: u8 = 0x03;
// The sizes of what is encoded as `DW_EH_PE_*4`, whatever it is counted from.
const FOUR_BYTES: [u8; 2] = [0x03, 0x0b];

impl Linked {
    /// The table, if it is one that can be believed. `entries` is the address of `.eh_frame`.
    pub(super) fn new(section: &FrameSection, entries: u64) -> Option<Linked> {
        let &[1, pointer, COUNT, RELATIVE, _, _, _, _, a, b, c, d, ..] = section.bytes.as_slice()
        else {
            return None;
        };
        if !FOUR_BYTES.contains(&(pointer & 0x0f)) {
            return None;
        }
        let from = 12;
        let count = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        let mut bytes = section.bytes.clone();
        let end = count.checked_mul(8)?.checked_add(from)?;
        if count == 0 || end > bytes.len() {
            return None;
        }
        bytes.truncate(end);
        let linked = Linked {
            bytes,
            from,
            base: section.address.0,
            entries,
        };
        let rows = linked.rows();
        let is_sorted = rows.is_sorted_by(|a, b| start_of(a) <= start_of(b));
        is_sorted.then_some(linked)
    }

    fn rows(&self) -> &[[u8; 8]] {
        self.bytes
            .get(self.from..)
            .unwrap_or_default()
            .as_chunks()
            .0
    }

    fn find(&self, address: u64) -> Option<Candidate> {
        let distance = i32::try_from(address.wrapping_sub(self.base).cast_signed()).ok()?;
        let rows = self.rows();
        let after = rows.partition_point(|row| start_of(row) <= distance);
        let row = rows.get(after.checked_sub(1)?)?;
        let [.., a, b, c, d] = *row;
        let place = |distance: i32| self.base.wrapping_add_signed(i64::from(distance));
        let entry = place(i32::from_le_bytes([a, b, c, d])).checked_sub(self.entries)?;
        Some(Candidate {
            start: place(start_of(row)),
            entry: usize::try_from(entry).ok()?,
            next: rows.get(after).map_or(u64::MAX, |row| place(start_of(row))),
        })
    }
}

fn start_of(row: &[u8; 8]) -> i32 {
    let [a, b, c, d, ..] = *row;
    i32::from_le_bytes([a, b, c, d])
}

impl Index {
    /// Goes through the entries of a section.
    pub(super) fn made<'a, S>(section: &S, bytes: &'a [u8], bases: &BaseAddresses) -> Index
    where
        S: UnwindSection<EndianSlice<'a, LittleEndian>>,
        S::Offset: From<usize>,
    {
        // What cannot be read is passed over by its size.
        let mut spans = Vec::new();
        // Entries share few common ones, and those of one stand together.
        let mut last: Option<(S::Offset, CommonInformationEntry<_>)> = None;
        let mut at = 0;
        while let Some(size) = entry_size(bytes, at) {
            let partial = section.partial_fde_from_offset(bases, S::Offset::from(at));
            let entry = partial.and_then(|partial| {
                partial.parse(|section, bases, offset| match &last {
                    Some((known, entry)) if *known == offset => Ok(entry.clone()),
                    _ => {
                        let entry = common_entry(section, bytes, bases, offset)?;
                        last = Some((offset, entry.clone()));
                        Ok(entry)
                    }
                })
            });
            if let Ok(entry) = entry
                && entry.len() > 0
                // What the linker has thrown away begins at zero, or at the end of memory.
                && entry.initial_address() != 0
                && let Some(end) = entry.initial_address().checked_add(entry.len())
            {
                let start = entry.initial_address();
                let entry = at;
                spans.push(Span { start, end, entry });
            }
            at = match at.checked_add(size) {
                Some(next) => next,
                None => break,
            };
        }
        spans.sort_by_key(|span| span.start);
        Index::Made(spans)
    }

    pub(super) fn find(&self, address: u64) -> Option<Candidate> {
        match self {
            Index::Linked(linked) => linked.find(address),
            Index::Made(spans) => {
                let after = spans.partition_point(|span| span.start <= address);
                let span = spans.get(after.checked_sub(1)?)?;
                (address < span.end).then(|| Candidate {
                    start: span.start,
                    entry: span.entry,
                    next: spans.get(after).map_or(u64::MAX, |span| span.start),
                })
            }
        }
    }
}

/// The size of the entry at `at`, with its length field; `None` at the end.
fn entry_size(bytes: &[u8], at: usize) -> Option<usize> {
    // A length of zero, which ends `.eh_frame` and may stand between the parts of several object
    // files, is an entry too.
    let rest = bytes.get(at..)?;
    let short = u32::from_le_bytes(*rest.first_chunk()?);
    if short != u32::MAX {
        return usize::try_from(short).ok()?.checked_add(4);
    }
    let long = u64::from_le_bytes(*rest.get(4..)?.first_chunk()?);
    usize::try_from(long).ok()?.checked_add(12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Svma;

    fn table(rows: &[(i32, i32)]) -> FrameSection {
        let mut bytes = vec![1, 0x1b, COUNT, RELATIVE, 0, 0, 0, 0];
        bytes.extend((rows.len() as u32).to_le_bytes());
        for (start, entry) in rows {
            bytes.extend(start.to_le_bytes());
            bytes.extend(entry.to_le_bytes());
        }
        FrameSection {
            address: Svma(0x5000),
            bytes,
        }
    }

    #[test]
    fn the_table_finds_the_last_function_that_starts_before_an_address() {
        let section = table(&[(-0x4000, 0x100), (-0x3f00, 0x120), (0x10, 0x140)]);
        let index = Index::Linked(Linked::new(&section, 0x5080).expect("a sound table"));
        let candidate = |start, entry, next| Some(Candidate { start, entry, next });
        assert_eq!(index.find(0x0fff), None);
        assert_eq!(index.find(0x1000), candidate(0x1000, 0x80, 0x1100));
        assert_eq!(index.find(0x10ff), candidate(0x1000, 0x80, 0x1100));
        assert_eq!(index.find(0x1100), candidate(0x1100, 0xa0, 0x5010));
        assert_eq!(index.find(0x9999), candidate(0x5010, 0xc0, u64::MAX));
        assert_eq!(index.find(u64::MAX), None);
        assert_eq!(index.find(1 << 40), None);
    }

    #[test]
    fn a_table_that_is_unsorted_or_truncated_is_rejected() {
        assert!(Linked::new(&table(&[(0x20, 0), (0x10, 0)]), 0).is_none());
        assert!(Linked::new(&table(&[]), 0).is_none());
        let mut cut = table(&[(0x10, 0), (0x20, 0)]);
        cut.bytes.pop();
        assert!(Linked::new(&cut, 0).is_none());
    }
}
