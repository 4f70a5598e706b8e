//! From where an instruction leads to what it calls.

use rustc_hash::FxHashMap;

use super::CodeFunctionId;
use super::flow::{Flow, Step};
use super::function_starts::Starts;
use crate::base::Svma;
use crate::binary::{
    Binary, Code, CodePiece, FunctionSymbol, Machine, Reference, References, SlotTarget, Slots,
    SymbolSource,
};

/// What is called, before imports have ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Function(CodeFunctionId),
    Import(Import),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Import {
    Stub(u32),
    Symbol(u32),
    ChosenBy(u32),
}

/// How a function is referred to, before parts are distinguished from functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Tail,
    Import,
    Pointer,
    /// A jump from nameless code into the middle of a function.
    Back,
    /// A call into the middle of another function: Go's `duffzero` and `duffcopy` are entered so as
    /// to clear or copy the rest.
    Inside,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) at: u64,
    pub(super) length: u8,
    pub(super) kind: Kind,
    /// Whether it is a jump, also to what an import is.
    pub(super) is_jump: bool,
    pub(super) caller: CodeFunctionId,
    pub(super) target: Target,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lot<'a> {
    pub(super) caller: CodeFunctionId,
    pub(super) symbol: &'a FunctionSymbol,
    pub(super) piece: CodePiece,
    pub(super) start: u64,
}

impl Lot<'_> {
    /// The place in the file behind its last byte.
    pub(super) fn end(&self) -> u64 {
        self.piece.offset.0.saturating_add(self.piece.length)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch<'a> {
    pub(super) caller: CodeFunctionId,
    pub(super) symbol: &'a FunctionSymbol,
    pub(super) bytes: &'a [u8],
    pub(super) start: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolved {
    Site(Kind, Target),
    /// A jump within the function, a call of the next instruction, or an address of something else.
    Within,
    /// A call to an address that is in no other function.
    Astray,
    UnknownCall,
    UnknownJump,
}

pub(super) struct Facts<'a> {
    pub(super) binary: &'a Binary,
    pub(super) code: &'a Code<'a>,
    pub(super) slots: &'a Slots,
    pub(super) references: &'a References,
    pub(super) ids: &'a [Option<CodeFunctionId>],
}

pub(super) struct Resolver<'a> {
    facts: Facts<'a>,
    choosers: Vec<Svma>,
    starts: Starts<'a>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(facts: Facts<'a>) -> Resolver<'a> {
        Resolver {
            choosers: facts.slots.choosers(),
            starts: Starts::new(facts.binary.functions()),
            facts,
        }
    }

    pub(super) fn choosers(&self) -> &[Svma] {
        &self.choosers
    }

    pub(super) fn resolve(&self, stretch: &Stretch, step: &Step) -> Resolved {
        if let Some(reference) = self.facts.references.at(Svma(step.field)) {
            return self.referenced(stretch, step, reference);
        }
        match step.flow {
            Flow::Address(to)
                if self.starts.index(to).is_none() || !self.is_address(stretch, step, to) =>
            {
                Resolved::Within
            }
            flow => self.stated(stretch, step, flow),
        }
    }

    /// What a step leads to that a linker is yet to fill in.
    fn referenced(&self, stretch: &Stretch, step: &Step, reference: Reference) -> Resolved {
        let moved = match (step.flow, reference) {
            (Flow::Call(_), Reference::To(to)) => {
                return self.call(to).unwrap_or(Resolved::Astray);
            }
            (Flow::Call(_) | Flow::CallSlot(_) | Flow::CallUnknown, Reference::SlotOf(to)) => {
                return self.call(to).unwrap_or(Resolved::UnknownCall);
            }
            (Flow::Jump(_), Reference::To(to)) => {
                return self.jump(stretch, to).unwrap_or(Resolved::Within);
            }
            (Flow::Jump(_) | Flow::JumpSlot(_) | Flow::JumpUnknown, Reference::SlotOf(to)) => {
                return self.jump(stretch, to).unwrap_or(Resolved::UnknownJump);
            }
            (Flow::Address(_), Reference::To(to))
            | (Flow::Address(_) | Flow::LoadSlot(_), Reference::SlotOf(to)) => {
                return self.pointer(to).unwrap_or(Resolved::Within);
            }
            (Flow::CallSlot(_), Reference::To(SlotTarget::Address(slot))) => Flow::CallSlot(slot.0),
            (Flow::JumpSlot(_), Reference::To(SlotTarget::Address(slot))) => Flow::JumpSlot(slot.0),
            (Flow::LoadSlot(_), Reference::To(SlotTarget::Address(slot))) => Flow::LoadSlot(slot.0),
            (Flow::Call(_), Reference::Other) => return Resolved::Astray,
            (Flow::CallSlot(_) | Flow::CallUnknown, _) => Flow::CallUnknown,
            (Flow::JumpSlot(_) | Flow::JumpUnknown, _) => Flow::JumpUnknown,
            (Flow::Jump(_) | Flow::Address(_) | Flow::LoadSlot(_), _) => return Resolved::Within,
        };
        self.stated(stretch, step, moved)
    }

    fn stated(&self, stretch: &Stretch, step: &Step, flow: Flow) -> Resolved {
        let address = |to| SlotTarget::Address(Svma(to));
        match flow {
            Flow::Call(to) => {
                let called = self.call(address(to));
                called.unwrap_or_else(|| self.inside(stretch, step, to))
            }
            Flow::Jump(to) => {
                // Most jumps stay in the function, and there no other one starts.
                let inside = to.wrapping_sub(stretch.start) < stretch.bytes.len() as u64;
                if inside && to != stretch.start {
                    return Resolved::Within;
                }
                let leads = self.jump(stretch, address(to));
                leads.unwrap_or_else(|| self.back(stretch, to))
            }
            Flow::CallSlot(slot) => {
                let to = self.slot(slot).and_then(|to| self.call(to));
                to.unwrap_or(Resolved::UnknownCall)
            }
            Flow::JumpSlot(slot) => {
                let to = self.slot(slot).and_then(|to| self.jump(stretch, to));
                to.unwrap_or(Resolved::UnknownJump)
            }
            Flow::CallUnknown => Resolved::UnknownCall,
            Flow::JumpUnknown => Resolved::UnknownJump,
            Flow::Address(to) => self.pointer(address(to)).unwrap_or(Resolved::Within),
            Flow::LoadSlot(slot) => {
                let to = self.slot(slot).and_then(|to| self.pointer(to));
                to.unwrap_or(Resolved::Within)
            }
        }
    }

    pub(super) fn called(&self, flow: Flow) -> Option<Resolved> {
        match flow {
            Flow::Call(to) => self.call(SlotTarget::Address(Svma(to))),
            Flow::CallSlot(slot) => self.call(self.slot(slot)?),
            _ => None,
        }
    }

    pub(super) fn slot_leads(&self, slot: u64) -> bool {
        self.slot(slot).is_some_and(|to| self.target(to).is_some())
    }

    fn slot(&self, slot: u64) -> Option<SlotTarget> {
        self.facts.slots.target(Svma(slot))
    }

    fn call(&self, to: SlotTarget) -> Option<Resolved> {
        let target = self.target(to)?;
        Some(Resolved::Site(kind(target, Kind::Call), target))
    }

    fn jump(&self, stretch: &Stretch, to: SlotTarget) -> Option<Resolved> {
        let target = self.target(to)?;
        if target == Target::Function(stretch.caller) {
            return Some(Resolved::Within);
        }
        Some(Resolved::Site(kind(target, Kind::Tail), target))
    }

    fn pointer(&self, to: SlotTarget) -> Option<Resolved> {
        if let SlotTarget::Symbol(symbol) = to
            && !self.facts.slots.is_function(symbol)
        {
            return None;
        }
        Some(Resolved::Site(Kind::Pointer, self.target(to)?))
    }

    /// What a jump to an address is at which nothing starts. From nameless code that may be a
    /// part it shows which function the part belongs to.
    fn back(&self, stretch: &Stretch, to: u64) -> Resolved {
        if stretch.symbol.source == SymbolSource::Unwind
            && let Some(into) = self.facts.binary.function_at(Svma(to))
            && let Some(Target::Function(id)) = self.starting_at(into.start.0)
            && id != stretch.caller
        {
            return Resolved::Site(Kind::Back, Target::Function(id));
        }
        Resolved::Within
    }

    // What a call of an address is at which nothing starts. One of the next instruction is how code
    // of 32 bits finds out where it is.
    fn inside(&self, stretch: &Stretch, step: &Step, to: u64) -> Resolved {
        if to == step.at.wrapping_add(u64::from(step.length)) {
            return Resolved::Within;
        }
        let into = self.facts.binary.function_at(Svma(to));
        match into.and_then(|into| self.starting_at(into.start.0)) {
            Some(Target::Function(id)) if id != stretch.caller => {
                Resolved::Site(Kind::Inside, Target::Function(id))
            }
            _ => Resolved::Astray,
        }
    }

    // Whether an operand with the value of a function's start is an address. In code that is moved,
    // when it is loaded or when it is linked, numbers in instructions of x86 are none: only
    // distances are.
    fn is_address(&self, stretch: &Stretch, step: &Step, to: u64) -> bool {
        let Facts { binary, code, .. } = &self.facts;
        match code.machine {
            _ if binary.is_fixed() => true,
            Machine::X86 => binary.is_linked(),
            Machine::X86_64 => {
                let behind = step.field.wrapping_add(4);
                let from = step.field.wrapping_sub(stretch.start) as usize;
                let field = stretch.bytes.get(from..).and_then(<[u8]>::first_chunk);
                let distance = field.map(|field| i64::from(i32::from_le_bytes(*field)));
                distance.is_some_and(|distance| behind.wrapping_add_signed(distance) == to)
            }
            _ => true,
        }
    }

    pub(super) fn target(&self, to: SlotTarget) -> Option<Target> {
        match to {
            SlotTarget::Address(start) => self.starting_at(start.0),
            SlotTarget::Symbol(symbol) => Some(Target::Import(Import::Symbol(symbol))),
            SlotTarget::ChosenBy(by) => {
                let index = self.choosers.binary_search(&by).ok()?;
                let index = u32::try_from(index).ok()?;
                Some(Target::Import(Import::ChosenBy(index)))
            }
        }
    }

    fn starting_at(&self, start: u64) -> Option<Target> {
        let index = self.starts.index(start)?;
        if let Some(id) = id_at(self.facts.ids, index) {
            return Some(Target::Function(id));
        }
        let symbol = self.facts.binary.functions().get(index)?;
        let stub = symbol.source == SymbolSource::Plt;
        let index = u32::try_from(index).ok()?;
        stub.then_some(Target::Import(Import::Stub(index)))
    }

    pub(super) fn import_name(&self, import: Import) -> String {
        let (name, start) = match import {
            Import::Symbol(symbol) => (self.facts.slots.name(symbol), u64::from(symbol)),
            Import::Stub(index) => self.name_at(index as usize),
            Import::ChosenBy(index) => {
                let start = self.choosers.get(index as usize).map_or(0, |at| at.0);
                let named = self.facts.binary.chosen_name(Svma(start));
                match self.starts.index(start) {
                    Some(index) if named.is_none() => self.name_at(index),
                    _ => (named, start),
                }
            }
        };
        match name {
            Some(name) => name.strip_suffix("@plt").unwrap_or(&name).to_owned(),
            None => format!("*ABS*+{start:#x}"),
        }
    }

    fn name_at(&self, index: usize) -> (Option<std::borrow::Cow<'_, str>>, u64) {
        let symbol = self.facts.binary.functions().get(index);
        let name = symbol.and_then(|symbol| self.facts.binary.function_name(symbol));
        (name, symbol.map_or(0, |symbol| symbol.start.0))
    }

    /// The functions that the file both defines and imports, by linkage name.
    pub(super) fn own_symbols(&self) -> FxHashMap<String, CodeFunctionId> {
        let slots = self.facts.slots;
        let mut own = FxHashMap::default();
        for symbol in slots.defined() {
            let start = slots.definition(symbol);
            let index = start.and_then(|start| self.starts.index(start.0));
            let id = index.and_then(|index| id_at(self.facts.ids, index));
            if let (Some(name), Some(id)) = (slots.name(symbol), id) {
                own.insert(name.into_owned(), id);
            }
        }
        own
    }
}

/// What goes to a function is of this kind; what goes by name is an import.
fn kind(target: Target, own: Kind) -> Kind {
    match target {
        Target::Function(_) => own,
        Target::Import(_) => Kind::Import,
    }
}

pub(super) fn id_at(ids: &[Option<CodeFunctionId>], index: usize) -> Option<CodeFunctionId> {
    ids.get(index).copied().flatten()
}
