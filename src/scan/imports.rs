//! Gives imports their ids, one per name.

use rustc_hash::FxHashMap;

use super::resolve::{Import, Resolver};
use super::thunks::Thunk;
use super::{Callee, CodeFunctionId, ImportId};
use crate::base::IdVec;

pub(super) struct Imports<'a> {
    resolver: &'a Resolver<'a>,
    // Names that the file imports although it defines them: others might define them too.
    own: FxHashMap<String, CodeFunctionId>,
    known: FxHashMap<Import, Callee>,
    thunks: FxHashMap<Import, Option<Thunk>>,
    ids: FxHashMap<String, ImportId>,
    pub(super) names: IdVec<ImportId, String>,
}

impl<'a> Imports<'a> {
    pub(super) fn new(resolver: &'a Resolver<'a>) -> Imports<'a> {
        Imports {
            resolver,
            own: resolver.own_symbols(),
            known: FxHashMap::default(),
            thunks: FxHashMap::default(),
            ids: FxHashMap::default(),
            names: IdVec::new(),
        }
    }

    pub(super) fn callee(&mut self, import: Import) -> Callee {
        if let Some(callee) = self.known.get(&import) {
            return *callee;
        }
        let name = self.resolver.import_name(import);
        let callee = self.named(&name).unwrap_or_else(|| {
            let id = self.names.push(name.clone());
            self.ids.insert(name, id);
            Callee::Import(id)
        });
        self.known.insert(import, callee);
        callee
    }

    /// What it stands for, if it is no function that is called.
    pub(super) fn thunk(&mut self, import: Import) -> Option<Thunk> {
        let find = || Thunk::of_name(&self.resolver.import_name(import));
        *self.thunks.entry(import).or_insert_with(find)
    }

    /// What a call of it calls, if its name was seen in any form.
    pub(super) fn met(&self, import: Import) -> Option<Callee> {
        let known = self.known.get(&import).copied();
        known.or_else(|| self.named(&self.resolver.import_name(import)))
    }

    fn named(&self, name: &str) -> Option<Callee> {
        let own = self.own.get(name).copied().map(Callee::Function);
        own.or_else(|| self.ids.get(name).copied().map(Callee::Import))
    }
}
