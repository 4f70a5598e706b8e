//! Calls by line: from which lines a function calls what, and from which lines of others it is
//! called.
//!
//! ```text
//!   main ◀─9─ A ◀─4─ B ◀─7─ A ◀─5─ C     C is called from line 5 of A, B from line 4, A from
//!                                        line 9 of main and from line 7 of B
//! ```
//!
//! A sample counts once for a line and the function at the other end, including what is further in,
//! however often the call is on its stack. It can count for two lines of one pair where it
//! recurses: so the lines of a pair together have at least the weight of its arc, and none has
//! more.

use rustc_hash::FxHashMap;

use super::inclusive;
use crate::profile::{FunctionId, LineId, PlaceId, PlaceWeights, Profile, Selection};

/// The calls between a function and another one on one line of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The function at the other end of the call.
    pub function: FunctionId,
    /// The line of the caller, where it is known.
    pub line: Option<LineId>,
    /// Whether all of these calls were inlined.
    pub inlined: bool,
    /// The weight of the samples with such a call on the stack, each once.
    pub weight: u64,
}

/// The calls of a function and by a function, by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSites {
    /// The calls that it makes, the heaviest first.
    pub made: Vec<CallSite>,
    /// The calls by which it is reached, the heaviest first.
    pub received: Vec<CallSite>,
}

/// The function's calls by line; `None` where the profile does not have the lines of calls.
/// Linear in places and rows, apart from sorting what it finds.
pub fn of(profile: &Profile, selection: &Selection, function: FunctionId) -> Option<CallSites> {
    let places = profile.places.as_ref()?;
    let weights = PlaceWeights::of(places, selection);
    let mut made: Vec<(PlaceId, FunctionId)> = Vec::new();
    let mut received: Vec<(PlaceId, FunctionId)> = Vec::new();
    for (id, place) in places.tree().enumerate() {
        let Some(caller) = place.caller.filter(|_| weights.has_samples(id)) else {
            continue;
        };
        let callee = profile.paths[place.path].function;
        let caller = profile.paths[places.tree()[caller].path].function;
        if caller == function {
            made.push((id, callee));
        }
        if callee == function {
            received.push((id, caller));
        }
    }
    let ranks = inclusive::name_ranks(profile);
    let by_line = |calls: Vec<(PlaceId, FunctionId)>| {
        let key = |&(place, function): &(PlaceId, FunctionId)| {
            (place, (function, places.tree()[place].line))
        };
        let mut inlined: FxHashMap<(FunctionId, Option<LineId>), bool> = FxHashMap::default();
        for (place, key) in calls.iter().map(key) {
            let path = places.tree()[place].path;
            // A line may have both: the call counts as inlined only if every occurrence was.
            *inlined.entry(key).or_insert(true) &= profile.paths[path].inlined;
        }
        let totals = weights.totals(calls.iter().map(key), std::iter::empty());
        let mut sites: Vec<CallSite> = totals
            .into_iter()
            .map(|((function, line), weight)| CallSite {
                function,
                line,
                inlined: inlined[&(function, line)],
                weight,
            })
            .collect();
        sites.sort_unstable_by(|a, b| {
            let line = |site: &CallSite| {
                let line = &profile.lines[site.line?];
                Some((&line.file, line.line, site.line))
            };
            (b.weight.cmp(&a.weight))
                .then(a.line.is_none().cmp(&b.line.is_none()))
                .then_with(|| line(a).cmp(&line(b)))
                .then_with(|| ranks[a.function].cmp(&ranks[b.function]))
        });
        sites
    };
    Some(CallSites {
        made: by_line(made),
        received: by_line(received),
    })
}
