//! gprof's figures in gprof's order.
//!
//! ```text
//!   functions by address, arcs as added ─▶ cycles ─▶ fractions ─▶ times ─▶ ranks
//!     a function's arcs are gone through from the last added to the first, wherever sums are made
//! ```

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::{Arc, Assembled, EXCLUDED, Function};
use crate::analysis::inclusive;
use crate::base::Unit;
use crate::profile::{CallKind, FunctionId, FunctionKind, Histogram, Profile, Selection};

pub(super) fn all(profile: &Profile, selection: &Selection) -> Assembled {
    let nothing = Histogram::default();
    let histogram = profile.about.histogram.as_ref().unwrap_or(&nothing);
    let weights = inclusive::by_function(profile, selection);
    let rate = histogram.rate.max(1) as f64;
    // A tick is one sample; where samples were selected by weight they are nanoseconds.
    let ticks = |weight: u64| match selection.event.unit {
        Unit::Nanoseconds => weight as f64 * rate / 1e9,
        _ => weight as f64,
    };
    let mut ids: Vec<FunctionId> = profile.functions.ids().collect();
    ids.retain(|&id| profile.functions[id].kind == FunctionKind::Named);
    ids.sort_by_key(|&id| (profile.functions[id].address, id));
    let all = profile.samples.iter().map(|sample| sample.count);
    let all = all.fold(0u64, |sum, count| sum.saturating_add(count));
    // Of all samples the ticks are known to the last bit; they do not always add up to all ticks.
    let is_whole = selection.samples == all;
    let share = |id: FunctionId| {
        let at = histogram.shares.binary_search_by_key(&id, |share| share.0);
        at.map_or(0.0, |at| histogram.shares[at].1)
    };
    let mut it = Assembled {
        rate,
        bucket: histogram.bucket,
        flat_base: match is_whole {
            true => histogram.ticks as f64,
            false => ticks(selection.total),
        },
        ..Assembled::default()
    };
    for &id in &ids {
        let function = &profile.functions[id];
        let symbol = function.linkage_name.as_deref().unwrap_or(&function.name);
        let excluded = EXCLUDED.contains(&symbol);
        let time = match is_whole {
            true => share(id),
            false => ticks(weights.self_weight[id]),
        };
        if excluded {
            it.flat_base -= time;
        }
        it.functions.push(Function {
            symbol: symbol.to_owned(),
            name: function.name.clone(),
            file: (histogram.files.binary_search_by_key(&id, |row| row.0).ok())
                .map(|at| histogram.files[at].1.clone()),
            excluded,
            time: if excluded { 0.0 } else { time },
            ..Function::default()
        });
    }
    add_arcs(&mut it, profile, histogram, &ids);
    let found = link_cycles(&mut it);
    fractions(&mut it, &found);
    times(&mut it, &found);
    rank(&mut it);
    it
}

/// Adds the arcs that were counted, then those that the code has alone.
fn add_arcs(it: &mut Assembled, profile: &Profile, histogram: &Histogram, ids: &[FunctionId]) {
    let place: FxHashMap<FunctionId, usize> = ids.iter().copied().zip(0..).collect();
    it.callers = vec![Vec::new(); ids.len()];
    it.callees = vec![Vec::new(); ids.len()];
    let counts = profile.counts.iter().flat_map(|counts| &counts.calls);
    let counted: FxHashMap<(FunctionId, FunctionId), u64> = counts
        .filter_map(|count| Some(((count.from?, count.to), count.calls)))
        .collect();
    it.has_arcs = !counted.is_empty();
    let in_code = profile.code.calls.iter();
    let in_code = in_code.filter(|call| matches!(call.kind, CallKind::Call | CallKind::Tail));
    let in_code = in_code.map(|call| ((call.from, call.to), 0));
    let dynamic = histogram.arcs.iter();
    let dynamic = dynamic.filter_map(|pair| Some((*pair, *counted.get(pair)?)));
    let mut known: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    for ((from, to), count) in dynamic.chain(in_code) {
        let (Some(&from), Some(&to)) = (place.get(&from), place.get(&to)) else {
            continue;
        };
        let next = it.arcs.len();
        if *known.entry((from, to)).or_insert(next) != next {
            continue;
        }
        it.arcs.push(Arc {
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

/// What the search for cycles found.
struct Found {
    /// The functions, callees first; those of one cycle by address.
    order: Vec<usize>,
}

/// State of the search.
struct Search {
    /// The place of a function on the stack, from 0, while it is there.
    on_stack: Vec<Option<usize>>,
    stack: Vec<usize>,
    /// Where on the stack each cycle begins, as far as it is known, or a function that is in none.
    segments: Vec<usize>,
    busy: Vec<bool>,
    /// The topological number, 0 where there is none yet.
    number: Vec<usize>,
    /// On the way to the head of a function's cycle; a head leads to itself.
    towards_head: Vec<usize>,
    next: Vec<Option<usize>>,
    /// For a head, the last function that is linked to it.
    last: Vec<usize>,
    counter: usize,
}

impl Search {
    fn head(&mut self, mut function: usize) -> usize {
        while self.towards_head[function] != function {
            let beyond = self.towards_head[self.towards_head[function]];
            self.towards_head[function] = beyond;
            function = beyond;
        }
        function
    }

    /// The function is on a path from itself: everything on the stack above it is in its cycle.
    fn close(&mut self, function: usize) {
        let head = self.head(function);
        let Some(top) = self.on_stack[function].or(self.on_stack[head]) else {
            return;
        };
        let above = self.segments.partition_point(|&start| start <= top);
        for at in above..self.segments.len() {
            let inner = self.stack[self.segments[at]];
            let last = self.last[head];
            self.next[last] = Some(inner);
            self.last[head] = self.last[inner];
            self.towards_head[inner] = head;
        }
        self.segments.truncate(above);
    }

    /// Numbers a function that is done, with all of its cycle.
    fn leave(&mut self, function: usize) {
        if self.head(function) == function {
            self.counter += 1;
            let mut linked = Some(function);
            while let Some(member) = linked {
                self.number[member] = self.counter;
                linked = self.next[member];
            }
        }
        self.stack.pop();
        self.on_stack[function] = None;
        if self.segments.last() == Some(&self.stack.len()) {
            self.segments.pop();
        }
    }
}

/// Finds the cycles, depth first from each function by address, and links their members.
fn link_cycles(it: &mut Assembled) -> Found {
    let functions = it.functions.len();
    let mut search = Search {
        on_stack: vec![None; functions],
        stack: Vec::new(),
        segments: Vec::new(),
        busy: vec![false; functions],
        number: vec![0; functions],
        towards_head: (0..functions).collect(),
        next: vec![None; functions],
        last: (0..functions).collect(),
        counter: 0,
    };
    // Functions that are visited, each with how many of its callees are still to come.
    let mut visits: Vec<(usize, usize)> = Vec::new();
    let enter = |search: &mut Search, visits: &mut Vec<(usize, usize)>, function: usize| {
        search.busy[function] = true;
        search.on_stack[function] = Some(search.stack.len());
        search.segments.push(search.stack.len());
        search.stack.push(function);
        visits.push((function, it.callees[function].len()));
    };
    for start in 0..functions {
        if search.busy[start] {
            continue;
        }
        enter(&mut search, &mut visits, start);
        while let Some((function, left)) = visits.last_mut() {
            let function = *function;
            let Some(arc) = left.checked_sub(1) else {
                visits.pop();
                search.leave(function);
                continue;
            };
            *left = arc;
            let callee = it.arcs[it.callees[function][arc]].to;
            if !search.busy[callee] {
                enter(&mut search, &mut visits, callee);
            } else if search.number[callee] == 0 {
                search.close(callee);
            }
        }
    }
    for head in 0..functions {
        if search.head(head) != head || search.next[head].is_none() {
            continue;
        }
        let mut members = vec![head];
        while let Some(next) = search.next[members[members.len() - 1]] {
            members.push(next);
        }
        for &member in &members {
            it.functions[member].cycle = Some(it.cycles.len());
        }
        it.cycles.push(Function::default());
        it.members.push(members);
    }
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
    let mut order: Vec<usize> = (0..functions).collect();
    order.sort_by_key(|&function| search.number[function]);
    Found { order }
}

/// From callers to callees: what part of a function's time is printed, and whether it is. The
/// part is 1 up to the last bits: it is a sum of shares.
fn fractions(it: &mut Assembled, found: &Found) {
    let mut before = None;
    for &function in found.order.iter().rev() {
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

/// Whether some caller of these functions from outside is printed, and the sum of what callers
/// print, each by its part of the `calls`.
fn inherited(it: &Assembled, members: &[usize], calls: u64) -> (bool, f64) {
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

/// From callees to callers: the time that comes up over each arc.
fn times(it: &mut Assembled, found: &Found) {
    for (cycle, members) in it.cycles.iter_mut().zip(&it.members) {
        for &member in members {
            if it.functions[member].fraction != 0.0 {
                cycle.time += it.functions[member].time;
            }
        }
        cycle.shown_self = cycle.fraction * cycle.time;
    }
    for &caller in &found.order {
        let fraction = it.functions[caller].fraction;
        if fraction == 0.0 {
            continue;
        }
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

/// Gives functions and cycles their ranks: the largest total first; of equals cycles, then names
/// without an underscore, then what was called more often, then by name.
fn rank(it: &mut Assembled) {
    let functions = it.functions.len();
    let mut order: Vec<usize> = (0..functions + it.cycles.len()).collect();
    let row = |place: usize| match place.checked_sub(functions) {
        None => (&it.functions[place], false),
        Some(cycle) => (&it.cycles[cycle], true),
    };
    order.sort_by(|&left, &right| {
        let ((left, left_is_cycle), (right, right_is_cycle)) = (row(left), row(right));
        let totals = right.shown().partial_cmp(&left.shown());
        let totals = totals.unwrap_or(Ordering::Equal);
        let cycles = right_is_cycle.cmp(&left_is_cycle);
        let by_name = || {
            let underscore = |f: &Function| f.symbol.starts_with('_');
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
