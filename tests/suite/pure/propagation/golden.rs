//! The golden cases: programs with known stacks, counts and code, and what has to come out.

use std::collections::BTreeSet;
use std::path::Path;

use proftool::analysis::error::{self, Comparison, GroupError};
use proftool::analysis::flow::Flow;
use proftool::analysis::fonseca::{self, Rule};
use proftool::analysis::{measured, propagation};
use proftool::callgraph::{Calls, CycleId, Cycles};
use serde_json::Value;

use super::build::{Built, Parts};
use crate::support::cases;

fn json(case: &Path, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(case.join(file)).unwrap()).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[track_caller]
fn same(ours: f64, theirs: &Value, tolerance: f64, what: &str) {
    let theirs = theirs
        .as_f64()
        .unwrap_or_else(|| panic!("{what}: {theirs}"));
    let close = (ours - theirs).abs() <= tolerance * theirs.abs().max(1.0);
    assert!(close, "{what}: {ours} and not {theirs}");
}

const EXACT: f64 = 1e-9;

/// Self weights, calls and calls in the code of a case; `code` names what there is in the code.
fn parts(case: &Path, code: &[&str]) -> Parts {
    let mut parts = Parts::default();
    let pairs = |rows: &Value| -> Vec<(String, String)> {
        let pair = |row: &Value| (text(&row[0]), text(&row[1]));
        rows.as_array().into_iter().flatten().map(pair).collect()
    };
    let counts = |rows: &Value| -> Vec<(Option<String>, String, u64)> {
        let count = |row: &Value| (Some(text(&row[0])), text(&row[1]), row[2].as_u64().unwrap());
        rows.as_array().unwrap().iter().map(count).collect()
    };
    if case.join("truth.json").is_file() {
        let truth = json(case, "truth.json");
        for (name, ticks) in truth["self_ticks"].as_object().unwrap() {
            let ticks = ticks.as_u64().unwrap();
            parts.stacks.push((vec![name.clone()], ticks));
        }
        parts.calls = counts(&truth["dynamic_arcs"]);
        for kind in code {
            parts.code.extend(pairs(match *kind {
                "gprof" => &truth["static_arcs_gprof_finds"],
                kind => &truth["static_arcs_in_code"][kind],
            }));
        }
    } else {
        let graph = json(case, "graph.json");
        for function in rows(&graph["functions"]) {
            let ticks = function["self"].as_u64().unwrap();
            parts.stacks.push((vec![text(&function["name"])], ticks));
        }
        parts.calls = counts(&graph["arcs"]);
        match code {
            [] => {}
            ["gprof"] => parts.code = pairs(&graph["static_gprof"]),
            _ => parts.code = pairs(&graph["static_true"]),
        }
    }
    parts
}

/// The cycle with these members.
fn cycle(built: &Built, cycles: &Cycles, members: &BTreeSet<String>) -> Option<CycleId> {
    cycles.members().ids().find(|&id| {
        let ours = cycles.members()[id].iter().map(|&id| built.name(id));
        ours.collect::<BTreeSet<_>>() == members.iter().map(String::as_str).collect()
    })
}

fn names(value: &Value, key: Option<&str>) -> BTreeSet<String> {
    let name = |row: &Value| text(key.map_or(row, |key| &row[key]));
    rows(value).iter().map(name).collect()
}

/// Holds propagated times against a document of gprof's shape; `unit` is how many of its units a
/// tick is.
fn propagated_is(case: &Path, file: &str, code: &[&str], unit: f64, tolerance: f64) {
    let golden = json(case, file);
    let built = parts(case, code).build();
    let cycles = Cycles::find(&built.graph, |_| true);
    let flow = Flow::of_calls(&built.graph, None);
    let ours = propagation::propagate(&built.graph, &cycles, &built.self_weights(), &flow);
    let calls = Calls::of(
        &built.graph,
        &cycles,
        built.profile.counts.as_ref().unwrap(),
    );
    let told = |what: &str| format!("{}/{file}: {what}", case.display());
    for (name, golden) in golden["functions"].as_object().unwrap() {
        let Some(id) = built.find(name) else {
            // Nobody calls it and it calls nobody.
            let figures = ["self", "children", "calls", "self_calls"].map(|key| &golden[key]);
            assert!(figures.iter().all(|figure| figure.as_f64() == Some(0.0)));
            continue;
        };
        let portion = ours.functions[id];
        let what = told(name);
        same(
            portion.self_weight * unit,
            &golden["self"],
            tolerance,
            &what,
        );
        same(
            portion.children * unit,
            &golden["children"],
            tolerance,
            &what,
        );
        let number = golden["calls"].as_u64().unwrap_or(0);
        assert_eq!(calls.functions[id].by_others(), number, "{what}");
        let recursive = golden["self_calls"].as_u64().unwrap();
        assert_eq!(calls.functions[id].recursive, recursive, "{what}");
        assert_eq!(
            cycles.of()[id].is_some(),
            !golden["cycle"].is_null(),
            "{what}"
        );
    }
    for golden in rows(&golden["arcs"]) {
        let (from, to) = (text(&golden["from"]), text(&golden["to"]));
        let what = told(&format!("{from} -> {to}"));
        let id = built.arc(&from, &to);
        let arc = &built.graph.arcs()[id];
        assert_eq!(arc.calls, golden["count"].as_u64(), "{what}");
        match ours.arcs[id] {
            None => assert!(golden["self"].is_null(), "{what}"),
            Some(portion) => {
                same(
                    portion.self_weight * unit,
                    &golden["self"],
                    tolerance,
                    &what,
                );
                same(
                    portion.children * unit,
                    &golden["children"],
                    tolerance,
                    &what,
                );
                let of = match cycles.of()[arc.to] {
                    Some(cycle) => calls.cycles[cycle].outside,
                    None => calls.functions[arc.to].outside,
                };
                assert_eq!(Some(of), golden["denom"].as_u64(), "{what}");
            }
        }
    }
    assert_eq!(cycles.members().len(), rows(&golden["cycles"]).len());
    for golden in rows(&golden["cycles"]) {
        let members = names(&golden["members"], Some("name"));
        let what = told(&format!("{members:?}"));
        let id = cycle(&built, &cycles, &members).unwrap_or_else(|| panic!("no {what}"));
        let portion = ours.cycles[id].portion;
        same(
            portion.self_weight * unit,
            &golden["self"],
            tolerance,
            &what,
        );
        same(
            portion.children * unit,
            &golden["children"],
            tolerance,
            &what,
        );
        let (outside, inside) = (&golden["calls"], &golden["internal_calls"]);
        assert_eq!(Some(calls.cycles[id].outside), outside.as_u64(), "{what}");
        assert_eq!(Some(calls.cycles[id].inside), inside.as_u64(), "{what}");
    }
    let roots = ours.cycles.iter().map(|cycle| cycle.root.total());
    let alone = ours.roots.enumerate();
    let alone = alone.filter(|&(id, _)| cycles.of()[id].is_none());
    let sum: f64 = roots.chain(alone.map(|(_, root)| root.total())).sum();
    same(sum * unit, &golden["total"], tolerance, &told("total"));
}

#[test]
fn propagated_times_are_those_of_exact_counts() {
    for case in cases("exact_counts.json") {
        propagated_is(&case, "exact_counts.json", &[], 1.0, EXACT);
        let code = &["call", "tail_jump"];
        propagated_is(&case, "exact_counts_static.json", code, 1.0, EXACT);
    }
}

/// gprof prints seconds with two decimals, 100 ticks each.
#[test]
fn propagated_times_are_gprofs() {
    for case in cases("gprof.json") {
        propagated_is(&case, "gprof.json", &[], 0.01, 0.00501);
        propagated_is(&case, "gprof_c.json", &["gprof"], 0.01, 0.00501);
    }
}

fn with_stacks(case: &Path, parts: Parts) -> Built {
    let folded = std::fs::read_to_string(case.join("stacks.folded")).unwrap();
    let mut parts = parts;
    parts.stacks.clear();
    parts.stacks(&folded).build()
}

fn measured_is(case: &Path, file: &str, parts: Parts) {
    let golden = json(case, file);
    let built = with_stacks(case, parts);
    let (graph, total) = (&built.graph, built.selection.total());
    let cycles = Cycles::find(graph, |_| true);
    let ours = measured::attribute(&built.profile, &built.selection, graph, &cycles);
    let told = |what: &str| format!("{}/{file}: {what}", case.display());
    assert_eq!(golden["total"].as_u64(), Some(total));
    for (name, golden) in golden["functions"].as_object().unwrap() {
        let id = built.function(name);
        let what = told(name);
        same(
            ours.functions[id].self_weight,
            &golden["self"],
            EXACT,
            &what,
        );
        let children = &golden["exit_children"];
        same(ours.functions[id].children, children, EXACT, &what);
        same(ours.total(id), &golden["incl"], EXACT, &what);
    }
    let arcs = rows(&golden["arcs"]);
    assert_eq!(graph.arcs().len(), arcs.len(), "{}", told("arcs"));
    for golden in arcs {
        let (from, to) = (text(&golden["from"]), text(&golden["to"]));
        let what = told(&format!("{from} -> {to}"));
        let id = built.arc(&from, &to);
        same(
            graph.arcs()[id].weight as f64,
            &golden["incl"],
            EXACT,
            &what,
        );
        match ours.arcs[id] {
            None => assert!(golden["self"].is_null(), "{what}"),
            Some(portion) => {
                same(portion.self_weight, &golden["self"], EXACT, &what);
                same(portion.children, &golden["children"], EXACT, &what);
            }
        }
    }
    let nodes = rows(&golden["nodes"]);
    let big = nodes.iter().filter(|node| rows(&node["members"]).len() > 1);
    assert_eq!(big.count(), cycles.members().len());
    for golden in nodes {
        let members = names(&golden["members"], None);
        let what = told(&format!("{members:?}"));
        let id = built.function(members.first().unwrap());
        let portion = ours.of_group(&cycles, id);
        same(portion.self_weight, &golden["self"], EXACT, &what);
        same(portion.children, &golden["children"], EXACT, &what);
        for entry in rows(&golden["entries"]) {
            let to = text(&entry[1]);
            let portion = match entry[0].as_str() {
                Some(from) => ours.arcs[built.arc(from, &to)].unwrap(),
                None => ours.roots[built.function(&to)],
            };
            same(portion.total(), &entry[2], EXACT, &what);
        }
    }
}

#[test]
fn measured_times_are_those_of_the_stacks() {
    for case in cases("measured.json") {
        measured_is(&case, "measured.json", Parts::default());
    }
    for case in cases("measured_static.json") {
        let code = parts(&case, &["call", "tail_jump"]).code;
        let parts = Parts {
            code,
            ..Parts::default()
        };
        measured_is(&case, "measured_static.json", parts);
    }
}

#[test]
fn errors_of_the_average_are_reported() {
    for case in cases("avg_error.json") {
        let golden = json(&case, "avg_error.json");
        let built = with_stacks(&case, parts(&case, &["call", "tail_jump"]));
        let Built {
            profile,
            selection,
            graph,
        } = &built;
        let cycles = Cycles::find(graph, |_| true);
        let flow = Flow::of_calls(graph, None);
        let measured = measured::attribute(profile, selection, graph, &cycles);
        let propagated = propagation::propagate(graph, &cycles, &built.self_weights(), &flow);
        let errors = error::errors(&Comparison {
            profile,
            selection,
            graph,
            cycles: &cycles,
            flow: &flow,
            measured: &measured,
            propagated: &propagated,
        });
        let told = |what: &str| format!("{}: {what}", case.display());
        for golden in rows(&golden["arcs"])
            .iter()
            .filter(|arc| arc["from"].is_string())
        {
            let (from, to) = (text(&golden["from"]), text(&golden["to"]));
            let what = told(&format!("{from} -> {to}"));
            let arc = errors.arcs[built.arc(&from, &to)];
            if arc.is_none() {
                // There is no sample to hold it against.
                assert_eq!(measured.total(built.function(&to)), 0.0, "{what}");
                assert_eq!(golden["err_propagated"].as_f64(), Some(0.0), "{what}");
                continue;
            }
            let arc = arc.unwrap_or_else(|| panic!("{what}"));
            for (ours, key) in [
                (arc.measured, "measured"),
                (arc.one_step, "one_step"),
                (arc.propagated, "propagated"),
                (arc.of_one_step(), "err_one_step"),
                (arc.of_propagated(), "err_propagated"),
                (arc.share_by_calls, "share_by_count"),
                (arc.share_measured, "share_measured"),
                (arc.standard_error, "share_stderr"),
            ] {
                same(ours, &golden[key], EXACT, &format!("{what} {key}"));
            }
        }
        let is = |ours: GroupError, golden: &Value, what: &str| {
            same(ours.total, &golden["incl_measured"], EXACT, what);
            same(ours.misattributed, &golden["misattributed"], EXACT, what);
            same(
                ours.fraction(),
                &golden["misattributed_fraction"],
                EXACT,
                what,
            );
        };
        for golden in rows(&golden["nodes"]) {
            let members = names(&golden["members"], None);
            let what = told(&format!("{members:?}"));
            match cycle(&built, &cycles, &members) {
                Some(id) => is(errors.cycles[id], golden, &what),
                None => {
                    let id = built.function(members.first().unwrap());
                    is(errors.functions[id], golden, &what);
                }
            }
        }
        for golden in rows(&golden["functions"]) {
            let name = text(&golden["name"]);
            let id = built.function(&name);
            let error = errors.totals[id].unwrap();
            same(error, &golden["error"], EXACT, &told(&name));
            same(
                propagated.total(id),
                &golden["incl_propagated"],
                EXACT,
                &name,
            );
        }
        let overall = &golden["overall_misattributed_fraction"];
        same(errors.overall.fraction(), overall, EXACT, &told("overall"));
        if case.ends_with("p02_diamond") {
            let sink = errors.functions[built.function("sink")];
            assert!(
                (sink.fraction() - 0.81).abs() < 0.005,
                "{}",
                sink.fraction()
            );
            let arc = errors.arcs[built.arc("cheap", "sink")].unwrap();
            assert!(arc.is_significant());
        }
    }
}

#[test]
fn times_inside_of_cycles_are_fonsecas() {
    for case in cases("fonseca.json") {
        let golden = json(&case, "fonseca.json");
        let input = &golden["input"];
        let mut parts = Parts::default();
        for function in rows(&input["functions"]) {
            let ticks = function["self"].as_u64().unwrap();
            parts.stacks.push((vec![text(&function["name"])], ticks));
        }
        for arc in rows(&input["arcs"]) {
            let calls = arc[2].as_u64().unwrap();
            parts
                .calls
                .push((Some(text(&arc[0])), text(&arc[1]), calls));
        }
        for (name, calls) in input["roots"].as_object().unwrap() {
            parts
                .calls
                .push((None, name.clone(), calls.as_u64().unwrap()));
        }
        let built = parts.build();
        let flow = Flow::of_calls(&built.graph, built.profile.counts.as_ref());
        for (key, rule) in [("fixed", Rule::Sound), ("gprof2dot", Rule::Gprof2dot)] {
            let what = format!("{}: {key}", case.display());
            let total_only = golden.get(format!("{key}_total"));
            let golden = &golden[key];
            let ours = fonseca::estimate(&built.graph, &built.self_weights(), &flow, rule);
            let totals = total_only.unwrap_or(&golden["total"]);
            for (name, total) in totals.as_object().unwrap() {
                let id = built.function(name);
                same(
                    ours.attribution.total(id),
                    total,
                    EXACT,
                    &format!("{what} {name}"),
                );
            }
            let mut listed = BTreeSet::new();
            for arc in golden["arcs"].as_array().into_iter().flatten() {
                let id = built.arc(&text(&arc[0]), &text(&arc[1]));
                let time = ours.attribution.arcs[id].unwrap().total();
                same(time, &arc[2], EXACT, &format!("{what} {arc}"));
                listed.insert(id);
            }
            for id in built.graph.arcs().ids().filter(|_| total_only.is_none()) {
                let time = ours.attribution.arcs[id].map_or(0.0, |arc| arc.total());
                assert!(listed.contains(&id) || time == 0.0, "{what}");
            }
            for golden in golden["cycles"].as_array().into_iter().flatten() {
                let members = names(&golden["members"], None);
                let id = cycle(&built, &ours.cycles, &members).unwrap();
                let total = ours.attribution.cycles[id].portion.total();
                same(total, &golden["total"], EXACT, &what);
                let entries = golden["entries"].as_object().unwrap();
                assert_eq!(ours.entries[id].members.len(), entries.len(), "{what}");
                for &(entry, part) in &ours.entries[id].members {
                    same(part, &entries[built.name(entry)], EXACT, &what);
                }
            }
        }
    }
}
