//! `proftool compare`: recordings and commands, to verdicts.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::support::cli::proftool;
use crate::support::directory;

/// Eight runs of each side as folded stacks; one function has `more` samples on the new side.
fn runs(name: &str, more: u64) -> [Vec<PathBuf>; 2] {
    let place = directory(&format!("compare-{name}"));
    ["base", "new"].map(|side| {
        let more = if side == "new" { more } else { 0 };
        let write = |number: u64| {
            let file = place.join(format!("{side}.{number}.folded"));
            let noise = number * 7 % 5;
            let stacks = format!(
                "main;parse;lex {}\nmain;emit {}\nmain;parse 100\n",
                2000 + more + noise,
                5000 - noise
            );
            fs::write(&file, stacks).unwrap();
            file
        };
        (0..8).map(write).collect()
    })
}

fn compare(sides: &[Vec<PathBuf>; 2], options: &[&str]) -> Output {
    let mut command = proftool(&["compare"]);
    command.args(options);
    command.arg("--base").args(&sides[0]);
    command.arg("--new").args(&sides[1]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn document(sides: &[Vec<PathBuf>; 2]) -> Value {
    serde_json::from_slice(&compare(sides, &["--format", "json"]).stdout).unwrap()
}

fn function<'a>(document: &'a Value, name: &str) -> &'a Value {
    let functions = document["functions"].as_array().unwrap();
    functions.iter().find(|it| it["name"] == name).unwrap()
}

#[test]
fn a_slower_function_is_the_only_one_that_has_changed_itself() {
    let document = document(&runs("slower", 100));
    assert_eq!(document["runs"]["base"], 8);
    assert_eq!(document["time"]["verdict"], "worse");
    let lex = function(&document, "lex");
    assert_eq!(lex["verdict"], "worse");
    assert_eq!(lex["change"]["percent"].as_f64().unwrap().round(), 5.0);
    assert_eq!(
        lex["new"]["self"].as_f64().unwrap() - lex["base"]["self"].as_f64().unwrap(),
        100.0
    );
    let functions = document["functions"].as_array().unwrap();
    let changed = functions
        .iter()
        .filter(|it| !["same", "undecided"].contains(&it["verdict"].as_str().unwrap()));
    assert_eq!(changed.count(), 1);
    let parse = function(&document, "parse");
    assert_eq!(
        (&parse["verdict"], &parse["total_change"]["verdict"]),
        (&"same".into(), &"worse".into())
    );
}

// The verdict is the answer, also where there is room for little else.
#[test]
fn a_narrow_terminal_shows_the_verdicts() {
    let output = {
        let sides = runs("narrow", 100);
        let mut command = proftool(&["compare", "--base"]);
        command.args(&sides[0]).arg("--new").args(&sides[1]);
        command.env("COLUMNS", "44").output().unwrap()
    };
    let page = String::from_utf8(output.stdout).unwrap();
    let mut rows = page.lines();
    assert!(rows.any(|row| row.starts_with("worse ")), "{page}");
}

#[test]
fn runs_of_one_program_have_not_changed() {
    let document = document(&runs("same", 0));
    assert_eq!(document["time"]["verdict"], "same");
    for it in document["functions"].as_array().unwrap() {
        assert_eq!(it["verdict"], "same", "{it}");
    }
}

#[test]
fn markdown_is_a_table_that_a_pull_request_shows() {
    let output = compare(&runs("markdown", 100), &["--format", "markdown"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let header = text.lines().find(|line| line.starts_with("| ")).unwrap();
    let columns = header.matches('|').count();
    assert!(text.contains("| worse | +5.0 |"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with('|'));
    rows.for_each(|row| assert_eq!(row.matches('|').count(), columns, "{row}"));
}

#[test]
fn two_ranges_of_a_recording_are_compared_without_a_second_run() {
    let file = directory("compare-ranges").join("perf.data");
    let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let mut record = proftool(&["record", "--quiet", "-e", "task-clock", "-o"]);
    record.arg(&file).args(["--", "sh", "-c", count]);
    assert!(record.status().unwrap().success());
    let ranges = [
        "--base-only",
        "--time 0..0.03",
        "--new-only",
        "--time 0.03..",
    ];
    let output = proftool(&["compare", "--format", "json"])
        .args(ranges)
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["runs"], serde_json::json!({"base": 1, "new": 1}));
    // What is of both sides holds for both, and a side has filters only.
    let other = |options: &[&str]| {
        let output = proftool(&["compare"])
            .args(options)
            .arg(&file)
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let event = [&["--event", "absent"], &ranges[..]].concat();
    assert!(
        other(&event).contains("no event absent"),
        "{}",
        other(&event)
    );
    let reading = ["--base-only", "--no-inline", "--new-only", "--time 0.."];
    assert!(
        other(&reading).contains("only filters choose samples"),
        "{}",
        other(&reading)
    );
}

#[test]
fn a_command_that_fails_is_not_compared() {
    let output = proftool(&["compare", "--runs", "1", "--", "true", ":::", "false"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("false: exit status: 1"), "{said}");
    assert!(
        said.contains("hint: only runs that end well are compared"),
        "{said}"
    );
}

#[test]
fn one_command_alone_is_no_comparison() {
    let output = proftool(&["compare", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("separated by ':::'"), "{said}");
}

/// Checks budgets of the new runs; returns the exit status and what was printed.
fn check(name: &str, budgets: &str, options: &[&str]) -> (i32, String) {
    let sides = runs(name, 100);
    let file = sides[0][0].with_file_name("budget.toml");
    fs::write(&file, budgets).unwrap();
    let mut command = proftool(&["check"]);
    command.args(options).arg("--budget").arg(&file);
    command.arg("--new").args(&sides[1]);
    command.arg("--base").args(&sides[0]);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text + &said)
}

#[test]
fn budgets_pass_fail_or_are_undecided() {
    let budget =
        |function: &str, limit: &str| format!("[[budget]]\nfunction = '{function}'\n{limit}\n");
    // lex has 2100 of 7200 samples and grew by 5 %.
    for (limit, status) in [
        ("growth = 8", 0),
        ("growth = 3", 3),
        ("percent = 30", 0),
        ("percent = 28", 3),
        ("time = '2200'", 0),
        ("time = '2050'\nof = 'self'", 3),
        ("time = '2102'", 4),
        ("calls = 5", 4),
    ] {
        let (found, text) = check("budget", &budget("lex", limit), &[]);
        assert_eq!(found, status, "{limit}: {text}");
    }
    // parse has 2200 with its callees, and the worst of all budgets decides.
    let both = budget("parse", "time = '2300'") + &budget("lex", "growth = 3");
    let (status, text) = check("budget", &both, &[]);
    assert_eq!(status, 3, "{text}");
    assert!(text.contains("pass       time of parse: 2,20"), "{text}");
    assert!(
        text.contains("fail       growth of lex: 5.0 %, at most 3.0 %"),
        "{text}"
    );
}

#[test]
fn a_budget_of_code_that_did_not_run_is_undecided() {
    let budget = "[[budget]]\nfunction = 'parze'\npercent = 50\n";
    let (status, text) = check("absent", budget, &[]);
    assert_eq!(status, 4);
    assert!(
        text.contains("warning: parze is in none of the new runs"),
        "{text}"
    );
}

#[test]
fn budgets_are_reported_as_ci_services_read_them() {
    let budgets = "[[budget]]\nfunction = 'lex'\ngrowth = 3\n";
    let (_, junit) = check("junit", budgets, &["--format", "junit"]);
    assert!(
        junit.contains("tests=\"1\" failures=\"1\" skipped=\"0\""),
        "{junit}"
    );
    let (_, github) = check("github", budgets, &["--format", "github"]);
    assert!(
        github.starts_with("::error title=budget fail::growth of lex: 5.0 %25"),
        "{github}"
    );
    let (_, json) = check("json", budgets, &["--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["budgets"][0]["verdict"], "fail");
    assert_eq!(document["budgets"][0]["function"], "lex");
    assert_eq!(
        (&document["view"], &document["event"]["name"]),
        (&"check".into(), &"samples".into())
    );
}

#[test]
fn a_budget_that_is_not_understood_is_refused() {
    for (budgets, said) in [
        (
            "[[budget]]\nfunction = 'lex'\n",
            "needs time, percent, growth or calls",
        ),
        ("[[budget]]\ntime = '5 parsecs'\n", "time has no such value"),
        (
            "[[budget]]\npercent = 5\ngrowth = 5\n",
            "a budget has one limit",
        ),
        ("percent = 5\n", "unknown table percent"),
        (
            "[[budget]]\nfunction = 'a'\nmodule = 'b'\npercent = 5\n",
            "one function, module or path",
        ),
    ] {
        let (status, text) = check("refused", budgets, &[]);
        assert_eq!(status, 1, "{text}");
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_command_is_recorded_as_often_as_it_is_to_be_compared() {
    let place = directory("compare-record");
    let file = place.join("run.data");
    let record = |command: &[&str]| {
        let mut record = proftool(&["record", "--quiet", "--runs", "3", "-o"]);
        record.arg(&file).arg("--").args(command).status().unwrap()
    };
    assert!(record(&["true"]).success());
    let made = |number: u32| file.with_file_name(format!("run.data.{number}")).exists();
    assert_eq!([1, 2, 3, 4].map(made), [true, true, true, false]);
    assert!(!file.exists());
    // The first run that fails is the last.
    let other = place.join("failed.data");
    let mut record = proftool(&["record", "--quiet", "--runs", "3", "-o"]);
    let status = record.arg(&other).args(["--", "false"]).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(!other.with_file_name("failed.data.2").exists());
}

#[test]
fn functions_of_one_short_name_have_labels_of_their_own() {
    let place = directory("compare-labels");
    let write = |name: &str| {
        let file = place.join(name);
        let stacks = "main;shop::list<int>::at(int) 50\nmain;shop::list<char>::at(int) 50\n";
        fs::write(&file, stacks).unwrap();
        file
    };
    let sides = [["a", "b"], ["c", "d"]].map(|names| names.map(write).to_vec());
    let output = compare(&sides, &["--format", "json", "--names", "short"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let labels = document["functions"].as_array().unwrap().iter();
    let labels: Vec<&str> = labels.map(|it| it["label"].as_str().unwrap()).collect();
    let mut distinct = labels.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), labels.len(), "{labels:?}");
}

#[test]
fn intervals_need_times_and_are_of_functions() {
    let sides = runs("intervals", 0);
    let refused = |options: &[&str]| {
        let output = proftool(&["flat", "--ci"])
            .args(options)
            .arg(&sides[0][0])
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (status, said) = refused(&[]);
    assert!(status == 1 && said.contains("need several runs"), "{said}");
    assert_eq!(refused(&["--by", "module"]).0, 2);
}

#[test]
fn work_that_is_not_known_is_refused() {
    let sides = runs("work", 0);
    let output = proftool(&["compare", "--per-work", "parse", "--base"])
        .args(&sides[0])
        .arg("--new")
        .args(&sides[1])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("calls of parse") && said.contains("--record --counts"),
        "{said}"
    );
}
