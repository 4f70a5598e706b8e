//! What cut stacks hide: how much more than was seen a function's total may be.
//!
//! Deep recursion fills a stack up to the limit of frames, or the copy of the stack, and what is
//! outside of the cut is not known. Where the outermost function that is known recurses, the graph
//! tells who can have been there: whoever can call into that recursion.
//!
//! ```text
//!   as it was             as it was recorded
//!   main;a;f;f;f;x 70     [truncated];f;f;x 70      70 are cut inside of the recursion of f
//!   main;a;f;x     20     main;a;f;x        20
//!   main;b;c       10     [truncated];c     10      10 are cut in c, which does not recurse
//!   main;b          5     main;b             5
//!
//!   main ─▶ a ─▶ f ─▶ x            seen  hidden at most   so its total is
//!    │          └─┘f         main    25        70         from 25 to  95   (105)
//!    └───▶ b                 a       20        70         from 20 to  90   ( 90)
//!                            f       90         0         90               ( 90)
//!                            b        5         0          5               ( 15)
//! ```
//!
//! Of samples that are cut in a function which does not recurse nothing is claimed, as for `c`
//! above: its caller need not be in the graph at all. Of a cycle, who can call into it are its
//! members too, where they are not on the known part of a stack.
//!
//! A true total is between the two figures if every call on the hidden part was seen elsewhere, or
//! is in the code that was looked at.

use std::cmp::Reverse;

use crate::base::IdVec;
use crate::callgraph::{Arc, CallGraph, Cycles, GroupId};
use crate::profile::{
    FunctionId, FunctionKind, Links, PathId, PathWeights, Profile, Selection, Step,
};

/// Samples whose stacks were cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Their weight.
    pub weight: u64,
    /// Their number.
    pub samples: u64,
}

/// What cut stacks hide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// For each function the weight of the samples that may have had it outside of the cut, and
    /// have it nowhere on their known part; each sample counted once. 0 for marks.
    pub at_most: IdVec<FunctionId, u64>,
    /// The cut samples by the outermost function that is known, whether it recurses or not.
    pub cut_at: IdVec<FunctionId, Cut>,
}

impl Hidden {
    fn nothing(functions: usize) -> Hidden {
        Hidden {
            at_most: IdVec::filled(0, functions),
            cut_at: IdVec::filled(Cut::default(), functions),
        }
    }
}

/// How many cycles are told apart; the last bit of a word is for all others.
const APART: usize = 63;

/// Whether the profile has cut stacks at all.
pub fn is_any(profile: &Profile) -> bool {
    let mut functions = profile.functions.iter();
    functions.any(|function| function.is_cut_mark())
}

/// What the cut stacks of the selection hide, by the graph of all calls that its samples show and
/// the code of the profile contains.
///
/// ```
/// use proftool::analysis::cut;
/// use proftool::base::Id;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter, FunctionId};
///
/// // [truncated], f, x, main, a, b and c by order of appearance
/// let text = "[truncated];f;f;x 70\nmain;a;f;x 20\nmain;b 5\n[truncated];c 10\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let hidden = cut::by_function(&profile, &profile.select(EventId::new(0), &Filter::default()));
/// let [f, main, a, b] = [1, 3, 4, 5].map(FunctionId::new);
/// assert_eq!([main, a, b, f].map(|id| hidden.at_most[id]), [70, 70, 0, 0]);
/// assert_eq!(hidden.cut_at[f].weight, 70);
/// ```
pub fn by_function(profile: &Profile, selection: &Selection) -> Hidden {
    if !is_any(profile) {
        return Hidden::nothing(profile.functions.len());
    }
    let graph = CallGraph::of(profile, selection);
    in_graph(profile, selection, &graph)
}

/// [`by_function`], by a graph that is there already: that of the selection, with all its arcs.
pub fn in_graph(profile: &Profile, selection: &Selection, graph: &CallGraph) -> Hidden {
    if !is_any(profile) {
        return Hidden::nothing(profile.functions.len());
    }
    let cycles = Cycles::find(graph, Arc::is_call);
    hidden(profile, selection, graph, &cycles)
}

/// What the cut stacks of the selection hide. The graph is that of the selection and has all its
/// arcs, of which those that are no calls do not count; the cycles are those over all its calls.
///
/// Linear in rows, paths, functions and arcs. If stacks are cut in more than 63 cycles, the lightest
/// are taken together, and a function that leads to one of them leads to all: then the figures
/// are still never too small, but may be larger than they need be.
pub fn hidden(
    profile: &Profile,
    selection: &Selection,
    graph: &CallGraph,
    cycles: &Cycles,
) -> Hidden {
    let weights = PathWeights::of(profile, selection);
    let mut hidden = Hidden::nothing(profile.functions.len());
    // For each path of a cut stack the outermost function that is known.
    let mut outermost: IdVec<PathId, Option<FunctionId>> = IdVec::filled(None, profile.paths.len());
    for (id, path) in profile.paths.enumerate() {
        let Some(caller) = path.caller else { continue };
        let outer = &profile.paths[caller];
        if outer.caller.is_none() && profile.functions[outer.function].is_cut_mark() {
            let cut = &mut hidden.cut_at[path.function];
            cut.weight += weights.total[id];
            cut.samples += weights.samples[id];
            outermost[id] = Some(path.function);
        } else {
            outermost[id] = outermost[caller];
        }
    }
    let claims = Claims::of(&hidden, graph, cycles);
    for id in hidden.at_most.ids() {
        if profile.functions[id].kind != FunctionKind::Mark {
            hidden.at_most[id] = claims.weight(cycles.group(id));
        }
    }
    // What is on the known part of a stack was seen: the sample is in its total.
    let mut depth = IdVec::filled(0u32, profile.functions.len());
    Links::new(profile, &weights).walk(&profile.paths, |step| {
        let (Step::Enter(id) | Step::Leave(id)) = step;
        let function = profile.paths[id].function;
        let claimed = outermost[id].map_or(0, |outermost| claims.own[cycles.group(outermost)]);
        if claimed & claims.reached[cycles.group(function)] == 0 {
            return;
        }
        match step {
            Step::Enter(_) => {
                if depth[function] == 0 {
                    let at_most = &mut hidden.at_most[function];
                    *at_most = at_most.saturating_sub(weights.total[id]);
                }
                depth[function] += 1;
            }
            Step::Leave(_) => depth[function] -= 1,
        }
    });
    hidden
}

/// Recursions in which stacks are cut, a bit each, and from where they are reached.
struct Claims {
    /// For each group its bit, if stacks are cut in it and it recurses.
    own: IdVec<GroupId, u64>,
    /// For each group the bits of those that are reached from it, its own included.
    reached: IdVec<GroupId, u64>,
    /// The weight of the samples of each bit.
    weights: [u64; APART + 1],
}

impl Claims {
    fn of(hidden: &Hidden, graph: &CallGraph, cycles: &Cycles) -> Claims {
        let calls_itself = |id: FunctionId| {
            let arc = graph.arc_between(id, id);
            arc.is_some_and(|arc| graph.arcs[arc].is_call())
        };
        let mut cut: IdVec<GroupId, u64> = IdVec::filled(0, cycles.groups());
        for (id, at) in hidden.cut_at.enumerate() {
            if at.weight > 0 && (cycles.of[id].is_some() || calls_itself(id)) {
                cut[cycles.group(id)] += at.weight;
            }
        }
        let mut heaviest: Vec<GroupId> = cut.ids().filter(|&group| cut[group] > 0).collect();
        heaviest.sort_by_key(|&group| (Reverse(cut[group]), group));
        let mut claims = Claims {
            own: IdVec::filled(0, cycles.groups()),
            reached: IdVec::filled(0, cycles.groups()),
            weights: [0; APART + 1],
        };
        for (place, group) in heaviest.into_iter().enumerate() {
            let bit = place.min(APART);
            claims.own[group] = 1 << bit;
            claims.weights[bit] += cut[group];
        }
        for group in cycles.callees_first() {
            let mut reached = claims.own[group];
            for function in cycles.functions_of(group) {
                for arc in graph.callees(function).map(|id| &graph.arcs[id]) {
                    if arc.is_call() {
                        reached |= claims.reached[cycles.group(arc.to)];
                    }
                }
            }
            claims.reached[group] = reached;
        }
        claims
    }

    /// The weight of the samples that are cut in what the group reaches.
    fn weight(&self, group: GroupId) -> u64 {
        let mut bits = self.reached[group];
        let mut sum = 0;
        while bits != 0 {
            sum += self.weights[bits.trailing_zeros() as usize];
            bits &= bits - 1;
        }
        sum
    }
}
