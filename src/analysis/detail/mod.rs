//! One function: its own time, the callers that its time is distributed to, and the descendants
//! that it comes from. After Quantify's Function Detail window (Rational, *How Quantify handles
//! recursive functions*).
//!
//! No function is its own descendant. So what a call hands up from a descendant is the weight under
//! that call **without** what the function itself takes further in:
//!
//! ```text
//!   main ─▶ A 32 ─▶ B 17 ─▶ C 23 ─▶ A 32 ─▶ D 14
//!
//!   A: function 64, function and descendants 118
//!     callers       main 118            all that was called by main
//!                   C     46            A 32 and D 14, called by C
//!     descendants   B *   54            B 17, C 23 and D 14, not the inner A's 32
//!                   D     14            shown again, as the inner A called it
//! ```
//!
//! Each sample counts once for a caller and once for a descendant, however often the call is on its
//! stack, so no line exceeds the function's total. But where the function recurses, a sample can
//! count for two descendants, and the lines together exceed the total.

pub mod pairs;

use crate::base::IdVec;
use crate::callgraph::ArcId;
use crate::profile::{FunctionId, Links, PathWeights, Profile, Selection, Step};

use super::{estimated, inclusive};

/// What a descendant contributes where the function recurses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// What is under the call without what the function itself takes there.
    #[default]
    Strict,
    /// All that is under the call, as the help of PurifyPlus 7.0.1 has it.
    Whole,
}

impl Rule {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Strict => "strict",
            Rule::Whole => "whole",
        }
    }
}

/// A caller or a descendant of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The function at the other end of the call.
    pub function: FunctionId,
    /// The weight that is distributed to it, or that it contributes.
    pub weight: u64,
    /// Of a descendant: some stack leads from it back to the function. Of a caller: some stack
    /// leads from the function to it.
    pub recursive: bool,
    /// Whether no recorded stack has this call: one of the two functions was restored each time.
    pub inferred: bool,
    /// Whether code was inlined on some stack: then not all of the weight is under calls.
    pub inlined: bool,
}

/// What the figures rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Whole stacks.
    Stacks,
    /// Numbers of calls: the figures are [estimates](super::estimated), and no rule of recursion
    /// applies.
    Calls {
        /// Whether counted calls lead from the function back to it.
        recurses: bool,
    },
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The function.
    pub function: FunctionId,
    /// What all this rests on.
    pub basis: Basis,
    /// Which rule the descendants follow.
    pub rule: Rule,
    /// The weight of the samples taken in it.
    pub self_weight: u64,
    /// The weight of the samples with it on the stack, each once.
    pub total: u64,
    /// The weight of the samples with it as the outermost frame.
    pub outermost: u64,
    /// Its immediate callers, the heaviest first.
    pub callers: Vec<Neighbour>,
    /// Whether the weight of another function among the callers lacks what that took itself further
    /// in.
    pub callers_lack_own: bool,
    /// What it calls immediately, the heaviest first.
    pub descendants: Vec<Neighbour>,
    /// Occurrences per stack, and the weight of those stacks; they add up to `total`.
    pub depths: Vec<(u32, u64)>,
}

impl Detail {
    /// Whether it is on some stack twice; without stacks, whether calls lead back to it.
    pub fn recurses(&self) -> bool {
        if let Basis::Calls { recurses } = self.basis {
            return recurses;
        }
        self.depths.iter().any(|&(depth, _)| depth > 1)
            || self.descendants.iter().any(|other| other.recursive)
    }

    /// Its own weight and all contributions; more than the total if something is shown twice.
    pub fn shown(&self) -> u128 {
        let contributions = self
            .descendants
            .iter()
            .map(|other| u128::from(other.weight));
        u128::from(self.self_weight) + contributions.sum::<u128>()
    }
}

/// The function's detail; estimated where calls were counted and no stacks recorded. Linear in
/// paths, functions and rows.
///
/// ```
/// use proftool::analysis::detail::{self, Rule};
/// use proftool::base::Id;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter, FunctionId};
///
/// // main, A, B, C, D by order of appearance
/// let text = "main;A 32\nmain;A;B 17\nmain;A;B;C 23\nmain;A;B;C;A 32\nmain;A;B;C;A;D 14\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let a = detail::of(&profile, &selection, FunctionId::new(1), Rule::Strict);
/// assert_eq!((a.self_weight, a.total, a.shown()), (64, 118, 132));
/// let weights: Vec<u64> = a.callers.iter().chain(&a.descendants).map(|n| n.weight).collect();
/// assert_eq!(weights, [118, 46, 54, 14]);
/// assert!(a.descendants[0].recursive && !a.descendants[1].recursive);
/// assert_eq!(a.depths, [(1, 72), (2, 46)]);
/// ```
pub fn of(profile: &Profile, selection: &Selection, function: FunctionId, rule: Rule) -> Detail {
    if estimated::is_needed(profile, selection) {
        return by_calls(profile, selection, function, rule);
    }
    let weights = PathWeights::of(profile, selection);
    let functions = profile.functions.len();
    let mut watch = Watch {
        profile,
        weights: &weights,
        function,
        rule,
        depth: 0,
        entered: 0,
        taken: IdVec::filled(0, functions),
        into: IdVec::filled(Side::default(), functions),
        out_of: IdVec::filled(Side::default(), functions),
        calls: Vec::new(),
        total: 0,
        outermost: 0,
        callers_lack_own: false,
        depths: Vec::new(),
    };
    Links::new(profile, &weights).walk(&profile.paths, |step| watch.see(step));
    watch.take_counted();
    let ranks = inclusive::name_ranks(profile);
    let listed = |sides: &IdVec<FunctionId, Side>| {
        let mut listed: Vec<Neighbour> = sides
            .enumerate()
            .filter(|(_, side)| side.seen)
            .map(|(function, side)| Neighbour {
                function,
                weight: side.weight,
                recursive: side.recursive,
                inferred: !side.recorded,
                inlined: side.inlined,
            })
            .collect();
        listed.sort_by_key(|other| (std::cmp::Reverse(other.weight), ranks[other.function]));
        listed
    };
    Detail {
        function,
        basis: Basis::Stacks,
        rule,
        self_weight: watch.taken[function],
        total: watch.total,
        outermost: watch.outermost,
        callers: listed(&watch.into),
        callers_lack_own: watch.callers_lack_own,
        descendants: listed(&watch.out_of),
        depths: (1..)
            .zip(watch.depths)
            .filter(|&(_, weight)| weight > 0)
            .collect(),
    }
}

// Callers and what has no caller add up to the total, and so do the function itself and its
// descendants, except for what rounding to whole numbers changes.
fn by_calls(profile: &Profile, selection: &Selection, function: FunctionId, rule: Rule) -> Detail {
    let mut own = IdVec::filled(0.0, profile.functions.len());
    for row in selection.rows() {
        own[profile.paths[row.path].function] += row.weight as f64;
    }
    let estimate = estimated::of(profile, selection, &own);
    let graph = &estimate.graph;
    let ranks = inclusive::name_ranks(profile);
    let listed = |arcs: &mut dyn Iterator<Item = ArcId>, is_caller: bool| {
        let arcs = arcs.filter(|&id| graph.arcs()[id].is_observed());
        let mut listed: Vec<Neighbour> = arcs
            .filter_map(|id| {
                let arc = &graph.arcs()[id];
                Some(Neighbour {
                    function: if is_caller { arc.from } else { arc.to },
                    weight: estimate.over(id)?.total().round() as u64,
                    recursive: estimate.cycles.is_within(arc),
                    inferred: false,
                    inlined: false,
                })
            })
            .collect();
        listed.sort_by_key(|other| (std::cmp::Reverse(other.weight), ranks[other.function]));
        listed
    };
    let total = estimate.attribution.total(function);
    let callers = graph.callers(function);
    let accounted: f64 = callers
        .filter_map(|id| Some(estimate.over(id)?.total()))
        .sum();
    let itself = graph
        .arc_between(function, function)
        .is_some_and(|id| graph.arcs()[id].is_observed());
    Detail {
        function,
        basis: Basis::Calls {
            recurses: itself || estimate.cycles.of()[function].is_some(),
        },
        rule,
        self_weight: own[function].round() as u64,
        total: total.round() as u64,
        // Sums of floating-point shares may exceed the total by a little.
        outermost: (total - accounted).max(0.0).round() as u64,
        callers: listed(&mut graph.callers(function), true),
        callers_lack_own: false,
        descendants: listed(&mut graph.callees(function), false),
        depths: Vec::new(),
    }
}

// What is known of the calls between the function and another one.
#[derive(Clone, Copy, Default)]
struct Side {
    // How many of them are on the stack at the moment.
    on_stack: u32,
    seen: bool,
    // It was seen between two functions that were both recorded.
    recorded: bool,
    inlined: bool,
    weight: u64,
    recursive: bool,
}

// What had been taken, and how often the function had been entered, when a call was made.
struct Call {
    taken: u64,
    entered: u64,
}

// Looks at the paths one after the other as they are entered and left.
struct Watch<'a> {
    profile: &'a Profile,
    weights: &'a PathWeights,
    function: FunctionId,
    rule: Rule,
    // How often the function is on the stack.
    depth: usize,
    // How often it was entered so far.
    entered: u64,
    // The self weight of each function so far: the difference between two moments is what it took
    // in between, which gives the weight under a call in one pass.
    taken: IdVec<FunctionId, u64>,
    // Callers.
    into: IdVec<FunctionId, Side>,
    // Descendants.
    out_of: IdVec<FunctionId, Side>,
    // The calls of and by the function on the stack.
    calls: Vec<Call>,
    total: u64,
    outermost: u64,
    callers_lack_own: bool,
    depths: Vec<u64>,
}

impl Watch<'_> {
    // What called the function, and what it called, by calls that were counted and that no sample
    // has.
    fn take_counted(&mut self) {
        let counts = self.profile.counts.as_ref();
        for count in counts.map_or(&[][..], |counts| counts.calls()) {
            let Some(from) = count.from.filter(|_| count.calls > 0) else {
                continue;
            };
            let side = match (from == self.function, count.to == self.function) {
                (_, true) => &mut self.into[from],
                (true, false) => &mut self.out_of[count.to],
                _ => continue,
            };
            if !side.seen {
                (side.seen, side.recorded, side.recursive) = (true, true, from == count.to);
            }
        }
    }

    fn see(&mut self, step: Step) {
        match step {
            Step::Enter(id) => {
                let path = &self.profile.paths[id];
                let caller = path
                    .caller
                    .map(|caller| self.profile.paths[caller].function);
                // A call counts as recorded only if both of its ends are.
                let weight = self.weights.total(id);
                let recorded = [Some(id), path.caller]
                    .into_iter()
                    .flatten()
                    .all(|id| !self.profile.paths[id].inferred);
                if path.function == self.function {
                    match caller {
                        None => self.outermost += weight,
                        Some(caller) => {
                            self.enter_from(caller, recorded);
                            self.into[caller].inlined |= path.inlined;
                        }
                    }
                    if self.depth == 0 {
                        self.total += weight;
                    }
                    self.depth += 1;
                    self.entered += 1;
                    self.depths.resize(self.depths.len().max(self.depth), 0);
                }
                if caller == Some(self.function) {
                    self.enter_to(path.function, recorded);
                    self.out_of[path.function].inlined |= path.inlined;
                }
                let own = self.weights.self_weight(id);
                self.taken[path.function] += own;
                if let Some(depth) = self.depth.checked_sub(1) {
                    self.depths[depth] += own;
                }
            }
            Step::Leave(id) => {
                let path = &self.profile.paths[id];
                let caller = path
                    .caller
                    .map(|caller| self.profile.paths[caller].function);
                let weight = self.weights.total(id);
                if caller == Some(self.function) {
                    self.leave_to(path.function, weight);
                }
                if path.function == self.function {
                    self.depth -= 1;
                    if let Some(caller) = caller {
                        self.leave_from(caller, weight);
                    }
                }
            }
        }
    }

    fn enter_from(&mut self, caller: FunctionId, recorded: bool) {
        let side = &mut self.into[caller];
        side.on_stack += 1;
        side.seen = true;
        side.recorded |= recorded;
        side.recursive |= self.depth > 0;
        self.remember(caller);
    }

    fn leave_from(&mut self, caller: FunctionId, weight: u64) {
        let before = self.calls.pop();
        let side = &mut self.into[caller];
        side.on_stack -= 1;
        if side.on_stack == 0 {
            let since = before.map_or(0, |call| self.taken[caller] - call.taken);
            side.weight += weight - since;
            self.callers_lack_own |= since > 0 && caller != self.function;
        }
    }

    fn enter_to(&mut self, callee: FunctionId, recorded: bool) {
        let side = &mut self.out_of[callee];
        side.on_stack += 1;
        side.seen = true;
        side.recorded |= recorded;
        self.remember(self.function);
    }

    fn leave_to(&mut self, callee: FunctionId, weight: u64) {
        let before = self.calls.pop();
        let side = &mut self.out_of[callee];
        side.on_stack -= 1;
        let entered = before.as_ref().map_or(0, |call| call.entered);
        side.recursive |= callee == self.function || self.entered > entered;
        if side.on_stack == 0 {
            let since = match (self.rule, before) {
                (Rule::Strict, Some(call)) => self.taken[self.function] - call.taken,
                _ => 0,
            };
            side.weight += weight - since;
        }
    }

    fn remember(&mut self, function: FunctionId) {
        self.calls.push(Call {
            taken: self.taken[function],
            entered: self.entered,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Event, WeightSum};
    use crate::profile::{Builder, Filter, Function, Module, Thread};

    #[test]
    fn counted_callers_that_no_sample_has_stand_beside_sampled_ones() {
        let mut builder = Builder::default();
        let module = builder.module(Module {
            name: "app".into(),
            path: "/app".into(),
        });
        let [main, rare, work] =
            ["main", "rare", "work"].map(|name| builder.function(Function::named(name, module)));
        let event = builder.event(Event::named("cpu-clock"));
        let thread = builder.thread(Thread::new(1, 1, "app"));
        let outside = builder.path(None, main, false);
        let path = builder.path(Some(outside), work, false);
        builder.sample(event, thread, path, None, WeightSum::of(20));
        builder.count(Some(main), work, 10);
        builder.count(Some(rare), work, 2);
        let profile = builder.finish();
        let selection = profile.select(event, &Filter::default());
        let detail = of(&profile, &selection, work, Rule::Strict);
        let callers = detail.callers.iter().map(|it| (it.function, it.weight));
        assert_eq!(callers.collect::<Vec<_>>(), [(main, 20), (rare, 0)]);
    }
}
