//! The static call graph against what is known from elsewhere: the truth that stands beside the
//! golden programs, the assembly that some of them were written in, and what
//! `scripts/compare_objdump.py` finds with objdump.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support;
use crate::support::cli::proftool;
use crate::support::{cases, skipped, write_script};

type Arc = (String, String);

/// The programs among the cases whose names begin so.
fn golden(prefixes: &[&str]) -> Vec<PathBuf> {
    let mut cases = cases("prog");
    cases.retain(|case| {
        let name = case.file_name().unwrap().to_str().unwrap();
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    });
    assert!(!cases.is_empty(), "{prefixes:?}");
    cases
}

/// The document for a program.
fn document(program: &Path) -> Value {
    let program = program.to_str().unwrap();
    let output = proftool(&["callgraph", program, "--format", "json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The arcs of a kind between two of these functions.
fn arcs_among(document: &Value, kind: &str, among: &BTreeSet<String>) -> BTreeSet<Arc> {
    let name = |index: &Value| {
        let index = usize::try_from(index.as_u64().unwrap()).unwrap();
        let name = &document["functions"][index]["name"];
        name.as_str().unwrap().to_owned()
    };
    let arcs = document["arcs"].as_array().unwrap().iter();
    arcs.filter(|arc| arc["kind"] == kind)
        .map(|arc| (name(&arc["from"]), name(&arc["to"])))
        .filter(|(from, to)| among.contains(from) && among.contains(to))
        .collect()
}

/// The pairs of names in a list.
fn pairs(list: &Value) -> BTreeSet<Arc> {
    let end = |arc: &Value, i: usize| arc[i].as_str().unwrap().to_owned();
    let arcs = list.as_array().unwrap().iter();
    arcs.map(|arc| (end(arc, 0), end(arc, 1))).collect()
}

#[test]
fn golden_programs_have_the_arcs_and_the_indirect_calls_of_their_truth_and_no_others() {
    let cases = golden(&["p", "g"]);
    if cases.is_empty() {
        return;
    }
    let mut compared = 0;
    for case in cases {
        let Ok(truth) = fs::read_to_string(case.join("truth.json")) else {
            continue;
        };
        let truth: Value = serde_json::from_str(&truth).unwrap();
        let names = truth["self_ticks"].as_object().unwrap().keys();
        let mut among: BTreeSet<String> = names.cloned().collect();
        let truth = &truth["static_arcs_in_code"];
        // Functions that never ran have no ticks.
        for key in ["call", "tail_jump"] {
            let arcs = pairs(&truth[key]).into_iter();
            among.extend(arcs.flat_map(|(from, to)| [from, to]));
        }
        let document = document(&case.join("prog"));
        for (kind, key) in [
            ("call", "call"),
            ("tail", "tail_jump"),
            ("import", "plt_or_got"),
        ] {
            let expected = pairs(&truth[key]);
            let found = arcs_among(&document, kind, &among);
            assert_eq!(found, expected, "{}: {kind}", case.display());
        }
        let functions = document["functions"].as_array().unwrap();
        let mut counted = 0;
        for function in functions {
            let name = function["name"].as_str().unwrap();
            if among.contains(name) {
                let expected = truth["indirect_sites"][name].as_u64().unwrap_or(0);
                let found = &function["indirect_calls"];
                assert_eq!(found, expected, "{}: {name}", case.display());
                counted += 1;
            }
        }
        assert_eq!(counted, among.len(), "{}", case.display());
        compared += 1;
    }
    assert!(
        compared >= 8,
        "{compared} programs compared with their truth"
    );
}

/// The calls of a program in assembly, and the functions that it declares.
fn calls_in(assembly: &str) -> (BTreeSet<Arc>, BTreeSet<String>) {
    let (mut calls, mut functions, mut caller) = (BTreeSet::new(), BTreeSet::new(), "");
    for line in assembly.lines() {
        if let Some(declared) = line.strip_prefix(".type ") {
            functions.insert(declared.split(',').next().unwrap().to_owned());
        } else if let Some(label) = line.strip_suffix(':') {
            caller = label;
        } else if let Some(callee) = line.trim().strip_prefix("call ") {
            calls.insert((caller.to_owned(), callee.trim().to_owned()));
        }
    }
    (calls, functions)
}

#[test]
fn golden_programs_have_the_calls_of_their_assembly_and_no_others() {
    for case in golden(&["g"]) {
        let Ok(assembly) = fs::read_to_string(case.join("prog.s")) else {
            continue;
        };
        let (expected, among) = calls_in(&assembly);
        assert!(!among.is_empty(), "{}", case.display());
        let found = arcs_among(&document(&case.join("prog")), "call", &among);
        assert_eq!(found, expected, "{}", case.display());
    }
}

/// An empty directory for one test.
fn directory(test: &str) -> PathBuf {
    support::directory(&format!("static-golden-{test}"))
}

/// Compiles a program of the fixtures with these options.
fn compile(directory: &Path, name: &str, compiler: &str, args: &str) -> Option<PathBuf> {
    let program = directory.join(format!("{name}{}", args.replace([' ', ',', '/'], "")));
    let args: Vec<&str> = args.split_whitespace().collect();
    support::compile(compiler, &args, &support::fixture(name), &program)
}

/// What the script says of these programs; `None` where its tools are not.
fn compare(proftool: &Path, args: &[&str], programs: &[PathBuf]) -> Option<Output> {
    for tool in ["python3", "objdump", "readelf", "strip"] {
        let found = Command::new(tool).arg("--version").output();
        if !found.is_ok_and(|output| output.status.success()) {
            skipped(&format!("{tool} does not work here"));
            return None;
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/compare_objdump.py");
    let mut command = Command::new("python3");
    command.arg(script).arg("--proftool").arg(proftool);
    Some(command.args(args).args(programs).output().unwrap())
}

#[test]
fn objdump_finds_the_same_calls_with_symbols_and_without() {
    let directory = directory("equal");
    let programs: Vec<PathBuf> = [
        ("recurse.c", "gcc", "-O0"),
        ("recurse.c", "gcc", "-O2"),
        ("recurse.c", "gcc", "-O2 -fno-pie -no-pie"),
        ("recurse.c", "gcc", "-O2 -fPIC -shared"),
        ("shapes.cpp", "g++", "-O2"),
    ]
    .iter()
    .filter_map(|(name, compiler, args)| compile(&directory, name, compiler, args))
    .collect();
    let ours = Path::new(env!("CARGO_BIN_EXE_proftool"));
    let Some(output) = compare(ours, &["--stripped-copy"], &programs) else {
        return;
    };
    let told = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = format!(
        "{} equal, 0 different, 0 not compared\n",
        2 * programs.len()
    );
    assert!(told.ends_with(&expected), "{told}{said}");
    assert_eq!(output.status.code(), Some(0), "{told}{said}");
}

#[test]
#[cfg(unix)]
fn the_comparison_sees_a_call_that_is_missed_and_one_that_is_invented() {
    let directory = directory("different");
    let Some(program) = compile(&directory, "recurse.c", "gcc", "-O1") else {
        return;
    };
    let truth = document(&program);
    let calls = truth["arcs"].as_array().unwrap();
    let call = calls.iter().position(|arc| arc["kind"] == "call").unwrap();
    let sites = truth["arcs"][call]["sites"].as_u64().unwrap();
    for (sites, what) in [(sites - 1, "call missed"), (sites + 1, "call invented")] {
        let mut lie = truth.clone();
        lie["arcs"][call]["sites"] = sites.into();
        let (answer, liar) = (directory.join("answer.json"), directory.join("liar"));
        fs::write(&answer, lie.to_string()).unwrap();
        write_script(&liar, &format!("#!/bin/sh\ncat '{}'\n", answer.display()));
        let Some(output) = compare(&liar, &[], std::slice::from_ref(&program)) else {
            return;
        };
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("\n  {what}: 1 of ")), "{told}");
    }
}
