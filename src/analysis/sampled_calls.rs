//! Calls on stacks, from address to function.

use rustc_hash::FxHashMap;

use crate::profile::{FunctionId, PlaceId, PlaceWeights, Profile, Selection};

/// A call that stands on stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledCall {
    /// The function whose machine code calls.
    pub caller: FunctionId,
    /// A stated address inside of the instruction that calls.
    pub at: u64,
    /// The function that is called.
    pub callee: FunctionId,
    /// The weight of the samples with the call on their stacks, each counted once.
    pub weight: u64,
}

/// Returns the calls of machine code by machine code, in order of caller, address and callee.
/// Inlined calls are left out. Empty if the profile has no addresses.
pub fn sampled_calls(profile: &Profile, selection: &Selection) -> Vec<SampledCall> {
    let Some(places) = &profile.places else {
        return Vec::new();
    };
    let tree = places.tree();
    let placed = PlaceWeights::of(places, selection);
    let is_inlined = |id: PlaceId| profile.paths[tree[id].path].inlined;
    let function = |id: PlaceId| profile.paths[tree[id].path].function;
    let calls: Vec<_> = tree
        .enumerate()
        .filter(|&(id, _)| !is_inlined(id))
        .filter_map(|(id, place)| {
            let mut caller = place.caller?;
            let at = places.addresses()[tree[caller].address?];
            while is_inlined(caller) {
                caller = tree[caller].caller?;
            }
            Some((id, (function(caller), at, function(id))))
        })
        .collect();
    let totals: FxHashMap<(FunctionId, u64, FunctionId), u64> =
        placed.totals(calls.into_iter(), std::iter::empty());
    let totals = totals.into_iter();
    let mut found: Vec<SampledCall> = totals
        .map(|((caller, at, callee), weight)| SampledCall {
            caller,
            at,
            callee,
            weight,
        })
        .collect();
    found.sort_unstable();
    found
}
