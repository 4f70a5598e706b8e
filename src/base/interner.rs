//! Names that are stored once and referred to by id.

use std::hash::BuildHasher;

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
    names: IdVec<NameId, Box<str>>,
    ids: HashTable<NameId>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    /// The id of `name`, which is added when it is new.
    pub fn intern(&mut self, name: &str) -> NameId {
        let names = &mut self.names;
        let hasher = &self.hasher;
        let hash = |name: &str| hasher.hash_one(name);
        let entry = self.ids.entry(
            hash(name),
            |&id| *names[id] == *name,
            |&id| hash(&names[id]),
        );
        match entry {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let id = names.push(name.into());
                entry.insert(id);
                id
            }
        }
    }

    /// The names in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}

impl std::ops::Index<NameId> for Interner {
    type Output = str;
    fn index(&self, id: NameId) -> &str {
        &self.names[id]
    }
}
