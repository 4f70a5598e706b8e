//! The calls in machine code: where they are, what they call, and which cannot be known.
//!
//! ```text
//!   call parse          ─▶ call     parse starts exactly there, before or behind the caller
//!   jmp  lex            ─▶ tail     a jump out of the function to the start of another
//!   call write@plt      ─▶ import   by the stub's name
//!   call *slot(%rip)    ─▶ call or import, by what relocations tie the slot to
//!   call *%rax          ─▶ counted: only a run can tell
//!   jmp  *%rax          ─▶ counted apart: the table of a switch, or a tail call
//! ```
//!
//! The instructions of each function are decoded one after the other from its start, so that no
//! call is seen inside of another instruction. Each byte is decoded once, on all processors, and
//! calls come in order of address however many there are. Any bytes give an answer; bytes that
//! are no instructions are counted.
//!
//! Static arcs are gprof's idea: Susan L. Graham, Peter B. Kessler, Marshall K. McKusick, "gprof:
//! a call graph execution profiler", 1982, section 2.

mod aarch64;
mod flow;
mod held;
mod resolve;
mod riscv;
mod workers;
mod x86;

use std::num::NonZeroUsize;

use rustc_hash::FxHashMap;

use self::flow::Wants;
use self::resolve::{Import, Resolver, Target};
use self::workers::{Scan, Stretch};
use crate::base::{IdVec, Svma, define_id};
use crate::binary::{Binary, Error, FunctionSymbol, SymbolSource};

define_id! {
    /// A row of [`Calls::functions`].
    pub CodeFunctionId
}

define_id! {
    /// A row of [`Calls::imports`].
    pub ImportId
}

/// A function of the file, and what is not known about its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFunction {
    /// Where it is, and its name by [`Binary::function_name`].
    pub symbol: FunctionSymbol,
    /// Calls through a register or through memory whose callees only a run can tell.
    pub indirect_calls: u64,
    /// Jumps through a register or through memory: tables of switches, or tail calls.
    pub indirect_jumps: u64,
}

/// What kind of call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// A call of a function of the file.
    Call,
    /// A jump to another function of the file.
    Tail,
    /// A call or jump by name, which the dynamic linker resolves.
    Import,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Callee {
    /// A function of the file.
    Function(CodeFunctionId),
    /// A function that the file knows by name only.
    Import(ImportId),
}

/// An instruction that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Its address.
    pub at: Svma,
    /// Its length in bytes: a call returns to `at` plus this.
    pub length: u8,
    /// What kind of call.
    pub kind: CallKind,
    /// The function that it is in.
    pub caller: CodeFunctionId,
    /// What it calls.
    pub callee: Callee,
}

/// All calls of a file that can be known from its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The functions of the file, in order of address; without the stubs of linkage tables.
    pub functions: IdVec<CodeFunctionId, CodeFunction>,
    /// The linkage names of imported functions that are called, in order of first appearance.
    pub imports: IdVec<ImportId, String>,
    /// The calls, in order of address.
    pub sites: Vec<CallSite>,
    /// Direct calls to addresses at which no function starts.
    pub astray: u64,
    /// Bytes of functions that are no instructions.
    pub undecoded: u64,
    /// Bytes of functions that were decoded.
    pub decoded: u64,
    /// Code that could not be read; each a lower-case fragment.
    pub problems: Vec<String>,
}

/// Finds the calls in the code of a file, on so many processors; all of them for `None`. The
/// answer does not depend on their number.
///
/// # Errors
/// When the file is not linked, or for a machine other than x86-64 and AArch64.
pub fn calls(binary: &Binary, workers: Option<NonZeroUsize>) -> Result<Calls, Error> {
    let code = binary.code()?;
    let mut functions = IdVec::new();
    let ids: Vec<Option<CodeFunctionId>> = binary
        .functions()
        .iter()
        .map(|symbol| {
            // A linkage table as a whole has bounds, but it is no function.
            let nameless = symbol.source == SymbolSource::Unwind;
            let table = nameless && code.bytes(symbol.start, symbol.end()).is_empty();
            let stub = symbol.source == SymbolSource::Plt;
            (!table && !stub).then(|| {
                functions.push(CodeFunction {
                    symbol: *symbol,
                    indirect_calls: 0,
                    indirect_jumps: 0,
                })
            })
        })
        .collect();
    let slots = binary.slots();
    let resolver = Resolver::new(binary, &slots, &ids);
    let stretches: Vec<Stretch> = binary
        .stretches()
        .iter()
        .filter_map(|stretch| {
            let bytes = code.bytes(stretch.start, stretch.end);
            let stretch = Stretch {
                caller: id_at(&ids, stretch.function)?,
                symbol: binary.functions().get(stretch.function)?,
                bytes,
                start: stretch.start.0,
            };
            (!bytes.is_empty()).then_some(stretch)
        })
        .collect();
    let first = stretches.first().map_or(0, |stretch| stretch.start);
    let end = |stretch: &Stretch| stretch.start.saturating_add(stretch.bytes.len() as u64);
    let scan = Scan {
        binary,
        machine: code.machine,
        stretches: &stretches,
        resolver: &resolver,
        wants: Wants {
            addresses: first..=stretches.last().map_or(0, end),
            immediates: false,
            unlinked: false,
        },
    };
    let chunks = workers::scan(&scan, workers);

    let mut calls = Calls {
        functions,
        problems: code.problems.clone(),
        ..Calls::default()
    };
    let mut imports = Imports::new(&resolver);
    for chunk in chunks {
        calls.undecoded += chunk.undecoded;
        calls.decoded += chunk.decoded;
        calls.astray += chunk.astray;
        for (id, indirect_calls, indirect_jumps) in chunk.undecided {
            calls.functions[id].indirect_calls += indirect_calls;
            calls.functions[id].indirect_jumps += indirect_jumps;
        }
        for site in chunk.sites {
            let callee = match site.target {
                Target::Function(id) => Callee::Function(id),
                Target::Import(import) => imports.callee(import),
            };
            calls.sites.push(CallSite {
                at: Svma(site.at),
                length: site.length,
                kind: site.kind,
                caller: site.caller,
                callee,
            });
        }
    }
    calls.imports = imports.names;
    Ok(calls)
}

/// Gives imports their ids, one a name.
struct Imports<'a> {
    resolver: &'a Resolver<'a>,
    /// Names that the file imports although it defines them: others might define them too.
    own: FxHashMap<String, CodeFunctionId>,
    known: FxHashMap<Import, Callee>,
    ids: FxHashMap<String, ImportId>,
    names: IdVec<ImportId, String>,
}

impl<'a> Imports<'a> {
    fn new(resolver: &'a Resolver<'a>) -> Imports<'a> {
        Imports {
            resolver,
            own: resolver.own_symbols(),
            known: FxHashMap::default(),
            ids: FxHashMap::default(),
            names: IdVec::new(),
        }
    }

    fn callee(&mut self, import: Import) -> Callee {
        if let Some(callee) = self.known.get(&import) {
            return *callee;
        }
        let name = self.resolver.import_name(import);
        let callee = match self.own.get(&name) {
            Some(&id) => Callee::Function(id),
            None => Callee::Import(match self.ids.get(&name) {
                Some(&id) => id,
                None => {
                    let id = self.names.push(name.clone());
                    self.ids.insert(name, id);
                    id
                }
            }),
        };
        self.known.insert(import, callee);
        callee
    }
}

impl Calls {
    /// The number of calls and jumps whose callees are not known.
    pub fn indirect(&self) -> (u64, u64) {
        let sum = |(calls, jumps): (u64, u64), f: &CodeFunction| {
            (calls + f.indirect_calls, jumps + f.indirect_jumps)
        };
        self.functions.iter().fold((0, 0), sum)
    }
}

/// The id of the function at this index of [`Binary::functions`], if it is one.
fn id_at(ids: &[Option<CodeFunctionId>], index: usize) -> Option<CodeFunctionId> {
    ids.get(index).copied().flatten()
}
