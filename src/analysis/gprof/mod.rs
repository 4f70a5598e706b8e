//! The figures that GNU gprof 2.40 computes from a gmon.out, to the last bit.
//!
//! ```text
//!   functions by address, arcs as added ─▶ cycles ─▶ fractions ─▶ times ─▶ ranks
//! ```
//!
//! gprof's text is the same byte for byte only if every sum is made in gprof's order: a last bit of
//! difference shows where it decides which line comes first. So this goes through functions by
//! address, and through a function's arcs from the last added to the first, as gprof does
//! (`cg_dfn.c`, `cg_arcs.c`). Everything else uses [`propagation`](super::propagation), which
//! computes the same estimate in another order.
//!
//! Unlike gprof's, static arcs are the calls that the code contains (gprof misses backward calls
//! and takes other bytes for calls).
//!
//! Numbers of calls are counted calls, never weights. A profile without counts has no such figures.

mod cycles;

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use self::cycles::Linked;
use super::inclusive;
use crate::base::Unit;
use crate::profile::{CallKind, FunctionId, FunctionKind, Histogram, Profile, Selection};

// Functions that are part of the profiler; gprof leaves their time out.
const EXCLUDED: [&str; 6] = [
    "_gprof_mcount",
    "mcount",
    "_mcount",
    "__mcount",
    "__mcount_internal",
    "__mcleanup",
];

/// A function or a cycle as a whole, as gprof sees it. Times are in ticks of the histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The name in the symbol table; empty for a cycle.
    pub symbol: String,
    /// The name that is printed; empty for a cycle.
    pub name: String,
    /// Its source file, where only that could name it.
    pub file: Option<String>,
    /// Whether it is part of the profiler, so that its time is left out.
    pub excluded: bool,
    /// Calls by other functions; of a cycle, by functions outside of it.
    pub calls: u64,
    /// Calls by itself; of a cycle, between its members.
    pub recursive: u64,
    /// Ticks in it.
    pub time: f64,
    /// Ticks that came up from callees.
    pub child_time: f64,
    /// The part of both that is printed.
    pub fraction: f64,
    /// The printed part of [`Entry::time`].
    pub shown_self: f64,
    /// The printed part of [`Entry::child_time`].
    pub shown_child: f64,
    /// Whether it has an entry in the call graph.
    pub is_printed: bool,
    /// The cycle that it is a member of, an index of [`Figures::cycles`].
    pub cycle: Option<usize>,
    /// Its rank among all functions and cycles, from 1.
    pub index: usize,
}

impl Entry {
    /// The ticks that are printed, its own and those of callees.
    pub fn shown(&self) -> f64 {
        self.shown_self + self.shown_child
    }
}

/// A caller and a callee, with the ticks that come up from the callee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GprofArc {
    /// The caller, an index of [`Figures::functions`].
    pub from: usize,
    /// The callee, an index of [`Figures::functions`].
    pub to: usize,
    /// The number of calls; 0 for an arc that only the code has.
    pub count: u64,
    /// The callee's own ticks on this caller's account, the printed part.
    pub time: f64,
    /// The ticks of the callee's callees on this caller's account, the printed part.
    pub child_time: f64,
}

/// The figures of a whole profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The functions by address.
    pub functions: Vec<Entry>,
    /// The arcs in gprof's order of adding.
    pub arcs: Vec<GprofArc>,
    /// By function the arcs to it, in order of adding.
    pub callers: Vec<Vec<usize>>,
    /// By function the arcs from it, in order of adding.
    pub callees: Vec<Vec<usize>>,
    /// The cycles as if they were functions without names; their numbers begin with 1.
    pub cycles: Vec<Entry>,
    /// Their members, in the order in which gprof links them.
    pub members: Vec<Vec<usize>>,
    /// The ticks that percentages of the call graph are of.
    pub base: f64,
    /// The ticks that percentages of the flat profile are of.
    pub flat_base: f64,
    /// Ticks per second.
    pub rate: f64,
    /// Bytes of code per bucket.
    pub bucket: u64,
}

impl Figures {
    /// Whether the arc stays within a cycle, or leads from a function to itself.
    pub fn is_within(&self, arc: &GprofArc) -> bool {
        let cycle = |function: usize| self.functions[function].cycle;
        arc.from == arc.to || cycle(arc.from).is_some() && cycle(arc.from) == cycle(arc.to)
    }
}

/// Computes gprof's figures of selected samples of a gmon.out with this histogram.
pub fn figures(profile: &Profile, selection: &Selection, histogram: &Histogram) -> Figures {
    let weights = inclusive::by_function(profile, selection);
    let rate = histogram.rate.max(1) as f64;
    // A tick is one sample; where samples were selected by weight they are nanoseconds.
    let ticks = |weight: u64| match selection.event().unit {
        Unit::Nanoseconds => weight as f64 * rate / 1e9,
        _ => weight as f64,
    };
    let mut ids: Vec<FunctionId> = profile.functions.ids().collect();
    ids.retain(|&id| profile.functions[id].kind == FunctionKind::Named);
    ids.sort_by_key(|&id| (profile.functions[id].address, id));
    let all = profile
        .samples
        .iter()
        .map(|sample| sample.count)
        .fold(0u64, |sum, count| sum.saturating_add(count));
    // Of all samples the ticks are known to the last bit; they do not always add up to all ticks.
    let is_whole = selection.samples() == all;
    let share = |id: FunctionId| {
        let at = histogram.shares.binary_search_by_key(&id, |share| share.0);
        at.map_or(0.0, |at| histogram.shares[at].1)
    };
    let mut it = Figures {
        rate,
        bucket: histogram.bucket,
        flat_base: if is_whole {
            histogram.ticks as f64
        } else {
            ticks(selection.total())
        },
        ..Figures::default()
    };
    for &id in &ids {
        let function = &profile.functions[id];
        let symbol = function.linkage_name.as_deref().unwrap_or(&function.name);
        let excluded = EXCLUDED.contains(&symbol);
        let time = if is_whole {
            share(id)
        } else {
            ticks(weights.self_weight[id])
        };
        if excluded {
            it.flat_base -= time;
        }
        it.functions.push(Entry {
            symbol: symbol.to_owned(),
            name: function.name.clone(),
            file: (histogram.files.binary_search_by_key(&id, |row| row.0).ok())
                .map(|at| histogram.files[at].1.clone()),
            excluded,
            time: if excluded { 0.0 } else { time },
            ..Entry::default()
        });
    }
    add_arcs(&mut it, profile, histogram, &ids);
    let order = link_cycles(&mut it);
    fractions(&mut it, &order);
    times(&mut it, &order);
    rank(&mut it);
    it
}

// First the arcs that were counted, then those that the code has alone.
fn add_arcs(it: &mut Figures, profile: &Profile, histogram: &Histogram, ids: &[FunctionId]) {
    let place: FxHashMap<FunctionId, usize> = ids.iter().copied().zip(0..).collect();
    it.callers = vec![Vec::new(); ids.len()];
    it.callees = vec![Vec::new(); ids.len()];
    let counts = profile.counts.iter().flat_map(|counts| counts.calls());
    let counted: FxHashMap<(FunctionId, FunctionId), u64> = counts
        .filter_map(|count| Some(((count.from?, count.to), count.calls)))
        .collect();
    let in_code = profile
        .code
        .calls()
        .iter()
        .filter(|call| matches!(call.kind, CallKind::Call | CallKind::Tail))
        .map(|call| ((call.from, call.to), 0));
    let dynamic = histogram
        .arcs
        .iter()
        .filter_map(|pair| Some((*pair, *counted.get(pair)?)));
    let mut known: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    // Counted arcs first: the same arc in the code adds nothing then. The position in `arcs`
    // decides in which order times are added up.
    for ((from, to), count) in dynamic.chain(in_code) {
        let (Some(&from), Some(&to)) = (place.get(&from), place.get(&to)) else {
            continue;
        };
        let next = it.arcs.len();
        if *known.entry((from, to)).or_insert(next) != next {
            continue;
        }
        it.arcs.push(GprofArc {
            from,
            to,
            count,
            time: 0.0,
            child_time: 0.0,
        });
        it.callers[to].push(next);
        it.callees[from].push(next);
        let callee = &mut it.functions[to];
        let sum = if from == to {
            &mut callee.recursive
        } else {
            &mut callee.calls
        };
        *sum = sum.saturating_add(count);
    }
}

// Gives the order in which gprof goes through functions: callees first, those of one cycle by
// address.
fn link_cycles(it: &mut Figures) -> Vec<usize> {
    let Linked { members, number } = cycles::find(&it.callees, &it.arcs);
    for (cycle, members) in members.iter().enumerate() {
        for &member in members {
            it.functions[member].cycle = Some(cycle);
        }
    }
    it.cycles = vec![Entry::default(); members.len()];
    it.members = members;
    for arc in &it.arcs {
        let of = |function: usize| it.functions[function].cycle;
        if let Some(cycle) = of(arc.to).filter(|_| arc.from != arc.to) {
            let inside = of(arc.from) == Some(cycle);
            let cycle = &mut it.cycles[cycle];
            let sum = if inside {
                &mut cycle.recursive
            } else {
                &mut cycle.calls
            };
            *sum = sum.saturating_add(arc.count);
        }
    }
    let mut order: Vec<usize> = (0..it.functions.len()).collect();
    order.sort_by_key(|&function| number[function]);
    order
}

// From callers to callees: what part of a function's time is printed, and whether it is. The part
// is 1 up to the last bits: it is a sum of shares.
fn fractions(it: &mut Figures, order: &[usize]) {
    let mut before = None;
    for &function in order.iter().rev() {
        let cycle = it.functions[function].cycle;
        let group = cycle.ok_or(function);
        if before != Some(group) {
            before = Some(group);
            match cycle {
                None => {
                    let (printed, fraction) =
                        inherited(it, &[function], it.functions[function].calls);
                    it.functions[function].is_printed = printed;
                    it.functions[function].fraction = fraction;
                }
                Some(cycle) => {
                    let members = std::mem::take(&mut it.members[cycle]);
                    let (printed, fraction) = inherited(it, &members, it.cycles[cycle].calls);
                    it.cycles[cycle].is_printed = printed;
                    it.cycles[cycle].fraction = fraction;
                    for &member in &members {
                        it.functions[member].is_printed = printed;
                        it.functions[member].fraction = fraction;
                    }
                    it.members[cycle] = members;
                }
            }
        }
        let function = &mut it.functions[function];
        function.is_printed = !function.excluded;
        if function.excluded {
            function.fraction = 0.0;
        } else if function.fraction == 0.0 {
            function.fraction = 1.0;
        }
        function.shown_self = function.time * function.fraction;
        it.base += function.shown_self;
    }
}

// Whether some caller of these functions from outside is printed, and the sum of what callers
// print, each by its part of the `calls`.
fn inherited(it: &Figures, members: &[usize], calls: u64) -> (bool, f64) {
    let (mut printed, mut fraction) = (false, 0.0);
    for &member in members {
        for &arc in it.callers[member].iter().rev() {
            let arc = &it.arcs[arc];
            if it.is_within(arc) {
                continue;
            }
            let caller = &it.functions[arc.from];
            printed |= caller.is_printed;
            if calls != 0 {
                fraction += caller.fraction * (arc.count as f64 / calls as f64);
            }
        }
    }
    (printed, fraction)
}

// From callees to callers: the time that comes up over each arc.
fn times(it: &mut Figures, order: &[usize]) {
    for (cycle, members) in it.cycles.iter_mut().zip(&it.members) {
        for &member in members {
            if it.functions[member].fraction != 0.0 {
                cycle.time += it.functions[member].time;
            }
        }
        cycle.shown_self = cycle.fraction * cycle.time;
    }
    for &caller in order {
        let fraction = it.functions[caller].fraction;
        if fraction == 0.0 {
            continue;
        }
        // The last added first, as gprof walks its lists.
        for &id in it.callees[caller].iter().rev() {
            let mut arc = it.arcs[id];
            let callee = &it.functions[arc.to];
            if arc.count == 0 || callee.fraction == 0.0 || it.is_within(&arc) {
                continue;
            }
            let callee = callee.cycle.map_or(callee, |cycle| &it.cycles[cycle]);
            if callee.calls == 0 {
                continue;
            }
            let part = arc.count as f64 / callee.calls as f64;
            arc.time = callee.time * part;
            arc.child_time = callee.child_time * part;
            let share = arc.time + arc.child_time;
            let shown = fraction * share;
            arc.time *= fraction;
            arc.child_time *= fraction;
            it.arcs[id] = arc;
            let function = &mut it.functions[caller];
            function.child_time += share;
            function.shown_child += shown;
            if let Some(cycle) = function.cycle {
                it.cycles[cycle].child_time += share;
                it.cycles[cycle].shown_child += shown;
            }
        }
    }
}

// The largest total first; of equals cycles, then names without an underscore, then what was called
// more often, then by name.
fn rank(it: &mut Figures) {
    let functions = it.functions.len();
    let mut order: Vec<usize> = (0..functions + it.cycles.len()).collect();
    let row = |place: usize| match place.checked_sub(functions) {
        None => (&it.functions[place], false),
        Some(cycle) => (&it.cycles[cycle], true),
    };
    order.sort_by(|&left, &right| {
        let ((left, left_is_cycle), (right, right_is_cycle)) = (row(left), row(right));
        let totals = right
            .shown()
            .partial_cmp(&left.shown())
            .unwrap_or(Ordering::Equal);
        let cycles = right_is_cycle.cmp(&left_is_cycle);
        let by_name = || {
            let underscore = |f: &Entry| f.symbol.starts_with('_');
            underscore(left)
                .cmp(&underscore(right))
                .then(right.calls.cmp(&left.calls))
                .then_with(|| left.symbol.as_bytes().cmp(right.symbol.as_bytes()))
        };
        let both_are_cycles = left_is_cycle && right_is_cycle;
        let rest = || {
            if both_are_cycles {
                Ordering::Equal
            } else {
                by_name()
            }
        };
        totals.then(cycles).then_with(rest)
    });
    for (index, place) in (1..).zip(order) {
        match place.checked_sub(functions) {
            None => it.functions[place].index = index,
            Some(cycle) => it.cycles[cycle].index = index,
        }
    }
}
