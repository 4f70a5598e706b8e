//! Stacks that were cut: totals as ranges in recordings of programs that recurse deeply.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::cli::proftool;
use crate::support::cut::{json, row};
use crate::support::repeated::repeated;
use crate::support::{compile, fixture, ran, skipped, truth};

/// What a view has of the stacks with functions of a program. A stack that is truncated in the dynamic
/// linker, before `main`, may lack `main`, as it is not known whether that leads there; on a busy machine
/// most recordings have such a sample.
fn of_program(program: &str, recording: &str, args: &[&str]) -> Value {
    json(&[args, &["--module", program, recording]].concat())
}

/// Whether all truncated stacks of the program are in the recursion: a rare one is in a function of
/// the C library that the program calls. And whether a stack shows how the recursion begins.
fn is_truncated_in(
    (beginning, recursion): (&str, &[&str]),
    program: &str,
    recording: &Path,
) -> bool {
    let mut export = proftool(&["export", "--to", "folded", "--module", program]);
    let output = export.arg(recording).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut truncated = text.lines().filter(|line| line.starts_with('['));
    truncated.all(|line| recursion.iter().any(|name| line.contains(name)))
        && text.lines().any(|line| line.contains(beginning))
}

/// Runs a command until its recording is as wanted.
fn until(record: &mut Command, is_as_wanted: impl Fn() -> bool) -> Option<()> {
    for _ in 0..10 {
        ran(record)?;
        if is_as_wanted() {
            return Some(());
        }
    }
    panic!("no recording is as wanted: {record:?}");
}

/// A recording of `recurse` at such a depth, by frame pointers; `None`, and the reason on stderr,
/// where that cannot be had.
fn recorded(depth: &str) -> Option<std::path::PathBuf> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut");
    std::fs::create_dir_all(&directory).unwrap();
    let flags = [
        "-g",
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ];
    let program = directory.join("recurse");
    compile("gcc", &flags, &fixture("recurse.c"), &program)?;
    let recording = directory.join("perf.data");
    let options = ["-q", "-e", "cpu-clock:u", "-F", "4999", "-g", "fp", "-o"];
    let mut record = proftool(&[&["record"], &options[..]].concat());
    record.arg(&recording).arg(&program).args(["0.4", depth]);
    // Of 2000 samples 80 are in the 125 levels of 3000 from where a stack reaches `main`.
    let recursion = ("main;descend;", &["even", "odd"][..]);
    let is_wanted = || is_truncated_in(recursion, "recurse", &recording);
    until(&mut record, is_wanted).map(|()| recording)
}

#[test]
fn main_may_have_all_of_the_time_in_a_recording_of_deep_recursion() {
    repeated(|| {
        let Some(recording) = recorded("3000") else {
            return;
        };
        let recording = recording.to_str().unwrap();
        let of = |args: &[&str]| of_program("recurse", recording, args);
        let flat = of(&["flat"]);
        let whole = flat["total"].as_u64().unwrap() as f64;
        let cut = row(&flat, "functions", "[truncated]");
        let cut = cut["total"].as_u64().unwrap() as f64;
        let limit = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack").unwrap();
        if limit.trim() != "127" {
            skipped(&format!("the limit of frames is not 127 but {limit}"));
            return;
        }
        // 125 of 3000 levels fit; the rest of the time is cut.
        assert!(cut >= whole * 0.9, "{cut} of {whole} is cut");
        let report = of(&["report", "--limit", "0"]);
        let tid = report["threads"][0]["tid"].to_string();
        for tree in [of(&["tree"]), of(&["tree", "--tid", &tid])] {
            let marks = tree.to_string().matches("\"name\":\"[truncated]\"").count();
            assert_eq!(marks, 1, "cut stacks hang under one mark");
        }
        // main and descend make no more than a few of the samples; both had all of the time.
        for name in ["main", "descend"] {
            let detail = of(&["detail", name]);
            let views = [
                row(&flat, "functions", name).clone(),
                // Of those that pass all on the report names one.
                row(&report, "by_total", "main").clone(),
                row(&of(&["graph"]), "functions", name).clone(),
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
        let cycles = of(&["cycles"]);
        assert_eq!(cycles["cycles"][0]["members"].as_array().unwrap().len(), 2);
        let inside = cycles["cycles"][0]["cut_inside"]["weight"]
            .as_u64()
            .unwrap() as f64;
        assert!(inside >= cut * 0.99, "{inside} of {cut}");
    });
}

#[test]
fn the_code_shows_the_call_into_a_recursion_that_no_stack_has() {
    repeated(|| {
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
        let of = |args: &[&str]| of_program("calls", path, args);
        for phase in ["p09", "p10", "p11"] {
            let mut record = proftool(&["record", "-q", "-e", "cpu-clock:u", "-g", "fp", "-o"]);
            record.arg(&recording).arg(&program).args(["0.2", phase]);
            let recursion = ("main;", &["deep", "mutual", "even"][..]);
            let is_wanted = || is_truncated_in(recursion, "calls", &recording);
            if until(&mut record, is_wanted).is_none() {
                return;
            }
            let flat = of(&["flat"]);
            let rows = flat["functions"].as_array().unwrap();
            if !rows.iter().any(|row| row["name"] == "[truncated]") {
                skipped(&format!("the limit of frames is large enough for {phase}"));
                continue;
            }
            // What the program does before the phase has main on its stacks, the phase has not.
            let cut = row(&flat, "functions", "[truncated]")["total"].as_f64();
            let whole = flat["total"].as_f64().unwrap();
            let detail = of(&["detail", "main"]);
            let graph = of(&["graph"]);
            for main in [
                row(&flat, "functions", "main"),
                row(&graph, "functions", "main"),
            ] {
                assert_eq!(
                    main["total_max"].as_f64(),
                    detail["function"]["total_max"].as_f64()
                );
                let seen = main["total"].as_f64().unwrap();
                let most = main["total_max"].as_f64();
                let most = most.unwrap_or_else(|| panic!("{phase}: {main} in {flat}"));
                assert!(most >= whole * 0.98 && most <= whole, "{phase}: {main}");
                assert!(most - seen >= cut.unwrap() * 0.98, "{phase}: {main}");
            }
            // Without the code nothing is known of who called.
            let graph = of(&["graph", "--static", "off"]);
            let main = row(&graph, "functions", "main");
            assert!(main["total_max"].is_null(), "{phase}: {main}");
            assert_eq!(main["total_max_reason"], "code not read", "{phase}");
            // Functions that only the code has are not shown for that.
            let output = proftool(&["graph", "--limit", "0", path]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(!text.contains("tails_d"), "{text}");
        }
    });
}
