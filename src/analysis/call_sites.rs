//! Calls by line: from which lines a function calls what, and from which lines of others it is
//! called.
//!
//! ```text
//!   main ◀─9─ A ◀─4─ B ◀─7─ A ◀─5─ C     C is called from line 5 of A, B from line 4, A from
//!                                        line 9 of main and from line 7 of B
//! ```
//!
//! A sample counts once for a line and the function at the other end, with all that is further in,
//! however often the call is on its stack. It can count for two lines of one pair where it recurses:
//! so the lines of a pair together have at least the weight of its arc, and none has more.

use rustc_hash::FxHashMap;

use super::inclusive;
use crate::base::IdVec;
use crate::profile::{FunctionId, LineId, PlaceId, Places, Profile, Selection};

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
/// Linear in places and rows, but for sorting what it finds.
pub fn of(profile: &Profile, selection: &Selection, function: FunctionId) -> Option<CallSites> {
    let places = profile.places.as_ref()?;
    let taken = Taken::of(places, selection);
    let order = Nesting::of(places);
    let mut made: Vec<(PlaceId, FunctionId)> = Vec::new();
    let mut received: Vec<(PlaceId, FunctionId)> = Vec::new();
    for (id, place) in places.tree().enumerate() {
        let Some(caller) = place.caller.filter(|_| taken.samples[id]) else {
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
    let by_line = |mut calls: Vec<(PlaceId, FunctionId)>| {
        calls.sort_unstable_by_key(|&(place, _)| order.first[place]);
        let mut sites: FxHashMap<(FunctionId, Option<LineId>), (CallSite, u32)> =
            FxHashMap::default();
        for (id, function) in calls {
            let place = &places.tree()[id];
            let inlined = profile.paths[place.path].inlined;
            let none = CallSite {
                function,
                line: place.line,
                inlined,
                weight: 0,
            };
            let (site, end) = sites.entry((function, place.line)).or_insert((none, 0));
            site.inlined &= inlined;
            // Further in than the last one, its samples are counted already.
            if order.first[id] >= *end {
                site.weight += taken.weight[id];
                *end = order.first[id] + order.size[id];
            }
        }
        let mut sites: Vec<CallSite> = sites.into_values().map(|(site, _)| site).collect();
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

/// What passes each place.
struct Taken {
    weight: IdVec<PlaceId, u64>,
    /// Whether any sample does.
    samples: IdVec<PlaceId, bool>,
}

impl Taken {
    fn of(places: &Places, selection: &Selection) -> Taken {
        let mut weight = IdVec::filled(0u64, places.tree().len());
        let mut samples = IdVec::filled(false, places.tree().len());
        for row in selection.rows() {
            if let Some(place) = row.place {
                weight[place] += row.weight;
                samples[place] = true;
            }
        }
        for (id, place) in places.tree().enumerate().rev() {
            if let Some(caller) = place.caller {
                weight[caller] += weight[id];
                samples[caller] |= samples[id];
            }
        }
        Taken { weight, samples }
    }
}

/// Which place is further in than which: those under a place have the numbers behind its own, as
/// many as there are.
struct Nesting {
    first: IdVec<PlaceId, u32>,
    /// The number of places at this one and further in.
    size: IdVec<PlaceId, u32>,
}

impl Nesting {
    fn of(places: &Places) -> Nesting {
        let mut size = IdVec::filled(1u32, places.tree().len());
        for (id, place) in places.tree().enumerate().rev() {
            if let Some(caller) = place.caller {
                size[caller] += size[id];
            }
        }
        let mut first = IdVec::filled(0u32, places.tree().len());
        // The next number that is free under each place, and outside of all.
        let mut free = first.clone();
        let mut outside = 0;
        for (id, place) in places.tree().enumerate() {
            let next = match place.caller {
                Some(caller) => &mut free[caller],
                None => &mut outside,
            };
            first[id] = *next;
            *next += size[id];
            free[id] = first[id] + 1;
        }
        Nesting { first, size }
    }
}
