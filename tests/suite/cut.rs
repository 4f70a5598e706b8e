//! Stacks that were cut: totals as ranges, by hand, by laws, in views, and live.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use proftool::analysis::cut::{self, AtMost, Hidden, Unknown};
use proftool::base::Id;
use proftool::callgraph::{Arc, CallGraph, Cycles};
use proftool::input::folded;
use proftool::profile::{
    Call, CallKind, EventId, Filter, FunctionCode, FunctionId, FunctionKind, Module, Profile,
    Selection,
};
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

/// By name what is hidden at most, where anything is; with `?` where it is not known.
fn by_name(profile: &Profile, hidden: &Hidden) -> BTreeMap<String, String> {
    let rows = hidden.at_most.enumerate();
    let rows = rows.filter(|(_, most)| most.weight > 0);
    let text = |most: &AtMost| match most.unknown {
        None => most.weight.to_string(),
        Some(_) => format!("{}?", most.weight),
    };
    rows.map(|(id, most)| (profile.functions[id].name.clone(), text(most)))
        .collect()
}

/// What is hidden at most, as `a 70, main 70?`.
fn hidden_in(profile: &Profile) -> String {
    let hidden = cut::by_function(profile, &all(profile));
    let rows = by_name(profile, &hidden).into_iter();
    let rows: Vec<String> = rows.map(|(name, most)| format!("{name} {most}")).collect();
    rows.join(", ")
}

/// The same of folded stacks, which come without code.
fn hidden(text: &str) -> String {
    hidden_in(&read(text))
}

/// Folded stacks with the code of all functions: these calls and no others, `a>b c~>d` with a
/// pointer from c to d, and indirect calls in the functions that are named alone.
fn with_code(text: &str, code: &str) -> Profile {
    let mut profile = read(text);
    profile.code.is_whole = true;
    let marks: Vec<bool> = profile.functions.iter().map(|f| f.is_cut_mark()).collect();
    let known = |&is_mark: &bool| (!is_mark).then(FunctionCode::default);
    profile.code.functions = marks.iter().map(known).collect::<Vec<_>>().into();
    for item in code.split(' ') {
        let (kind, pair) = match (item.split_once("~>"), item.split_once('>')) {
            (Some(pair), _) => (CallKind::Pointer, pair),
            (None, Some(pair)) => (CallKind::Call, pair),
            (None, None) => {
                let function = id(&profile, item);
                let code = profile.code.functions[function].as_mut().unwrap();
                code.indirect_calls = 1;
                continue;
            }
        };
        let [from, to] = [pair.0, pair.1].map(|name| id(&profile, name));
        let call = Call {
            from,
            to,
            kind,
            sites: 1,
        };
        profile.code.calls.push(call);
    }
    profile.code.calls.sort();
    profile
}

#[test]
fn who_can_reach_the_cut_function_may_be_outside_of_the_cut() {
    // The page of the module draws it.
    let text = "[truncated];f;f;x 70\nmain;a;f;x 20\n[truncated];c 10\nmain;b 5\n";
    let profile = with_code(text, "main>a main>b a>f f>f f>x b>c");
    assert_eq!(hidden_in(&profile), "a 70, b 10, main 80");
    // Without code the calls that samples show are certain; any other is possible.
    assert_eq!(hidden(text), "a 80?, b 80?, c 70?, f 10?, main 80?, x 10?");
    assert_eq!(hidden("[truncated];f;x 7\nmain;f;f 1\n"), "main 7");
    // A stack that leads to no code is not cut.
    assert_eq!(hidden("[broken stack];f;f 7\nmain;f;f 1\n"), "");
}

#[test]
fn a_sample_counts_once_however_many_ways_lead_to_it() {
    // main ─▶ f ⟲ ─▶ g ⟲, and main ─▶ g: two ways to g.
    let text = "[truncated];g;g 40\n[truncated];f;f;g 5\nmain;f;g 1\nmain;g 1\n";
    let code = "main>f main>g f>f f>g g>g";
    // f may be outside of the 40; its own 5 have it.
    assert_eq!(hidden_in(&with_code(text, code)), "f 40, main 45");
}

#[test]
fn a_member_that_is_not_on_the_known_part_may_be_outside_of_it() {
    // even ⇄ odd, and even calls itself: deep down there may be nothing but even.
    let text = "[truncated];even;even 9\n[truncated];odd;even 4\nmain;even;odd;even;even 1\n";
    assert_eq!(hidden(text), "main 13, odd 9");
}

#[test]
fn an_indirect_call_leads_to_functions_whose_address_is_taken() {
    let text = "[truncated];f;x 7\nmain;a 1\nmain;b 1\nmain;c 1\n";
    let code = |more: &str| with_code(text, &format!("main>a main>b main>c f>f f>x {more}"));
    // Nobody can call f but f itself: then a thread begins in it, or the like.
    assert_eq!(hidden_in(&code("a")), "");
    // b takes its address, which a may have got; c calls nothing.
    assert_eq!(hidden_in(&code("a b~>f")), "a 7?, main 7?");
    // The one who takes the address makes no call.
    assert_eq!(hidden_in(&code("b~>f")), "");
    // It need not be f itself.
    assert_eq!(hidden_in(&code("a c~>b b>f")), "a 7?, b 7, main 7");
    // An address in the data, or a name by which others find it, will do as well.
    for how in [
        |code: &mut FunctionCode| code.pointers_in_data = 1,
        |code: &mut FunctionCode| code.can_be_found = true,
    ] {
        let mut profile = code("a");
        let f = id(&profile, "f");
        how(profile.code.functions[f].as_mut().unwrap());
        assert_eq!(hidden_in(&profile), "a 7?, main 7?");
    }
}

#[test]
fn a_jump_through_a_table_of_a_switch_is_no_call() {
    let text = "[truncated];f;x 7\nmain;a 1\n";
    let mut profile = with_code(text, "main>a f>f f>x main~>f");
    let a = id(&profile, "a");
    let jumps = |profile: &mut Profile, jumps, switches| {
        let code = profile.code.functions[a].as_mut().unwrap();
        (code.indirect_jumps, code.switch_jumps) = (jumps, switches);
    };
    jumps(&mut profile, 2, 2);
    assert_eq!(hidden_in(&profile), "");
    jumps(&mut profile, 2, 1);
    assert_eq!(hidden_in(&profile), "a 7?, main 7?");
}

#[test]
fn a_function_that_picks_others_calls_those_whose_address_it_takes() {
    let text = "[truncated];f;x 7\nmain;pick 1\nmain;c 1\n";
    let mut profile = with_code(text, "main>pick main>c f>f f>x pick~>f");
    assert_eq!(hidden_in(&profile), "");
    let pick = id(&profile, "pick");
    profile.code.functions[pick].as_mut().unwrap().picks = true;
    assert_eq!(hidden_in(&profile), "main 7, pick 7");
}

#[test]
fn only_start_up_code_has_the_address_that_the_entry_takes() {
    let text = "[truncated];f;x 7\n_start;libc;main 1\n_start;libc;exit;hook 1\nmain;log 1\n";
    let code =
        "_start>libc libc>exit libc exit>hook exit main>log log>exit _start~>main main>f f>f f>x";
    let entered = |text: &str| {
        let mut profile = with_code(text, code);
        let start = id(&profile, "_start");
        profile.code.functions[start].as_mut().unwrap().is_entry = true;
        profile
    };
    // log and exit make indirect calls, but others than start-up code call them.
    assert_eq!(hidden_in(&entered(text)), "_start 7, libc 7, main 7");
    // Where no stack shows it, libc may call main all the same.
    let text = text.replace("_start;libc;main", "main");
    assert_eq!(hidden_in(&entered(&text)), "_start 7?, libc 7?, main 7");
}

#[test]
fn code_that_was_not_read_may_call_anything_of_its_file_and_what_has_an_address() {
    let text = "[truncated];f;x 7\nmain;a 1\nmain;b 1\n";
    let mut profile = with_code(text, "main>a main>b f>f f>x");
    let a = id(&profile, "a");
    profile.code.functions[a] = None;
    assert_eq!(hidden_in(&profile), "a 7?, main 7?");
    // In another file it needs an address to call.
    let module = profile.modules.push(Module {
        name: "b".into(),
        path: "b".into(),
    });
    profile.functions[a].module = module;
    assert_eq!(hidden_in(&profile), "");
    let f = id(&profile, "f");
    profile.code.functions[f].as_mut().unwrap().pointers_in_data = 1;
    assert_eq!(hidden_in(&profile), "a 7?, main 7?");
    // Where only the calls between sampled functions were read, nothing is certain.
    profile.code.is_whole = false;
    assert_eq!(hidden_in(&profile), "a 7?, b 7?, main 7?");
    // What is only a name here is code that was not read as well.
    profile.code.is_whole = true;
    let code = FunctionCode {
        imported: true,
        ..FunctionCode::default()
    };
    profile.code.functions[a] = Some(code);
    let hidden = cut::by_function(&profile, &all(&profile));
    assert_eq!(hidden.at_most[a].unknown, Some(Unknown::Code));
}

#[test]
fn a_copy_of_a_function_was_read_with_what_it_is_inlined_into() {
    let text = "[truncated];f;x 7\nmain;a;copy 1\nmain;b 1\n";
    let mut profile = with_code(text, "main>a main>b f>f f>x main~>f");
    let [a, copy] = ["a", "copy"].map(|name| id(&profile, name));
    profile.code.functions[copy] = None;
    profile.code.calls.push(Call {
        from: a,
        to: copy,
        kind: CallKind::Inlined,
        sites: 1,
    });
    profile.code.calls.sort();
    assert_eq!(hidden_in(&profile), "");
    profile.code.functions[a].as_mut().unwrap().indirect_calls = 1;
    assert_eq!(hidden_in(&profile), "a 7?, copy 7?, main 7?");
}

#[test]
fn the_kernel_calls_nothing_of_a_program_and_can_be_entered_anywhere() {
    let text = "[truncated];f;x 7\nmain;f;k 1\nmain;b 1\n";
    let mut profile = with_code(text, "main>b main>f f>f f>x main~>f");
    let k = id(&profile, "k");
    profile.code.functions[k] = None;
    let kernel = profile.modules.push(Module {
        name: "[kernel]".into(),
        path: "[kernel]".into(),
    });
    profile.functions[k].module = kernel;
    profile.code.kernel = vec![kernel];
    assert_eq!(hidden_in(&profile), "main 7");
    let f = id(&profile, "f");
    profile.functions[f].module = kernel;
    assert_eq!(hidden_in(&profile), "b 7?, k 7?, main 7");
}

#[test]
fn marks_are_in_no_cycle_and_have_no_range() {
    let profile = read(&std::fs::read_to_string(fixture("cut")).unwrap());
    let selection = all(&profile);
    let graph = CallGraph::of(&profile, &selection);
    let cycles = Cycles::find(&graph, Arc::is_call);
    let hidden = cut::by_function(&profile, &selection);
    let marks = profile.functions.enumerate();
    let marks: Vec<FunctionId> = marks
        .filter(|(_, function)| function.kind == FunctionKind::Mark)
        .map(|(id, _)| id)
        .collect();
    assert_eq!(marks.len(), 2);
    for mark in marks {
        assert_eq!(cycles.of[mark], None);
        assert_eq!(hidden.at_most[mark], AtMost::default());
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
    let mut code = String::from("main>a0");
    for i in 0..100 {
        code += &format!(" main>a{i} a{i}>f{i} f{i}>f{i}");
    }
    let profile = with_code(&text, &code);
    let hidden = cut::by_function(&profile, &all(&profile));
    let all: u64 = (0..100).map(|i| 1000 - i).sum();
    let most = |name: String| hidden.at_most[id(&profile, &name)].known().unwrap();
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

/// Where a function's total lies, by each view: at least, at most, and the limit where that is not
/// known.
fn ranges(file: &str, name: &str) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let range = |row: &Value| {
        let figure = |key: &str| row[key].as_f64().map(|figure| figure as u64);
        let unknown = [
            figure("total_limit").is_some(),
            row["total_max_reason"].is_string(),
        ];
        assert_eq!(unknown, [figure("total_max").is_none(); 2], "{row}");
        (
            figure("total").unwrap(),
            figure("total_max"),
            figure("total_limit"),
        )
    };
    vec![
        range(row(&json(&["flat", file]), "functions", name)),
        range(row(&json(&["report", file]), "by_total", name)),
        range(row(&json(&["graph", file]), "functions", name)),
        // What is left out of the listing was there all the same.
        range(row(
            &json(&["graph", "-k", "main/even", file]),
            "functions",
            name,
        )),
        range(&json(&["detail", name, file])["function"]),
    ]
}

#[test]
fn all_views_tell_the_same_range() {
    // Nothing shows whether main leads to c, in which a stack is cut.
    let file = fixture("cut");
    assert_eq!(ranges(&file, "main"), [(26, None, Some(139)); 5]);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut");
    std::fs::create_dir_all(&directory).unwrap();
    let known = directory.join("known.folded");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&known, text.replace("main;b 5", "main;b;c 5")).unwrap();
    let known = known.to_str().unwrap();
    assert_eq!(ranges(known, "main"), [(26, Some(139), None); 5]);
    // main stands outermost wherever it stands.
    let tree = json(&["tree", known]);
    let main = row(&tree, "roots", "main");
    assert_eq!(
        (main["direct"].as_u64(), main["total_max"].as_u64()),
        (Some(26), Some(139))
    );
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
    for command in ["flat", "report", "graph", "tree", "detail main"] {
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
        assert!(main["total_max"].is_null(), "{phase}: {main}");
        assert_eq!(main["total_max_reason"], "code not read", "{phase}");
        // Functions that only the code has are not shown for that.
        let output = proftool(&["graph", "--limit", "0", path]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains("tails_d"), "{text}");
    }
}
