//! How often each function was called, and what its weight is divided by to get that of one call.
//!
//! ```text
//!   calls   main ─ 1 ─▶ fib ─ 29 ─▶ fib       self of a call    self ÷ 30
//!                                             total of a call   total ÷ 1: inner calls are in it
//! ```
//!
//! In a cycle a call may be inside of another one of the same function, which nobody has counted:
//! there the total of a call is not known. Nor is what one call of a function takes that is inlined
//! somewhere: that code runs without being called.

use crate::base::IdVec;
use crate::callgraph::{CallArc, CallGraph, Calls, Cycles};
use crate::profile::{FunctionId, Profile, Selection};

/// The calls of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// By other functions; `None` where they were not counted.
    pub by_others: Option<u64>,
    /// By itself.
    pub recursive: Option<u64>,
    /// Whether there may have been more.
    pub is_least: bool,
    /// By how many calls its self weight is divided; `None` where that is not known, and where there
    /// was none.
    pub self_divisor: Option<u64>,
    /// The same for its total.
    pub total_divisor: Option<u64>,
}

impl Called {
    /// Whether numbers are known, and there may have been more.
    pub fn is_marked(&self) -> bool {
        self.is_least && (self.by_others.is_some() || self.recursive.is_some())
    }
}

/// The calls of all functions; `None` where no calls were counted.
pub fn by_function(profile: &Profile, selection: &Selection) -> Option<IdVec<FunctionId, Called>> {
    let counts = profile.counts.as_ref()?;
    let graph = CallGraph::of(profile, selection).without(|arc| !arc.is_call());
    let cycles = Cycles::find(&graph, CallArc::is_observed);
    let calls = Calls::of(&graph, &cycles, counts);
    let mut is_inlined = IdVec::filled(false, profile.functions.len());
    for (_, path) in profile.paths.enumerate() {
        is_inlined[path.function] |= path.inlined;
    }
    let called = calls.functions.enumerate().map(|(id, calls)| {
        let outside = calls.by_others().saturating_add(calls.unknown);
        let is_known = !calls.is_least && !is_inlined[id];
        let divisor = |calls: u64| Some(calls).filter(|&n| is_known && n > 0);
        Called {
            by_others: calls.known(),
            recursive: calls.known_recursive(),
            is_least: calls.is_least,
            self_divisor: divisor(outside.saturating_add(calls.recursive)),
            total_divisor: divisor(outside).filter(|_| cycles.of()[id].is_none()),
        }
    });
    Some(called.collect::<Vec<_>>().into())
}
