//! Which call sites of a file can be counted, and which are left alone.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::code::CodeBytes;
use super::flags::{self, Flags};
use super::form::{CallForm, Form, LONGEST};
use super::left_alone::{LeftAlone, Reason};
use super::site::{Patch, Site};
use crate::base::Svma;
use crate::binary::{Binary, Error, FunctionSymbol, Machine};
use crate::perfdata::{CountedCallee, CountedSite};
use crate::scan::{self, CallKind, CallSite, Callee, Calls, Reached};

#[derive(Debug)]
pub(super) struct FileSites {
    pub(super) binary: Binary,
    pub(super) found: Found,
}

/// What is found out about the calls of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) sites: Vec<Site>,
    pub(super) imports: Vec<String>,
    /// The rows of imports whose addresses are taken: they may be called through pointers.
    pub(super) taken_imports: FxHashSet<usize>,
    /// The starts of functions that make calls through pointers, and of those that ran before
    /// calls were counted.
    pub(super) calls_otherwise: FxHashSet<u64>,
    pub(super) taken_starts: FxHashSet<u64>,
    pub(super) left_alone: LeftAlone,
}

impl FileSites {
    pub(super) fn read(binary: Binary) -> Result<FileSites, Error> {
        let tables = scan::FileTables::read(&binary)?;
        let calls = scan::calls_in(&tables, None);
        let code = binary.code()?;
        let machine = code.machine;
        let code = CodeBytes::read(&code)?;
        let reached = Reached::find(&tables, &calls, &|at| code.from(at.0));
        let mut left_alone = LeftAlone::default();
        let mut finder = Finder {
            binary: &binary,
            code: &code,
            reached,
            callees: FxHashMap::default(),
            function: 0,
        };
        let is_call = |site: &&CallSite| site.kind != CallKind::Pointer;
        let sites = calls.sites.iter().filter(is_call);
        let sites = sites.map(|site| {
            let found = match machine {
                Machine::X86_64 => finder.patch(site),
                _ => Err(Reason::Machine),
            };
            let patch = found.inspect_err(|&reason| left_alone.add(reason)).ok();
            let (caller, callee) = (&calls.functions[site.caller], row(&calls, site.callee));
            let mut row = CountedSite {
                at: site.at.0,
                caller: caller.symbol.start.0,
                callee,
                calls: None,
                is_tail: site.kind == CallKind::Tail,
                saves_flags: false,
                is_least: false,
                is_part: false,
            };
            let patch = patch.map(|(patch, saves_flags)| {
                (row.is_tail, row.saves_flags) = (patch.call.is_jump, saves_flags);
                patch
            });
            Site { row, patch }
        });
        let mut sites: Vec<Site> = sites.collect();
        sites.extend(calls.self_jumps.iter().map(|&(function, at)| {
            let start = calls.functions[function].symbol.start.0;
            let row = CountedSite {
                at: at.0,
                caller: start,
                callee: CountedCallee::At(start),
                calls: None,
                is_tail: true,
                saves_flags: false,
                is_least: false,
                is_part: false,
            };
            // It may be a loop around the whole function: then nothing is called.
            Site { row, patch: None }
        }));
        sites.sort_by_key(|site| site.row.at);
        let (indirect_calls, indirect_jumps) = calls.indirect();
        let switches = calls.functions.iter().map(|function| function.switch_jumps);
        left_alone.indirect = indirect_calls + indirect_jumps - switches.sum::<u64>();
        let mut taken = taken(&calls);
        let mut imports: Vec<String> = calls.imports.iter().cloned().collect();
        let mut taken_imports = taken_imports(&taken);
        if machine == Machine::X86_64 {
            let computed = scan::taken_by_distance(&tables, &calls, &|at| code.from(at.0));
            taken.extend(computed.functions.into_iter().map(Callee::Function));
            for name in computed.imports {
                let known = imports.iter().position(|import| *import == name);
                taken_imports.insert(known.unwrap_or(imports.len()));
                if known.is_none() {
                    imports.push(name);
                }
            }
        }
        let found = Found {
            sites,
            imports,
            taken_starts: taken_starts(&calls, &taken),
            taken_imports,
            calls_otherwise: calls_otherwise(&calls),
            left_alone,
        };
        Ok(FileSites { binary, found })
    }
}

fn row(calls: &Calls, callee: Callee) -> CountedCallee {
    match callee {
        Callee::Function(id) => CountedCallee::At(calls.functions[id].symbol.start.0),
        Callee::Import(id) => CountedCallee::Import(crate::base::Id::index(id) as u32),
    }
}

fn taken(calls: &Calls) -> FxHashSet<Callee> {
    let pointers = calls.sites.iter();
    let pointers = pointers.filter(|site| site.kind == CallKind::Pointer);
    let mut taken: FxHashSet<Callee> = pointers.map(|site| site.callee).collect();
    let functions = calls.functions.enumerate();
    let in_data = functions.filter(|(_, function)| function.pointers_in_data > 0);
    taken.extend(in_data.map(|(id, _)| Callee::Function(id)));
    let imports = calls.pointers_to_imports.enumerate();
    let in_data = imports.filter(|(_, count)| **count > 0);
    taken.extend(in_data.map(|(id, _)| Callee::Import(id)));
    taken
}

fn taken_imports(taken: &FxHashSet<Callee>) -> FxHashSet<usize> {
    let rows = taken.iter().filter_map(|callee| match *callee {
        Callee::Import(id) => Some(crate::base::Id::index(id)),
        Callee::Function(_) => None,
    });
    rows.collect()
}

fn taken_starts(calls: &Calls, taken: &FxHashSet<Callee>) -> FxHashSet<u64> {
    let starts = taken.iter().filter_map(|callee| match *callee {
        Callee::Function(id) => Some(calls.functions[id].symbol.start.0),
        Callee::Import(_) => None,
    });
    starts.collect()
}

/// The functions that may make calls which are not counted at their sites.
fn calls_otherwise(calls: &Calls) -> FxHashSet<u64> {
    let functions = calls.functions.iter();
    let indirect = functions.filter(|function| {
        function.indirect_calls > 0 || function.indirect_jumps > function.switch_jumps
    });
    let indirect = indirect.map(|function| function.symbol.start.0);
    // The dynamic linker runs these before it stops.
    let choosers = calls.choosers.iter().map(|chooser| chooser.0);
    indirect.chain(choosers).collect()
}

struct Finder<'a> {
    binary: &'a Binary,
    code: &'a CodeBytes,
    reached: Reached,
    /// Whether functions read the processor's flags; `None` for addresses at which no function
    /// starts.
    callees: FxHashMap<u64, Option<Flags>>,
    /// The place of the last site's function: sites come in order of address.
    function: usize,
}

impl Finder<'_> {
    fn patch(&mut self, site: &CallSite) -> Result<(Patch, bool), Reason> {
        let at = site.at.0;
        let inside = self.function_of(site.at);
        let inside = inside.filter(|function| function.has_stated_end());
        let inside = inside.ok_or(Reason::NoBounds)?;
        let length = usize::from(site.length);
        let end = Svma(at.saturating_add(length as u64));
        if end > inside.end() {
            return Err(Reason::NoBounds);
        }
        let bytes = self.code.at(at, length).ok_or(Reason::NoBounds)?;
        if !self.reached.is_sure(site.at, site.length) {
            return Err(Reason::Unreached);
        }
        let call = CallForm::read(bytes, at).ok_or(Reason::Form)?;
        let mut patch = Patch {
            call,
            length: site.length,
            bytes: [0; LONGEST],
        };
        for (to, from) in patch.bytes.iter_mut().zip(bytes) {
            *to = *from;
        }
        // What a slot holds is known when the program runs: functions of other files, to which no
        // flags are passed.
        if call.form != Form::Direct {
            return Ok((patch, false));
        }
        let (binary, code) = (self.binary, self.code);
        let flags = *self.callees.entry(call.to).or_insert_with(|| {
            let function = binary.function_at(Svma(call.to))?;
            (function.start.0 == call.to).then(|| flags::at(code, call.to))
        });
        let saves_flags = match flags.ok_or(Reason::Inside)? {
            Flags::Dead => false,
            Flags::Read => true,
            // A tail call hands on to a caller that is not known.
            Flags::Kept => call.is_jump || flags::at(code, end.0) != Flags::Dead,
        };
        Ok((patch, saves_flags))
    }

    fn function_of(&mut self, at: Svma) -> Option<FunctionSymbol> {
        let functions = self.binary.functions();
        while functions
            .get(self.function + 1)
            .is_some_and(|next| next.start <= at)
        {
            self.function += 1;
        }
        let last = functions
            .get(self.function)
            .filter(|function| function.contains(at));
        // What lies behind an inner function belongs to the outer one.
        last.or_else(|| self.binary.function_at(at)).copied()
    }
}
