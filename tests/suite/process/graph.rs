//! gprof's listing and cycles: the figures of the golden cases, by stacks and by counts; no arc
//! makes or loses weight.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use crate::support::cases;
use crate::support::cli::proftool;
use crate::support::laws;

/// What a command answers as JSON.
fn json(args: &[&str]) -> Value {
    let args = [args, &["--format", "json"]].concat();
    let output = proftool(&args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(args: &[&str]) -> String {
    let output = proftool(args).env("COLUMNS", "100").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn golden(case: &Path, file: &str) -> Option<Value> {
    let text = std::fs::read_to_string(case.join(file)).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn near(ours: &Value, theirs: f64, what: &str) {
    let ours = number(ours);
    assert!(
        (ours - theirs).abs() < 1e-6 * theirs.abs().max(1.0),
        "{what}: {ours}, expected {theirs}"
    );
}

/// The row of a function.
fn function<'a>(document: &'a Value, name: &str) -> &'a Value {
    let functions = document["functions"].as_array().unwrap();
    let found = functions.iter().find(|f| f["name"] == name);
    found.unwrap_or_else(|| panic!("no function {name}"))
}

/// The row of an arc.
fn arc<'a>(document: &'a Value, from: &str, to: &str) -> &'a Value {
    let name = |end: &Value| &document["functions"][end.as_u64().unwrap() as usize]["name"];
    let arcs = document["arcs"].as_array().unwrap();
    let found = arcs
        .iter()
        .find(|arc| name(&arc["from"]) == from && name(&arc["to"]) == to);
    found.unwrap_or_else(|| panic!("no arc {from} → {to}"))
}

#[test]
fn stacks_give_the_measured_figures() {
    for case in cases("gmon.out") {
        let Some(golden) = golden(&case, "measured.json") else {
            continue;
        };
        let ours = json(&["graph", path(&case.join("stacks.folded"))]);
        assert_eq!(ours["model"], "measured");
        for (name, theirs) in golden["functions"].as_object().unwrap() {
            let row = function(&ours, name);
            near(&row["self"], number(&theirs["self"]), name);
            near(&row["total"], number(&theirs["incl"]), name);
            near(&row["children"], number(&theirs["exit_children"]), name);
            assert_eq!(row["cycle"].is_null(), theirs["cycle"].is_null());
        }
        for (name, weight) in golden["roots"].as_object().unwrap() {
            near(&function(&ours, name)["root"], number(weight), name);
        }
        for theirs in golden["arcs"].as_array().unwrap() {
            let [from, to] = ["from", "to"].map(|end| theirs[end].as_str().unwrap());
            let row = arc(&ours, from, to);
            let what = format!("{}: {from} → {to}", case.display());
            near(&row["total"], number(&theirs["incl"]), &what);
            for part in ["self", "children"] {
                match theirs[part].as_f64() {
                    Some(weight) => near(&row[part], weight, &what),
                    None => assert!(row[part].is_null(), "{what}: {part}"),
                }
            }
        }
    }
}

#[test]
fn counts_give_the_figures_of_gprof() {
    for case in cases("gmon.out") {
        let (gmon, program) = (case.join("gmon.out"), case.join("prog"));
        let ours = json(&["graph", path(&gmon), "--binary", path(&program)]);
        assert_eq!(ours["model"], "propagated");
        let functions = ours["functions"].as_array().unwrap();
        let self_sum: f64 = functions.iter().map(|f| number(&f["self"])).sum();
        let outside = number(&ours["total"]) - self_sum;
        assert!(outside.abs() < 1.0, "{}: {outside} is lost", case.display());
        let Some(golden) = golden(&case, "exact_counts.json") else {
            continue;
        };
        for theirs in golden["arcs"].as_array().into_iter().flatten() {
            let [from, to] = ["from", "to"].map(|end| theirs[end].as_str().unwrap());
            let row = arc(&ours, from, to);
            assert_eq!(row["calls"], theirs["count"], "{from} → {to}");
        }
    }
}

#[test]
fn the_error_of_the_assumption_is_the_golden_one() {
    for case in cases("gmon.out") {
        let Some(golden) = golden(&case, "avg_error.json") else {
            continue;
        };
        let [data, gmon, program] = ["perf.data", "gmon.out", "prog"].map(|file| case.join(file));
        let args = [
            "graph",
            path(&data),
            "--symfs",
            path(&case),
            "--counts",
            path(&gmon),
            "--binary",
            path(&program),
            // The golden figures are those with the calls of the code.
            "--static",
            "on",
        ];
        let ours = json(&args);
        assert_eq!(ours["model"], "measured");
        for theirs in golden["arcs"].as_array().unwrap() {
            let to = theirs["to"].as_str().unwrap();
            let Some(from) = theirs["from"].as_str() else {
                // Where stacks begin is an arc without a caller.
                near(
                    &function(&ours, to)["root"],
                    number(&theirs["measured"]),
                    to,
                );
                continue;
            };
            let error = &arc(&ours, from, to)["error"];
            let what = format!("{}: {from} → {to}", case.display());
            if function(&ours, to)["total"] == 0 {
                assert!(error.is_null(), "{what}: there is nothing to share");
                continue;
            }
            near(&error["one_step"], number(&theirs["one_step"]), &what);
            near(&error["propagated"], number(&theirs["propagated"]), &what);
            near(
                &error["share_by_calls"],
                number(&theirs["share_by_count"]),
                &what,
            );
        }
        let page = text(&[&args[..], &["--errors"]].concat());
        assert!(
            page.contains("by gprof") && page.contains("std. error"),
            "{page}"
        );
    }
}

#[test]
fn a_column_of_weights_has_no_heading_calls() {
    let folded = "fixtures/recursion.folded";
    let page = text(&["graph", folded]);
    assert!(page.contains("samples") && !page.contains("call"), "{page}");
    let csv = text(&["graph", folded, "--format", "csv"]);
    let calls = csv
        .lines()
        .next()
        .unwrap()
        .split(',')
        .position(|key| key == "calls");
    let empty = |row: &str| row.split(',').nth(calls.unwrap()) == Some("");
    assert!(csv.lines().skip(1).all(empty), "{csv}");
    let refused = proftool(&["graph", folded, "--classic"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("needs call counts") && said.contains("--binary"),
        "{said}"
    );
    let refused = proftool(&["graph", folded, "--errors"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn an_arc_that_is_left_out_is_listed_and_breaks_its_cycle() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folded = folder.join("cycle.folded");
    std::fs::write(&folded, "main;a;b;a;b 30\nmain;a;b 10\nmain;b;main 1\n").unwrap();
    let whole = json(&["graph", path(&folded)]);
    assert_eq!(whole["cycles"][0]["members"].as_array().unwrap().len(), 3);
    let cut = json(&["graph", path(&folded), "--cycle-cut", "5"]);
    assert_eq!(cut["cycles"][0]["members"].as_array().unwrap().len(), 2);
    // Both arcs of the one stray sample.
    assert_eq!(cut["cut"].as_array().unwrap().len(), 2);
    let page = text(&["graph", path(&folded), "--cycle-cut", "5"]);
    assert!(page.contains(", b → main (1 sample)"), "{page}");
    let page = text(&["graph", path(&folded), "-k", "b/main", "-k", "b/a"]);
    assert!(
        page.contains("left out on request: ")
            && page.contains("b → a (30 samples)")
            && !page.contains("cycle 1"),
        "{page}"
    );
    let refused = proftool(&["graph", path(&folded), "-k", "b/nobody"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let cycles = json(&["cycles", path(&folded)]);
    let cut = &cycles["cycles"][0]["cut"];
    assert_eq!(cut[0]["from"], "b");
    assert_eq!(cut[0]["to"], "a");
    assert_eq!(cycles["cycles"][0]["depth"]["deepest"], 5);
}

#[test]
fn a_cycle_has_an_entry_as_a_whole_with_callers_members_and_callees() {
    for case in cases("gmon.out") {
        if !case.ends_with("p05_cycle3") {
            continue;
        }
        let page = text(&["graph", path(&case.join("stacks.folded"))]);
        let entries: Vec<&str> = page.split("\n\n").collect();
        let whole = entries.iter().find(|entry| {
            let mut lines = entry.lines();
            lines.any(|line| line.starts_with('[') && line.contains("<cycle 1 as a whole>"))
        });
        let whole: Vec<String> = whole
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            whole,
            [
                "30.77 52 12 64 ← side [6]",
                "64.90 123 12 135 ← main [1]",
                "[2] 95.67 175 24 199 <cycle 1 as a whole> [2]",
                "85.10 100 0 177 · a <cycle 1> [3]",
                "76.44 55 0 159 · b <cycle 1> [4]",
                "60.58 20 24 126 · c <cycle 1> [5]",
                "11.54 24 0 24 → util [7]",
            ]
        );
    }
}

#[test]
fn calls_that_only_the_code_has_are_shown_and_make_cycles_only_when_asked() {
    for case in cases("gmon.out") {
        if !case.ends_with("p07_static_closes_cycle") {
            continue;
        }
        let (gmon, program) = (case.join("gmon.out"), case.join("prog"));
        let args = ["graph", path(&gmon), "--binary", path(&program)];
        let of = |when: &str| json(&[&args[..], &["--static", when]].concat());
        let off = of("off");
        let code = |document: &Value| {
            let arcs = document["arcs"].as_array().unwrap();
            arcs.iter().filter(|arc| arc["origin"] == "code").count()
        };
        let cycles = |document: &Value| document["cycles"].as_array().unwrap().len();
        assert_eq!(code(&off), 0);
        let (auto, on) = (of("auto"), of("on"));
        assert!(code(&auto) > 0 && code(&on) > 0);
        assert_eq!(cycles(&auto), cycles(&off), "auto makes no cycle larger");
        assert_eq!(cycles(&on), cycles(&off) + 1, "on does, as gprof -c");
        let drawn = text(&[&args[..], &["--static", "auto", "--format", "dot"]].concat());
        assert!(drawn.contains("style=dashed"), "{drawn}");
    }
}

#[test]
fn a_drawing_has_frames_for_cycles_and_leaves_out_what_is_small() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folded = folder.join("drawn.folded");
    std::fs::write(&folded, "main;a;b;a 900\nmain;small 1\nmain;a;c 99\n").unwrap();
    let dot = text(&["graph", path(&folded), "--format", "dot"]);
    assert!(
        dot.contains("cycle 1: 99.90%") && !dot.contains("small"),
        "{dot}"
    );
    let all = [
        "graph",
        path(&folded),
        "--format",
        "dot",
        "--node-min",
        "0",
        "--edge-min",
        "0",
    ];
    assert!(text(&all).contains("small"));
}

proptest! {
    #![proptest_config(laws::cases(48))]

    /// For every group what comes in over arcs and as root is its self and children; self weights
    /// add up to the total; for the measured and both estimated models.
    #[test]
    fn incoming_weight_equals_self_and_children(stacks in prop::collection::vec(
        (prop::collection::vec(0usize..7, 1..9), 1u64..50), 1..30,
    )) {
        use proftool::analysis::graph::{Entry, Model, Options, Summary};
        use proftool::input::folded;
        use proftool::profile::{EventId, Filter};
        use proftool::view::{Names, Subject, graph};

        let lines: Vec<String> = stacks.iter().map(|(stack, weight)| {
            let names: Vec<String> = stack.iter().map(|name| format!("f{name}")).collect();
            format!("{} {weight}\n", names.join(";"))
        }).collect();
        let profile = folded::read(lines.concat().as_bytes(), &mut |_| {}).unwrap();
        let selection = profile.select(EventId::new(0), &Filter::default());
        let subject = Subject::new(&profile, &selection, Names::Short);
        for model in [Model::Measured, Model::Propagated, Model::Fonseca] {
            let options = Options { model: Some(model), ..Options::default() };
            let summary = Summary::of(&profile, &selection, &options);
            let view = graph::arrange(&subject, &summary, &graph::Options::default());
            let total = selection.total() as f64;
            let sum: f64 = view.functions().map(|id| summary.portion(Entry::Function(id)).self_weight).sum();
            prop_assert!((sum - total).abs() < 1e-6 * total);
            for &entry in &view.ranked {
                let (root, members) = match entry {
                    Entry::Cycle(cycle) => {
                        (summary.attribution.cycles[cycle].root, summary.cycles.members()[cycle].clone())
                    }
                    Entry::Function(id) if summary.cycles.of()[id].is_none() => {
                        (summary.attribution.roots[id], vec![id])
                    }
                    Entry::Function(_) => continue,
                };
                let arcs = members.iter().flat_map(|&id| summary.graph.callers(id));
                let arcs = arcs.filter(|&id| !summary.cycles.is_within(&summary.graph.arcs()[id]));
                let came: f64 = arcs.filter_map(|id| summary.weight(id).1).map(|p| p.total()).sum();
                let has = summary.portion(entry).total();
                let has = if model == Model::Fonseca { summary.total(entry) } else { has };
                prop_assert!((came + root.total() - has).abs() < 1e-6 * total, "{:?} {:?}: {} + {} != {}", model, entry, came, root.total(), has);
            }
        }
    }
}
