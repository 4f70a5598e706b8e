//! The calls of a file in reverse: the callers of each function.

use serde::{Deserialize, Serialize};

use crate::base::IdVec;
use crate::cache::{Contents, Rows};
use crate::scan::{CallKind, Callee, Calls, CodeFunctionId};

/// What is called, by where it starts. Few are asked about, each is decoded then.
pub(super) struct Callers(Rows<8>);

#[derive(Default, Serialize, Deserialize)]
struct Called {
    /// Whether it is a function of the file, not only an address by which others know something.
    is_function: bool,
    /// Whether it may be entered from anywhere: its address is taken by code or data, or nothing in
    /// the file is known to call it.
    may_be_entered: bool,
    /// The starts of the callers, and the stated address of each call, `None` for a jump; sorted.
    calls: Vec<(u64, Option<u64>)>,
}

impl Callers {
    pub(super) fn kept(contents: Contents) -> Option<Callers> {
        Rows::of(contents).map(Callers)
    }

    pub(super) fn is_function(&self, start: u64) -> bool {
        self.of(start).is_function
    }

    pub(super) fn may_be_entered(&self, start: u64) -> bool {
        self.of(start).may_be_entered
    }

    /// The calls of the function that starts here: the caller, and where, `None` for a jump.
    pub(super) fn of_function(&self, start: u64) -> impl Iterator<Item = (u64, Option<u64>)> {
        self.of(start).calls.into_iter()
    }

    fn of(&self, start: u64) -> Called {
        self.0.get(&start.to_be_bytes()).unwrap_or_default()
    }
}

/// All calls of a file; `None` if they are too many. `exported` are the addresses by which other
/// files find functions.
pub(super) fn contents(calls: &Calls, exported: impl Iterator<Item = u64>) -> Option<Vec<u8>> {
    let start = |id: CodeFunctionId| calls.functions[id].symbol.start.0;
    let mut exported: Vec<u64> = exported.collect();
    exported.sort_unstable();
    exported.dedup();
    let called = calls.functions.enumerate().map(|(id, function)| Called {
        is_function: true,
        may_be_entered: function.pointers_in_data > 0 || exported.binary_search(&start(id)).is_ok(),
        calls: Vec::new(),
    });
    let mut called: Vec<Called> = called.collect();
    let mut is_called = IdVec::filled(false, calls.functions.len());
    for site in &calls.sites {
        let Callee::Function(callee) = site.callee else {
            continue;
        };
        let at = match site.kind {
            CallKind::Pointer => {
                called[callee.index()].may_be_entered = true;
                continue;
            }
            CallKind::Tail => None,
            CallKind::Call | CallKind::Import => Some(site.at.0),
        };
        is_called[callee] |= site.caller != callee;
        called[callee.index()].calls.push((start(site.caller), at));
    }
    for jump in &calls.inside_jumps {
        is_called[jump.callee] = true;
        called[jump.callee.index()]
            .calls
            .push((start(jump.caller), None));
    }
    for (id, function) in calls.functions.enumerate() {
        // A part goes with its function. What nothing calls is dead, or reached in a way that
        // is not seen: by an address in a form of its own.
        let is_reached = is_called[id] || function.part_of.is_some();
        called[id.index()].may_be_entered |= !is_reached;
        called[id.index()].calls.sort_unstable();
    }
    // Other files may know something by an address where no function of this one starts.
    let functions = calls.functions.iter().as_slice();
    let is_none = |at: &u64| {
        let found = functions.binary_search_by_key(at, |function| function.symbol.start.0);
        found.is_err()
    };
    let others = exported.into_iter().filter(is_none).map(|start| {
        let called = Called {
            may_be_entered: true,
            ..Called::default()
        };
        (start, called)
    });
    let starts = calls.functions.ids().map(start);
    let mut rows: Vec<(u64, Called)> = starts.zip(called).chain(others).collect();
    rows.sort_by_key(|&(start, _)| start);
    let rows = rows.into_iter();
    Rows::contents(rows.map(|(start, called)| (start.to_be_bytes(), called)))
}
