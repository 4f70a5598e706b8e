//! From where an instruction leads to what it calls.

use rustc_hash::FxHashMap;

use super::flow::Flow;
use super::{CallKind, CodeFunctionId, id_at};
use crate::base::Svma;
use crate::binary::{Binary, FunctionSymbol, SlotTarget, Slots, SymbolSource};

/// What is called, before imports have ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Function(CodeFunctionId),
    Import(Import),
}

/// By what an imported function is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Import {
    /// A stub, by its index among the functions of the file.
    Stub(u32),
    /// A dynamic symbol.
    Symbol(u32),
    /// The start of the function that chooses.
    ChosenBy(u64),
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolved {
    /// A call.
    Site(CallKind, Target),
    /// A jump within the function.
    Within,
    /// A call to an address at which no function starts.
    Astray,
    /// A call of something that only a run can tell.
    UnknownCall,
    /// The same for a jump.
    UnknownJump,
}

/// Knows what starts where.
pub(super) struct Resolver<'a> {
    binary: &'a Binary,
    slots: &'a Slots,
    ids: &'a [Option<CodeFunctionId>],
    /// Indices of functions by start.
    starts: FxHashMap<u64, u32>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        binary: &'a Binary,
        slots: &'a Slots,
        ids: &'a [Option<CodeFunctionId>],
    ) -> Resolver<'a> {
        let starts = binary.functions().iter().zip(0..);
        Resolver {
            binary,
            slots,
            ids,
            starts: starts
                .map(|(symbol, index)| (symbol.start.0, index))
                .collect(),
        }
    }

    /// What a step in the function that starts at `caller` leads to.
    pub(super) fn resolve(&self, caller: &FunctionSymbol, flow: Flow) -> Resolved {
        match flow {
            Flow::Call(to) => match self.at(to) {
                Some((target, kind)) => Resolved::Site(kind, target),
                None => Resolved::Astray,
            },
            Flow::Jump(to) => self.jump(caller, to).unwrap_or(Resolved::Within),
            Flow::CallSlot(slot) => match self.slot(slot) {
                Some(SlotTarget::Address(to)) => match self.at(to.0) {
                    Some((target, kind)) => Resolved::Site(kind, target),
                    None => Resolved::UnknownCall,
                },
                Some(other) => import(other).map_or(Resolved::UnknownCall, imported),
                None => Resolved::UnknownCall,
            },
            Flow::JumpSlot(slot) => match self.slot(slot) {
                Some(SlotTarget::Address(to)) => {
                    self.jump(caller, to.0).unwrap_or(Resolved::UnknownJump)
                }
                Some(other) => import(other).map_or(Resolved::UnknownJump, imported),
                None => Resolved::UnknownJump,
            },
            Flow::CallUnknown => Resolved::UnknownCall,
            Flow::JumpUnknown => Resolved::UnknownJump,
            Flow::Address(_) | Flow::LoadSlot(_) => Resolved::Within,
        }
    }

    fn slot(&self, slot: u64) -> Option<SlotTarget> {
        self.slots.target(Svma(slot))
    }

    fn index(&self, start: u64) -> Option<usize> {
        self.starts.get(&start).map(|&index| index as usize)
    }

    /// What starts at this address, and how a call of it is called.
    fn at(&self, start: u64) -> Option<(Target, CallKind)> {
        let index = self.index(start)?;
        match id_at(self.ids, index) {
            Some(id) => Some((Target::Function(id), CallKind::Call)),
            None => {
                let symbol = self.binary.functions().get(index)?;
                let stub = symbol.source == SymbolSource::Plt;
                let index = u32::try_from(index).ok()?;
                stub.then_some((Target::Import(Import::Stub(index)), CallKind::Import))
            }
        }
    }

    /// What a jump to this address is, if something starts there.
    fn jump(&self, caller: &FunctionSymbol, to: u64) -> Option<Resolved> {
        let (target, kind) = self.at(to)?;
        if kind == CallKind::Import {
            return Some(Resolved::Site(kind, target));
        }
        let callee = self.binary.functions().get(self.index(to)?)?;
        if callee.start == caller.start || self.are_parts_of_one(caller, callee) {
            return Some(Resolved::Within);
        }
        Some(Resolved::Site(CallKind::Tail, target))
    }

    /// Whether a compiler has split one function into these two.
    fn are_parts_of_one(&self, a: &FunctionSymbol, b: &FunctionSymbol) -> bool {
        match (self.binary.function_name(a), self.binary.function_name(b)) {
            (Some(a), Some(b)) => whole(&a) == whole(&b),
            _ => false,
        }
    }

    /// The linkage name of what is imported.
    pub(super) fn import_name(&self, import: Import) -> String {
        let (name, start) = match import {
            Import::Symbol(symbol) => (self.slots.name(symbol), u64::from(symbol)),
            Import::Stub(index) => self.name_at(index as usize),
            Import::ChosenBy(start) => match self.index(start) {
                Some(index) => self.name_at(index),
                None => (None, start),
            },
        };
        match name {
            Some(name) => name.strip_suffix("@plt").unwrap_or(&name).to_owned(),
            None => format!("*ABS*+{start:#x}"),
        }
    }

    fn name_at(&self, index: usize) -> (Option<std::borrow::Cow<'_, str>>, u64) {
        let symbol = self.binary.functions().get(index);
        let name = symbol.and_then(|symbol| self.binary.function_name(symbol));
        (name, symbol.map_or(0, |symbol| symbol.start.0))
    }

    /// The functions that the file both defines and imports, by linkage name.
    pub(super) fn own_symbols(&self) -> FxHashMap<String, CodeFunctionId> {
        let mut own = FxHashMap::default();
        for symbol in self.slots.defined() {
            let start = self.slots.definition(symbol);
            let index = start.and_then(|start| self.index(start.0));
            let id = index.and_then(|index| id_at(self.ids, index));
            if let (Some(name), Some(id)) = (self.slots.name(symbol), id) {
                own.insert(name.into_owned(), id);
            }
        }
        own
    }
}

fn imported(import: Import) -> Resolved {
    Resolved::Site(CallKind::Import, Target::Import(import))
}

fn import(target: SlotTarget) -> Option<Import> {
    match target {
        SlotTarget::Symbol(symbol) => Some(Import::Symbol(symbol)),
        SlotTarget::ChosenBy(start) => Some(Import::ChosenBy(start.0)),
        _ => None,
    }
}

/// The name of the function that a part belongs to. GCC and LLVM name parts `.cold`, `.cold.1`,
/// `.part.0`; versions of a function for some arguments, `.constprop.0` and `.isra.0`, are
/// functions of their own, unless they are versions of a part.
fn whole(name: &str) -> &str {
    let mut from = 0;
    while let Some(dot) = name[from..].find('.').map(|dot| from + dot) {
        let suffix = &name[dot..];
        let is_part = |mark: &str| {
            suffix
                .strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if dot > 0 && (is_part(".cold") || is_part(".part") || is_part(".__part")) {
            return &name[..dot];
        }
        from = dot + 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn parts_belong_to_their_function() {
        let cases = [
            ("f", "f"),
            ("f.cold", "f"),
            ("f.cold.1", "f"),
            ("f.part.0", "f"),
            ("f.part.0.isra.0.cold", "f"),
            ("f.constprop.0", "f.constprop.0"),
            ("f.constprop.0.cold", "f.constprop.0"),
            ("f.colder", "f.colder"),
            (".cold", ".cold"),
            ("é.cold.é", "é"),
        ];
        for (name, of) in cases {
            assert_eq!(whole(name), of, "{name}");
        }
    }
}
