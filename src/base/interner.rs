//! Names that are stored once and referred to by id.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::{IdVec, define_id};

define_id! {
    /// A name in an [`Interner`].
    pub NameId
}

/// A table of distinct names. Ids are given in order of first appearance, so equal input gives
/// equal ids.
///
/// ```
/// let mut names = proftool::base::Interner::default();
/// let a = names.intern("main");
/// assert_eq!(names.intern("main"), a);
/// assert_eq!(&names[a], "main");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interner {
    // All names, one after the other: a name by itself would be one more place in memory to wait
    // for.
    text: String,
    ends: IdVec<NameId, usize>,
    ids: HashTable<NameId>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    /// The id of `name`, which is added when it is new.
    pub fn intern(&mut self, name: &str) -> NameId {
        let (text, ends) = (&self.text, &self.ends);
        let hasher = &self.hasher;
        let hash = |name: &str| hasher.hash_one(name);
        let entry = self.ids.entry(
            hash(name),
            |&id| text.as_bytes()[range(ends, id)] == *name.as_bytes(),
            |&id| hash(&text[range(ends, id)]),
        );
        match entry {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.text.push_str(name);
                let id = self.ends.push(self.text.len());
                entry.insert(id);
                id
            }
        }
    }

    /// The names in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.ends.ids().map(|id| &self[id])
    }
}

impl std::ops::Index<NameId> for Interner {
    type Output = str;
    fn index(&self, id: NameId) -> &str {
        &self.text[range(&self.ends, id)]
    }
}

fn range(ends: &IdVec<NameId, usize>, id: NameId) -> Range<usize> {
    let before = id.index().checked_sub(1).map(NameId::new);
    before.map_or(0, |before| ends[before])..ends[id]
}
