//! Time through calls as stacks show it: nothing is assumed.
//!
//! A stack that has left a cycle does not enter it again: the functions between would be members
//! too. So a sample enters a cycle, as it does a function, over at most one arc or at its root, and
//! leaves it over at most one:
//!
//! ```text
//!   main ─▶ even ─▶ odd ─▶ even ─▶ print          cycle {even, odd}
//!        └────── 7 is in the cycle, over main ─▶ even; nothing of it is self weight of the cycle
//!                                └─ and left it from even: children of even and of the cycle
//! ```
//!
//! Propagating these weights by gprof's rule gives them again ([`Flow::of_weight`]), since the
//! weights of stacks already are what call counts can only estimate. But the division of an arc's
//! weight into self and children is then the average of all callers.
//!
//! [`Flow::of_weight`]: super::flow::Flow::of_weight
//!
//! Where weak arcs form no cycles ([`Cycles::find_strong`]), a stack can enter a cycle several
//! times. Then it counts for the arc by which it entered first, and for the member from which it
//! left last.

use super::attribution::{Attribution, CycleWeight, Portion};
use crate::base::IdVec;
use crate::callgraph::{ArcId, CallGraph, Cycles, GroupId};
use crate::profile::{FunctionId, Links, PathId, PathWeights, Profile, Selection, Step};

#[derive(Clone, Copy, Default)]
struct Sum {
    self_weight: u64,
    total: u64,
}

impl Sum {
    fn portion(self) -> Portion {
        Portion::of(self.self_weight, self.total)
    }
}

#[derive(Clone, Copy)]
enum Arrival {
    Root(FunctionId),
    Call(ArcId),
    // Over an arc that was deleted from the graph.
    Unseen,
}

struct Sums {
    functions: IdVec<FunctionId, Sum>,
    roots: IdVec<FunctionId, Sum>,
    groups: IdVec<GroupId, Sum>,
    arcs: IdVec<ArcId, Sum>,
}

impl Sums {
    fn arrival(&mut self, arrival: Arrival) -> Option<&mut Sum> {
        match arrival {
            Arrival::Root(function) => Some(&mut self.roots[function]),
            Arrival::Call(arc) => Some(&mut self.arcs[arc]),
            Arrival::Unseen => None,
        }
    }
}

/// Attributes the selected samples by their stacks. Linear in rows, paths, functions and arcs,
/// apart from the look-up of a callee among those of its caller.
///
/// The graph has the functions of the profile; weight over arcs that it lacks
/// ([`CallGraph::without`]) is charged to no caller.
///
/// ```
/// use proftool::analysis::measured;
/// use proftool::base::Id;
/// use proftool::callgraph::{CallGraph, Cycles};
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter, FunctionId};
///
/// // main, even, odd and print by order of appearance
/// let text = "main;even;odd;even;print 7\nmain;odd 2\nmain 1\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let graph = CallGraph::of(&profile, &selection);
/// let cycles = Cycles::find(&graph, |_| true);
/// let measured = measured::attribute(&profile, &selection, &graph, &cycles);
/// let [main, even, odd, _] = [0, 1, 2, 3].map(FunctionId::new);
/// assert_eq!(measured.functions[main].children, 9.0);
/// assert_eq!(measured.functions[even].children, 7.0);
/// let cycle = measured.cycles.iter().next().unwrap().portion;
/// assert_eq!((cycle.self_weight, cycle.children), (2.0, 7.0));
/// let arc = |from, to| measured.arcs[graph.arc_between(from, to).unwrap()];
/// assert_eq!(arc(main, even).unwrap().children, 7.0);
/// assert_eq!(arc(main, odd).unwrap().self_weight, 2.0);
/// assert_eq!(arc(even, odd), None);
/// ```
pub fn attribute(
    profile: &Profile,
    selection: &Selection,
    graph: &CallGraph,
    cycles: &Cycles,
) -> Attribution {
    let weights = PathWeights::of(profile, selection);
    let functions = graph.functions();
    let mut sums = Sums {
        functions: IdVec::filled(Sum::default(), functions),
        roots: IdVec::filled(Sum::default(), functions),
        groups: IdVec::filled(Sum::default(), cycles.groups()),
        arcs: IdVec::filled(Sum::default(), graph.arcs().len()),
    };
    // Of the stack that is walked along: its innermost frame in each group, how it came to the
    // group first, and for each frame of it the next one outwards in its group.
    let mut innermost: IdVec<GroupId, Option<PathId>> = IdVec::filled(None, cycles.groups());
    let mut arrivals = IdVec::filled(Arrival::Unseen, cycles.groups());
    let mut before: IdVec<PathId, Option<PathId>> = IdVec::filled(None, profile.paths.len());
    let mut depth = IdVec::filled(0u32, functions);
    let mut totals = IdVec::filled(0u64, functions);
    Links::new(profile, &weights).walk(&profile.paths, |step| match step {
        Step::Enter(id) => {
            let path = &profile.paths[id];
            let (function, group) = (path.function, cycles.group(path.function));
            let (own, total) = (weights.self_weight(id), weights.total(id));
            match innermost[group] {
                // What goes through this frame has left the group from here, if at all.
                Some(outer) => sums.functions[profile.paths[outer].function].total -= total,
                None => {
                    arrivals[group] = match path.caller {
                        None => Arrival::Root(function),
                        Some(caller) => graph
                            .arc_between(profile.paths[caller].function, function)
                            .map_or(Arrival::Unseen, Arrival::Call),
                    };
                    sums.groups[group].total += total;
                    if let Some(sum) = sums.arrival(arrivals[group]) {
                        sum.total += total;
                    }
                }
            }
            if depth[function] == 0 {
                totals[function] += total;
            }
            depth[function] += 1;
            sums.functions[function].total += total;
            sums.functions[function].self_weight += own;
            sums.groups[group].self_weight += own;
            if let Some(sum) = sums.arrival(arrivals[group]) {
                sum.self_weight += own;
            }
            before[id] = innermost[group].replace(id);
        }
        Step::Leave(id) => {
            let function = profile.paths[id].function;
            innermost[cycles.group(function)] = before[id];
            depth[function] -= 1;
        }
    });
    arrange(&sums, graph, cycles, &totals)
}

fn arrange(
    sums: &Sums,
    graph: &CallGraph,
    cycles: &Cycles,
    totals: &IdVec<FunctionId, u64>,
) -> Attribution {
    let portions = |sums: &IdVec<FunctionId, Sum>| {
        let portions: Vec<Portion> = sums.iter().map(|sum| sum.portion()).collect();
        IdVec::from(portions)
    };
    let arcs: Vec<Option<Portion>> = graph
        .arcs()
        .enumerate()
        // No time crosses an arc within a cycle: the cycle shares it as a whole.
        .map(|(id, arc)| (!cycles.is_within(arc)).then(|| sums.arcs[id].portion()))
        .collect();
    let of_cycles: Vec<CycleWeight> = cycles
        .members()
        .enumerate()
        .map(|(id, members)| {
            let mut root = Sum::default();
            for &member in members {
                root.self_weight += sums.roots[member].self_weight;
                root.total += sums.roots[member].total;
            }
            CycleWeight {
                portion: sums.groups[cycles.group_of_cycle(id)].portion(),
                root: root.portion(),
            }
        })
        .collect();
    let totals: Vec<f64> = totals.iter().map(|&total| total as f64).collect();
    Attribution {
        standard_error: 0.0,
        functions: portions(&sums.functions),
        roots: portions(&sums.roots),
        totals: Some(totals.into()),
        cycles: of_cycles.into(),
        arcs: arcs.into(),
    }
}
