//! Fonseca's estimate, compared with its definition carried out word by word.

use proftool::analysis::flow::Flow;
use proftool::analysis::fonseca::{self, Rule};
use proftool::base::IdVec;
use proftool::callgraph::{ArcId, CycleId, Cycles};
use proftool::profile::FunctionId;
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};

use super::{Built, Parts};
use crate::support::laws;

/// Totals of functions, and what came over arcs inside of cycles.
struct Plain {
    totals: IdVec<FunctionId, f64>,
    arcs: IdVec<ArcId, f64>,
}

/// The arcs of cycles along which time is followed.
struct Inside {
    /// The arcs between members that carry something, by caller: the callees. Flat rows, as the largest
    /// test goes over them a hundred million times.
    callees: IdVec<FunctionId, Vec<FunctionId>>,
    /// The same by callee: the caller, the part of all that comes to the callee, and the arc.
    callers: IdVec<FunctionId, Vec<(FunctionId, f64, ArcId)>>,
    /// The weight of functions with what comes from callees outside of their cycles.
    base: IdVec<FunctionId, f64>,
}

/// The definition without its zero arcs: entries one after the other, distances from each, and time
/// back along the arcs that lead to the next distance.
fn plain(built: &Built, flow: &Flow, cycles: &Cycles) -> Plain {
    let graph = &built.graph;
    let group = |id: FunctionId| cycles.group(id);
    let others = || graph.arcs().enumerate().filter(|(_, arc)| !arc.is_self());
    let mut into = flow.roots.clone();
    let mut into_group = IdVec::filled(0.0, cycles.groups());
    for id in graph.function_ids() {
        into_group[group(id)] += flow.roots[id];
    }
    for (id, arc) in others() {
        into[arc.to] += flow.arcs[id];
        if group(arc.from) != group(arc.to) {
            into_group[group(arc.to)] += flow.arcs[id];
        }
    }
    let mut inside = Inside {
        callees: IdVec::filled(Vec::new(), graph.functions()),
        callers: IdVec::filled(Vec::new(), graph.functions()),
        base: built.self_weights(),
    };
    for (id, arc) in others().filter(|(id, arc)| cycles.is_within(arc) && flow.arcs[*id] > 0.0) {
        let ratio = flow.arcs[id] / into[arc.to];
        inside.callees[arc.from].push(arc.to);
        inside.callers[arc.to].push((arc.from, ratio, id));
    }
    let mut plain = Plain {
        totals: IdVec::filled(0.0, graph.functions()),
        arcs: IdVec::filled(0.0, graph.arcs().len()),
    };
    let mut all = IdVec::filled(0.0, cycles.groups());
    for whole in cycles.callees_first() {
        let members: Vec<FunctionId> = cycles.functions_of(whole).collect();
        for &member in &members {
            for id in graph.callees(member).filter(|&id| flow.arcs[id] > 0.0) {
                let callee = group(graph.arcs()[id].to);
                if callee != whole {
                    inside.base[member] += flow.arcs[id] / into_group[callee] * all[callee];
                }
            }
            all[whole] += inside.base[member];
        }
        if members.len() == 1 {
            plain.totals[members[0]] = all[whole];
            continue;
        }
        let part = |member: FunctionId| {
            let outside = graph.callers(member);
            let outside = outside.filter(|&id| group(graph.arcs()[id].from) != whole);
            let calls = flow.roots[member] + outside.map(|id| flow.arcs[id]).sum::<f64>();
            match into_group[whole] > 0.0 {
                true => calls / into_group[whole],
                false => 1.0 / members.len() as f64,
            }
        };
        for &entry in members.iter().filter(|&&member| part(member) > 0.0) {
            from_entry(&inside, entry, part(entry), &mut plain);
        }
    }
    plain
}

fn from_entry(inside: &Inside, entry: FunctionId, part: f64, plain: &mut Plain) {
    let mut level = IdVec::filled(u32::MAX, inside.base.len());
    level[entry] = 0;
    let mut order = vec![entry];
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        for &to in &inside.callees[id] {
            if level[to] == u32::MAX {
                level[to] = level[id] + 1;
                order.push(to);
            }
        }
    }
    let mut parts = IdVec::filled(0.0, inside.base.len());
    // The arcs that lead away from the entry, to a function.
    let mut callers = Vec::new();
    for &id in order.iter().rev() {
        parts[id] += part * inside.base[id];
        callers.clear();
        let mut ratios = 0.0;
        for &(from, ratio, arc) in &inside.callers[id] {
            if level[from] != u32::MAX && level[id] == level[from] + 1 {
                ratios += ratio;
                callers.push((from, ratio, arc));
            }
        }
        for &(from, ratio, arc) in &callers {
            let time = ratio / ratios * parts[id];
            plain.arcs[arc] += time;
            parts[from] += time;
        }
        plain.totals[id] += parts[id];
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

fn counted() -> impl Strategy<Value = (usize, Parts)> {
    (2..24usize).prop_flat_map(|functions| {
        let calls = (0..functions + 1, 0..functions, 0..9u64);
        let weights = vec(0..50u64, functions);
        (vec(calls, 1..functions * 4), weights).prop_map(move |(calls, weights)| {
            let name = |function: usize| format!("f{function}");
            let calls = calls
                .into_iter()
                .map(|(from, to, calls)| ((from < functions).then(|| name(from)), name(to), calls));
            let stacks = weights.into_iter().enumerate();
            let parts = Parts {
                stacks: stacks
                    .map(|(id, weight)| (vec![name(id)], weight))
                    .collect(),
                calls: calls.collect(),
                ..Parts::default()
            };
            (functions, parts)
        })
    })
}

proptest! {
    #![proptest_config(laws::cases(512))]

    #[test]
    fn the_estimate_is_what_its_definition_gives((functions, parts) in counted()) {
        let built = parts.build();
        prop_assert!(built.graph.functions() >= functions);
        let flow = Flow::of_calls(&built.graph, built.profile.counts.as_ref());
        let own = built.self_weights();
        let estimate = fonseca::estimate(&built.graph, &own, &flow, Rule::Sound);
        let expected = plain(&built, &flow, &estimate.cycles);
        prop_assert_eq!(estimate.attribution.standard_error, 0.0);
        for id in built.graph.function_ids() {
            prop_assert!(close(estimate.attribution.total(id), expected.totals[id]));
        }
        for (id, arc) in built.graph.arcs().enumerate() {
            if estimate.cycles.is_within(arc) && !arc.is_self() {
                let ours = estimate.attribution.arcs[id].map_or(0.0, |portion| portion.total());
                prop_assert!(close(ours, expected.arcs[id]));
            }
        }
    }
}

/// A cycle of `functions` members with about eight callees each; all are called from `main`.
fn large(functions: usize) -> Built {
    let mut seed = 7u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let name = |function: usize| format!("f{function}");
    let mut parts = Parts::default();
    for function in 0..functions {
        parts.stacks.push((vec![name(function)], next(100) as u64));
        let main = Some("main".to_owned());
        parts
            .calls
            .push((main, name(function), 1 + next(20) as u64));
        parts
            .calls
            .push((Some(name(function)), name((function + 1) % functions), 1));
        for _ in 0..8 {
            parts.calls.push((
                Some(name(function)),
                name(next(functions)),
                1 + next(20) as u64,
            ));
        }
    }
    parts.build()
}

#[test]
fn a_cycle_that_is_too_large_is_sampled_and_keeps_its_laws() {
    let built = large(2_500);
    let flow = Flow::of_calls(&built.graph, built.profile.counts.as_ref());
    let estimate = fonseca::estimate(&built.graph, &built.self_weights(), &flow, Rule::Sound);
    let cycle = CycleId::new(0);
    let entries = &estimate.entries[cycle];
    assert_eq!(entries.members.len(), 2_500);
    assert!(entries.followed < 2_000, "{}", entries.followed);
    let times = &estimate.attribution;
    let whole = times.cycles[cycle].portion.total();
    let error = entries.standard_error;
    assert!(error > 0.0 && error < 0.01 * whole, "{error} of {whole}");
    assert_eq!(times.standard_error, error);
    let expected = plain(&built, &flow, &estimate.cycles);
    let mut squares = 0.0;
    for &(member, part) in &entries.members {
        let total = times.total(member);
        let wrong = total - expected.totals[member];
        assert!(wrong.abs() < 6.0 * error, "{wrong}: {error}");
        squares += wrong * wrong;
        // What arrives is what the member has, and no member has more than the cycle.
        let inside = built.graph.callers(member).filter(|&id| {
            let arc = &built.graph.arcs()[id];
            !arc.is_self() && estimate.cycles.is_within(arc)
        });
        let arrived: f64 = inside
            .filter_map(|id| times.arcs[id])
            .map(|over| over.total())
            .sum();
        assert!(close(arrived + part * whole, total));
        assert!(total <= whole && total >= part * whole);
    }
    // The stated error is the largest of all members.
    assert!((squares / 2_500.0).sqrt() < error);
}
