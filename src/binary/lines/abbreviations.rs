//! Tables of abbreviations: which attributes the entries of a unit have.

use std::sync::{Arc, Mutex, PoisonError};

use gimli::{DebugAbbrev, DebugAbbrevOffset, Reader as _};
use rustc_hash::FxHashMap;

use super::Slice;

/// The tables in `.debug_abbrev`, each read once when a unit needs it.
///
/// Tables stand one behind the other, so the start of the next one bounds the work of reading
/// one: a file whose many units point into one long table costs no more than its size.
#[derive(Debug)]
pub(super) struct Abbreviations<'b> {
    section: Slice<'b>,
    starts: Vec<usize>,
    tables: Mutex<FxHashMap<usize, Option<Arc<gimli::Abbreviations>>>>,
}

impl<'b> Abbreviations<'b> {
    /// The tables that start at these offsets.
    pub(super) fn new(section: Slice<'b>, mut starts: Vec<usize>) -> Abbreviations<'b> {
        starts.sort_unstable();
        starts.dedup();
        Abbreviations {
            section,
            starts,
            tables: Mutex::default(),
        }
    }

    /// The table at `offset`, if it can be read.
    pub(super) fn table(&self, offset: usize) -> Option<Arc<gimli::Abbreviations>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(offset).or_insert_with(|| self.read(offset));
        table.clone()
    }

    fn read(&self, offset: usize) -> Option<Arc<gimli::Abbreviations>> {
        let next = self.starts.partition_point(|&start| start <= offset);
        let end = self.starts.get(next).copied().unwrap_or(usize::MAX);
        let end = end.min(self.section.len());
        let bytes = self.section.slice().get(offset..end)?;
        let section = DebugAbbrev::new(bytes, self.section.endian());
        let table = section.abbreviations(DebugAbbrevOffset(0)).ok()?;
        Some(Arc::new(table))
    }
}
