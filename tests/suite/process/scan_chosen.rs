//! The calls of chosen functions are those that a scan of all code finds of them.

use std::collections::BTreeSet;
use std::path::Path;

use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::scan::{self, CallKind, Callee, Calls, FileTables};

use crate::support::truth;

type Site = (u64, CallKind, Result<u64, String>);

/// What is known of the calls of a function.
fn of(calls: &Calls, start: Svma) -> Option<(u64, u64, u64, BTreeSet<Site>)> {
    let id = calls.starting_at(start)?;
    let function = &calls.functions[id];
    if function.part_of.is_some() {
        return None;
    }
    let sites = calls.sites.iter().filter(|site| site.caller == id);
    let sites = sites.map(|site| {
        let to = match site.callee {
            Callee::Function(id) => Ok(calls.functions[id].symbol.start.0),
            Callee::Import(id) => Err(calls.imports[id].clone()),
        };
        (site.at.0, site.kind, to)
    });
    Some((
        function.indirect_calls,
        function.indirect_jumps,
        function.switch_jumps,
        sites.collect(),
    ))
}

/// Chooses functions in several ways. Returns how often names alone were enough, and how often not.
fn check(path: &Path) -> (usize, usize) {
    let binary = Binary::open(path).unwrap();
    let all = scan::calls(&binary, None).unwrap();
    let tables = FileTables::read(&binary).unwrap();
    let parts = all.parts();
    let starts: Vec<Svma> = all.functions.iter().map(|it| it.symbol.start).collect();
    let (mut enough, mut not) = (0, 0);
    let steps = [1, 7, starts.len() / 5, starts.len() / 2];
    for (step, from) in steps.into_iter().flat_map(|step| [(step, 0), (step, 3)]) {
        let chosen: Vec<Svma> = starts
            .iter()
            .copied()
            .skip(from)
            .step_by(step.max(1))
            .collect();
        for parts in [Some(parts.as_slice()), None] {
            let Some(calls) = scan::calls_of(&tables, &chosen, parts, None) else {
                assert!(parts.is_none(), "{} has all parts", path.display());
                not += 1;
                continue;
            };
            enough += usize::from(parts.is_none());
            for &start in &chosen {
                let (found, expected) = (of(&calls, start), of(&all, start));
                assert_eq!(found, expected, "{:x} in {}", start.0, path.display());
            }
        }
    }
    (enough, not)
}

#[test]
fn the_calls_of_chosen_functions_are_those_of_all_code() {
    let Some(program) = truth::build("chosen-callees", &["-O2"]) else {
        return;
    };
    let (enough, _) = check(&program);
    assert!(enough > 0, "its functions have names");
    // Without symbols, and with parts that have no names: libraries of the system.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libraries = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]));
    let libraries: BTreeSet<&str> = libraries.filter(|path| path.contains(".so")).collect();
    assert!(!libraries.is_empty());
    for library in libraries {
        check(Path::new(library));
    }
}
