//! The calls of single functions, for whoever asks about few functions of a large file.

use super::flow::{Flow, Step};
use super::resolve::{Kind, Resolved, Resolver, Target};
use super::tables::Tables;
use super::{tables_of_switches, workers};
use crate::base::{FileOffset, Svma};

/// How control leaves a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeavingKind {
    /// By a call, behind which it comes back.
    Call,
    /// By a jump.
    Jump,
}

/// Where control goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To the function of this file that starts here; where a compiler has split one, to a part.
    Function(Svma),
    /// To what is known by this linkage name.
    Import(String),
    /// Only a run can tell.
    Unknown,
}

/// An instruction by which control leaves a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its address.
    pub at: Svma,
    /// Its length in bytes: a call returns to `at` plus this.
    pub length: u8,
    /// How.
    pub kind: LeavingKind,
    /// Where to.
    pub to: Destination,
}

/// Reads the code of single functions.
pub struct Single<'t> {
    tables: &'t Tables<'t>,
    resolver: Resolver<'t>,
}

impl<'t> Single<'t> {
    /// Of the file of these tables.
    pub fn new(tables: &'t Tables<'t>) -> Single<'t> {
        Single {
            resolver: tables.resolver(),
            tables,
        }
    }

    /// How control leaves the function that starts here, in order of address; `None` where no
    /// function starts or its code cannot be read. What leads back into the function is not told,
    /// but for a call of its own start; the tables of switches do, as far as they can be told from
    /// calls through pointers.
    pub fn leaving(&self, start: Svma) -> Option<Vec<Leaving>> {
        let mut found = Vec::new();
        self.read(start, |step, resolved, is_table| {
            let to = self.destination(resolved).filter(|_| !is_table);
            if let (Some(kind), Some(to)) = (kind(step.flow), to) {
                found.push(Leaving {
                    at: Svma(step.at),
                    length: step.length,
                    kind,
                    to,
                });
            }
        })?;
        Some(found)
    }

    /// The functions of the file whose addresses the function that starts here takes, in order of
    /// address; `None` where no function starts or its code cannot be read.
    pub fn addresses_taken(&self, start: Svma) -> Option<Vec<Svma>> {
        let mut taken = Vec::new();
        self.read(start, |_, resolved, _| {
            if let Resolved::Site(Kind::Pointer, Target::Function(id)) = resolved {
                taken.push(self.tables.symbols[id].start);
            }
        })?;
        taken.sort_unstable();
        taken.dedup();
        Some(taken)
    }

    /// Tells what the instructions of the function that starts here refer to, and whether it is a
    /// jump through the table of a switch.
    fn read(&self, start: Svma, mut tell: impl FnMut(&Step, Resolved, bool)) -> Option<()> {
        let index = self
            .tables
            .binary
            .functions()
            .partition_point(|f| f.start < start);
        let symbol = self.tables.binary.functions().get(index)?;
        self.tables.id(index).filter(|_| symbol.start == start)?;
        let lots = self.tables.lots_of(&self.tables.binary.stretches_of(index));
        let scan = self.tables.scan(&self.resolver);
        let (mut steps, mut buffer) = (Vec::new(), Vec::new());
        for lot in &lots {
            let bytes = self.tables.code.read(lot.piece, &mut buffer).ok()?;
            let machine = self.tables.code.machine;
            workers::scan_lot(&scan, lot, bytes, &mut steps, |step, resolved| {
                let is_table = resolved == Resolved::UnknownJump
                    && tables_of_switches::is_jump(machine, bytes, step.at.wrapping_sub(lot.start));
                tell(step, resolved, is_table);
            });
        }
        Some(())
    }

    /// Where in the file a byte of code is.
    pub fn offset(&self, at: Svma) -> Option<FileOffset> {
        let piece = self.tables.code.piece(at, Svma(at.0.checked_add(1)?))?;
        Some(piece.offset)
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

/// How an instruction leaves; `None` if it goes nowhere.
fn kind(flow: Flow) -> Option<LeavingKind> {
    match flow {
        Flow::Call(_) | Flow::CallSlot(_) | Flow::CallUnknown => Some(LeavingKind::Call),
        Flow::Jump(_) | Flow::JumpSlot(_) | Flow::JumpUnknown => Some(LeavingKind::Jump),
        Flow::Address(_) | Flow::LoadSlot(_) => None,
    }
}
