//! Missing frames that the code restores, in recordings.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::repair::{
    NESTED, PROFTOOL, THROWS, proftool, recorded, recording, recording_by, stacks, stacks_of,
};
use crate::support::repeated::repeated;
use crate::support::shares::at_least;
use crate::support::{compile_text, skipped};

/// The samples with the end of `right` as their leaf: those with that stack, and all.
fn with_stack(stacks: &BTreeMap<String, u64>, right: &str) -> (u64, u64) {
    let leaf = right.rsplit(';').next();
    let alike = stacks
        .iter()
        .filter(|(stack, _)| stack.rsplit(';').next() == leaf);
    let all: u64 = alike.map(|(_, weight)| weight).sum();
    assert!(all > 50, "too few samples for {right}: {stacks:?}");
    (stacks.get(right).copied().unwrap_or(0), all)
}

/// Asserts that this stack is that of nearly all samples with its leaf.
#[track_caller]
fn has_stack(stacks: &BTreeMap<String, u64>, right: &str) {
    let (found, all) = with_stack(stacks, right);
    assert!(
        at_least(found, all, 99.0),
        "{right}: {found} of {all}: {stacks:?}"
    );
}

#[test]
fn missing_frames_are_restored_where_the_code_has_one_explanation() {
    repeated(|| {
        let Some(data) = recording("stacks", "frameless.c", &[]) else {
            return;
        };
        let recorded = stacks(&data, &["--no-repair"]);
        let repaired = stacks(&data, &[]);
        let sum = |stacks: &BTreeMap<String, u64>| stacks.values().sum::<u64>();
        assert_eq!(sum(&recorded), sum(&repaired), "weights never change");

        // The caller of a leaf without a frame, here the only way from `main` to the leaf.
        assert_eq!(with_stack(&recorded, "main;work;leaf").0, 0);
        has_stack(&repaired, "main;~work;leaf");
        // A chain of jumps, and the caller of a leaf behind it.
        has_stack(&repaired, "main;~first;~second;~third;other");
        // Two ways: nothing is guessed.
        for stack in repaired.keys().filter(|stack| stack.ends_with(";end")) {
            assert!(
                !stack.contains("left") && !stack.contains("right"),
                "{stack}"
            );
        }
    });
}

/// Checks the stacks of `fixtures/programs/ambiguous.c`, built with these options.
#[cfg(target_arch = "x86_64")]
fn check_ambiguous(test: &str, options: &[&str]) {
    let options = [&["-momit-leaf-frame-pointer"], options].concat();
    let Some(data) = recording(test, "ambiguous.c", &options) else {
        return;
    };
    let repaired = stacks(&data, &[]);
    // Samples at the first and last instructions of functions are restored as well. What is
    // restored there has to have run, too.
    let never = [
        "never_slow",
        "never_middle",
        "never_distances",
        "never_pushed",
    ];
    for stack in repaired.keys() {
        let names = stack.split(';').map(|name| name.trim_start_matches('~'));
        for name in names {
            assert!(!never.contains(&name), "{name} never ran: {repaired:?}");
        }
        // Each of these has a second explanation.
        for leaf in ["leaf1", "leaf2", "leaf3", "leaf4", "leaf5"] {
            let is_guessed = stack.contains('~') && stack.ends_with(&format!(";{leaf}"));
            assert!(!is_guessed, "{stack}: {repaired:?}");
        }
    }
    has_stack(&repaired, "main;all;~owner;leaf6");
    has_stack(&repaired, "main;all;~wrapped;~wrap;leaf7");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_may_not_have_run_is_not_restored() {
    repeated(|| {
        check_ambiguous("pie", &[]);
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_table_of_functions_is_not_a_switch() {
    repeated(|| {
        check_ambiguous("no-pie", &["-fno-pic", "-no-pie"]);
    });
}

/// A function that was called through a pointer has made way for the next one, by unwinding rules.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_only_way_into_a_function_is_restored() {
    repeated(|| {
        let Some(data) = recording_by("dwarf", "entries", "entries.c", &[]) else {
            return;
        };
        let repaired = stacks(&data, &[]);
        // What pointers lead to is entered through a jump as well as through a call.
        for right in ["main;~entry;run;spin", "main;~allocate;raw;spin"] {
            let caller = right.rsplit(';').nth(1).unwrap();
            let ends_alike = |stack: &str| stack.ends_with(&format!(";{caller};spin"));
            let alike = repaired.iter().filter(|(stack, _)| ends_alike(stack));
            let all: u64 = alike.map(|(_, samples)| samples).sum();
            let samples = repaired.get(right).copied().unwrap_or(0);
            assert!(samples > 50 && samples == all, "{right}: {repaired:?}");
        }

        // Of two ways none is chosen. One of the two functions is missing, and no other.
        let json = proftool(&["flat", "--format", "json", "--limit", "0"], &data);
        let flat: serde_json::Value = serde_json::from_str(&json).unwrap();
        let function = |name: &str| {
            let functions = flat["functions"].as_array().unwrap().iter();
            let mut named = functions.filter(|function| function["name"] == name);
            let found = named.next()?;
            Some(["total", "total_max"].map(|key| found[key].as_u64().unwrap()))
        };
        let [of_shared, _] = function("shared").unwrap();
        assert!(of_shared > 0, "{json}");
        // What has made way was not on the stack, so that no total may be larger.
        for row in flat["functions"].as_array().unwrap() {
            assert_eq!(row["total"], row["total_max"], "{row}");
        }
    });
}

/// `walk` calls handlers through a pointer, and these call `step`, which keeps no frame: all stacks
/// show `step` next to `walk`.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_nobody_calls_is_shown_as_no_call() {
    repeated(|| {
        let Some(data) = recording("gap", "handlers.c", &[]) else {
            return;
        };
        let json = proftool(&["cycles", "--format", "json"], &data);
        let cycles: serde_json::Value = serde_json::from_str(&json).unwrap();
        let [cycle] = &cycles["cycles"].as_array().unwrap()[..] else {
            panic!("walk recurses: {cycles}");
        };
        let of = |arcs: &str, from: &str, to: &str| {
            let arcs = cycle[arcs].as_array().unwrap().iter();
            let mut found = arcs.filter(|arc| arc["from"] == from && arc["to"] == to);
            let arc = found.next()?;
            let number = |key: &str| arc[key].as_u64().unwrap();
            Some((number("weight"), number("across_gaps")))
        };
        let (weight, across_gaps) = of("arcs", "walk", "step").expect("they stand on one stack");
        assert!(weight > 0 && across_gaps == weight, "{cycles}");
        let (_, across_gaps) = of("arcs", "step", "walk").expect("step calls walk");
        assert_eq!(across_gaps, 0, "{cycles}");
        assert!(of("cut", "step", "walk").is_some(), "{cycles}");
        assert!(of("cut", "walk", "step").is_none(), "it cannot be removed");

        let text = proftool(&["cycles"], &data);
        assert!(text.contains("walk → step (frames missing)"), "{text}");
        let graph = proftool(&["graph"], &data);
        let note = "not calls (frames are missing between): walk → step";
        assert!(graph.contains(note), "{graph}");
    });
}

/// `work` calls `even` and `odd` through a pointer, and these jump to `work`.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_that_others_jump_back_to_does_not_call_itself() {
    repeated(|| {
        let Some(data) = recording("jumped", "jumped.c", &[]) else {
            return;
        };
        let json = proftool(&["cycles", "--format", "json"], &data);
        let cycles: serde_json::Value = serde_json::from_str(&json).unwrap();
        let [work] = &cycles["recursive"].as_array().unwrap()[..] else {
            panic!("work alone recurses: {cycles}");
        };
        assert_eq!(work["name"], "work");
        assert_eq!(work["only_across_gaps"], true, "{cycles}");
        assert!(work["deepest"].as_u64() > Some(4), "{cycles}");
        let text = proftool(&["cycles"], &data);
        let summary = "0 functions call themselves, 1 function recurses through missing frames";
        assert!(text.contains(summary), "{text}");
        let is_work = |line: &str| line.contains("work [") && line.ends_with("(frames missing)");
        assert!(text.lines().any(is_work), "{text}");
    });
}

/// In `astray` the frame pointer leads to the middle of `stranger`, which never runs, and from there
/// to where `stranger` would return to.
#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn a_stack_ends_where_no_call_returns_to() {
    repeated(|| {
        let Some(data) = recording("astray", "astray.c", &[]) else {
            return;
        };
        let recorded = proftool(&["export", "--to", "folded", "--no-repair"], &data);
        assert!(recorded.contains("stranger;stranger;astray "), "{recorded}");

        let args = ["export", "--to", "folded", "--unit", "samples"];
        let folded = proftool(&args, &data);
        assert!(!folded.contains("stranger"), "{folded}");
        let samples = |is: &dyn Fn(&str) -> bool| -> u64 {
            let lines = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
            let chosen = lines.filter(|(stack, _)| is(stack));
            chosen
                .map(|(_, samples)| samples.parse::<u64>().unwrap())
                .sum()
        };
        let astray = samples(&|stack| stack == "[broken stack];astray");
        assert!(astray > 20, "{folded}");
        assert_eq!(
            samples(&|stack| stack.contains("astray")),
            astray,
            "{folded}"
        );
        // What a signal has interrupted is on the stack of its handler.
        let handler = samples(&|stack| stack.contains("main;") && stack.ends_with("burn"));
        assert!(handler > 10, "{folded}");

        // They are counted once, and main may have been on them.
        let broken = samples(&|stack| stack.starts_with("[broken stack]"));
        let json = |args: &[&str]| -> serde_json::Value {
            serde_json::from_str(&proftool(args, &data)).unwrap()
        };
        let report = json(&["report", "--format", "json"]);
        let of = |key: &str| report["quality"][key]["samples"].as_u64().unwrap();
        assert_eq!(
            (of("broken"), of("contradicted"), of("cut")),
            (broken, 0, 0)
        );
        let flat = json(&["flat", "--format", "json", "--unit", "samples"]);
        let functions = flat["functions"].as_array().unwrap();
        assert!(
            functions.iter().all(|row| row["name"] != "stranger"),
            "{flat}"
        );
        let main = functions.iter().find(|row| row["name"] == "main").unwrap();
        let [total, limit] = ["total", "total_limit"].map(|key| main[key].as_u64());
        assert!(limit.unwrap() >= total.unwrap() + astray, "{main}");
    });
}

#[test]
fn the_report_shows_how_reliable_stacks_are() {
    repeated(|| {
        let Some(data) = recording("report", "frameless.c", &[]) else {
            return;
        };
        let json = proftool(&["report", "--format", "json"], &data);
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        let quality = &report["quality"];
        let of = |key: &str| quality[key]["samples"].as_u64().unwrap();
        let all = quality["stacks"].as_u64().unwrap();
        let sum: u64 = [
            "verified",
            "lacking",
            "unchecked",
            "ambiguous",
            "contradicted",
            "alone",
        ]
        .into_iter()
        .map(of)
        .sum();
        assert_eq!(sum, all, "{quality}");
        assert!(
            of("lacking") * 2 > all && of("ambiguous") * 5 > all,
            "{quality}"
        );
        assert!(of("contradicted") * 100 < all, "{quality}");

        let calls = &quality["calls"];
        assert!(calls["verified"].as_u64() > Some(0), "{quality}");
        assert!(calls["lacking"].as_u64() > Some(1), "{quality}");

        // What was put in is told of functions and arcs.
        let json = proftool(&["graph", "--format", "json"], &data);
        let graph: serde_json::Value = serde_json::from_str(&json).unwrap();
        let functions = graph["functions"].as_array().unwrap();
        let place = |name: &str| functions.iter().position(|f| f["name"] == name).unwrap();
        let work = &functions[place("work")];
        assert!(work["inferred"].as_f64().unwrap() > 0.9 * work["total"].as_f64().unwrap());
        let arcs = graph["arcs"].as_array().unwrap();
        let arc = arcs
            .iter()
            .find(|arc| arc["from"] == place("work") && arc["to"] == place("leaf"))
            .unwrap();
        assert_eq!(arc["origin"], "inferred");
        let text = proftool(&["graph", "--function", "^work$"], &data);
        assert!(text.contains("≈work"), "{text}");
    });
}

/// Options by which all functions keep frames, except those that call nothing.
const WITHOUT_LEAVES: [&str; 3] = [
    "-O2",
    "-fno-omit-frame-pointer",
    "-momit-leaf-frame-pointer",
];

/// A library whose `either` is on every way to `leaf`, which keeps no frame.
const DEFINED: &str = "\
volatile unsigned long sink;
#define ALONE __attribute__((noinline)) void
ALONE static leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
ALONE static other(unsigned long n) { sink += 2; leaf(n); }
ALONE either(unsigned long n) { if (n & 1) leaf(n); else other(n); sink += 5; }
ALONE single(unsigned long n) { leaf(n); sink += 3; }
ALONE enter(unsigned long n) { sink += 5; leaf(n); }
";

/// One that defines the same names.
const DEFINED_AGAIN: &str = "\
extern void enter(unsigned long);
static volatile unsigned long sunk;
void either(unsigned long n) { enter(n); sunk++; }
void single(unsigned long n) { enter(n); sunk++; }
";

const CALLS_BY_NAME: &str = "\
#include <time.h>
extern void either(unsigned long), single(unsigned long);
int main(void) {
    for (unsigned long i = 0; clock() < CLOCKS_PER_SEC / 2; i++) { either(20000 + (i & 1)); single(20000); }
    return 0;
}
";

/// Both libraries define what `main` calls. Whichever comes first is called, and the other one never runs.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_is_called_by_a_name_that_two_files_define_is_not_restored() {
    repeated(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("two-definitions-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        let [first, second, program] = ["libfirst.so", "libsecond.so", "program"].map(path);
        let shared = [&WITHOUT_LEAVES[..], &["-fPIC", "-shared", "-Wl,-Bsymbolic"]].concat();
        let linked = [&WITHOUT_LEAVES[..], &[first.to_str().unwrap()]].concat();
        let built = compile_text("gcc", &shared, DEFINED, &first)
            .and_then(|_| compile_text("gcc", &shared, DEFINED_AGAIN, &second))
            .and_then(|_| compile_text("gcc", &linked, CALLS_BY_NAME, &program));
        if built.is_none() {
            return;
        }
        let data = path("perf.data");
        let record = |preloaded: &str| {
            let recorded = Command::new(PROFTOOL)
                .args([
                    "record",
                    "-q",
                    "-F",
                    "1999",
                    "-e",
                    "cpu-clock:u",
                    "-g",
                    "fp,0",
                    "-o",
                ])
                .args([&data, &program])
                .env("LD_PRELOAD", preloaded)
                .output()
                .unwrap();
            if !recorded.status.success() {
                skipped(&format!("cannot record: {recorded:?}"));
                return None;
            }
            Some(())
        };
        let restored = || {
            let stacks = stacks(&data, &[]);
            let at_leaf = stacks.iter().filter(|(stack, _)| stack.ends_with(";leaf"));
            let is_put_in = |stack: &str| stack.contains("~either") || stack.contains("~single");
            let put_in = at_leaf.clone().filter(|(stack, _)| is_put_in(stack));
            let sum = |(_, weight): (&String, &u64)| *weight;
            (put_in.map(sum).sum::<u64>(), at_leaf.map(sum).sum::<u64>())
        };
        if record("").is_none() {
            return;
        }
        let (put_in, all) = restored();
        assert!(
            at_least(put_in, all, 98.0) && all > 100,
            "{put_in} of {all}"
        );
        record(second.to_str().unwrap()).unwrap();
        let (put_in, all) = restored();
        assert!(put_in == 0 && all > 100, "{put_in} of {all}");
        // Of what cannot be read, it is not known that it does not define them.
        std::fs::remove_file(&second).unwrap();
        let (put_in, all) = restored();
        assert!(put_in == 0 && all > 100, "{put_in} of {all}");
    });
}

/// `either` calls `leaf`, or `other`, which makes way for it: half of the time each.
const MADE_WAY: &str = "\
#include <time.h>
volatile unsigned long sink;
#define ALONE __attribute__((noinline)) static void
ALONE leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
ALONE other(unsigned long n) { sink += 2; leaf(n); }
ALONE either(unsigned long n) { if (n & 1) leaf(n); else other(n); sink += 5; }
int main(void) {
    for (unsigned long i = 0; clock() < CLOCKS_PER_SEC / 2; i++) either(20000 + (i & 1));
    return 0;
}
";

/// `either` was on the stack; whether `other` was, only a run can tell.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_may_have_made_way_behind_a_restored_function_is_a_gap() {
    repeated(|| {
        let Some(stacks) = stacks_of("made-way", ("gcc", MADE_WAY), &WITHOUT_LEAVES, "fp,0") else {
            return;
        };
        has_stack(&stacks, "main;~either;[frames missing];leaf");
    });
}

/// Signals interrupt `busy`, which `work` calls. Their handler runs for longer than the time between two samples,
/// so that each has some, and sets the timer anew, so that the program always goes on.
const INTERRUPTED: &str = "\
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#define ALONE __attribute__((noinline)) static void
volatile unsigned long sink;
ALONE handle(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
ALONE again(void) {
    struct itimerval once = {{0, 0}, {0, 1300}};
    setitimer(ITIMER_REAL, &once, 0);
}
ALONE handler(int number) { handle(1000000); sink += number; again(); }
ALONE busy(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink ^= i; }
ALONE work(void) { busy(30000); sink++; }
int main(void) {
    struct sigaction action = {0};
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, 0);
    again();
    while (clock() < CLOCKS_PER_SEC / 2) work();
    return 0;
}
";

/// `main` did not call what a signal handler returns to, and `work` was interrupted in between.
#[test]
#[cfg(target_arch = "x86_64")]
fn frames_are_missing_between_a_signal_and_the_frame_behind_what_it_interrupted() {
    repeated(|| {
        let Some(stacks) = stacks_of("interrupted", ("gcc", INTERRUPTED), &WITHOUT_LEAVES, "fp,0")
        else {
            return;
        };
        let through = |part: &str| -> u64 {
            let stacks = stacks.iter().filter(|(stack, _)| stack.contains(part));
            stacks.map(|(_, weight)| weight).sum()
        };
        let all = through(";__restore_rt;");
        assert!(all > 50, "{stacks:?}");
        assert_eq!(through("[frames missing];__restore_rt;"), all, "{stacks:?}");
    });
}

/// The same where the unwinder is part of the program and has no name: what it is, its unwind information
/// tells.
#[test]
#[cfg(target_arch = "x86_64")]
fn an_unwinder_without_a_name_was_not_called_by_a_handler() {
    repeated(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let program = folder.join(format!("throws-static-{}", std::process::id()));
        let data = folder.join(format!("throws-static-{}.data", std::process::id()));
        if compile_text("g++", &["-O2", "-static"], THROWS, &program).is_none() {
            return;
        }
        let symbols = Command::new("nm").arg(&program).output().unwrap();
        let symbols = String::from_utf8(symbols.stdout).unwrap();
        let nameless = |wanted: &str| {
            let mut lines = symbols.lines();
            let line = lines.find(|line| line.ends_with(wanted)).unwrap();
            format!("sub_{}", line[..16].trim_start_matches('0'))
        };
        let stripped = Command::new("strip").arg(&program).status().unwrap();
        assert!(stripped.success());
        let Some(data) = recorded("dwarf", &program, data) else {
            return;
        };
        let stacks = stacks(&data, &[]);
        let raising = nameless(" _Unwind_RaiseException");
        let catching = format!("{};[frames missing];{raising}", nameless(" _Z7catcheri"));
        let counted = |of: &str| -> u64 {
            let such = stacks.iter().filter(|(stack, _)| stack.contains(of));
            such.map(|(_, weight)| weight).sum()
        };
        assert!(counted(&raising) > 100, "{stacks:?}");
        assert_eq!(counted(&catching), 0, "{stacks:?}");
    });
}

/// Where no stacks were recorded, none ends too early.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_recording_without_stacks_has_no_incomplete_ones() {
    repeated(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let program = folder.join(format!("stackless-{}", std::process::id()));
        let data = folder.join(format!("stackless-{}.data", std::process::id()));
        if compile_text("gcc", &["-O2", "-pthread"], NESTED, &program).is_none() {
            return;
        }
        let Some(data) = recorded("none", &program, data) else {
            return;
        };
        let stacks = stacks(&data, &[]);
        let all: u64 = stacks.values().sum();
        let alone = stacks.iter().filter(|(stack, _)| **stack == "inner");
        let alone: u64 = alone.map(|(_, weight)| weight).sum();
        assert!(all > 100 && at_least(alone, all, 90.0), "{stacks:?}");
        let is_cut = |stack: &str| stack.contains("[broken stack]");
        assert!(!stacks.keys().any(|stack| is_cut(stack)), "{stacks:?}");
    });
}
