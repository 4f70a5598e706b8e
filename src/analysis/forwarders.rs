//! Functions that hand nearly all of their time to one other: wrappers, `main`, closures' callers.
//!
//! ```text
//!   main 100 ─▶ run 100 ─▶ retry 60 ─▶ measured 60 ─▶ render 60 ─▶ …
//!                      └─▶ retry 40 ─▶ …
//!   forwards: main (to run), retry (to measured), measured (to render)
//! ```

use rustc_hash::FxHashMap;

use super::inclusive::FunctionWeights;
use super::owners::Owners;
use crate::base::IdVec;
use crate::profile::{FunctionId, Links, PathWeights, Profile, Selection, Step};

/// A part as large as this of a function's total, in percent, is nearly all.
const NEARLY_ALL: u128 = 98;

/// Which functions of the user's own code hand nearly all of their total to one other of them,
/// whatever code of others is between the two. Linear in paths.
///
/// ```
/// use proftool::analysis::owners::Owners;
/// use proftool::analysis::{forwarders, inclusive};
/// use proftool::base::Id;
/// use proftool::input::folded;
/// use proftool::profile::{EventId, Filter};
///
/// let text = "main;run;retry;std::f(int);render 60\nmain;run;again;tally 20\n\
///             main;run;again;even;odd;even;odd;leaf 20\n";
/// let profile = folded::read(text.as_bytes(), &mut |_| {}).unwrap();
/// let selection = profile.select(EventId::new(0), &Filter::default());
/// let weights = inclusive::by_function(&profile, &selection);
/// let owners = Owners::of_profile(&profile, &[]);
/// let forwards = forwarders::find(&profile, &selection, &weights, &owners);
/// let names = profile.functions.enumerate().filter(|&(id, _)| forwards[id]);
/// let names: Vec<&str> = names.map(|(_, function)| &*function.name).collect();
/// assert_eq!(names, ["main", "retry", "even", "odd"]);
/// ```
pub fn find(
    profile: &Profile,
    selection: &Selection,
    weights: &FunctionWeights,
    owners: &Owners,
) -> IdVec<FunctionId, bool> {
    let mut handed: FxHashMap<(FunctionId, FunctionId), u64> = FxHashMap::default();
    // Own functions around the place where the walk is, and how often each is among them.
    let mut around: Vec<FunctionId> = Vec::new();
    let mut depth: FxHashMap<FunctionId, u32> = FxHashMap::default();
    let path_weights = PathWeights::of(profile, selection);
    Links::new(profile, &path_weights).walk(&profile.paths, |step| match step {
        Step::Enter(path) => {
            let function = profile.paths[path].function;
            if !owners.is_own(function) {
                return;
            }
            let depth = depth.entry(function).or_default();
            // What a function that is already there hands to itself is no news.
            if let (0, Some(&caller)) = (*depth, around.last()) {
                let weight = handed.entry((caller, function)).or_default();
                *weight = weight.saturating_add(path_weights.total(path));
            }
            *depth += 1;
            around.push(function);
        }
        Step::Leave(path) => {
            let function = profile.paths[path].function;
            if owners.is_own(function) {
                around.pop();
                if let Some(depth) = depth.get_mut(&function) {
                    *depth -= 1;
                }
            }
        }
    });
    let mut forwards = IdVec::filled(false, profile.functions.len());
    for ((from, to), weight) in handed {
        let (all, inner) = (weights.total[from], weights.total[to]);
        // Of two that call each other, the one with less, or the later one, stands for both.
        let is_inner = (inner, std::cmp::Reverse(to)) < (all, std::cmp::Reverse(from));
        forwards[from] |= is_inner && u128::from(weight) * 100 >= u128::from(all) * NEARLY_ALL;
    }
    forwards
}
