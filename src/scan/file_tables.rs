//! The tables of a file that are read before its code, for all functions or for a single one.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use rustc_hash::{FxBuildHasher, FxHashSet};

use super::CodeFunctionId;
use super::part_names;
use super::resolve::{Facts, Lot, Resolver, id_at};
use crate::base::{IdVec, Svma};
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
    // Read once somebody asks.
    names: OnceLock<FunctionNames>,
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
            names: OnceLock::new(),
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
        let index = self.index(Svma(start));
        let index = index.filter(|&index| self.id(index).is_some());
        let symbol = index.and_then(|index| self.binary.functions().get(index));
        symbol.is_some_and(|symbol| {
            let name = self.binary.function_name(symbol);
            symbol.source != SymbolSource::Unwind
                && name.is_some_and(|name| part_names::whole(&name) == name)
        })
    }

    pub(super) fn id(&self, index: usize) -> Option<CodeFunctionId> {
        id_at(&self.ids, index)
    }

    /// The function that starts here, if one does.
    pub(super) fn starting_at(&self, start: Svma) -> Option<CodeFunctionId> {
        self.id(self.index(start)?)
    }

    fn index(&self, start: Svma) -> Option<usize> {
        let functions = self.binary.functions();
        let by_start = |symbol: &FunctionSymbol| symbol.start;
        functions.binary_search_by_key(&start, by_start).ok()
    }

    /// The function that has this address.
    pub(super) fn id_at(&self, at: Svma) -> Option<CodeFunctionId> {
        self.starting_at(self.binary.function_at(at)?.start)
    }

    /// The linkage name of a function.
    pub(super) fn name(&self, id: CodeFunctionId) -> Option<Cow<'_, str>> {
        self.binary.function_name(&self.symbols[id])
    }

    /// The code of these functions.
    pub(super) fn lots_of_functions(&self, chosen: &FxHashSet<CodeFunctionId>) -> Vec<Lot<'_>> {
        let indices = chosen
            .iter()
            .filter_map(|&id| self.index(self.symbols[id].start));
        let stretches = indices.flat_map(|index| self.binary.stretches_of(index));
        let mut stretches: Vec<Stretch> = stretches.collect();
        stretches.sort_unstable_by_key(|stretch| stretch.start);
        self.lots_of(&stretches)
    }

    /// The names of the functions that have parts.
    pub(super) fn split_functions(&self) -> &FxHashSet<String> {
        &self.names().split
    }

    /// The functions that have one of these names but for what marks a part.
    pub(super) fn named(&self, wholes: &FxHashSet<&str>) -> Vec<CodeFunctionId> {
        let hashes: FxHashSet<u64> = wholes
            .iter()
            .map(|whole| FxBuildHasher.hash_one(whole))
            .collect();
        let alike = self.names().wholes.enumerate();
        let alike = alike.filter(|(_, hash)| hashes.contains(hash));
        let named = alike.filter(|&(id, _)| {
            let name = self.name(id);
            name.is_some_and(|name| wholes.contains(part_names::whole(&name)))
        });
        named.map(|(id, _)| id).collect()
    }

    /// Whether a function is, by its name, a part of another one.
    pub(super) fn is_named_as_part(&self, id: CodeFunctionId) -> bool {
        self.names().are_parts[id]
    }

    /// Whether two functions may have one name but for what marks a part. Most have not, and their
    /// names need not be compared.
    pub(super) fn may_share_a_name(&self, a: CodeFunctionId, b: CodeFunctionId) -> bool {
        let wholes = &self.names().wholes;
        wholes[a] == wholes[b]
    }

    fn names(&self) -> &FunctionNames {
        self.names.get_or_init(|| FunctionNames::read(self))
    }
}

/// The names of a file, half a million perhaps, looked at once.
struct FunctionNames {
    /// The names of the functions that have parts.
    split: FxHashSet<String>,
    /// For each function the hash of its name without what marks a part; 0 for none.
    wholes: IdVec<CodeFunctionId, u64>,
    /// For each function whether its name marks it as a part.
    are_parts: IdVec<CodeFunctionId, bool>,
}

impl FunctionNames {
    fn read(tables: &FileTables) -> FunctionNames {
        let mut names = FunctionNames {
            split: FxHashSet::default(),
            wholes: IdVec::filled(0, tables.symbols.len()),
            are_parts: IdVec::filled(false, tables.symbols.len()),
        };
        let functions = tables.binary.functions().iter();
        for (function, id) in functions.zip(&tables.ids) {
            let Some(name) = tables.binary.function_name(function) else {
                continue;
            };
            let whole = part_names::whole(&name);
            if whole != name && !names.split.contains(whole) {
                names.split.insert(whole.to_owned());
            }
            if let Some(id) = *id {
                names.wholes[id] = FxBuildHasher.hash_one(whole);
                names.are_parts[id] = whole != name;
            }
        }
        names
    }
}
