//! The tables of a file that are read before its code, for all functions or for a single one.

use std::sync::OnceLock;

use rustc_hash::FxHashSet;

use super::CodeFunctionId;
use super::resolve::{Facts, Lot, Resolver, id_at};
use super::split_functions;
use crate::base::IdVec;
use crate::binary::{
    Binary, Code, Error, FunctionSymbol, References, Slots, Stretch, SymbolSource,
};

/// The functions of a file, where their code is, and what the pointers between them are.
pub struct FileTables<'b> {
    pub(super) binary: &'b Binary,
    pub(super) code: Code<'b>,
    // The functions, without the stubs of linkage tables.
    pub(super) symbols: IdVec<CodeFunctionId, FunctionSymbol>,
    /// For each of [`Binary::functions`] its id, if it is one.
    ids: Vec<Option<CodeFunctionId>>,
    slots: Slots,
    references: References,
    // The names of functions that have parts elsewhere, once somebody asks.
    split: OnceLock<FxHashSet<String>>,
}

impl<'b> FileTables<'b> {
    /// Reads them.
    ///
    /// # Errors
    /// For a machine whose instructions are not known here: see
    /// [`Machine`](crate::binary::Machine).
    pub fn read(binary: &'b Binary) -> Result<FileTables<'b>, Error> {
        let code = binary.code()?;
        let mut symbols = IdVec::new();
        let ids = binary
            .functions()
            .iter()
            .map(|symbol| {
                // A linkage table as a whole has bounds, but it is no function.
                let nameless = symbol.source == SymbolSource::Unwind;
                let table = nameless && code.piece(symbol.start, symbol.end()).is_none();
                let stub = symbol.source == SymbolSource::Plt;
                (!table && !stub).then(|| symbols.push(*symbol))
            })
            .collect();
        Ok(FileTables {
            slots: binary.slots(),
            references: binary.references(),
            binary,
            code,
            symbols,
            ids,
            split: OnceLock::new(),
        })
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let parts = [
            &self.code.problems,
            &self.slots.problems,
            &self.references.problems,
        ];
        let mut problems: Vec<String> = Vec::new();
        for problem in parts.into_iter().flatten() {
            if !problems.contains(problem) {
                problems.push(problem.clone());
            }
        }
        problems
    }

    pub(super) fn resolver(&self) -> Resolver<'_> {
        Resolver::new(Facts {
            binary: self.binary,
            code: &self.code,
            slots: &self.slots,
            references: &self.references,
            ids: &self.ids,
        })
    }

    pub(super) fn lots(&self) -> Vec<Lot<'_>> {
        self.lots_of(&self.binary.stretches())
    }

    pub(super) fn lots_of(&self, stretches: &[Stretch]) -> Vec<Lot<'_>> {
        let lots = stretches.iter().filter_map(|stretch| {
            Some(Lot {
                caller: id_at(&self.ids, stretch.function)?,
                symbol: self.binary.functions().get(stretch.function)?,
                piece: self.code.piece(stretch.start, stretch.end)?,
                start: stretch.start.0,
            })
        });
        lots.collect()
    }

    /// Whether a function with a name starts there, and no part of one.
    pub(super) fn is_named(&self, start: u64) -> bool {
        let functions = self.binary.functions();
        let index = functions
            .binary_search_by_key(&start, |symbol| symbol.start.0)
            .ok()
            .filter(|&index| self.id(index).is_some());
        let symbol = index.and_then(|index| functions.get(index));
        symbol.is_some_and(|symbol| {
            let name = self.binary.function_name(symbol);
            symbol.source != SymbolSource::Unwind
                && name.is_some_and(|name| split_functions::whole(&name) == name)
        })
    }

    pub(super) fn id(&self, index: usize) -> Option<CodeFunctionId> {
        id_at(&self.ids, index)
    }

    pub(super) fn split_functions(&self) -> &FxHashSet<String> {
        self.split
            .get_or_init(|| split_functions::split(self.binary))
    }
}
