//! The calls of single functions, for callers that need only a few functions of a large file.

use serde::{Deserialize, Serialize};

use super::file_tables::FileTables;
use super::flow::{Flow, Step};
use super::resolve::{Kind, Lot, Resolved, Resolver, Stretch, Target};
use super::switch_tables::{MappedCode, SwitchJumps};
use super::workers::Scan;
use super::{part_names, workers, x86};
use crate::base::Svma;
use crate::binary::{FunctionSymbol, Machine};

/// How control leaves a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeavingKind {
    /// By a call, behind which it comes back.
    Call,
    Jump,
}

/// Where control goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Destination {
    /// To the function of this file that starts here; where a compiler has split one, to a part.
    Function(Svma),
    /// To what is known by this linkage name.
    Import(String),
    /// It is known only at run time.
    Unknown,
}

/// An instruction by which control leaves a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    pub at: Svma,
    /// Its length in bytes: a call returns to `at` plus this.
    pub length: u8,
    pub kind: LeavingKind,
    pub to: Destination,
}

/// All ways in which control leaves a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exits {
    /// In order of address.
    pub sites: Vec<Leaving>,
    /// Whether all bytes of the function are instructions, so that nothing can be hidden in it.
    pub is_complete: bool,
}

impl Default for Exits {
    fn default() -> Exits {
        Exits {
            sites: Vec::new(),
            is_complete: true,
        }
    }
}

/// The functions that a function calls or jumps to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callees {
    /// Those of the file, by where they start, and parts of them; in order of address.
    pub functions: Vec<Svma>,
    /// Those that are known by name only, in order of appearance.
    pub imports: Vec<String>,
    /// Whether there are others that are known only at run time.
    pub are_more: bool,
    /// Whether all bytes of the function are instructions, so that nothing can be hidden in it.
    pub is_complete: bool,
}

impl Callees {
    fn add(&mut self, to: Destination) {
        match to {
            Destination::Function(start) => self.functions.push(start),
            Destination::Import(name) => self.imports.push(name),
            Destination::Unknown => self.are_more = true,
        }
    }
}

struct Site {
    at: u64,
    length: u8,
    kind: LeavingKind,
}

struct Piece<'a> {
    bytes: &'a [u8],
    start: u64,
    function: Svma,
}

/// Reads the code of single functions.
pub struct Single<'t> {
    tables: &'t FileTables<'t>,
    resolver: Resolver<'t>,
}

impl<'t> Single<'t> {
    pub fn new(tables: &'t FileTables<'t>) -> Single<'t> {
        Single {
            resolver: tables.resolver(),
            tables,
        }
    }

    /// Where the call leads that returns to this address, if the bytes before it have one of its
    /// usual forms on x86-64. They may be the end of something else: so this is good only to
    /// confirm a call of a function that is known to have been called.
    pub fn likely_call_before(&self, behind: Svma) -> Option<Destination> {
        if self.tables.code.machine != Machine::X86_64 {
            return None;
        }
        let from = Svma(behind.0.checked_sub(x86::call_forms::LONGEST as u64)?);
        let bytes = self.tables.binary.bytes_at(from)?;
        let called = match x86::call_forms::at_end(bytes, behind.0)? {
            Flow::CallUnknown => Resolved::UnknownCall,
            flow => self.resolver.called(flow)?,
        };
        self.destination(called)
    }

    /// What the function that starts here calls or jumps to; where a compiler has split it, also
    /// its parts. `None` where no function starts or its code cannot be read.
    pub fn callees(&self, start: Svma) -> Option<Callees> {
        let mut callees = Callees {
            is_complete: true,
            ..Callees::default()
        };
        self.read(start, |code, steps, undecoded| {
            callees.is_complete &= undecoded == 0;
            // A call that leads to no function is no site of the file.
            let is_unknown = |(_, resolved): &(Step, Resolved)| {
                matches!(resolved, Resolved::UnknownCall | Resolved::Astray)
            };
            callees.are_more |= steps.iter().any(is_unknown);
            self.leave(code, steps, start, |_, to| callees.add(to));
        })?;
        callees.functions.sort_unstable();
        callees.functions.dedup();
        Some(callees)
    }

    /// What [`Single::callees`] finds, as far as single instructions show it, in a fraction of the
    /// time: more can only be added. Jumps through registers and memory, calls of registers, and
    /// what does not look like a call or jump are left out.
    pub fn callees_in_sight(&self, start: Svma) -> Option<Callees> {
        let machine = self.tables.code.machine;
        let scan = Scan::new(self.tables, &self.resolver);
        let mut callees = Callees::default();
        let (mut steps, mut buffer) = (Vec::new(), Vec::new());
        for lot in self.lots(start)? {
            let bytes = self.tables.code.read(lot.piece, &mut buffer).ok()?;
            let stretch = Stretch {
                caller: lot.caller,
                symbol: lot.symbol,
                bytes,
                start: lot.start,
            };
            workers::walk(machine, bytes, lot.start, &scan.wants, &mut steps);
            for step in steps.drain(..) {
                match self.resolver.resolve(&stretch, &step) {
                    Resolved::UnknownCall => {
                        let from = step.at.wrapping_sub(lot.start) as usize;
                        let to = from.saturating_add(usize::from(step.length));
                        let instruction = bytes.get(from..to).unwrap_or_default();
                        callees.are_more |= machine == Machine::X86_64
                            && x86::call_forms::goes_through_memory(instruction);
                    }
                    Resolved::UnknownJump => {}
                    resolved => {
                        if let Some(to) = self.destination(resolved) {
                            callees.add(to);
                        }
                    }
                }
            }
        }
        callees.functions.sort_unstable();
        callees.functions.dedup();
        Some(callees)
    }

    /// How control leaves the function that starts here, in order of address; `None` where no
    /// function starts or its code cannot be read. What leads back into the function is left out,
    /// except a call of its own start; so are the jumps of switch tables, as far as they can be
    /// distinguished from calls through pointers. A jump into the middle of another function leads
    /// to that function, and so does code without an end to what lies behind it.
    pub fn leaving(&self, start: Svma) -> Option<Exits> {
        let mut exits = Exits::default();
        self.read(start, |code, steps, undecoded| {
            exits.is_complete &= undecoded == 0;
            self.leave(code, steps, start, |site, to| {
                exits.sites.push(Leaving {
                    at: Svma(site.at),
                    length: site.length,
                    kind: site.kind,
                    to,
                });
            });
        })?;
        exits.sites.sort_by_key(|leaving| leaving.at);
        Some(exits)
    }

    fn leave(
        &self,
        code: &Piece,
        steps: &[(Step, Resolved)],
        start: Svma,
        mut tell: impl FnMut(Site, Destination),
    ) {
        let machine = self.tables.code.machine;
        let functions = self.tables.binary.functions();
        let own = functions.partition_point(|function| function.start < start);
        let is_inside = |to: u64| {
            let at = self.tables.binary.function_at(Svma(to));
            to != start.0 && at.is_some_and(|at| at.start == start || self.is_part(at, own))
        };
        let mut tables = None;
        for (step, resolved) in steps {
            let to = match (resolved, step.flow) {
                (Resolved::UnknownJump, _) => {
                    // Only where a jump needs them: finding switch tables reads the piece again.
                    let tables = tables.get_or_insert_with(|| {
                        let place = MappedCode {
                            binary: self.tables.binary,
                            slots: self.tables.slots(),
                            machine,
                            bytes: code.bytes,
                            start: code.start,
                        };
                        SwitchJumps::of(place)
                    });
                    (!tables.has(step.at, &is_inside)).then_some(Destination::Unknown)
                }
                (
                    Resolved::Within | Resolved::Site(Kind::Back, _),
                    Flow::Jump(to) | Flow::Call(to),
                ) => self.inside_another(to, start),
                _ => self.destination(*resolved),
            };
            if let (Some(kind), Some(to)) = (kind(step.flow), to) {
                let (at, length) = (step.at, step.length);
                tell(Site { at, length, kind }, to);
            }
        }
        if machine == Machine::X86_64 {
            self.add_hidden(code, steps, &mut tell);
        }
    }

    /// Whether a function is, by its name, a part of the one at this index that was moved
    /// elsewhere.
    fn is_part(&self, part: &FunctionSymbol, of: usize) -> bool {
        let binary = self.tables.binary;
        let of = binary.functions().get(of);
        let part = binary.function_name(part);
        let of = of.and_then(|of| binary.function_name(of));
        part.zip(of)
            .is_some_and(|(part, of)| part_names::whole(&part) == part_names::whole(&of))
    }

    /// The function that has this address in its middle, unless it is the one that starts here.
    fn inside_another(&self, to: u64, start: Svma) -> Option<Destination> {
        let Some(at) = self.tables.binary.function_at(Svma(to)) else {
            return Some(Destination::Unknown);
        };
        (at.start != start).then_some(Destination::Function(at.start))
    }

    fn add_hidden(
        &self,
        code: &Piece,
        steps: &[(Step, Resolved)],
        tell: &mut impl FnMut(Site, Destination),
    ) {
        for (at, length) in x86::ends::disguised_jumps(code.bytes, code.start) {
            let kind = LeavingKind::Jump;
            tell(Site { at, length, kind }, Destination::Unknown);
        }
        let end = code.start.saturating_add(code.bytes.len() as u64);
        let ends = |step: &Step| step.at.saturating_add(u64::from(step.length)) == end;
        let last = steps
            .last()
            .map(|(step, _)| step)
            .filter(|step| ends(step) && kind(step.flow).is_some())
            .map(|step| step.at.wrapping_sub(code.start) as usize);
        // The code of a function may have others in it, which end its pieces.
        if x86::ends::falls_through(code.bytes, last)
            && let Some(destination) = self.inside_another(end, code.function)
        {
            let (at, length, kind) = (end.saturating_sub(1), 1, LeavingKind::Jump);
            tell(Site { at, length, kind }, destination);
        }
    }

    /// The functions of the file whose addresses the function that starts here takes, in order of
    /// address; `None` where no function starts or its code cannot be read.
    pub fn addresses_taken(&self, start: Svma) -> Option<Vec<Svma>> {
        let mut taken = Vec::new();
        self.read(start, |_, steps, _| {
            for (_, resolved) in steps {
                if let Resolved::Site(Kind::Pointer, Target::Function(id)) = resolved {
                    taken.push(self.tables.symbols[*id].start);
                }
            }
        })?;
        taken.sort_unstable();
        taken.dedup();
        Some(taken)
    }

    /// Tells what the instructions of the function that starts here refer to, piece by piece, and
    /// how many bytes of the piece are no instructions.
    fn read(
        &self,
        start: Svma,
        mut tell: impl FnMut(&Piece, &[(Step, Resolved)], u64),
    ) -> Option<()> {
        let lots = self.lots(start)?;
        let scan = Scan::new(self.tables, &self.resolver);
        let (mut steps, mut buffer) = (Vec::new(), Vec::new());
        let mut found = Vec::new();
        for lot in &lots {
            let bytes = self.tables.code.read(lot.piece, &mut buffer).ok()?;
            found.clear();
            let undecoded = workers::scan_lot(&scan, lot, bytes, &mut steps, |step, resolved| {
                found.push((*step, resolved));
            });
            let piece = Piece {
                bytes,
                start: lot.start,
                function: start,
            };
            tell(&piece, &found, undecoded);
        }
        Some(())
    }

    fn lots(&self, start: Svma) -> Option<Vec<Lot<'t>>> {
        let functions = self.tables.binary.functions();
        let index = functions.partition_point(|f| f.start < start);
        let symbol = functions.get(index)?;
        self.tables.id(index).filter(|_| symbol.start == start)?;
        Some(self.tables.lots_of(&self.tables.binary.stretches_of(index)))
    }

    fn destination(&self, resolved: Resolved) -> Option<Destination> {
        match resolved {
            Resolved::Site(Kind::Pointer | Kind::Back, _) | Resolved::Within => None,
            Resolved::Site(_, Target::Function(id)) => {
                Some(Destination::Function(self.tables.symbols[id].start))
            }
            Resolved::Site(_, Target::Import(import)) => {
                Some(Destination::Import(self.resolver.import_name(import)))
            }
            Resolved::Astray | Resolved::UnknownCall | Resolved::UnknownJump => {
                Some(Destination::Unknown)
            }
        }
    }
}

fn kind(flow: Flow) -> Option<LeavingKind> {
    match flow {
        Flow::Call(_) | Flow::CallSlot(_) | Flow::CallUnknown => Some(LeavingKind::Call),
        Flow::Jump(_) | Flow::JumpSlot(_) | Flow::JumpUnknown => Some(LeavingKind::Jump),
        Flow::Address(_) | Flow::LoadSlot(_) => None,
    }
}
