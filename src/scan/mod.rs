//! The calls in machine code: where they are, what they call, and whose targets are unknown.
//!
//! ```text
//!   call parse          ─▶ call     parse starts exactly there, before or behind the caller
//!   jmp  lex            ─▶ tail     a jump out of the function to the start of another
//!   call write@plt      ─▶ import   by the stub's name
//!   call *slot(%rip)    ─▶ call or import, by what relocations tie the slot to
//!   call …              ─▶ call or import, by its relocation, in a file that is not linked yet
//!   lea  lex(%rip),%rdi ─▶ pointer  nothing is called here; who gets the pointer may call lex
//!   call *%rax          ─▶ counted: its target is known only at run time
//!   jmp  *%rax          ─▶ counted apart: the table of a switch, or a tail call
//!   jmp  lex.cold       ─▶ nothing: a part of lex, whose calls count as those of lex
//! ```
//!
//! The instructions of each function are decoded one after the other from its start, so that no
//! call is found inside of another instruction. Each byte is decoded once, on all processors, and
//! calls are in order of address, whatever the number of processors. Any bytes give an answer;
//! bytes that are no instructions are counted.
//!
//! A [`Disassembler`] writes instructions of x86 as text.
//!
//! Static arcs are gprof's idea: Susan L. Graham, Peter B. Kessler, Marshall K. McKusick, "gprof:
//! a call graph execution profiler", 1982, section 2.

mod aarch64;
mod chosen;
mod disassembly;
mod distances;
mod file_tables;
mod flow;
mod frame_setup;
mod function_starts;
mod imports;
mod part_names;
mod reached;
mod register_values;
mod resolve;
mod return_sites;
mod riscv;
mod single_function;
mod split_functions;
mod switch_tables;
mod thunks;
mod unlisted;
mod workers;
mod x86;

use std::num::NonZeroUsize;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

pub use self::chosen::calls_of;
pub use self::disassembly::{Disassembled, Disassembler, Syntax};
pub use self::distances::{TakenByDistance, taken_by_distance};
pub use self::file_tables::FileTables;
pub use self::frame_setup::{has_no_frame, never_returns};
pub use self::reached::Reached;
pub use self::return_sites::{may_return_to, system_call_before};
pub use self::single_function::{Callees, Destination, Exits, Leaving, LeavingKind, Single};
pub use self::thunks::is_thunk;
pub use self::unlisted::Unlisted;

use self::imports::Imports;
use self::resolve::{Import, Kind, Resolver, Target};
use self::split_functions::{Parts, Traces};
use self::thunks::Thunk;
use self::workers::{ChunkCalls, Scan};
use crate::base::{IdVec, Svma, define_id};
use crate::binary::{Binary, Error, FunctionSymbol};

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
    /// Calls through a register or through memory whose callees are known only at run time.
    pub indirect_calls: u64,
    /// Jumps through a register or through memory: tables of switches, or tail calls.
    pub indirect_jumps: u64,
    /// Those of these jumps that certainly go through the table of a switch.
    pub switch_jumps: u64,
    /// Pointers in data, writable data included, that hold the function's start when the program
    /// starts: in virtual tables, tables of callbacks, initialized variables. The linker's own
    /// slots for calls by name are not among them.
    pub pointers_in_data: u64,
    /// The function that this is a part of, if a compiler has split it off: `.cold`, `.part.0`. Its
    /// calls and jumps count as those of the whole function, and a call of it as a call of the
    /// function.
    pub part_of: Option<CodeFunctionId>,
}

impl CodeFunction {
    /// A function of which nothing is known yet.
    pub fn of(symbol: FunctionSymbol) -> CodeFunction {
        CodeFunction {
            symbol,
            indirect_calls: 0,
            indirect_jumps: 0,
            switch_jumps: 0,
            pointers_in_data: 0,
            part_of: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CallKind {
    /// A call of a function of the file.
    Call,
    /// A jump to another function of the file.
    Tail,
    /// A call or jump by name, which the dynamic linker resolves; in a file that is not linked yet,
    /// the linker.
    Import,
    /// No call: the caller takes the callee's address, to call it later or to hand it on. A
    /// function may take its own. The address of a symbol of another file counts if this file
    /// marks it as a function; files that are not linked do not.
    Pointer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Callee {
    /// A function of the file.
    Function(CodeFunctionId),
    /// A function that the file knows by name only.
    Import(ImportId),
}

/// An instruction that calls, or takes an address to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    pub at: Svma,
    /// Its length in bytes: a call returns to `at` plus this.
    pub length: u8,
    pub kind: CallKind,
    /// The function that it is in, never a part of one.
    pub caller: CodeFunctionId,
    /// What it calls, never a part of a function.
    pub callee: Callee,
}

/// A direct jump into the middle of another function. Hand-written assembly has such jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsideJump {
    pub at: Svma,
    /// The function that it is in, never a part of one.
    pub caller: CodeFunctionId,
    /// The function that it leads to, never a part of one.
    pub callee: CodeFunctionId,
}

/// All calls of a file that can be known from its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The functions of the file, in order of address; without the stubs of linkage tables.
    pub functions: IdVec<CodeFunctionId, CodeFunction>,
    /// The linkage names of imported functions that are called or whose addresses are taken, in
    /// order of first appearance.
    pub imports: IdVec<ImportId, String>,
    /// For each import the number of pointers to it in data: see
    /// [`CodeFunction::pointers_in_data`].
    pub pointers_to_imports: IdVec<ImportId, u64>,
    /// The calls, in order of address.
    pub sites: Vec<CallSite>,
    /// The functions that choose what slots of the file point to (GNU indirect functions), in order
    /// of address.
    pub choosers: Vec<Svma>,
    /// Direct jumps from one function into the middle of another, in order of address.
    pub inside_jumps: Vec<InsideJump>,
    /// Direct jumps of functions to their own starts, in order of address: calls of themselves by
    /// which they make way, or loops around all that they do.
    pub self_jumps: Vec<(CodeFunctionId, Svma)>,
    /// Direct calls into the middle of another function. They are among the sites, as calls of it.
    pub inside_calls: u64,
    /// Other direct calls to addresses at which no function starts.
    pub astray: u64,
    /// Bytes of functions that are no instructions.
    pub undecoded: u64,
    /// Bytes of functions that were decoded.
    pub decoded: u64,
    /// Code and relocations that could not be read; each a lower-case fragment.
    pub problems: Vec<String>,
}

/// Finds the calls in the code of a file, with this number of threads; one per processor for
/// `None`. The answer does not depend on their number.
///
/// # Errors
/// For a machine whose instructions are not known here: see [`Machine`](crate::binary::Machine).
pub fn calls(binary: &Binary, workers: Option<NonZeroUsize>) -> Result<Calls, Error> {
    Ok(calls_in(&FileTables::read(binary)?, workers))
}

/// Finds the calls as [`calls`] does, in a file whose tables are read already.
pub fn calls_in(tables: &FileTables, workers: Option<NonZeroUsize>) -> Calls {
    let binary = tables.binary;
    let resolver = tables.resolver();
    let lots = tables.lots();
    let scan = Scan::new(tables, &resolver);
    let (pointers, chunks) =
        workers::scan(&scan, &lots, workers, || Pointers::read(binary, &resolver));
    let mut traces = Traces::new(tables);
    traces.add(chunks.iter().flat_map(|chunk| &chunk.sites));
    let parts = traces.parts(|id| pointers.to_functions.contains_key(&id));
    put_together(&resolver, &parts, pointers, chunks)
}

fn put_together(
    resolver: &Resolver,
    parts: &Parts,
    pointers: Pointers,
    chunks: Vec<ChunkCalls>,
) -> Calls {
    let tables = parts.tables();
    let mut functions: IdVec<CodeFunctionId, CodeFunction> = tables
        .symbols
        .iter()
        .map(|&symbol| CodeFunction::of(symbol))
        .collect::<Vec<_>>()
        .into();
    for (&id, count) in &pointers.to_functions {
        functions[id].pointers_in_data += count;
    }
    let mut problems = tables.problems();
    let more = [&pointers.problems];
    let unread = chunks.iter().filter_map(|chunk| chunk.problem.as_ref());
    // Several chunks may have the same problem.
    for problem in unread.chain(more.into_iter().flatten()) {
        if !problems.contains(problem) {
            problems.push(problem.clone());
        }
    }
    let mut calls = Calls {
        functions,
        choosers: resolver.choosers().to_vec(),
        problems,
        ..Calls::default()
    };
    calls.gather(parts, chunks, pointers.names, &pointers.to_imports);
    calls
}

struct Pointers<'a> {
    to_functions: FxHashMap<CodeFunctionId, u64>,
    to_imports: FxHashMap<Import, u64>,
    // For the names of imports; none is known yet.
    names: Imports<'a>,
    problems: Vec<String>,
}

impl<'a> Pointers<'a> {
    fn read(binary: &Binary, resolver: &'a Resolver<'a>) -> Pointers<'a> {
        let (mut to_functions, mut to_imports) = (FxHashMap::default(), FxHashMap::default());
        let problems = binary.data_pointers(|to| match resolver.target(to) {
            Some(Target::Function(id)) => *to_functions.entry(id).or_default() += 1,
            Some(Target::Import(import)) => *to_imports.entry(import).or_default() += 1,
            None => {}
        });
        Pointers {
            to_functions,
            to_imports,
            problems,
            ..Pointers::none(resolver)
        }
    }

    fn none(resolver: &'a Resolver<'a>) -> Pointers<'a> {
        Pointers {
            to_functions: FxHashMap::default(),
            to_imports: FxHashMap::default(),
            names: Imports::new(resolver),
            problems: Vec::new(),
        }
    }
}

impl Calls {
    /// Puts together what was found: parts become their functions, imports get ids.
    fn gather(
        &mut self,
        parts: &Parts,
        chunks: Vec<ChunkCalls>,
        mut imports: Imports,
        pointed: &FxHashMap<Import, u64>,
    ) {
        let tables = parts.tables();
        let binary = tables.binary;
        self.sites
            .reserve_exact(chunks.iter().map(|chunk| chunk.sites.len()).sum());
        let mut thunks = IdVec::filled(None, self.functions.len());
        for chunk in chunks {
            self.undecoded += chunk.undecoded;
            self.decoded += chunk.decoded;
            self.astray += chunk.astray;
            for (id, undecided) in chunk.undecided {
                let whole = &mut self.functions[parts.whole(id)];
                whole.indirect_calls += undecided.calls;
                whole.indirect_jumps += undecided.jumps;
                whole.switch_jumps += undecided.switches;
            }
            let jumps = chunk.self_jumps.into_iter();
            let of_whole = jumps.filter(|&(id, _)| parts.whole(id) == id);
            self.self_jumps.extend(of_whole);
            for (caller, at, to) in chunk.inside_jumps {
                let caller = parts.whole(caller);
                let callee = tables.id_at(to).map(|callee| parts.whole(callee));
                if let Some(callee) = callee.filter(|&callee| callee != caller) {
                    self.inside_jumps.push(InsideJump { at, caller, callee });
                }
            }
            for site in chunk.sites {
                let thunk = match site.target {
                    Target::Function(id) => {
                        let known = &mut thunks[id];
                        let find = || Thunk::of(binary, &self.functions[id].symbol);
                        *known.get_or_insert_with(find)
                    }
                    Target::Import(import) => imports.thunk(import),
                };
                if let Some(thunk) = thunk.filter(|_| site.kind != Kind::Pointer) {
                    let whole = &mut self.functions[parts.whole(site.caller)];
                    match thunk {
                        Thunk::Branch if site.is_jump => whole.indirect_jumps += 1,
                        Thunk::Branch => whole.indirect_calls += 1,
                        Thunk::Return => {}
                    }
                    continue;
                }
                if parts.is_inner(&site) {
                    let whole = parts.whole(site.caller);
                    if site.is_jump && site.target == Target::Function(whole) {
                        self.self_jumps.push((whole, Svma(site.at)));
                    }
                    continue;
                }
                if let (Kind::Inside, Target::Function(callee)) = (site.kind, site.target) {
                    if parts.whole(callee) == parts.whole(site.caller) {
                        // A function that calls code of its own is not recursive by that.
                        self.astray += 1;
                        continue;
                    }
                    self.inside_calls += 1;
                }
                let callee = match site.target {
                    Target::Function(id) => Callee::Function(parts.whole(id)),
                    Target::Import(import) => imports.callee(import),
                };
                self.sites.push(CallSite {
                    at: Svma(site.at),
                    length: site.length,
                    kind: match site.kind {
                        Kind::Call | Kind::Inside => CallKind::Call,
                        Kind::Tail | Kind::Back => CallKind::Tail,
                        Kind::Import => CallKind::Import,
                        Kind::Pointer => CallKind::Pointer,
                    },
                    caller: parts.whole(site.caller),
                    callee,
                });
            }
        }
        self.self_jumps.sort_unstable_by_key(|&(_, at)| at);
        let mut to_imports = IdVec::filled(0, imports.names.len());
        for (&import, count) in pointed {
            match imports.met(import) {
                Some(Callee::Function(id)) => self.functions[id].pointers_in_data += count,
                Some(Callee::Import(id)) => to_imports[id] += count,
                None => {}
            }
        }
        for id in self.functions.ids() {
            let whole = parts.whole(id);
            self.functions[id].part_of = (whole != id).then_some(whole);
        }
        self.imports = imports.names;
        self.pointers_to_imports = to_imports;
    }

    /// The function that starts here, if one does.
    pub fn starting_at(&self, start: Svma) -> Option<CodeFunctionId> {
        let by_start = |function: &CodeFunction| function.symbol.start;
        let place = self
            .functions
            .iter()
            .as_slice()
            .binary_search_by_key(&start, by_start);
        Some(CodeFunctionId::new(place.ok()?))
    }

    /// The parts of functions, each with the function that it belongs to, by start, in order of
    /// address.
    pub fn parts(&self) -> Vec<(Svma, Svma)> {
        let start = |id: CodeFunctionId| self.functions[id].symbol.start;
        let parts = self.functions.iter();
        let parts = parts.filter_map(|part| Some((part.symbol.start, start(part.part_of?))));
        parts.collect()
    }

    /// The number of calls and jumps whose callees are not known.
    pub fn indirect(&self) -> (u64, u64) {
        let sum = |(calls, jumps): (u64, u64), f: &CodeFunction| {
            (calls + f.indirect_calls, jumps + f.indirect_jumps)
        };
        self.functions.iter().fold((0, 0), sum)
    }
}
