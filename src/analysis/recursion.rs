//! How deep recursion goes: how often a function, or the members of a cycle, stand on one stack.
//!
//! ```text
//!   main;fib;fib;fib 5        at least 1: 9    2: 7    3: 5
//!   main;fib;fib     2        deepest 3, on average (9 + 7 + 5) / 9 = 2.3
//!   main;fib         2
//! ```

use rustc_hash::FxHashMap;

use crate::base::IdVec;
use crate::callgraph::{CycleId, Cycles};
use crate::profile::{FunctionId, Links, PathWeights, Profile, Selection, Step};

/// How often something is on the stacks that have it at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// The weight of samples on which it stands at least once, twice, and so on: never rising.
    pub at_least: Vec<u64>,
}

impl Depth {
    /// The largest number of occurrences on one stack.
    pub fn deepest(&self) -> usize {
        self.at_least.len()
    }

    /// Occurrences per stack, averaged over the weight of those with it; 0 without weight.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.at_least.iter().map(|&weight| weight as f64).sum();
        match self.at_least.first() {
            Some(&all) if all > 0 => sum / all as f64,
            _ => 0.0,
        }
    }

    /// The weight of the samples on which it stands exactly `times` times.
    pub fn exactly(&self, times: usize) -> u64 {
        let at_least = |times: usize| times.checked_sub(1).and_then(|at| self.at_least.get(at));
        let more = at_least(times.saturating_add(1)).copied().unwrap_or(0);
        at_least(times).map_or(0, |weight| weight - more)
    }

    fn add(&mut self, depth: usize, weight: u64) {
        if self.at_least.len() < depth {
            self.at_least.resize(depth, 0);
        }
        self.at_least[depth - 1] += weight;
    }
}

/// The depths of all recursion that stacks show.
#[derive(Clone, Debug, Default)]
pub struct Depths {
    /// Of the functions that stand on one stack more than once, in order of id.
    pub functions: Vec<(FunctionId, Depth)>,
    /// Of each cycle: its members taken together.
    pub cycles: IdVec<CycleId, Depth>,
}

impl Depths {
    /// The depth of a function; `None` where it is on no stack more than once.
    pub fn of(&self, function: FunctionId) -> Option<&Depth> {
        let at = self.functions.binary_search_by_key(&function, |row| row.0);
        at.ok().map(|at| &self.functions[at].1)
    }
}

/// The depths of recursion in the selected samples. Linear in rows, paths and functions: the n-th
/// time that something stands on a stack is one place on it.
///
/// ```
/// use proftool::analysis::recursion;
/// use proftool::base::Id;
/// use proftool::callgraph::{CallGraph, Cycles};
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter, FunctionId};
///
/// let text = "main;fib;fib;fib 5\nmain;fib;fib 2\nmain;fib 2\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let cycles = Cycles::find(&CallGraph::of(&profile, &selection), |_| true);
/// let depths = recursion::depths(&profile, &selection, &cycles);
/// let fib = depths.of(FunctionId::new(1)).unwrap();
/// assert_eq!((fib.at_least.as_slice(), fib.exactly(2)), (&[9, 7, 5][..], 2));
/// ```
pub fn depths(profile: &Profile, selection: &Selection, cycles: &Cycles) -> Depths {
    let totals = super::inclusive::by_function(profile, selection).total;
    depths_with(&totals, profile, selection, cycles)
}

// [`depths`], where the totals of functions are known already.
pub(super) fn depths_with(
    totals: &IdVec<FunctionId, u64>,
    profile: &Profile,
    selection: &Selection,
    cycles: &Cycles,
) -> Depths {
    let weights = PathWeights::of(profile, selection);
    let mut functions: FxHashMap<FunctionId, Depth> = FxHashMap::default();
    let mut of_cycles = IdVec::filled(Depth::default(), cycles.members().len());
    let mut depth = IdVec::filled(0u32, profile.functions.len());
    let mut depth_in = IdVec::filled(0usize, cycles.members().len());
    Links::new(profile, &weights).walk(&profile.paths, |step| match step {
        Step::Enter(path) => {
            let function = profile.paths[path].function;
            let weight = weights.total(path);
            depth[function] += 1;
            // The first time is the function's total: most functions never come a second time.
            if depth[function] > 1 {
                let of_function = functions.entry(function).or_default();
                of_function.add(depth[function] as usize, weight);
            }
            if let Some(cycle) = cycles.of()[function] {
                depth_in[cycle] += 1;
                of_cycles[cycle].add(depth_in[cycle], weight);
            }
        }
        Step::Leave(path) => {
            let function = profile.paths[path].function;
            depth[function] -= 1;
            if let Some(cycle) = cycles.of()[function] {
                depth_in[cycle] -= 1;
            }
        }
    });
    let mut functions: Vec<(FunctionId, Depth)> = functions.into_iter().collect();
    functions.sort_unstable_by_key(|row| row.0);
    for (function, depth) in &mut functions {
        depth.at_least[0] = totals[*function];
    }
    Depths {
        functions,
        cycles: of_cycles,
    }
}
