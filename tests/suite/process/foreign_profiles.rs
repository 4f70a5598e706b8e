//! Profiles that other profilers wrote: every view has the numbers that their own tools show.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::cli::proftool;
use crate::support::{directory, fixture, ran};

/// Name, self, total.
type Row = (String, u64, u64);

/// What a view says of a file, as JSON.
fn view(file: &Path, args: &[&str]) -> Value {
    let output = proftool(args)
        .arg("--format")
        .arg("json")
        .arg(file)
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap()
}

fn rows(document: &Value) -> Vec<Row> {
    let functions = document["functions"].as_array().unwrap().iter();
    let row = |function: &Value| {
        let name = function["name"].as_str().unwrap().to_owned();
        (name, number(function, "self"), number(function, "total"))
    };
    let mut rows: Vec<Row> = functions.map(row).collect();
    rows.sort();
    rows
}

fn row(name: &str, own: u64, total: u64) -> Row {
    (name.to_owned(), own, total)
}

/// Checks that all views that have totals have these.
fn every_view_has(file: &Path, expected: &[Row], total: u64) {
    let flat = ["flat", "--limit", "0", "--min", "0"];
    assert_eq!(rows(&view(file, &flat)), expected);
    assert_eq!(rows(&view(file, &["graph"])), expected);
    let report = rows(&view(file, &["report"]));
    assert!(
        report.iter().all(|row| expected.contains(row)),
        "{report:?}"
    );
    for args in [&["tree"][..], &["tree", "--bottom-up"]] {
        let tree = view(file, args);
        let roots = tree["roots"].as_array().unwrap().iter();
        assert_eq!(roots.map(|root| number(root, "total")).sum::<u64>(), total);
    }
    for (name, own, total) in expected {
        let detail = &view(file, &["detail", name])["function"];
        assert_eq!(
            (number(detail, "self"), number(detail, "total")),
            (*own, *total)
        );
    }
}

/// The numbers are those of `go tool pprof -top -unit=ns fixtures/go.pb.gz`.
#[test]
fn a_profile_of_go_has_the_numbers_of_gos_own_tool() {
    let file = fixture("../go.pb.gz");
    let ms = 1_000_000;
    let expected = [
        row("main.descend", 0, 110 * ms),
        row("main.main", 0, 140 * ms),
        row("main.spin", 100 * ms, 140 * ms),
        row("runtime.asyncPreempt", 40 * ms, 40 * ms),
        row("runtime.main", 0, 140 * ms),
    ];
    every_view_has(&file, &expected, 140 * ms);
    let flat = view(&file, &["flat"]);
    assert_eq!(
        (&flat["event"]["name"], &flat["event"]["unit"]),
        (&"cpu".into(), &"ns".into())
    );
    assert_eq!(number(&flat, "samples"), 14);
    assert_eq!(flat["caveats"].as_array().unwrap().len(), 0);
    let cycles = view(&file, &["cycles"]);
    assert_eq!(cycles["cycles"].as_array().unwrap().len(), 0);
    let recursive = &cycles["recursive"][0];
    assert_eq!(
        (&recursive["name"], number(recursive, "deepest")),
        (&"main.descend".into(), 5)
    );
    // And so has what is written of it.
    let folder = directory("foreign-go");
    let again = folder.join("again.pb.gz");
    let mut export = proftool(&["export", "--to", "pprof", "-o"]);
    assert!(export.arg(&again).arg(&file).status().unwrap().success());
    every_view_has(&again, &expected, 140 * ms);
    let mut pprof = Command::new("go");
    pprof
        .args(["tool", "pprof", "-top", "-unit=ns", "-nodefraction=0"])
        .arg(&again);
    pprof
        .env("GOTOOLCHAIN", "local")
        .env("PPROF_TMPDIR", &folder);
    if let Some(output) = ran(&mut pprof) {
        let text = String::from_utf8(output.stdout).unwrap();
        let spin = text
            .lines()
            .find(|line| line.ends_with("main.spin"))
            .unwrap();
        let words: Vec<_> = spin.split_whitespace().collect();
        assert_eq!((words[0], words[3]), ("100000000ns", "140000000ns"));
    }
}

/// The form is that of async-profiler's `docs/OutputFormats.md` and of its option `-t`; names are as
/// `-a` annotates them, and the annotation is part of the name.
#[test]
fn collapsed_stacks_of_async_profiler_have_the_numbers_of_their_lines() {
    let lines = "\
        [main tid=41];Sorter.main;Sorter.sort 3\n\
        [main tid=41];Sorter.main;Sorter.sort;Sorter.sort 5\n\
        [main tid=41];Sorter.main;Sorter.sort;Sorter.sort;java/lang/String.compareTo_[j] 7\n\
        [main tid=41];Sorter.main;Sorter.sort;Sorter.sort;java/lang/String.compareTo_[j];java/lang/StringLatin1.compareTo_[i] 2\n\
        [Thread-1 tid=57];start_thread;Thread::call_run;GCTaskThread::run 11\n\
        [Thread-1 tid=57];start_thread;Thread::call_run;GCTaskThread::run;do_syscall_64_[k];schedule_[k] 1\n";
    let file = directory("foreign-java").join("java.collapsed");
    let mut out = std::fs::File::create(&file).unwrap();
    out.write_all(lines.as_bytes()).unwrap();
    let mut expected = [
        row("GCTaskThread::run", 11, 12),
        row("Sorter.main", 0, 17),
        row("Sorter.sort", 8, 17),
        row("Thread::call_run", 0, 12),
        row("[Thread-1 tid=57]", 0, 12),
        row("[main tid=41]", 0, 17),
        row("do_syscall_64_[k]", 0, 1),
        row("java/lang/String.compareTo_[j]", 7, 9),
        row("java/lang/StringLatin1.compareTo_[i]", 2, 2),
        row("schedule_[k]", 1, 1),
        row("start_thread", 0, 12),
    ];
    expected.sort();
    every_view_has(&file, &expected, 29);
    let cycles = view(&file, &["cycles"]);
    assert_eq!(cycles["recursive"][0]["name"], "Sorter.sort");
    assert_eq!(cycles["cycles"].as_array().unwrap().len(), 0);
}
