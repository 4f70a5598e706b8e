//! Laws of time through calls, over random stacks, counts and code; and that size does not matter.

use std::collections::{BTreeMap, BTreeSet};

use proftool::analysis::attribution::{Attribution, Portion};
use proftool::analysis::error::{self, Comparison};
use proftool::analysis::flow::Flow;
use proftool::analysis::fonseca::{self, Rule};
use proftool::analysis::{breaking, measured, propagation, recursion};
use proftool::callgraph::{CallArc, CycleId, Cycles, GroupId};
use proftool::profile::FunctionId;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

use crate::pure::propagation::{Built, Parts};
use crate::support::laws;

fn name(function: usize) -> String {
    format!("f{function}")
}

/// Random stacks with recursion, counted calls by known and other callers, and calls in the code.
fn parts() -> impl Strategy<Value = Parts> {
    prop_oneof![Just(2), Just(4), Just(8), Just(14)].prop_flat_map(|functions: usize| {
        let function = move || 0..functions;
        (
            vec((vec(function(), 1..12), 0..60u64), 1..14),
            vec((0..functions + 1, function(), 0..9u64), 0..20),
            vec((function(), function()), 0..4),
        )
            .prop_map(move |(stacks, calls, code)| Parts {
                stacks: stacks
                    .into_iter()
                    .map(|(stack, weight)| (stack.into_iter().map(name).collect(), weight))
                    .collect(),
                calls: calls
                    .into_iter()
                    .map(|(from, to, calls)| {
                        ((from < functions).then(|| name(from)), name(to), calls)
                    })
                    .collect(),
                code: code
                    .into_iter()
                    .map(|(from, to)| (name(from), name(to)))
                    .collect(),
            })
    })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

fn alike(a: Portion, b: Portion) -> bool {
    close(a.self_weight, b.self_weight) && close(a.children, b.children)
}

/// What each stack says by itself, with the sums that are asked for.
#[derive(Default)]
struct Oracle {
    /// Weight in a group, and of it that whose leaf is in the group.
    groups: BTreeMap<GroupId, (u64, u64)>,
    /// The same of what came over an arc, the first time that the group was come to.
    arcs: BTreeMap<(FunctionId, FunctionId), (u64, u64)>,
    roots: BTreeMap<FunctionId, (u64, u64)>,
    /// Weight that left a group from a function, the last time.
    children: BTreeMap<FunctionId, u64>,
    /// Whether no stack comes back to a group.
    comes_once: bool,
}

fn oracle(built: &Built, cycles: &Cycles) -> Oracle {
    let mut oracle = Oracle {
        comes_once: true,
        ..Oracle::default()
    };
    for row in built.selection.rows() {
        let mut stack: Vec<FunctionId> = built
            .profile
            .paths
            .outwards(row.path)
            .map(|path| path.function)
            .collect();
        stack.reverse();
        let groups: Vec<GroupId> = stack.iter().map(|&id| cycles.group(id)).collect();
        let leaf = groups[groups.len() - 1];
        for &group in groups.iter().collect::<BTreeSet<_>>() {
            let own = if group == leaf { row.weight } else { 0 };
            let add = |sum: &mut (u64, u64)| {
                sum.0 += row.weight;
                sum.1 += own;
            };
            add(oracle.groups.entry(group).or_default());
            let first = groups.iter().position(|&other| other == group).unwrap();
            let last = groups.iter().rposition(|&other| other == group).unwrap();
            match first.checked_sub(1) {
                None => add(oracle.roots.entry(stack[0]).or_default()),
                Some(caller) => add(oracle
                    .arcs
                    .entry((stack[caller], stack[first]))
                    .or_default()),
            }
            if group != leaf {
                *oracle.children.entry(stack[last]).or_default() += row.weight;
            }
            oracle.comes_once &= groups[first..=last].iter().all(|&other| other == group);
        }
    }
    oracle
}

fn portion(&(total, own): &(u64, u64)) -> Portion {
    Portion {
        self_weight: own as f64,
        children: (total - own) as f64,
    }
}

/// What a figure is said to be, and what it is.
type Claim = (String, f64, f64);

/// The laws that every model keeps; `None` where they hold.
fn broken_law(built: &Built, cycles: &Cycles, times: &Attribution) -> Option<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    let own: f64 = times.functions.iter().map(|f| f.self_weight).sum();
    claims.push(("self".into(), own, built.selection.total() as f64));
    let mut into = vec![Portion::default(); cycles.groups()];
    for (id, arc) in built.graph.arcs().enumerate() {
        if !cycles.is_within(arc)
            && let Some(portion) = times.arcs[id]
        {
            into[cycles.group(arc.to).index()] += portion;
        }
    }
    for (id, cycle) in times.cycles.enumerate() {
        into[cycles.group_of_cycle(id).index()] += cycle.root;
        let mut sum = Portion::default();
        let members = cycles.members()[id].iter();
        members.for_each(|&member| sum += times.functions[member]);
        let own = cycle.portion;
        claims.push(("members' self".into(), sum.self_weight, own.self_weight));
        claims.push(("members' children".into(), sum.children, own.children));
    }
    for function in built.graph.function_ids() {
        let group = cycles.group(function).index();
        if cycles.of()[function].is_none() {
            into[group] += times.roots[function];
        }
    }
    for function in built.graph.function_ids() {
        let [into, own] = [
            into[cycles.group(function).index()],
            times.of_group(cycles, function),
        ];
        let name = built.name(function);
        claims.push((
            format!("self into {name}"),
            into.self_weight,
            own.self_weight,
        ));
        claims.push((format!("children into {name}"), into.children, own.children));
    }
    claims.into_iter().find(|claim| !close(claim.1, claim.2))
}

proptest! {
    #![proptest_config(laws::cases(400))]

    #[test]
    fn measured_times_equal_a_count_stack_by_stack(parts in parts(), weak in 0..40u64) {
        let built = parts.build();
        for weak in [0, weak] {
            let cycles = Cycles::find_strong(&built.graph, |_| true, |arc| arc.weight < weak);
            let times = measured::attribute(&built.profile, &built.selection, &built.graph, &cycles);
            let oracle = oracle(&built, &cycles);
            // The lemma: no stack comes back to a cycle, if cycles are all cycles.
            prop_assert!(oracle.comes_once || weak > 0);
            for function in built.graph.function_ids() {
                let group = cycles.group(function);
                let sum = oracle.groups.get(&group).map(portion).unwrap_or_default();
                prop_assert_eq!(times.of_group(&cycles, function), sum);
                let root = oracle.roots.get(&function).map(portion).unwrap_or_default();
                prop_assert_eq!(times.roots[function], root);
                let children = oracle.children.get(&function).copied().unwrap_or(0);
                prop_assert_eq!(times.functions[function].children, children as f64);
            }
            for (id, arc) in built.graph.arcs().enumerate() {
                let sum = oracle.arcs.get(&(arc.from, arc.to)).map(portion).unwrap_or_default();
                prop_assert_eq!(times.arcs[id], (!cycles.is_within(arc)).then_some(sum));
                if weak == 0 && let Some(portion) = times.arcs[id] {
                    prop_assert_eq!(portion.total(), arc.weight as f64);
                }
            }
            prop_assert_eq!(broken_law(&built, &cycles, &times), None);
        }
    }

    /// gprof's propagation, given weights of stacks for calls, gives these weights again: only
    /// counts say something new. (How much of an arc is the callee's own, it does not know: that is
    /// the average of all callers.)
    #[test]
    fn propagated_weight_is_measured_weight(parts in parts()) {
        let built = parts.build();
        let cycles = Cycles::find(&built.graph, |_| true);
        let times = measured::attribute(&built.profile, &built.selection, &built.graph, &cycles);
        let flow = Flow::of_weight(&times);
        let again = propagation::propagate(&built.graph, &cycles, &built.self_weights(), &flow);
        for function in built.graph.function_ids() {
            prop_assert!(alike(times.functions[function], again.functions[function]));
            let [all, all_again] = [&times, &again].map(|of| of.of_group(&cycles, function));
            prop_assert!(alike(all, all_again));
            let [root, root_again] = [&times, &again].map(|of| of.roots[function].total());
            prop_assert!(close(root, root_again));
        }
        for id in built.graph.arcs().ids() {
            match (times.arcs[id], again.arcs[id]) {
                (Some(a), Some(b)) => prop_assert!(close(a.total(), b.total())),
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }

    #[test]
    fn propagation_loses_and_makes_no_weight(parts in parts(), known in proptest::bool::ANY, weak in 0..6u64) {
        let built = parts.build();
        let counts = built.profile.counts.as_ref().filter(|_| known);
        let flow = Flow::of_calls(&built.graph, counts);
        for cycles in [
            Cycles::find(&built.graph, |_| true),
            Cycles::find(&built.graph, |arc| arc.calls > Some(0)),
            // Cycles that are not all cycles.
            Cycles::find_strong(&built.graph, |_| true, |arc| arc.calls.unwrap_or(0) < weak),
            Cycles::find(&built.graph, |arc| arc.calls > Some(weak)),
        ] {
            let times = propagation::propagate(&built.graph, &cycles, &built.self_weights(), &flow);
            prop_assert_eq!(broken_law(&built, &cycles, &times), None);
            let alone = built.graph.function_ids().filter(|&id| cycles.of()[id].is_none());
            let roots: f64 = alone.map(|id| times.roots[id].total()).sum();
            let roots = roots + times.cycles.iter().map(|cycle| cycle.root.total()).sum::<f64>();
            prop_assert!(close(roots, built.selection.total() as f64));
        }
    }

    #[test]
    fn no_member_has_more_than_its_cycle(parts in parts(), known in proptest::bool::ANY) {
        let built = parts.build();
        let counts = built.profile.counts.as_ref().filter(|_| known);
        let flow = Flow::of_calls(&built.graph, counts);
        let own = built.self_weights();
        let estimate = fonseca::estimate(&built.graph, &own, &flow, Rule::Sound);
        let (cycles, times) = (&estimate.cycles, &estimate.attribution);
        prop_assert_eq!(broken_law(&built, cycles, times), None);
        // Outside of cycles it is gprof's estimate.
        let gprofs = propagation::propagate(&built.graph, cycles, &own, &flow);
        for function in built.graph.function_ids() {
            let all = gprofs.of_group(cycles, function);
            prop_assert!(alike(times.of_group(cycles, function), all));
            prop_assert!(times.total(function) >= -1e-9);
            prop_assert!(times.total(function) <= all.total() * (1.0 + 1e-9) + 1e-9);
            if cycles.of()[function].is_none() {
                prop_assert!(close(times.total(function), all.total()));
            }
        }
        for (id, entries) in estimate.entries.enumerate() {
            let parts: f64 = entries.members.iter().map(|entry| entry.1).sum();
            prop_assert!(close(parts, 1.0));
            prop_assert_eq!(entries.followed, entries.members.len());
            // What arrives at a member over arcs inside and as an entry is what it has.
            for &member in &cycles.members()[id] {
                let entry = entries.members.iter().find(|entry| entry.0 == member);
                let entered = entry.map_or(0.0, |entry| entry.1) * times.cycles[id].portion.total();
                let inside = built.graph.callers(member).filter(|&arc| {
                    let arc = &built.graph.arcs()[arc];
                    cycles.is_within(arc) && !arc.is_self()
                });
                let arrived: f64 = inside.filter_map(|arc| times.arcs[arc]).map(Portion::total).sum();
                prop_assert!(close(arrived + entered, times.total(member)));
            }
        }
    }

    #[test]
    fn gprof2dots_rule_answers_for_anything(parts in parts()) {
        let built = parts.build();
        let flow = Flow::of_calls(&built.graph, None);
        let estimate = fonseca::estimate(&built.graph, &built.self_weights(), &flow, Rule::Gprof2dot);
        for function in built.graph.function_ids() {
            prop_assert!(estimate.attribution.total(function) >= 0.0);
        }
    }

    #[test]
    fn errors_of_arcs_cancel_out(parts in parts()) {
        let built = parts.build();
        let cycles = Cycles::find(&built.graph, |_| true);
        let flow = Flow::of_calls(&built.graph, built.profile.counts.as_ref());
        let measured = measured::attribute(&built.profile, &built.selection, &built.graph, &cycles);
        let propagated = propagation::propagate(&built.graph, &cycles, &built.self_weights(), &flow);
        let errors = error::errors(&Comparison {
            profile: &built.profile,
            selection: &built.selection,
            graph: &built.graph,
            cycles: &cycles,
            flow: &flow,
            measured: &measured,
            propagated: &propagated,
        });
        let groups = errors.functions.iter().chain(&errors.cycles);
        for group in groups.chain([&errors.overall]) {
            prop_assert!(group.misattributed >= 0.0 && group.fraction() <= 1.0 + 1e-9);
        }
        for arc in errors.arcs.iter().flatten() {
            prop_assert!(arc.standard_error <= 0.5 && (0.0..=1.0).contains(&arc.share_by_calls));
        }
        // A perfect witness has no errors.
        let flow = Flow::of_weight(&measured);
        let errors = error::errors(&Comparison {
            profile: &built.profile,
            selection: &built.selection,
            graph: &built.graph,
            cycles: &cycles,
            flow: &flow,
            measured: &measured,
            propagated: &measured,
        });
        prop_assert!(errors.overall.misattributed < 1e-6);
        prop_assert!(errors.arcs.iter().flatten().all(|arc| !arc.is_significant()));
    }

    #[test]
    fn depths_equal_a_count_stack_by_stack(parts in parts()) {
        let built = parts.build();
        let cycles = Cycles::find(&built.graph, |_| true);
        let depths = recursion::depths(&built.profile, &built.selection, &cycles);
        let mut exactly: BTreeMap<(GroupId, Option<FunctionId>, usize), u64> = BTreeMap::new();
        for row in built.selection.rows() {
            let mut seen: BTreeMap<(GroupId, Option<FunctionId>), usize> = BTreeMap::new();
            for path in built.profile.paths.outwards(row.path) {
                let group = cycles.group(path.function);
                *seen.entry((group, Some(path.function))).or_default() += 1;
                *seen.entry((group, None)).or_default() += 1;
            }
            for ((group, function), times) in seen {
                *exactly.entry((group, function, times)).or_default() += row.weight;
            }
        }
        for function in built.graph.function_ids() {
            let group = cycles.group(function);
            let of = |function| exactly.iter().filter(move |((g, f, _), _)| (*g, *f) == (group, function));
            let deepest = of(Some(function)).map(|((.., times), _)| *times).max().unwrap_or(0);
            match depths.of(function) {
                None => prop_assert!(deepest < 2),
                Some(depth) => {
                    prop_assert_eq!(depth.deepest(), deepest);
                    for ((.., times), &weight) in of(Some(function)) {
                        prop_assert_eq!(depth.exactly(*times), weight);
                    }
                }
            }
            if let Some(cycle) = cycles.of()[function] {
                for ((.., times), &weight) in of(None) {
                    prop_assert_eq!(depths.cycles[cycle].exactly(*times), weight);
                }
            }
        }
    }

    /// The lightest arcs are as light as those of the best order of members, tried one by one.
    #[test]
    fn the_lightest_arcs_break_a_cycle(parts in parts()) {
        let built = parts.build();
        let cycles = Cycles::find(&built.graph, |_| true);
        for (id, members) in cycles.members().enumerate() {
            let broken = breaking::lightest(&built.graph, &cycles, id, breaking::EXACT, |arc| Some(arc.weight));
            prop_assert!(broken.is_best);
            let key = |arc: &CallArc| (arc.from, arc.to);
            let cut: BTreeSet<_> =
                broken.arcs.iter().map(|&arc| key(&built.graph.arcs()[arc])).collect();
            let rest = built.graph.clone().without(|arc| cut.contains(&key(arc)));
            let rest = Cycles::find(&rest, |_| true);
            prop_assert!(members.iter().all(|&member| rest.of()[member].is_none()));
            if members.len() <= 6 {
                let best = orders(members).into_iter().map(|order| cost(&built, &order)).min();
                prop_assert_eq!(Some((broken.weight, broken.arcs.len())), best);
            }
        }
    }

    /// What is said of the arcs without which cycles are none is the weight of the samples with one
    /// of them, each once, so that it is never more than there is.
    #[test]
    fn a_sample_with_several_of_the_lightest_arcs_counts_once(parts in parts()) {
        let built = parts.build();
        let cycles = Cycles::find(&built.graph, |_| true);
        let broken = cycles.members().ids().map(|id| {
            breaking::lightest(&built.graph, &cycles, id, breaking::EXACT, |arc| Some(arc.weight)).arcs
        });
        let broken: Vec<Vec<_>> = broken.collect();
        let sets: Vec<&[_]> = broken.iter().map(Vec::as_slice).collect();
        let passing = breaking::passing(&built.profile, &built.selection, &built.graph, &sets);
        for (arcs, weight) in sets.into_iter().zip(passing) {
            let cut: BTreeSet<_> = arcs.iter().map(|&arc| built.graph.arcs()[arc].pair()).collect();
            let rows = built.selection.rows().iter().filter(|row| {
                let frames: Vec<_> = built.profile.paths.outwards(row.path).collect();
                frames.windows(2).any(|pair| cut.contains(&(pair[1].function, pair[0].function)))
            });
            prop_assert_eq!(weight, rows.map(|row| row.weight).sum::<u64>());
        }
    }
}

/// All orders of some functions.
fn orders(members: &[FunctionId]) -> Vec<Vec<FunctionId>> {
    members.iter().fold(vec![Vec::new()], |orders, &member| {
        let longer = orders.iter().flat_map(|order| {
            (0..=order.len()).map(move |at| {
                let mut order = order.clone();
                order.insert(at, member);
                order
            })
        });
        longer.collect()
    })
}

/// The weight and number of the arcs that lead backwards.
fn cost(built: &Built, order: &[FunctionId]) -> (u128, usize) {
    let at = |id| order.iter().position(|&other| other == id);
    let back = built.graph.arcs().iter().filter(|arc| {
        let [from, to] = [at(arc.from), at(arc.to)];
        from.is_some() && to.is_some() && from > to
    });
    back.fold((0, 0), |(weight, count), arc| {
        (weight + u128::from(arc.weight), count + 1)
    })
}

/// A chain of functions, a cycle of many members at its end, each member calling two others, and
/// stacks through all of it: nothing recurses, all is done in one piece.
#[test]
fn deep_chains_and_large_cycles_are_handled() {
    let (chain, members) = (100_000, 20_000);
    let mut stack: Vec<String> = (0..chain).map(name).collect();
    let member = |at: usize| name(chain + at % members);
    stack.extend((0..2 * members).map(member));
    let calls = (0..members).map(|at| (Some(member(at)), member(at * 7 + 1), 2));
    let called = (Some(name(chain - 1)), member(0), 1);
    let parts = Parts {
        calls: calls.chain([called]).collect(),
        stacks: vec![(stack, 3)],
        code: Vec::new(),
    };
    let built = parts.build();
    let cycles = Cycles::find(&built.graph, |_| true);
    let cycle = CycleId::new(0);
    assert_eq!(cycles.members()[cycle].len(), members);
    let times = measured::attribute(&built.profile, &built.selection, &built.graph, &cycles);
    assert_eq!(times.cycles[cycle].portion.self_weight, 3.0);
    assert_eq!(times.functions[FunctionId::new(0)].children, 3.0);
    let flow = Flow::of_calls(&built.graph, built.profile.counts.as_ref());
    let own = built.self_weights();
    let times = propagation::propagate(&built.graph, &cycles, &own, &flow);
    assert_eq!(times.functions[FunctionId::new(chain - 1)].children, 3.0);
    let estimate = fonseca::estimate(&built.graph, &own, &flow, Rule::Sound);
    let total: f64 = estimate
        .entries
        .iter()
        .flat_map(|e| &e.members)
        .map(|e| e.1)
        .sum();
    assert!(close(total, estimate.cycles.members().len() as f64));
    let depths = recursion::depths(&built.profile, &built.selection, &cycles);
    assert_eq!(depths.cycles[cycle].deepest(), 2 * members);
    let broken = breaking::lightest(&built.graph, &cycles, cycle, breaking::EXACT, |arc| {
        Some(arc.weight)
    });
    assert!(!broken.is_best);
    let cut: BTreeSet<_> = broken
        .arcs
        .iter()
        .map(|&arc| built.graph.arcs()[arc])
        .map(|arc| (arc.from, arc.to))
        .collect();
    let rest = built
        .graph
        .clone()
        .without(|arc| cut.contains(&(arc.from, arc.to)));
    assert!(Cycles::find(&rest, |_| true).members().is_empty());
}
