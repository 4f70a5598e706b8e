//! What incomplete stacks hide: how much larger than what was seen a function's total may be.
//!
//! Deep stacks are cut at the kernel's limit of frames, or at the end of the copied stack; others
//! where unwinding leads to no caller (`[broken stack]`). The callers outside of the cut are not
//! known. A function may be among them if it can reach the *cut function*, the outermost one that
//! the stack still shows.
//!
//! ```text
//!   as it was             as it was recorded
//!   main;a;f;f;f;x 70     [truncated];f;f;x 70      cut function f
//!   main;a;f;x     20     main;a;f;x        20
//!   main;b;c       10     [truncated];c     10      cut function c
//!   main;b          5     main;b             5
//!
//!   the code:                            seen  hidden at most   so its total is
//!   main ─▶ a ─▶ f ─▶ x           main    25     70 + 10         from 25 to 105   (105)
//!    │          └─┘f              a       20     70              from 20 to  90   ( 90)
//!    └───▶ b ─▶ c                 f       90      0                       90      ( 90)
//!                                 b        5     10              from  5 to  15   ( 15)
//! ```
//!
//! Other stacks lack frames between two functions, the outer of which did not call the inner one
//! (`across_gap`): the caller of a function without a frame of its own, or one that ended in a tail
//! call; or functions inlined into a restored one. Often the code shows which functions can be
//! missing; then only these may be there. Otherwise a function may be there if the outer function
//! can reach it, and it can reach the inner one. Both are *holes* of a stack.
//!
//! Whether a function reaches another one has three answers: yes, if calls in samples or in the
//! code lead there; no, if all code on all ways is known and no call does; else unknown, as there
//! is an indirect call on the way, or code that was not read. The bound counts all functions that
//! may be there. Where it rests on an answer that is not known, [`AtMost::unknown`] has the reason:
//! the total cannot be larger, but nothing shows that it can be as large.
//!
//! A true total is never outside of its range, with two exceptions. A signal handler can interrupt
//! any function, and stacks with a hole inside of a handler do not count for what it interrupted.
//! And a function that is called through a pointer and ends in a tail call of another function
//! whose address is taken leaves no trace. Where code was only followed from the functions of
//! samples, a function counts as one that is inlined nowhere if neither samples nor its unit's
//! debug information show a copy.

mod holes;
mod reach;

pub use self::reach::Unknown;

use rustc_hash::FxHashMap;

use self::holes::Holes;
use self::reach::Reach;
use crate::base::IdVec;
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

/// An upper bound of a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AtMost {
    /// The weight is never more than this.
    pub weight: u64,
    /// Why it is unknown whether the weight can be that large; `None` if it can.
    pub unknown: Option<Unknown>,
}

impl AtMost {
    /// The bound, if it is known that calls allow it.
    pub fn known(self) -> Option<u64> {
        self.unknown.is_none().then_some(self.weight)
    }

    /// The bound of the sum with a weight that is known.
    pub fn plus(self, weight: u64) -> AtMost {
        AtMost {
            weight: self.weight.saturating_add(weight),
            ..self
        }
    }
}

/// The weight that incomplete stacks hide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// For each function the weight of the samples that may have had it in a hole of their stack,
    /// and have it nowhere on the part that is known; each sample counted once. Nothing for marks.
    pub at_most: IdVec<FunctionId, AtMost>,
    /// The part of this weight that known calls allow: all of it where the bound is known.
    pub can_be: IdVec<FunctionId, u64>,
    /// For each function the weight of the samples with incomplete stacks that show it.
    pub shown: IdVec<FunctionId, u64>,
    /// The cut samples by their cut function.
    pub cut_at: IdVec<FunctionId, Cut>,
}

impl Hidden {
    pub(super) fn nothing(functions: usize) -> Hidden {
        Hidden {
            at_most: IdVec::filled(AtMost::default(), functions),
            can_be: IdVec::filled(0, functions),
            shown: IdVec::filled(0, functions),
            cut_at: IdVec::filled(Cut::default(), functions),
        }
    }

    /// Whether the stack of some sample is incomplete.
    pub fn is_any(&self) -> bool {
        self.shown.iter().any(|&weight| weight > 0)
    }
}

/// Whether the profile has incomplete stacks at all.
pub fn is_any(profile: &Profile) -> bool {
    let mut functions = profile.functions.iter();
    profile.paths.has_gaps()
        || profile.paths.may_lack_inlined()
        || functions.any(|function| function.is_cut_mark())
}

/// What the incomplete stacks of the selection hide, by all calls that the profile's samples show
/// and its code contains. Linear in rows, paths, functions, calls, and the frames outside of gaps.
///
/// ```
/// use proftool::analysis::cut::{self, Unknown};
/// use proftool::base::Id;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter, FunctionId};
///
/// // [truncated], f, x, main, a, b and c by order of appearance
/// let text = "[truncated];f;f;x 70\nmain;a;f;x 20\nmain;b 5\n[truncated];c 10\nmain;c 1\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let hidden = cut::by_function(&profile, &profile.select(EventId::new(0), &Filter::default()));
/// let [f, main, a] = [1, 3, 4].map(FunctionId::new);
/// assert_eq!(hidden.at_most[main].known(), Some(80));
/// // Folded stacks come without code: nobody knows whether a calls c, or f does.
/// assert_eq!((hidden.at_most[a].weight, hidden.at_most[a].unknown), (80, Some(Unknown::Code)));
/// assert_eq!(hidden.at_most[f].weight, 10);
/// assert_eq!(hidden.cut_at[f].weight, 70);
/// ```
pub fn by_function(profile: &Profile, selection: &Selection) -> Hidden {
    let incomplete = IncompleteStacks::of(profile, selection);
    incomplete.map_or_else(
        || Hidden::nothing(profile.functions.len()),
        |incomplete| incomplete.by_function(),
    )
}

/// The incomplete stacks of a selection.
pub struct IncompleteStacks<'a> {
    profile: &'a Profile,
    weights: PathWeights,
    holes: Holes,
    reach: Reach,
    stacks: StacksByClasses,
}

impl<'a> IncompleteStacks<'a> {
    /// Finds them, and the functions that may be in their holes; `None` if all stacks are whole.
    pub fn of(profile: &'a Profile, selection: &Selection) -> Option<IncompleteStacks<'a>> {
        if !is_any(profile) {
            return None;
        }
        let weights = PathWeights::of(profile, selection);
        let holes = Holes::of(profile, &weights);
        if holes.is_empty() {
            return None;
        }
        let reach = Reach::of(profile, &holes);
        let stacks = StacksByClasses::of(profile, &weights, |path| {
            holes.at(path).map_or(0, |hole| reach.class(hole))
        });
        Some(IncompleteStacks {
            profile,
            weights,
            holes,
            reach,
            stacks,
        })
    }

    /// What they hide of each function.
    pub fn by_function(&self) -> Hidden {
        let (profile, reach) = (self.profile, &self.reach);
        let mut hidden = Hidden::nothing(profile.functions.len());
        for (hole, cut) in self.holes.iter() {
            if hole.outer.is_none() {
                hidden.cut_at[hole.inner] = cut;
            }
        }
        let (mut of_possible, mut of_certain) = (self.stacks.sums(), self.stacks.sums());
        for id in hidden.at_most.ids() {
            if !profile.is_no_code(id) {
                hidden.at_most[id].weight = of_possible.with_any_of(reach.possible(id));
                hidden.can_be[id] = of_certain.with_any_of(reach.certain(id));
            }
        }
        // What the known part of a stack shows is in the total already.
        self.for_each_shown(Some, |function, new, weight| {
            if new.any_of(u64::MAX) {
                hidden.shown[function] += weight;
            }
            if new.any_of(reach.possible(function)) {
                let at_most = &mut hidden.at_most[function].weight;
                *at_most = at_most.saturating_sub(weight);
            }
            if new.any_of(reach.certain(function)) {
                let can_be = &mut hidden.can_be[function];
                *can_be = can_be.saturating_sub(weight);
            }
        });
        let are_functions = !profile.rows.replaces_functions();
        for id in hidden.at_most.ids() {
            let weight = hidden.at_most[id].weight;
            hidden.at_most[id].unknown = if are_functions {
                (weight > hidden.can_be[id]).then(|| reach.reason(id))
            } else {
                // A calls B and B calls C, but that need not be one function of B.
                hidden.can_be[id] = 0;
                (weight > 0).then_some(Unknown::Rows)
            };
        }
        hidden
    }

    /// For each of these cycles, which share no function, the weight of the samples that may have
    /// had a member in a hole of their stack, and show none.
    pub fn by_cycle<'c>(&self, cycles: impl Iterator<Item = &'c [FunctionId]>) -> Vec<AtMost> {
        let mut sums = self.stacks.sums();
        // Cycles are known by their first members.
        let mut cycle_of = IdVec::filled(None, self.profile.functions.len());
        let mut numbers: FxHashMap<FunctionId, usize> = FxHashMap::default();
        let mut may_hide: Vec<u64> = Vec::new();
        let at_most = cycles.map(|members| {
            let (mut possible, mut certain) = (0, 0);
            for &member in members {
                cycle_of[member] = members.first().copied();
                possible |= self.reach.possible(member);
                certain |= self.reach.certain(member);
            }
            if let Some(&first) = members.first() {
                numbers.insert(first, may_hide.len());
            }
            may_hide.push(possible);
            let reason = members.first().map(|&first| self.reach.reason(first));
            AtMost {
                weight: sums.with_any_of(possible),
                unknown: reason.filter(|_| possible != certain),
            }
        });
        let mut at_most: Vec<AtMost> = at_most.collect();
        self.for_each_shown(
            |function| cycle_of[function],
            |first, new, weight| {
                let number = numbers[&first];
                if new.any_of(may_hide[number]) {
                    let at_most = &mut at_most[number].weight;
                    *at_most = at_most.saturating_sub(weight);
                }
            },
        );
        at_most
    }

    // Groups are known by one of their functions; a group comes as often as it gains classes of
    // holes on the way inwards.
    fn for_each_shown(
        &self,
        group: impl Fn(FunctionId) -> Option<FunctionId>,
        mut show: impl FnMut(FunctionId, NewClasses, u64),
    ) {
        let (profile, classes) = (self.profile, &self.stacks.classes);
        let mut depth = IdVec::filled(0u32, profile.functions.len());
        // The groups on the stack, each once.
        let mut open: Vec<FunctionId> = Vec::new();
        Links::new(profile, &self.weights).walk(&profile.paths, |step| {
            let (Step::Enter(id) | Step::Leave(id)) = step;
            let path = &profile.paths[id];
            if profile.functions[path.function].is_cut_mark() || is_row(profile, path.function) {
                return;
            }
            let Some(group) = group(path.function) else {
                return;
            };
            match step {
                Step::Enter(_) => {
                    let now = classes[id];
                    let before = path.caller.map_or(0, |caller| classes[caller]);
                    let weight = self.weights.total(id);
                    if now != before {
                        for &outer in &open {
                            show(outer, NewClasses { before, now }, weight);
                        }
                    }
                    if depth[group] == 0 {
                        open.push(group);
                        show(group, NewClasses { before: 0, now }, weight);
                    }
                    depth[group] += 1;
                }
                Step::Leave(_) => {
                    depth[group] -= 1;
                    if depth[group] == 0 {
                        open.pop();
                    }
                }
            }
        });
    }
}

// The most different sets of classes. From there on, a stack with a new set counts as one with
// holes of all classes, which makes bounds larger, never too small.
const SETS: usize = 1 << 12;

struct StacksByClasses {
    // The classes of the holes of each stack, down to each path.
    classes: IdVec<PathId, u64>,
    // The weight of the samples with each set of classes.
    weights: FxHashMap<u64, u64>,
}

impl StacksByClasses {
    // `class` is that of the hole right outside of a path, as a bit, or nothing.
    fn of(profile: &Profile, weights: &PathWeights, class: impl Fn(PathId) -> u64) -> Self {
        let mut stacks = StacksByClasses {
            classes: IdVec::filled(0, profile.paths.len()),
            weights: FxHashMap::default(),
        };
        for (id, path) in profile.paths.enumerate() {
            let outside = path.caller.map_or(0, |caller| stacks.classes[caller]);
            let mut classes = outside | class(id);
            if classes == 0 {
                continue;
            }
            if stacks.weights.len() >= SETS && !stacks.weights.contains_key(&classes) {
                classes = u64::MAX;
            }
            stacks.classes[id] = classes;
            *stacks.weights.entry(classes).or_default() += weights.self_weight(id);
        }
        stacks
    }

    fn sums(&self) -> Sums<'_> {
        Sums {
            weights: &self.weights,
            known: FxHashMap::default(),
        }
    }
}

// Sums over sets of classes, each made once.
struct Sums<'a> {
    weights: &'a FxHashMap<u64, u64>,
    known: FxHashMap<u64, u64>,
}

impl Sums<'_> {
    fn with_any_of(&mut self, classes: u64) -> u64 {
        *self.known.entry(classes).or_insert_with(|| {
            let any = self.weights.iter().filter(|(of, _)| *of & classes != 0);
            any.map(|(_, weight)| weight).sum()
        })
    }
}

// The classes of the holes of some stacks, of which those with a part of them are known already.
#[derive(Clone, Copy)]
struct NewClasses {
    before: u64,
    now: u64,
}

impl NewClasses {
    // Whether the stacks have holes of any of these classes, and those that are known had none.
    fn any_of(self, classes: u64) -> bool {
        self.before & classes == 0 && self.now & classes != 0
    }
}

// Whole samples are grouped by it: a thread, for example.
fn is_row(profile: &Profile, function: FunctionId) -> bool {
    profile.functions[function].kind == FunctionKind::Row && profile.is_no_code(function)
}
