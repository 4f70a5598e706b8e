//! Tables of abbreviations: which attributes the entries of a unit have.

use std::sync::{Arc, Mutex, PoisonError};

use gimli::{DebugAbbrev, DebugAbbrevOffset, Reader as _};
use rustc_hash::FxHashMap;

use super::Slice;
use crate::binary::budget::Account;

// Bytes of memory that a byte of a table takes at most: an abbreviation without attributes has
// four, and becomes a value of some 100.
const FACTOR: u64 = 32;

// Each table is read once when a unit needs it. Tables stand one behind the other, so the start of
// the next one bounds the work of reading one: a file whose many units point into one long table
// costs no more than its size.
#[derive(Debug)]
pub(super) struct Abbreviations<'b> {
    section: Slice<'b>,
    starts: Vec<usize>,
    tables: Mutex<FxHashMap<usize, Option<Arc<gimli::Abbreviations>>>>,
}

impl<'b> Abbreviations<'b> {
    pub(super) fn new(section: Slice<'b>, mut starts: Vec<usize>) -> Abbreviations<'b> {
        starts.sort_unstable();
        starts.dedup();
        Abbreviations {
            section,
            starts,
            tables: Mutex::default(),
        }
    }

    pub(super) fn table(
        &self,
        offset: usize,
        account: &Account,
    ) -> Option<Arc<gimli::Abbreviations>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables
            .entry(offset)
            .or_insert_with(|| self.read(offset, account));
        table.clone()
    }

    fn read(&self, offset: usize, account: &Account) -> Option<Arc<gimli::Abbreviations>> {
        let next = self.starts.partition_point(|&start| start <= offset);
        let limit = self
            .starts
            .get(next)
            .copied()
            .unwrap_or(usize::MAX)
            .min(self.section.len());
        let bytes = self.section.slice().get(offset..limit)?;
        // The last table has no end but its own, and may be followed by anything.
        let table = Slice::new(bytes, self.section.endian());
        let len = length(table).unwrap_or(bytes.len());
        if !account.take((len as u64).saturating_mul(FACTOR)) {
            return None;
        }
        let section = DebugAbbrev::new(bytes, self.section.endian());
        let table = section.abbreviations(DebugAbbrevOffset(0)).ok()?;
        Some(Arc::new(table))
    }
}

// The length of the table at the start of `bytes`, up to the zero behind its last entry:
//
//   code, tag          ULEB128         a code of 0 ends the table
//   has children       1 byte
//   name, form         ULEB128 each    up to 0, 0; DW_FORM_implicit_const is followed by a SLEB128
fn length(table: Slice<'_>) -> gimli::Result<usize> {
    let mut rest = table;
    while rest.read_uleb128()? != 0 {
        rest.skip_leb128()?;
        rest.skip(1)?;
        loop {
            let (name, form) = (rest.read_uleb128()?, rest.read_uleb128()?);
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                rest.skip_leb128()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
    Ok(table.len() - rest.len())
}
