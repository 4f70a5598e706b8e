//! Stacks that were cut: totals as ranges, by hand, by laws, in views, and live.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use proftool::analysis::cut::{self, Hidden};
use proftool::analysis::inclusive;
use proftool::base::Id;
use proftool::callgraph::{Arc, CallGraph, Cycles};
use proftool::input::folded;
use proftool::profile::{
    Call, CallKind, EventId, Filter, FunctionId, FunctionKind, Profile, Selection,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, proptest};
use serde_json::Value;

use crate::cli::{fixture, proftool};
use crate::truth;

fn read(text: &str) -> Profile {
    folded::read(text.as_bytes(), &mut |_| ()).unwrap()
}

fn all(profile: &Profile) -> Selection {
    profile.select(EventId::new(0), &Filter::default())
}

fn id(profile: &Profile, name: &str) -> FunctionId {
    let mut functions = profile.functions.enumerate();
    functions.find(|(_, f)| f.name == name).unwrap().0
}

/// By name what is hidden at most, where anything is.
fn by_name(profile: &Profile, hidden: &Hidden) -> BTreeMap<String, u64> {
    let rows = hidden.at_most.enumerate().filter(|(_, most)| **most > 0);
    rows.map(|(id, most)| (profile.functions[id].name.clone(), *most))
        .collect()
}

/// What is hidden at most, as `a 70, main 70`.
fn hidden(text: &str) -> String {
    let profile = read(text);
    let hidden = cut::by_function(&profile, &all(&profile));
    let rows = by_name(&profile, &hidden).into_iter();
    let rows: Vec<String> = rows.map(|(name, most)| format!("{name} {most}")).collect();
    rows.join(", ")
}

#[test]
fn who_can_call_into_a_recursion_may_be_outside_of_a_cut() {
    // The page of the module draws it.
    let text = "[truncated];f;f;x 70\nmain;a;f;x 20\n[truncated];c 10\nmain;b 5\n";
    assert_eq!(hidden(text), "a 70, main 70");
    // A call of itself may have been seen on any stack.
    assert_eq!(hidden("[truncated];f;x 7\nmain;f;f 1\n"), "main 7");
    // Of a function that does not recurse nobody knows who called it this time.
    assert_eq!(hidden("[truncated];f;x 7\nmain;f;x 1\n"), "");
    // A stack that leads to no code is not cut inside of anything.
    assert_eq!(hidden("[broken stack];f;f 7\nmain;f;f 1\n"), "");
}

#[test]
fn a_sample_counts_once_however_many_cycles_are_on_the_way() {
    // main ─▶ f ⟲ ─▶ g ⟲, and main ─▶ g: two ways to g.
    let text = "[truncated];g;g 40\n[truncated];f;f;g 5\nmain;f;g 1\nmain;g 1\n";
    // f may be outside of the 40; its own 5 have it.
    assert_eq!(hidden(text), "f 40, main 45");
}

#[test]
fn a_member_that_is_not_on_the_known_part_may_be_outside_of_it() {
    // even ⇄ odd, and even calls itself: deep down there may be nothing but even.
    let text = "[truncated];even;even 9\n[truncated];odd;even 4\nmain;even;odd;even;even 1\n";
    assert_eq!(hidden(text), "main 13, odd 9");
}

#[test]
fn what_only_the_code_has_counts_but_for_pointers() {
    let mut profile = read("[truncated];f;x 7\nmain;a 1\nmain;b 1\n");
    assert_eq!(hidden("[truncated];f;x 7\nmain;a 1\nmain;b 1\n"), "");
    let [f, a, b] = ["f", "a", "b"].map(|name| id(&profile, name));
    let call = |from, to, kind| Call {
        from,
        to,
        kind,
        sites: 1,
    };
    profile.code.calls = vec![
        call(f, f, CallKind::Call),
        call(a, f, CallKind::Tail),
        call(b, f, CallKind::Pointer),
    ];
    profile.code.calls.sort();
    let hidden = cut::by_function(&profile, &all(&profile));
    let expected = [("a".to_owned(), 7), ("main".to_owned(), 7)];
    assert_eq!(by_name(&profile, &hidden), BTreeMap::from(expected));
}

#[test]
fn marks_are_in_no_cycle_and_have_no_range() {
    let profile = read(&std::fs::read_to_string(fixture("cut")).unwrap());
    let selection = all(&profile);
    let graph = CallGraph::of(&profile, &selection);
    let cycles = Cycles::find(&graph, Arc::is_call);
    let hidden = cut::hidden(&profile, &selection, &graph, &cycles);
    let marks = profile.functions.enumerate();
    let marks: Vec<FunctionId> = marks
        .filter(|(_, function)| function.kind == FunctionKind::Mark)
        .map(|(id, _)| id)
        .collect();
    assert_eq!(marks.len(), 2);
    for mark in marks {
        assert_eq!(cycles.of[mark], None);
        assert_eq!(hidden.at_most[mark], 0);
        assert_eq!(graph.callers(mark).len(), 0);
    }
    let even = cycles.of[id(&profile, "even")].unwrap();
    assert_eq!(cycles.members[even].len(), 2);
}

#[test]
fn very_many_cycles_are_taken_together_and_nothing_is_too_small() {
    // main calls all of f0 … f99, each of which calls itself; a0 calls f0 and so on.
    let mut text = String::new();
    for i in 0..100 {
        let weight = 1000 - i;
        text += &format!("[truncated];f{i};f{i} {weight}\nmain;a{i};f{i};f{i} 1\n");
    }
    let profile = read(&text);
    let hidden = cut::by_function(&profile, &all(&profile));
    let all: u64 = (0..100).map(|i| 1000 - i).sum();
    let most = |name: String| hidden.at_most[id(&profile, &name)];
    assert_eq!(most("main".into()), all);
    // The heaviest are told apart.
    for i in 0..63 {
        assert_eq!(most(format!("a{i}")), 1000 - i);
        assert_eq!(most(format!("f{i}")), 0);
    }
    let others: u64 = (63..100).map(|i| 1000 - i).sum();
    for i in 63..100 {
        assert_eq!(most(format!("a{i}")), others);
        assert_eq!(most(format!("f{i}")), others - (1000 - i));
    }
}

#[test]
fn a_stack_of_100_000_frames_is_nothing_special() {
    let text = format!("[truncated]{} 7\nmain;a;b 1\n", ";a;b".repeat(50_000));
    assert_eq!(hidden(&text), "main 7");
}

/// A stack that was, its weight, and how many of its outermost frames were cut.
type Was = (Vec<usize>, u64, Option<usize>);

const FUNCTIONS: usize = 7;

fn stacks() -> impl Strategy<Value = Vec<Was>> {
    let stack = (vec(0..FUNCTIONS, 1..10), 1..50u64, option::of(0..9usize));
    vec(stack, 1..14)
}

fn folded_text(stacks: impl Iterator<Item = (Vec<usize>, u64, bool)>) -> String {
    let line = |(stack, weight, is_cut): (Vec<usize>, u64, bool)| {
        let mark = is_cut.then(|| "[truncated]".to_owned());
        let names = stack.into_iter().map(|function| format!("f{function}"));
        let frames: Vec<String> = mark.into_iter().chain(names).collect();
        format!("{} {weight}\n", frames.join(";"))
    };
    stacks.map(line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_truth_is_in_the_range(stacks in stacks()) {
        // Whatever was cut was also seen whole, for a moment: so the graph has all calls.
        let mut recorded: Vec<(Vec<usize>, u64, bool)> = Vec::new();
        let mut calls = [[false; FUNCTIONS]; FUNCTIONS];
        for (stack, weight, cut) in &stacks {
            for pair in stack.windows(2) {
                calls[pair[0]][pair[1]] = true;
            }
            match cut.filter(|&cut| cut < stack.len()) {
                Some(cut) => {
                    recorded.push((stack.clone(), 1, false));
                    recorded.push((stack[cut..].to_vec(), *weight, true));
                }
                None => recorded.push((stack.clone(), *weight, false)),
            }
        }
        // Which reaches which by one call or more (S. Warshall, 1962).
        let mut reaches = calls;
        for via in 0..FUNCTIONS {
            for from in 0..FUNCTIONS {
                for to in 0..FUNCTIONS {
                    reaches[from][to] |= reaches[from][via] && reaches[via][to];
                }
            }
        }
        let mut truth = [0; FUNCTIONS];
        let mut expected = [0; FUNCTIONS];
        let mut cut_weight = 0;
        for (stack, weight, cut) in &stacks {
            let cut = cut.filter(|&cut| cut < stack.len());
            let outermost = stack[cut.unwrap_or(0)];
            let is_claimed = cut.is_some() && reaches[outermost][outermost];
            cut_weight += if cut.is_some() { *weight } else { 0 };
            for function in 0..FUNCTIONS {
                let is_known = stack[cut.unwrap_or(0)..].contains(&function);
                // Where nothing is claimed only what is known is expected.
                let is_there = is_known || is_claimed && stack.contains(&function);
                truth[function] += if is_there { *weight } else { 0 };
                truth[function] += u64::from(cut.is_some() && stack.contains(&function));
                if is_claimed && !is_known && reaches[function][outermost] {
                    expected[function] += weight;
                }
            }
        }

        let profile = read(&folded_text(recorded.into_iter()));
        let selection = all(&profile);
        let hidden = cut::by_function(&profile, &selection);
        let weights = inclusive::by_function(&profile, &selection);
        for (id, function) in profile.functions.enumerate() {
            let (seen, most) = (weights.total[id], hidden.at_most[id]);
            prop_assert!(most <= cut_weight);
            if function.kind == FunctionKind::Mark {
                prop_assert_eq!(most, 0);
                continue;
            }
            let place: usize = function.name[1..].parse().unwrap();
            prop_assert!(seen <= truth[place], "{}: {seen} of {}", function.name, truth[place]);
            prop_assert!(truth[place] <= seen + most, "{}: {} of {}", function.name, truth[place], seen + most);
            prop_assert_eq!(most, expected[place], "{}", function.name);
        }
        let at: u64 = hidden.cut_at.iter().map(|cut| cut.weight).sum();
        prop_assert_eq!(at, cut_weight);
    }
}

fn json(args: &[&str]) -> Value {
    let output = proftool(args).args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{args:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The row of a function in one of a document's lists.
fn row<'a>(document: &'a Value, list: &str, name: &str) -> &'a Value {
    let rows = document[list].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

#[test]
fn all_views_tell_the_same_range() {
    let file = fixture("cut");
    let main = |document: &Value, list: &str| {
        let row = row(document, list, "main");
        (row["total"].as_f64(), row["total_max"].as_f64())
    };
    let range = (Some(26.0), Some(129.0));
    assert_eq!(main(&json(&["flat", &file]), "functions"), range);
    assert_eq!(main(&json(&["report", &file]), "by_total"), range);
    assert_eq!(main(&json(&["graph", &file]), "functions"), range);
    let detail = json(&["detail", "main", &file]);
    let function = &detail["function"];
    assert_eq!(
        (function["total"].as_f64(), function["total_max"].as_f64()),
        range
    );
    // What is left out of the listing was there all the same.
    let graph = json(&["graph", "-k", "main/even", &file]);
    assert_eq!(main(&graph, "functions"), range);
    // Estimates have no ranges.
    let graph = json(&["graph", "--model", "propagated", &file]);
    assert!(row(&graph, "functions", "main")["total_max"].is_null());
    let cycles = json(&["cycles", &file]);
    let cut = &cycles["cycles"][0]["cut_inside"];
    assert_eq!(
        (cut["samples"].as_u64(), cut["weight"].as_u64()),
        (Some(33), Some(33))
    );
    let cut = &row(&cycles, "recursive", "f")["cut_inside"];
    assert_eq!(cut["samples"], 70);
}

#[test]
fn a_range_is_shown_only_where_there_is_one() {
    for command in ["flat", "report", "graph", "detail main"] {
        let text = |name: &str| {
            let file = fixture(name);
            let args: Vec<&str> = command.split(' ').chain([file.as_str()]).collect();
            let output = proftool(&args).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(text("cut").contains("at most"), "{command}");
        assert!(!text("recursion").contains("at most"), "{command}");
    }
}

/// A recording of `recurse` at such a depth, by frame pointers; `None`, and the reason on stderr,
/// where that cannot be had.
fn recorded(depth: &str) -> Option<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut");
    std::fs::create_dir_all(&directory).unwrap();
    let program = directory.join("recurse");
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-g",
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-o",
    ]);
    gcc.arg(&program)
        .arg(root.join("fixtures/programs/recurse.c"));
    let recording = directory.join("perf.data");
    let mut record = proftool(&["record", "-q", "-e", "cpu-clock:u", "-g", "fp", "-o"]);
    record.arg(&recording).arg(&program).args(["0.4", depth]);
    for command in [&mut gcc, &mut record] {
        let done = command.output();
        if !done.as_ref().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {command:?}: {done:?}");
            return None;
        }
    }
    Some(recording)
}

#[test]
fn a_recording_of_deep_recursion_leaves_main_all_of_the_time() {
    let Some(recording) = recorded("3000") else {
        return;
    };
    let recording = recording.to_str().unwrap();
    let flat = json(&["flat", recording]);
    let whole = flat["total"].as_u64().unwrap() as f64;
    let cut = row(&flat, "functions", "[truncated]");
    let cut = cut["total"].as_u64().unwrap() as f64;
    let limit = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack").unwrap();
    if limit.trim() != "127" {
        eprintln!("skipped: the limit of frames is not 127 but {limit}");
        return;
    }
    // 125 of 3000 levels fit; the rest of the time is cut.
    assert!(cut >= whole * 0.9, "{cut} of {whole} is cut");
    let report = json(&["report", "--limit", "0", recording]);
    let tid = report["threads"][0]["tid"].to_string();
    for tree in [
        json(&["tree", recording]),
        json(&["tree", "--tid", &tid, recording]),
    ] {
        let marks = tree.to_string().matches("\"name\":\"[truncated]\"").count();
        assert_eq!(marks, 1, "cut stacks hang under one mark");
    }
    // main and descend make no more than a few of the samples; both had all of the time.
    for name in ["main", "descend"] {
        let detail = json(&["detail", name, recording]);
        let views = [
            row(&flat, "functions", name).clone(),
            // Of those that pass all on the report names one.
            row(&report, "by_total", "main").clone(),
            row(&json(&["graph", recording]), "functions", name).clone(),
            detail["function"].clone(),
        ];
        for row in views {
            let seen = row["total"].as_f64().unwrap();
            let most = row["total_max"].as_f64().unwrap();
            assert!(seen <= whole * 0.1, "{row}");
            assert!(most >= whole * 0.98 && most <= whole, "{row} of {whole}");
        }
    }
    // Members are on the known part of every stack.
    for name in ["even", "odd"] {
        let row = row(&flat, "functions", name);
        assert_eq!(row["total"], row["total_max"], "{row}");
    }
    let cycles = json(&["cycles", recording]);
    assert_eq!(cycles["cycles"][0]["members"].as_array().unwrap().len(), 2);
    let inside = cycles["cycles"][0]["cut_inside"]["weight"]
        .as_u64()
        .unwrap() as f64;
    assert!(inside >= cut * 0.99, "{inside} of {cut}");
}

#[test]
fn where_no_stack_shows_the_call_into_the_recursion_the_code_does() {
    let flags = [
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ];
    let Some(program) = truth::build("cut", &flags) else {
        return;
    };
    let recording = program.with_extension("data");
    let path = recording.to_str().unwrap();
    for phase in ["p09", "p10", "p11"] {
        let mut record = proftool(&["record", "-q", "-e", "cpu-clock:u", "-g", "fp", "-o"]);
        record.arg(&recording).arg(&program).args(["0.2", phase]);
        let done = record.output();
        if !done.as_ref().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {record:?}: {done:?}");
            return;
        }
        let flat = json(&["flat", path]);
        let rows = flat["functions"].as_array().unwrap();
        if !rows.iter().any(|row| row["name"] == "[truncated]") {
            eprintln!("skipped: the limit of frames is large enough for {phase}");
            continue;
        }
        // What the program does before the phase has main on its stacks, the phase has not.
        let cut = row(&flat, "functions", "[truncated]")["total"].as_f64();
        let whole = flat["total"].as_f64().unwrap();
        let detail = json(&["detail", "main", path]);
        let graph = json(&["graph", path]);
        for main in [
            row(&flat, "functions", "main"),
            row(&graph, "functions", "main"),
        ] {
            assert_eq!(
                main["total_max"].as_f64(),
                detail["function"]["total_max"].as_f64()
            );
            let seen = main["total"].as_f64().unwrap();
            let most = main["total_max"].as_f64().unwrap();
            assert!(most >= whole * 0.98 && most <= whole, "{phase}: {main}");
            assert!(most - seen >= cut.unwrap() * 0.98, "{phase}: {main}");
        }
        // Without the code nothing is known of who called.
        let graph = json(&["graph", "--static", "off", path]);
        let main = row(&graph, "functions", "main");
        assert_eq!(main["total"], main["total_max"], "{phase}");
        // Functions that only the code has are not shown for that.
        let output = proftool(&["graph", "--limit", "0", path]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains("tails_d"), "{text}");
    }
}
