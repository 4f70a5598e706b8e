//! How often each function was called, and the numbers by which its weights are divided to get time
//! per call.
//!
//! ```text
//!   calls   main ─ 1 ─▶ fib ─ 29 ─▶ fib       self of a call    self ÷ 30
//!                                             total of a call   total ÷ 1: inner calls are in it
//! ```
//!
//! In a cycle, a call may be made inside another call of the same function, and such calls are not
//! counted: so the total per call is not known there. Neither is the time per call of a function
//! that is inlined somewhere, as that code runs without being called.

use super::inclusive::FunctionWeights;
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
    /// The number of calls by which its self weight is divided; `None` where it is not known, or 0.
    pub self_divisor: Option<u64>,
    /// The number of calls by which its total is divided; `None` where it is not known, or 0.
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

/// The functions that ran, in order of id: those on the stack of some sample, and those of which a
/// call was counted although they took too little time for one.
pub fn ran(profile: &Profile, weights: &FunctionWeights) -> Vec<FunctionId> {
    let mut ran: Vec<FunctionId> = weights.present().collect();
    if let Some(counts) = &profile.counts {
        let made = counts.calls().iter().filter(|count| count.calls > 0);
        ran.extend(made.flat_map(|count| count.from.into_iter().chain([count.to])));
        ran.sort_unstable();
        ran.dedup();
    }
    ran
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Event, Unit, WeightSum};
    use crate::profile::{Builder, Filter, Function, Module, Thread};

    #[test]
    fn what_is_inlined_somewhere_has_no_time_for_each_call() {
        for inlined in [false, true] {
            let mut builder = Builder::default();
            let module = builder.module(Module {
                name: "app".into(),
                path: "/app".into(),
            });
            let [main, hot, work] =
                ["main", "hot", "work"].map(|name| builder.function(Function::named(name, module)));
            let event = builder.event(Event {
                unit: Unit::Nanoseconds,
                ..Event::named("cpu-clock")
            });
            let thread = builder.thread(Thread::new(1, 1, "app"));
            let main_path = builder.path(None, main, false);
            let hot_path = builder.path(Some(main_path), hot, false);
            let called = builder.path(Some(main_path), work, false);
            let other = builder.path(Some(hot_path), work, inlined);
            builder.sample(event, thread, called, None, WeightSum::of(20));
            builder.sample(event, thread, other, None, WeightSum::of(70));
            builder.count(Some(main), hot, 1);
            builder.count(Some(main), work, 10);
            if !inlined {
                builder.count(Some(hot), work, 5);
            }
            let profile = builder.finish();
            let selection = profile.select(event, &Filter::default());
            let called = by_function(&profile, &selection).unwrap()[work];
            assert_eq!(called.by_others, Some(if inlined { 10 } else { 15 }));
            let each = (!inlined).then_some(15);
            assert_eq!((called.self_divisor, called.total_divisor), (each, each));
        }
    }
}
