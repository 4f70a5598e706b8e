//! Names kept once and spoken of by id.

use std::collections::HashMap;
use std::sync::Arc;

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
    names: IdVec<NameId, Arc<str>>,
    ids: HashMap<Arc<str>, NameId>,
}

impl Interner {
    /// The id of `name`, which is added when it is new.
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let name: Arc<str> = name.into();
        let id = self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }
}

impl std::ops::Index<NameId> for Interner {
    type Output = str;
    fn index(&self, id: NameId) -> &str {
        &self.names[id]
    }
}
