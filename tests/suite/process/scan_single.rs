//! The calls of single functions are those that a scan of all code finds.

use std::collections::BTreeSet;

use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::scan::{self, CallKind, Callee, Destination, FileTables, Single};

use crate::support::truth;

#[test]
fn what_bytes_say_of_a_call_is_what_a_scan_finds() {
    let Some(program) = truth::build("call-forms", &["-O2"]) else {
        return;
    };
    let binary = Binary::open(&program).unwrap();
    let calls = scan::calls(&binary, None).unwrap();
    let tables = FileTables::read(&binary).unwrap();
    let single = Single::new(&tables);
    let mut found = 0;
    let is_call = |kind| matches!(kind, CallKind::Call | CallKind::Import);
    for site in calls.sites.iter().filter(|site| is_call(site.kind)) {
        let behind = Svma(site.at.0 + u64::from(site.length));
        // Calls of registers have no usual form.
        let Some(called) = single.likely_call_before(behind) else {
            continue;
        };
        found += 1;
        let expected = match site.callee {
            Callee::Function(id) => Destination::Function(calls.functions[id].symbol.start),
            Callee::Import(id) => Destination::Import(calls.imports[id].clone()),
        };
        assert_eq!(called, expected, "at {:x}", site.at.0);
    }
    assert!(found > 50, "{found} calls");
}

#[test]
fn callees_are_what_a_function_leaves_for() {
    let Some(program) = truth::build("callees", &["-O1"]) else {
        return;
    };
    let binary = Binary::open(&program).unwrap();
    let tables = FileTables::read(&binary).unwrap();
    let single = Single::new(&tables);
    let mut indirect = 0;
    for function in binary.functions() {
        let exits = single.leaving(function.start);
        let callees = single.callees(function.start);
        assert_eq!(exits.is_some(), callees.is_some());
        let (Some(exits), Some(callees)) = (exits, callees) else {
            continue;
        };
        let to = |of: fn(&Destination) -> Option<String>| -> BTreeSet<String> {
            exits.sites.iter().filter_map(|site| of(&site.to)).collect()
        };
        let functions = to(|to| match to {
            Destination::Function(start) => Some(format!("{:x}", start.0)),
            _ => None,
        });
        let imports = to(|to| match to {
            Destination::Import(name) => Some(name.clone()),
            _ => None,
        });
        let starts = callees
            .functions
            .iter()
            .map(|start| format!("{:x}", start.0));
        assert_eq!(starts.collect::<BTreeSet<_>>(), functions);
        assert_eq!(
            callees.imports.iter().cloned().collect::<BTreeSet<_>>(),
            imports
        );
        let is_unknown = exits
            .sites
            .iter()
            .any(|site| site.to == Destination::Unknown);
        assert_eq!(callees.are_more, is_unknown, "at {:x}", function.start.0);
        assert_eq!(callees.is_complete, exits.is_complete);
        // What is in sight is a part of that.
        let sight = single.callees_in_sight(function.start).unwrap();
        assert!(!sight.are_more || is_unknown, "at {:x}", function.start.0);
        assert!(
            sight
                .functions
                .iter()
                .all(|start| callees.functions.contains(start))
        );
        assert!(
            sight
                .imports
                .iter()
                .all(|name| callees.imports.contains(name))
        );
        indirect += u32::from(is_unknown);
    }
    assert!(indirect > 0);
}
