//! Numbers of calls by the kind of caller: the figures of gprof's column `called`.

use super::{CallGraph, CycleId, Cycles};
use crate::base::IdVec;
use crate::profile::{Counts, FunctionId};

/// The calls of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsOfFunction {
    /// By functions that are not in its cycle: by all others where it is in none.
    pub outside: u64,
    /// By the other members of its cycle.
    pub inside: u64,
    /// By itself.
    pub recursive: u64,
    /// By callers that are not known. gprof leaves them out everywhere.
    pub unknown: u64,
    /// Whether there may have been more calls than these.
    pub is_least: bool,
}

impl CallsOfFunction {
    /// The calls by known other functions; `None` where none was counted and there may have been
    /// some.
    pub fn known(&self) -> Option<u64> {
        let calls = self.by_others();
        (!self.is_least || calls > 0).then_some(calls)
    }

    /// The number of calls by itself; `None` where none was counted and there may have been some.
    pub fn known_recursive(&self) -> Option<u64> {
        (!self.is_least || self.recursive > 0).then_some(self.recursive)
    }

    /// The calls by known other functions: gprof's number before the `+`, and that of its flat
    /// profile.
    pub fn by_others(&self) -> u64 {
        self.outside.saturating_add(self.inside)
    }
}

/// The calls of the members of a cycle, taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsOfCycle {
    /// By functions outside of it.
    pub outside: u64,
    /// By one member of another one; calls of members by themselves are not among them.
    pub inside: u64,
    /// By callers that are not known.
    pub unknown: u64,
    /// Whether there may have been more calls than these.
    pub is_least: bool,
}

/// The numbers of calls of all functions and cycles.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// By function.
    pub functions: IdVec<FunctionId, CallsOfFunction>,
    /// By cycle.
    pub cycles: IdVec<CycleId, CallsOfCycle>,
}

impl Calls {
    /// Adds up the arcs of a graph of counted calls. Linear in arcs. Numbers above 64 bits
    /// saturate.
    ///
    /// The example of the GNU manual, section 5.2.4 (`main` calls `a`, `a` and `b` call each
    /// other):
    ///
    /// ```
    /// use proftool::base::{Event, Id};
    /// use proftool::callgraph::{CallGraph, Calls, CycleId, Cycles};
    /// use proftool::profile::{Builder, Function, Module, Selection};
    ///
    /// let mut builder = Builder::default();
    /// let module = builder.module(Module { name: "app".into(), path: "app".into() });
    /// let named = |name| builder.function(Function::named(name, module));
    /// let [main, a, b] = ["main", "a", "b"].map(named);
    /// for (from, to, calls) in [(main, a, 1), (a, b, 3), (b, a, 2)] {
    ///     builder.count(Some(from), to, calls);
    /// }
    /// let profile = builder.finish();
    /// let graph = CallGraph::of(&profile, &Selection::nothing());
    /// let cycles = Cycles::find(&graph, |_| true);
    /// let calls = Calls::of(&graph, &cycles, profile.counts.as_ref().unwrap());
    /// let cycle = calls.cycles[CycleId::new(0)];
    /// assert_eq!((cycle.outside, cycle.inside), (1, 5));
    /// assert_eq!((calls.functions[a].outside, calls.functions[a].inside), (1, 2));
    /// ```
    pub fn of(graph: &CallGraph, cycles: &Cycles, counts: &Counts) -> Calls {
        let mut functions = IdVec::filled(CallsOfFunction::default(), graph.functions());
        let mut of_cycle = IdVec::filled(CallsOfCycle::default(), cycles.members().len());
        for arc in graph.arcs() {
            let calls = arc.calls.unwrap_or(0);
            let function = &mut functions[arc.to];
            let cycle = cycles.of()[arc.to].map(|cycle| &mut of_cycle[cycle]);
            let (of_function, of_cycle) = if arc.is_self() {
                (&mut function.recursive, None)
            } else if cycles.share(arc.from, arc.to) {
                (&mut function.inside, cycle.map(|cycle| &mut cycle.inside))
            } else {
                (&mut function.outside, cycle.map(|cycle| &mut cycle.outside))
            };
            add(calls, [Some(of_function), of_cycle]);
        }
        for count in counts.calls().iter().filter(|count| count.from.is_none()) {
            let cycle = cycles.of()[count.to].map(|cycle| &mut of_cycle[cycle].unknown);
            add(count.calls, [Some(&mut functions[count.to].unknown), cycle]);
        }
        for &id in counts.uncounted() {
            functions[id].is_least = true;
        }
        if counts.are_partial() {
            for id in graph.function_ids() {
                let is_least = !counts.has_all_of(id);
                functions[id].is_least = is_least;
                if let Some(cycle) = cycles.of()[id] {
                    of_cycle[cycle].is_least |= is_least;
                }
            }
        }
        Calls {
            functions,
            cycles: of_cycle,
        }
    }
}

fn add(calls: u64, sums: [Option<&mut u64>; 2]) {
    for sum in sums.into_iter().flatten() {
        *sum = sum.saturating_add(calls);
    }
}
