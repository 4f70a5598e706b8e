//! Go programs: the names of stripped ones, held against `go tool nm`, and their stacks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proftool::base::Svma;
use proftool::binary::{Binary, SymbolSource};
use proftool::unwind::{Cfa, Rules};

use crate::record::{Room, can_record, stderr};
use crate::support::{directory, ran, skipped};

/// A program whose innermost function has no frame, so that frame pointers lose its caller.
const SOURCE: &str = r#"package main

import "os"

type T struct{ n int }

//go:noinline
func (t *T) Spin(k int) int {
	s := 0
	for i := 0; i < k; i++ {
		s = leaf(s, i)
	}
	t.n += s
	return s
}

//go:noinline
func leaf(a, b int) int {
	for j := 0; j < 50; j++ {
		a = a*31 + b ^ j
	}
	return a
}

func Map[A any, B any](a []A, f func(A) B) []B {
	var out []B
	for _, x := range a {
		out = append(out, f(x))
	}
	return out
}

//go:noinline
func hot(n int) int {
	t := &T{}
	r := 0
	for i := 0; i < n; i++ {
		r += t.Spin(1000)
	}
	return r
}

func main() {
	c := make(chan int)
	go func() { c <- hot(1500) }()
	r := hot(3000) + <-c
	if len(Map([]int{r}, func(x int) string { return string(rune(x)) })) > 1 {
		os.Exit(3)
	}
}
"#;

/// Builds the program; `None`, and the test reports that it is skipped, where Go is missing.
fn build(folder: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    fs::write(folder.join("main.go"), SOURCE).unwrap();
    let program = folder.join(name);
    let mut go = Command::new("go");
    go.current_dir(folder).arg("build").arg("-o").arg(&program);
    go.args(flags).arg("main.go").env("GOTOOLCHAIN", "local");
    go.env("GOCACHE", folder.join("cache")).env("GOFLAGS", "");
    ran(&mut go).map(|_| program)
}

fn strip(program: &Path) -> Option<PathBuf> {
    let stripped = program.with_extension("stripped");
    let mut strip = Command::new("strip");
    ran(strip.arg("-o").arg(&stripped).arg(program)).map(|_| stripped)
}

/// The names of functions by address, by `go tool nm`, some of them several.
fn by_nm(program: &Path) -> Option<BTreeMap<u64, Vec<String>>> {
    let output = ran(Command::new("go").args(["tool", "nm"]).arg(program))?;
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.trim_start().splitn(3, ' ');
        let (Some(address), Some("T" | "t"), Some(name)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).unwrap();
        names.entry(address).or_default().push(name.to_owned());
    }
    Some(names)
}

/// What the table of functions has of a name: no mark of how arguments are passed, and three dots
/// for what is in brackets. It has the middle dot of local types, for which `go tool nm` has a dot.
fn in_table(name: &str) -> String {
    let name = name.strip_suffix(".abi0").unwrap_or(name);
    match (name.find('['), name.rfind(']')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}[...]{}", &name[..open], &name[close + 1..])
        }
        _ => name.to_owned(),
    }
}

/// Holds the functions of a stripped program against the symbols of the same that is not.
fn compare(stripped: &Path, symbols: &BTreeMap<u64, Vec<String>>) -> usize {
    let binary = Binary::open(stripped).unwrap();
    assert_eq!(binary.problems(), [""; 0]);
    let functions = binary.functions().iter();
    let go: BTreeMap<u64, String> = functions
        .filter(|function| function.source == SymbolSource::Go)
        .map(|f| (f.start.0, binary.function_name(f).unwrap().into_owned()))
        .collect();
    for (address, name) in &go {
        let known = &symbols[address];
        let plain = name.replace('·', ".");
        let is_there = known
            .iter()
            .any(|known| known == name || in_table(known) == plain);
        assert!(
            is_there,
            "{address:#x}: {name}, and by its symbols {known:?}"
        );
    }
    // The end of the code is no function.
    let is_function = |name: &&String| !["runtime.etext", "runtime.text"].contains(&name.as_str());
    for (address, names) in symbols {
        let missing = names
            .iter()
            .find(is_function)
            .filter(|_| !go.contains_key(address));
        assert_eq!(missing, None, "at {address:#x}");
    }
    go.len()
}

/// Records a program with these stacks.
fn record(room: &Room, file: &str, stacks: &str, program: &str) {
    let how = ["-o", file, "-e", "cpu-clock", "-F", "997", "-g", stacks];
    let output = room.record(&[&how[..], &[program]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_stripped_go_program_has_the_names_that_its_symbols_had() {
    let folder = directory("go-names");
    for (name, flags) in [("fixed", &[][..]), ("moved", &["-buildmode=pie"])] {
        let Some(program) = build(&folder, name, flags) else {
            return;
        };
        let Some(symbols) = by_nm(&program) else {
            return;
        };
        let mut stripped = Vec::from_iter(strip(&program));
        let flags = [flags, &["-ldflags=-s -w"]].concat();
        stripped.extend(build(&folder, &format!("{name}-s"), &flags));
        for stripped in stripped {
            let compared = compare(&stripped, &symbols);
            assert!(compared > 1000, "{}: {compared}", stripped.display());
        }
    }
}

#[test]
fn the_stack_grows_in_a_go_program_as_its_debug_frames_say() {
    let folder = directory("go-rows");
    let Some(program) = build(&folder, "rows", &["-ldflags=-compressdwarf=false"]) else {
        return;
    };
    let mut readelf = Command::new("readelf");
    let Some(output) = ran(readelf.arg("--debug-dump=frames-interp").arg(&program)) else {
        return;
    };
    let Some(stripped) = strip(&program) else {
        return;
    };
    let rules = Rules::new(Arc::new(Binary::open(&stripped).unwrap())).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut compared, mut without) = (0, 0);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), Some(cfa)) = (words.next(), words.next()) else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).ok();
        let offset = cfa
            .strip_prefix("rsp+")
            .and_then(|offset| offset.parse().ok());
        let (Some(address), Some(offset), 16) = (address, offset, line.find(' ').unwrap_or(0))
        else {
            continue;
        };
        match rules.row(Svma(address)) {
            None => without += 1,
            Some(row) => {
                compared += 1;
                let register = 7;
                assert_eq!(row.cfa, Cfa::Register { register, offset }, "{address:#x}");
            }
        }
    }
    assert!(compared > 3000, "{compared}");
    // Functions that change to another stack, and the padding behind some others.
    assert!(without * 20 < compared, "{without} of {compared}");
}

#[test]
fn stacks_of_stripped_go_programs_are_whole_and_have_the_callers_of_leaves() {
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
            right * 100 >= all * 99,
            "{name}: {right} of {all}\n{folded}"
        );
    }
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
        assert!(all > 20 && whole * 100 >= all * 95, "{stacks}: {folded}");
        let report: serde_json::Value =
            serde_json::from_str(&shown(&["report", "--format", "json"])).unwrap();
        let contradicted = report["quality"]["contradicted"]["samples"].as_u64();
        assert_eq!(contradicted, Some(0), "{stacks}: {report}");
    }
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
        assert!(all > 20 && right * 100 >= all * 95, "{name}: {folded}");
        let is_elsewhere = said.contains("on another stack, of which there is no copy");
        assert_eq!(is_elsewhere, name == "without", "{said}");
        let is_unruled = said.contains("no unwind information");
        assert!(!is_unruled || clones > 0, "{said}");
    }
}
