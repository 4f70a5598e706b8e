//! A table of distinct rows, each found by its contents.

use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::{Id, IdVec};

/// Rows that are kept once, in order of first appearance. The index takes about six bytes per row
/// on top of the rows, as there may be many millions. Hashes have a random seed, so that no file
/// can be made whose rows collide; the order of rows does not depend on them.
///
/// ```
/// use proftool::base::{Distinct, Id, NameId};
/// let mut names: Distinct<NameId, &str> = Distinct::default();
/// let main = names.id_of("main");
/// assert_eq!(names.id_of("main"), main);
/// assert_ne!(names.id_of("exit"), main);
/// assert_eq!(names.rows().len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Distinct<I, T> {
    rows: IdVec<I, T>,
    ids: HashTable<I>,
    hasher: DefaultHashBuilder,
}

impl<I: Id, T: Hash + Eq> Distinct<I, T> {
    /// The id of this row, which is added when it is new.
    pub fn id_of(&mut self, row: T) -> I {
        let rows = &mut self.rows;
        let hasher = &self.hasher;
        let hash = |row: &T| hasher.hash_one(row);
        let entry = self
            .ids
            .entry(hash(&row), |&id| rows[id] == row, |&id| hash(&rows[id]));
        match entry {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let id = rows.push(row);
                entry.insert(id);
                id
            }
        }
    }

    /// The rows so far.
    pub fn rows(&self) -> &IdVec<I, T> {
        &self.rows
    }

    /// The rows alone, when no more are to come.
    pub fn into_rows(self) -> IdVec<I, T> {
        self.rows
    }
}

impl<I: Id, T> Default for Distinct<I, T> {
    fn default() -> Self {
        Distinct {
            rows: IdVec::new(),
            ids: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}
