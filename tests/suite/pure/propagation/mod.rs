//! Time through calls, on examples whose figures can be checked by hand.

mod build;
mod definition;
mod golden;

use proftool::analysis::attribution::{Attribution, Portion, cycle_order};
use proftool::analysis::flow::Flow;
use proftool::analysis::fonseca::{self, Rule};
use proftool::analysis::{breaking, inclusive, measured, propagation};
use proftool::callgraph::{Calls, CycleId, Cycles};

pub use build::{Built, Parts};

fn portion(self_weight: f64, children: f64) -> Portion {
    Portion {
        self_weight,
        children,
    }
}

/// Counted calls and self weights, propagated as gprof does.
fn propagated(calls: &str, self_weights: &str) -> (Built, Cycles, Attribution) {
    let built = Parts::default().stacks(self_weights).calls(calls).build();
    let cycles = Cycles::find(&built.graph, |_| true);
    let flow = Flow::of_calls(&built.graph, None);
    let times = propagation::propagate(&built.graph, &cycles, &built.self_weights(), &flow);
    (built, cycles, times)
}

/// "gprof: a call graph execution profiler", 1982, figure 4: the entry of EXAMPLE, with hundredths
/// of seconds.
#[test]
fn the_papers_entry_of_example_comes_out() {
    let calls = "CALLER1 EXAMPLE 4\nCALLER2 EXAMPLE 6\nEXAMPLE EXAMPLE 4\nEXAMPLE SUB1 20
        OTHER SUB1 20\nSUB1 SUB1B 7\nSUB1B SUB1 3\nSUB1B CYCCHILD 1\nEXAMPLE SUB2 1
        OTHER SUB2 4\nSUB2 SUB2C 1\nOTHER SUB3 5\nEXAMPLE SUB3 0";
    let weights = "OTHER 43\nEXAMPLE 50\nSUB1 180\nSUB1B 120\nCYCCHILD 200\nSUB2C 250";
    let (built, cycles, times) = propagated(calls, weights);
    let entry = times.functions[built.function("EXAMPLE")];
    assert_eq!(entry, portion(50.0, 300.0));
    assert_eq!(format!("{:.1}", 100.0 * entry.total() / 843.0), "41.5");
    for (from, to, time) in [
        ("CALLER1", "EXAMPLE", portion(20.0, 120.0)),
        ("CALLER2", "EXAMPLE", portion(30.0, 180.0)),
        ("EXAMPLE", "SUB1", portion(150.0, 100.0)),
        ("EXAMPLE", "SUB2", portion(0.0, 50.0)),
        ("EXAMPLE", "SUB3", portion(0.0, 0.0)),
    ] {
        assert_eq!(times.arcs[built.arc(from, to)], Some(time), "{from} {to}");
    }
    assert_eq!(times.arcs[built.arc("EXAMPLE", "EXAMPLE")], None);
    let calls = built.profile.counts.as_ref().unwrap();
    let calls = Calls::of(&built.graph, &cycles, calls);
    let example = calls.functions[built.function("EXAMPLE")];
    assert_eq!((example.by_others(), example.recursive), (10, 4));
    let sub1 = calls.cycles[CycleId::new(0)];
    assert_eq!((sub1.outside, sub1.inside), (40, 10));
}

/// The GNU manual, section 5.2.4.
#[test]
fn the_manuals_cycle_shares_one_total() {
    let calls = "start main 1\nmain a 1\na b 3\nb a 2\na c 3\nb c 3";
    let (built, _, times) = propagated(calls, "main 16\na 75\nb 102");
    assert_eq!(times.cycles[CycleId::new(0)].portion, portion(177.0, 0.0));
    let arc = times.arcs[built.arc("main", "a")];
    assert_eq!(arc, Some(portion(177.0, 0.0)));
    assert_eq!(
        times.functions[built.function("main")],
        portion(16.0, 177.0)
    );
    for (name, percent) in [("b", "52.85"), ("a", "38.86"), ("c", "0.00")] {
        let share = 100.0 * times.total(built.function(name)) / 193.0;
        assert_eq!(format!("{share:.2}"), percent);
    }
}

#[test]
fn counts_of_a_pair_are_added_and_every_arc_has_a_number() {
    let calls = "b a 2\na b 1\n- a 4\nb a 3\n- a 1\na a 6";
    let built = Parts::default().stacks("a;c 1").calls(calls).build();
    let counts = built.profile.counts.as_ref().unwrap();
    let rows = counts.calls().iter().map(|count| {
        let from = count.from.map(|from| built.name(from));
        (from, built.name(count.to), count.calls)
    });
    let expected = [
        (None, "a", 5),
        (Some("a"), "a", 6),
        (Some("a"), "b", 1),
        (Some("b"), "a", 5),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    let observed = built.graph.arcs()[built.arc("a", "c")];
    assert_eq!((observed.calls, observed.weight), (Some(0), 1));
    let cycles = Cycles::find(&built.graph, |_| true);
    let calls = Calls::of(&built.graph, &cycles, counts);
    let a = calls.functions[built.function("a")];
    assert_eq!((a.outside, a.inside, a.recursive, a.unknown), (0, 5, 6, 5));
    assert_eq!(
        (a.by_others(), calls.cycles[CycleId::new(0)].unknown),
        (5, 5)
    );
}

#[test]
fn unknown_callers_take_their_part_if_requested() {
    let parts = Parts::default().stacks("lex 40");
    let built = parts.calls("parse lex 3\n- lex 1").build();
    let cycles = Cycles::find(&built.graph, |_| true);
    let [parse, lex] = ["parse", "lex"].map(|name| built.function(name));
    for (counts, root, children) in [
        (built.profile.counts.as_ref(), 10.0, 30.0),
        (None, 0.0, 40.0),
    ] {
        let flow = Flow::of_calls(&built.graph, counts);
        let times = propagation::propagate(&built.graph, &cycles, &built.self_weights(), &flow);
        assert_eq!(times.roots[lex].total(), root);
        assert_eq!(times.roots[parse].total(), children);
        assert_eq!(times.functions[parse].children, children);
    }
}

#[test]
fn a_cycle_without_callers_is_its_own_root() {
    let (_, _, times) = propagated("a b 1\nb a 1", "a 3\nb 4");
    let cycle = times.cycles[CycleId::new(0)];
    assert_eq!(cycle.root, portion(7.0, 0.0));
    assert!(times.roots.iter().all(|root| root.total() == 0.0));
}

/// One stray sample welds `main` into the cycle; held for too weak it does not, and no weight is
/// lost or made.
#[test]
fn weak_arcs_are_left_out_of_cycles_and_the_laws_hold() {
    let stacks = "main;even;odd;even 300\nmain;even;odd;main;even 1\nmain;log 3";
    let built = Parts::default().stacks(stacks).build();
    let Built {
        profile,
        selection,
        graph,
    } = &built;
    let cycles = Cycles::find_strong(graph, |_| true, |arc| arc.weight < 3);
    assert_eq!(cycles.cut(), [built.arc("odd", "main")]);
    let times = measured::attribute(profile, selection, graph, &cycles);
    let main = built.function("main");
    assert_eq!(times.functions[main], portion(0.0, 304.0));
    assert_eq!(times.roots[main].total(), 304.0);
    assert_eq!(times.arcs[cycles.cut()[0]], Some(portion(0.0, 0.0)));
    let entry = times.arcs[built.arc("main", "even")];
    assert_eq!(entry, Some(portion(301.0, 0.0)));
    assert_eq!(times.cycles[CycleId::new(0)].portion, portion(301.0, 0.0));
    let flow = Flow {
        arcs: graph
            .arcs()
            .iter()
            .map(|arc| arc.weight as f64)
            .collect::<Vec<_>>()
            .into(),
        ..Flow::of_calls(graph, None)
    };
    let times = propagation::propagate(graph, &cycles, &built.self_weights(), &flow);
    assert_eq!(times.roots[main].total(), 304.0);
}

#[test]
fn deleted_arcs_are_neither_divided_nor_divide() {
    let built = Parts::default()
        .stacks("a 6\nb 4\nmain 0")
        .calls("main a 1\na b 1\nb a 2")
        .build();
    let back = built.arc("b", "a");
    let [from, to] = [built.graph.arcs()[back].from, built.graph.arcs()[back].to];
    let graph = built
        .graph
        .clone()
        .without(|arc| (arc.from, arc.to) == (from, to));
    let cycles = Cycles::find(&graph, |_| true);
    assert!(cycles.members().is_empty());
    let flow = Flow::of_calls(&graph, None);
    let times = propagation::propagate(&graph, &cycles, &built.self_weights(), &flow);
    assert_eq!(times.functions[built.function("main")], portion(0.0, 10.0));
}

fn estimated(calls: &str, self_weights: &str, rule: Rule) -> (Built, fonseca::Estimate) {
    let built = Parts::default().stacks(self_weights).calls(calls).build();
    let flow = Flow::of_calls(&built.graph, built.profile.counts.as_ref());
    let estimate = fonseca::estimate(&built.graph, &built.self_weights(), &flow, rule);
    (built, estimate)
}

#[test]
fn two_and_three_members_divide_time_by_levels() {
    for rule in [Rule::Sound, Rule::Gprof2dot] {
        let calls = "- main 1\nmain a 1\na b 4\nb a 3\nb c 2";
        let (built, estimate) = estimated(calls, "a 10\nb 30\nc 20", rule);
        let times = &estimate.attribution;
        for (name, total) in [("a", 60.0), ("b", 50.0), ("c", 20.0), ("main", 60.0)] {
            assert_eq!(times.total(built.function(name)), total, "{name}");
        }
        let arc = |from, to| times.arcs[built.arc(from, to)].unwrap().total();
        assert_eq!((arc("a", "b"), arc("b", "a")), (50.0, 0.0));

        let calls = "- main 1\nmain a 3\nx b 1\nmain x 1\na b 5\na c 5\nb c 15\nc a 9";
        let (built, estimate) = estimated(calls, "a 12\nb 24\nc 60\nmain 2\nx 4", rule);
        let times = &estimate.attribution;
        for (name, total) in [("a", 75.0), ("b", 42.0), ("c", 63.0), ("main", 102.0)] {
            let ours = times.total(built.function(name));
            assert!((ours - total).abs() < 1e-9, "{name}: {ours}");
        }
        for (from, to, time) in [
            ("a", "b", 18.0),
            ("a", "c", 45.0),
            ("b", "c", 18.0),
            ("c", "a", 3.0),
        ] {
            let ours = times.arcs[built.arc(from, to)].unwrap().total();
            assert!((ours - time).abs() < 1e-9, "{from} {to}: {ours}");
        }
        assert!(estimate.entries[CycleId::new(0)].are_known);
    }
}

/// gprof2dot gives the members of a cycle that nobody enters nothing, and lets a call that never
/// happened carry everything.
#[test]
fn faults_of_gprof2dot_are_in_its_rule_alone() {
    let (built, estimate) = estimated("a b 2\nb a 1", "a 3\nb 4", Rule::Sound);
    assert!(!estimate.entries[CycleId::new(0)].are_known);
    let [a, b] = ["a", "b"].map(|name| built.function(name));
    assert_eq!(
        estimate.attribution.total(a) + estimate.attribution.total(b),
        10.5
    );
    let (_, estimate) = estimated("a b 2\nb a 1", "a 3\nb 4", Rule::Gprof2dot);
    assert_eq!(estimate.attribution.total(a), 0.0);

    let calls = "main never 0\nmain work 1";
    let (built, sound) = estimated(calls, "never 5\nwork 1", Rule::Sound);
    let (_, faulty) = estimated(calls, "never 5\nwork 1", Rule::Gprof2dot);
    let main = built.function("main");
    assert_eq!(sound.attribution.total(main), 1.0);
    assert_eq!(faulty.attribution.total(main), 6.0);
}

#[test]
fn cycles_are_counted_by_total_then_name() {
    let stacks = "m;b;c;b 5\nm;y;x;y 9\nm;a;d;a 5";
    let built = Parts::default().stacks(stacks).build();
    let cycles = Cycles::find(&built.graph, |_| true);
    let times = measured::attribute(&built.profile, &built.selection, &built.graph, &cycles);
    let order = cycle_order(&times, &cycles, &inclusive::name_ranks(&built.profile));
    let first = |id: &CycleId| built.name(cycles.members()[*id][0]);
    assert_eq!(order.iter().map(first).collect::<Vec<_>>(), ["y", "a", "b"]);
}

/// Cutting where the calls are rare, not where they are few.
#[test]
fn a_cycle_is_broken_at_its_lightest_arcs() {
    let calls = "eval call 90\ncall eval 85\ncall error 2\nerror eval 1\neval log 4";
    let (built, cycles, _) = propagated(calls, "eval 1");
    let broken = breaking::lightest(
        &built.graph,
        &cycles,
        CycleId::new(0),
        breaking::EXACT,
        |arc| arc.calls,
    );
    let arcs = [built.arc("call", "eval"), built.arc("error", "eval")];
    assert_eq!(
        (broken.arcs.as_slice(), broken.weight, broken.is_best),
        (&arcs[..], 86, true)
    );
    let cut = built.graph.clone().without(|arc| {
        let id = built.graph.arc_between(arc.from, arc.to).unwrap();
        broken.arcs.contains(&id)
    });
    assert!(Cycles::find(&cut, |_| true).members().is_empty());
}
