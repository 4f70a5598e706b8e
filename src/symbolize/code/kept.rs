//! The calls of single functions, kept for the next start.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::{IdVec, Svma};
use crate::binary::Binary;
use crate::cache::Kept;
use crate::scan::{CallKind, CallSite, Callee, Calls, CodeFunction, CodeFunctionId, ImportId};

// What they are kept under.
const KEPT_CALLS: &str = "calls";

/// The calls of functions of a file, by where these start.
pub(super) struct KeptCalls(Kept<8>);

/// What is kept of a start; `None` where no function starts, or a part of one.
type Row = Option<Function>;

#[derive(Serialize, Deserialize)]
struct Function {
    indirect_calls: u64,
    indirect_jumps: u64,
    switch_jumps: u64,
    sites: Vec<(u64, u8, CallKind, To)>,
}

/// What is called.
#[derive(Serialize, Deserialize)]
enum To {
    /// What starts here.
    Function(u64),
    /// A function of this linkage name.
    Import(String),
}

impl KeptCalls {
    pub(super) fn open(binary: &Binary) -> KeptCalls {
        KeptCalls(Kept::open(binary.place_to_keep(KEPT_CALLS)))
    }

    /// The calls of these functions, if those of each are known. Of other functions only what these
    /// call is there.
    pub(super) fn calls(&self, binary: &Binary, chosen: &[Svma]) -> Option<Calls> {
        let rows = chosen.iter().map(|&start| {
            let row: Row = self.0.get(&start.0.to_be_bytes())?;
            Some((start, row))
        });
        let rows: Vec<(Svma, Row)> = rows.collect::<Option<_>>()?;
        let rows = rows.into_iter();
        let rows: Vec<(Svma, Function)> = rows
            .filter_map(|(start, row)| Some((start, row?)))
            .collect();
        let called = rows.iter().flat_map(|(_, function)| &function.sites);
        let called = called.filter_map(|(.., to)| match to {
            To::Function(start) => Some(Svma(*start)),
            To::Import(_) => None,
        });
        let mut starts: Vec<Svma> = rows.iter().map(|&(start, _)| start).chain(called).collect();
        starts.sort_unstable();
        starts.dedup();
        let functions = starts.into_iter().map(|start| {
            let symbol = *binary.function_at(start)?;
            (symbol.start == start).then(|| CodeFunction::of(symbol))
        });
        let functions: Vec<CodeFunction> = functions.collect::<Option<_>>()?;
        let mut calls = Calls {
            functions: functions.into(),
            ..Calls::default()
        };
        let mut imports = FxHashMap::default();
        for (start, function) in rows {
            let caller = calls.starting_at(start)?;
            let known = &mut calls.functions[caller];
            known.indirect_calls = function.indirect_calls;
            known.indirect_jumps = function.indirect_jumps;
            known.switch_jumps = function.switch_jumps;
            for (at, length, kind, to) in function.sites {
                let callee = match to {
                    To::Function(start) => Callee::Function(calls.starting_at(Svma(start))?),
                    To::Import(name) => Callee::Import(
                        *imports
                            .entry(name)
                            .or_insert_with_key(|name| calls.imports.push(name.clone())),
                    ),
                };
                calls.sites.push(CallSite {
                    at: Svma(at),
                    length,
                    kind,
                    caller,
                    callee,
                });
            }
        }
        calls.sites.sort_unstable_by_key(|site| site.at);
        calls.pointers_to_imports = IdVec::filled(0, calls.imports.len());
        Some(calls)
    }

    /// Keeps the calls of these functions, all of which are among `calls`.
    pub(super) fn keep(&self, calls: &Calls, chosen: &[Svma]) {
        let mut rows: FxHashMap<CodeFunctionId, Function> = FxHashMap::default();
        for &start in chosen {
            let id = calls.starting_at(start);
            let Some(id) = id.filter(|&id| calls.functions[id].part_of.is_none()) else {
                self.0.add(start.0.to_be_bytes(), &Row::None);
                continue;
            };
            let function = &calls.functions[id];
            rows.insert(
                id,
                Function {
                    indirect_calls: function.indirect_calls,
                    indirect_jumps: function.indirect_jumps,
                    switch_jumps: function.switch_jumps,
                    sites: Vec::new(),
                },
            );
        }
        let start = |id: CodeFunctionId| calls.functions[id].symbol.start;
        let import = |id: ImportId| calls.imports[id].clone();
        for site in &calls.sites {
            if let Some(function) = rows.get_mut(&site.caller) {
                let to = match site.callee {
                    Callee::Function(id) => To::Function(start(id).0),
                    Callee::Import(id) => To::Import(import(id)),
                };
                function.sites.push((site.at.0, site.length, site.kind, to));
            }
        }
        for (id, function) in rows {
            self.0.add(start(id).0.to_be_bytes(), &Some(function));
        }
        // It does not matter if that fails.
        let _ = self.0.store();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::cache::{Cache, Place};
    use crate::scan;

    type Site = (u64, u8, CallKind, Result<u64, String>);

    fn sites(calls: &Calls, start: Svma) -> Vec<Site> {
        let to = |callee| match callee {
            Callee::Function(id) => Ok(calls.functions[id].symbol.start.0),
            Callee::Import(id) => Err(calls.imports[id].clone()),
        };
        let caller = calls.starting_at(start);
        let sites = calls.sites.iter();
        let sites = sites.filter(|site| Some(site.caller) == caller);
        let sites = sites.map(|site| (site.at.0, site.length, site.kind, to(site.callee)));
        sites.collect()
    }

    #[test]
    fn what_is_kept_of_functions_is_what_was_found() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut libraries = maps
            .lines()
            .filter_map(|line| Some(&line[line.find('/')?..]));
        let library = libraries.find(|path| path.contains("/libc.so")).unwrap();
        let binary = Binary::open(Path::new(library)).unwrap();
        let all = scan::calls(&binary, None).unwrap();

        let own = std::fs::read_link("/proc/self").unwrap();
        let path = std::env::temp_dir().join(format!("proftool-kept-calls-{}", own.display()));
        let place = Place {
            cache: Arc::new(Cache::open(&path).unwrap()),
            name: "one".to_owned(),
            key: Vec::new(),
        };
        let open = || KeptCalls(Kept::open(Some(place.clone())));
        let starts: Vec<Svma> = all.functions.iter().map(|it| it.symbol.start).collect();
        let nothing = Svma(starts[0].0 + 1);
        let mut chosen: Vec<Svma> = starts.iter().copied().step_by(3).collect();
        chosen.push(nothing);
        assert!(open().calls(&binary, &chosen).is_none());
        open().keep(&all, &chosen);

        let kept = open().calls(&binary, &chosen).unwrap();
        let mut found = 0;
        for &start in &chosen {
            assert_eq!(sites(&kept, start), sites(&all, start), "{:x}", start.0);
            found += sites(&kept, start).len();
            let numbers = |calls: &Calls| {
                let function = calls.functions[calls.starting_at(start)?];
                let is_whole = all.functions[all.starting_at(start)?].part_of.is_none();
                is_whole.then_some((
                    function.indirect_calls,
                    function.indirect_jumps,
                    function.switch_jumps,
                ))
            };
            assert_eq!(numbers(&kept), numbers(&all), "{:x}", start.0);
        }
        assert!(found > 1000, "{found} calls");
        // One that was not asked for before.
        chosen.push(starts[1]);
        assert!(open().calls(&binary, &chosen).is_none());
        std::fs::remove_dir_all(path).unwrap();
    }
}
