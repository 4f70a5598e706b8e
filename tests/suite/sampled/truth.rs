//! Recordings of a program that knows its own stacks: `fixtures/programs/truth/calls.c`.
//!
//! Only what every walk by frame pointers can get right; how much else is right is measured by
//! `scripts/compare_truth.py`. What this machine forbids is said on stderr as `skipped: …`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::cli::proftool;
use crate::support::ran;
use crate::support::repeated::repeated;
use crate::support::shares::at_least;
use crate::support::truth::build;

/// Processor time of each phase.
const SECONDS: &str = "0.2";

/// The call chains that the program tells, by phase, with or without the inlined functions.
fn chains(program: &Path, with_inlined: bool) -> BTreeMap<String, Vec<String>> {
    let told = Command::new(program).arg("--truth").output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let chain = |text: &str| {
        let frames = text.split(';');
        let frames = frames.filter(|frame| with_inlined || !frame.starts_with('['));
        frames
            .map(|frame| frame.trim_matches(['[', ']']).to_owned())
            .collect()
    };
    told.lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            (fields[0].to_owned(), chain(fields[2]))
        })
        .collect()
}

/// The stacks of a phase with their samples.
fn stacks(recording: &Path, phase: &str, more: &[&str]) -> Vec<(Vec<String>, u64)> {
    let mut export = proftool(&["export", "--to", "folded", "--unit", "samples"]);
    let output = export.args(["--comm", phase]).args(more).arg(recording);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{export:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let stack = |line: &str| {
        let (frames, samples) = line.rsplit_once(' ').unwrap();
        let frames = frames.split(';').map(str::to_owned).collect();
        (frames, samples.parse().unwrap())
    };
    text.lines().map(stack).collect()
}

/// Records these phases of `calls`, and expects their stacks to be those that the program knows.
fn is_all_right(name: &str, flags: &[&str], phases: &[&str]) {
    let Some(program) = build(name, flags) else {
        return;
    };
    let recording = program.with_extension("data");
    let mut record = proftool(&["record", "-q", "-e", "cpu-clock:u", "-F", "997", "-o"]);
    record.arg(&recording).arg(&program).arg(SECONDS);
    if ran(record.args(phases)).is_none() {
        return;
    }
    for (with_inlined, options) in [(false, &["--no-inline"][..]), (true, &[])] {
        let chains = chains(&program, with_inlined);
        for &phase in phases {
            let chain = &chains[phase];
            let (mut all, mut right) = (0, 0);
            let stacks = stacks(&recording, phase, options);
            for (stack, samples) in &stacks {
                all += samples;
                let main = stack.iter().position(|frame| frame == "main");
                let below_main = &stack[main.unwrap_or(0)..];
                if chain.starts_with(below_main) {
                    right += samples;
                }
            }
            assert!(all >= 20, "{name} {phase}: only {all} samples");
            // The few moments in which a function sets up its frame or leaves it.
            assert!(
                at_least(right, all, 98.0),
                "{name} {phase}: {right} of {all} are {chain:?}: {stacks:?}"
            );
        }
    }
}

#[test]
fn plain_calls_without_optimization_are_found_in_the_code() {
    repeated(|| {
        let phases = ["p01", "p03", "p05", "p12", "p13", "p14", "p15", "p16"];
        is_all_right("O0", &["-O0"], &phases);
    });
}

#[test]
fn calls_between_functions_with_frames_are_found_in_the_code() {
    repeated(|| {
        let flags = ["-O2", "-fno-omit-frame-pointer"];
        let phases = ["p01", "p12", "p13", "p14", "p15", "p16"];
        is_all_right("O2", &flags, &phases);
    });
}
