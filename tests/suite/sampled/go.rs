//! Stacks of Go programs.

use std::fs;
use std::process::Command;

use crate::support::go::build;
use crate::support::record::{Room, can_record, stderr};
use crate::support::repeated::repeated;
use crate::support::shares::at_least;
use crate::support::{directory, ran, skipped};

/// Records a program with these stacks.
fn record(room: &Room, file: &str, stacks: &str, program: &str) {
    let how = ["-o", file, "-e", "cpu-clock", "-F", "997", "-g", stacks];
    let output = room.record(&[&how[..], &[program]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn stacks_of_stripped_go_programs_are_whole_and_have_the_callers_of_leaves() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let folder = directory("go-stacks");
        let room = Room::new();
        for (name, flags) in [
            ("stripped", &["-ldflags=-s -w"][..]),
            ("stripped-pie", &["-ldflags=-s -w", "-buildmode=pie"]),
            ("whole", &[]),
        ] {
            let Some(program) = build(&folder, name, flags) else {
                return;
            };
            let file = folder.join(format!("{name}.data"));
            let (file, program) = (file.to_str().unwrap(), program.to_str().unwrap());
            let output = room.record(&["-o", file, "-e", "cpu-clock", "-F", "997", program]);
            let said = stderr(&output);
            assert!(output.status.success(), "{said}");
            assert!(said.contains("call stacks: frame pointers"), "{said}");
            let folded = Command::new(env!("CARGO_BIN_EXE_proftool"))
                .args(["export", "--to", "folded", "--no-repair", file])
                .env("PROFTOOL_CONFIG", "")
                .output()
                .unwrap();
            assert!(folded.status.success(), "{}", stderr(&folded));
            let folded = String::from_utf8(folded.stdout).unwrap();
            let (mut all, mut right) = (0, 0);
            for line in folded.lines() {
                let (stack, count) = line.rsplit_once(' ').unwrap();
                let Some(at) = stack.find("main.leaf") else {
                    continue;
                };
                let count: u64 = count.parse().unwrap();
                all += count;
                let outer = &stack[..at];
                let is_whole = ["main.main;", "main.main.func1;"].iter().any(|main| {
                    outer.starts_with("runtime.goexit")
                        && outer.ends_with(&format!("{main}main.hot;main.(*T).Spin;"))
                });
                right += if is_whole { count } else { 0 };
            }
            if all < 20 {
                skipped(&format!("{name}: only {all} samples"));
                continue;
            }
            assert!(
                at_least(right, all, 99.0),
                "{name}: {right} of {all}\n{folded}"
            );
        }
    });
}

/// A pointer to nothing is read in `fails`, and what was deferred spends the time.
const PANIC: &str = r#"package main

type T struct{ next *T; n int }

//go:noinline
func work(k int) int {
	s := 0
	for i := 0; i < k; i++ {
		s = s*31 + i
	}
	return s
}

//go:noinline
func fails(t *T) (n int) {
	defer func() {
		recover()
		n = work(300000000)
	}()
	return t.next.n
}

func main() {
	if fails(&T{}) == 1 {
		panic("unlikely")
	}
}
"#;

#[test]
fn what_runs_in_a_panic_has_the_function_on_its_stack_that_failed() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let folder = directory("go-panic");
        let source = folder.join("panic.go");
        fs::write(&source, PANIC).unwrap();
        let program = folder.join("panic");
        let mut go = Command::new("go");
        go.args(["build", "-o"]).arg(&program).arg(&source);
        go.env("GOTOOLCHAIN", "local")
            .env("GOCACHE", folder.join("cache"))
            .env("GOFLAGS", "");
        if ran(&mut go).is_none() {
            return;
        }
        let room = Room::new();
        for stacks in ["fp", "fp,0"] {
            let file = folder.join(format!("{stacks}.data"));
            let (file, program) = (file.to_str().unwrap(), program.to_str().unwrap());
            record(&room, file, stacks, program);
            let shown = |command: &[&str]| {
                let mut proftool = Command::new(env!("CARGO_BIN_EXE_proftool"));
                let output = proftool
                    .args(command)
                    .arg(file)
                    .env("PROFTOOL_CONFIG", "")
                    .output();
                String::from_utf8(output.unwrap().stdout).unwrap()
            };
            let folded = shown(&["export", "--to", "folded", "--unit", "samples"]);
            let (mut all, mut whole) = (0, 0);
            for line in folded.lines().filter(|line| line.contains("main.work ")) {
                let (stack, count) = line.rsplit_once(' ').unwrap();
                let count: u64 = count.parse().unwrap();
                all += count;
                let has_failed = stack.contains("main.main;main.fails;runtime.sigpanic;");
                whole += if has_failed { count } else { 0 };
            }
            assert!(all > 20 && at_least(whole, all, 95.0), "{stacks}: {folded}");
            let report: serde_json::Value =
                serde_json::from_str(&shown(&["report", "--format", "json"])).unwrap();
            let contradicted = report["quality"]["contradicted"]["samples"].as_u64();
            assert_eq!(contradicted, Some(0), "{stacks}: {report}");
        }
    });
}

/// C code without frame pointers that saves a number where they would be, called by Go.
const CGO: &str = r#"package main

// __attribute__((noinline)) static double leaf(int n) {
//   double sum = 0;
//   for (int i = 1; i < n; i++)
//     sum += 1.0 / i;
//   return sum;
// }
// double work(int n) {
//   double sum = 0;
//   for (int i = 0; i < n; i++)
//     sum += leaf(1000000 + i);
//   return sum;
// }
import "C"

func main() {
	if C.work(400) < 0 {
		panic("unlikely")
	}
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn c_code_that_go_calls_is_on_another_stack_that_frame_pointers_lead_to() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let folder = directory("go-cgo");
        fs::write(folder.join("main.go"), CGO).unwrap();
        let room = Room::new();
        for (name, flags, stacks) in [
            ("without", "-O2 -fomit-frame-pointer", "dwarf"),
            ("with", "-O2 -fno-omit-frame-pointer", "fp"),
        ] {
            let program = folder.join(name);
            let mut go = Command::new("go");
            go.current_dir(&folder).args(["build", "-o"]).arg(&program);
            go.arg("main.go")
                .env("CGO_ENABLED", "1")
                .env("CGO_CFLAGS", flags);
            go.env("GOTOOLCHAIN", "local").env("GOFLAGS", "");
            if ran(go.env("GOCACHE", folder.join("cache"))).is_none() {
                return;
            }
            let file = folder.join(format!("{name}.data"));
            let (file, program) = (file.to_str().unwrap(), program.to_str().unwrap());
            record(&room, file, stacks, program);
            let mut proftool = Command::new(env!("CARGO_BIN_EXE_proftool"));
            let args = ["export", "--to", "folded", "--unit", "samples", file];
            let output = proftool
                .args(args)
                .env("PROFTOOL_CONFIG", "")
                .output()
                .unwrap();
            let said = stderr(&output);
            let folded = String::from_utf8(output.stdout).unwrap();
            let (mut all, mut right, mut clones) = (0, 0, 0);
            for line in folded.lines() {
                let (stack, count) = line.rsplit_once(' ').unwrap();
                let count: u64 = count.parse().unwrap();
                // glibc has no unwind information for the end of clone3, by which Go starts threads.
                // Samples of that are rare.
                if name == "without" && stack.starts_with("[broken stack];") {
                    let innermost = stack.split(';').nth(1).unwrap();
                    assert!(innermost.contains("clone"), "{name}: {stack}");
                    clones += count;
                }
                if !stack.ends_with(";leaf") {
                    continue;
                }
                all += count;
                let begins = match name {
                    "with" => "runtime.goexit",
                    _ => "[truncated];runtime.asmcgocall",
                };
                right += if stack.starts_with(begins) { count } else { 0 };
            }
            assert!(all > 20 && at_least(right, all, 95.0), "{name}: {folded}");
            let is_elsewhere = said.contains("on another stack, of which there is no copy");
            assert_eq!(is_elsewhere, name == "without", "{said}");
            let is_unruled = said.contains("no unwind information");
            assert!(!is_unruled || clones > 0, "{said}");
        }
    });
}
