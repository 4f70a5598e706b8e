//! `record --counts`, on programs whose calls are known by construction.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::record::{PROFTOOL, Room, can_record, is_root, perf, stderr};
use crate::support::record_calls::{RUNS, Running, TRACED, answer, arc, built, counted, graph};
use crate::support::skipped;

const CALLS: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noipa))
NOINLINE int leaf(int x) { return x * 3 + 1; }
NOINLINE int middle(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
NOINLINE int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
NOINLINE int never(int n) { return leaf(n); }
NOINLINE int shared(int x) { return x + 1; }
NOINLINE int through(int x) { return x - 1; }
NOINLINE int both(int (*f)(int), int x) { return f(x) + through(x); }
NOINLINE int in_handler(int x) { return x; }
static void handler(int sig) { in_handler(sig); }
static jmp_buf back;
NOINLINE int leaps(int n) { if (n == 0) longjmp(back, 1); return leaps(n - 1) + 1; }
static void *work(void *arg) { long s = 0; for (int i = 0; i < 300000; i++) s += shared(i); return (void *)s; }
int main(int argc, char **argv) {
    int s = 0, status;
    (void)argv;
    for (int i = 0; i < 100; i++) s += middle(50);
    s += fib(15);
    if (argc > 5) s += never(s);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 3; i++) {
        fflush(stdout);
        if (!fork()) { middle(7); _exit(0); }
        wait(&status);
    }
    s += both(through, 4) + both(leaf, 5);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 20; i++) raise(SIGUSR1);
    for (volatile int i = 0; i < 5; i++) if (!setjmp(back)) leaps(10);
    printf("%d\n", s);
    return 7;
}
"#;

/// Arc, number of calls, and whether there may have been more.
const TRUTH: [(&str, &str, u64, bool); 9] = [
    ("main", "middle", 103, false),
    ("middle", "leaf", 5021, false),
    ("main", "fib", 1, false),
    ("fib", "fib", 1972, false),
    ("work", "shared", 1_200_000, false),
    ("handler", "in_handler", 20, false),
    ("main", "leaps", 5, false),
    ("leaps", "leaps", 50, false),
    // Once of two times it is called through a pointer as well.
    ("both", "through", 2, true),
];

fn check(graph: &Value) {
    for (from, to, calls, is_least) in TRUTH {
        let found = arc(graph, from, to);
        let found = found.map(|arc| (arc["calls"].as_u64(), arc["calls_at_least"] == true));
        assert_eq!(found, Some((Some(calls), is_least)), "{from} -> {to}");
    }
    assert!(
        arc(graph, "never", "leaf").is_none_or(|arc| arc["calls"] == 0 || arc["calls"].is_null())
    );
    // Who is called through a pointer only is not counted.
    let by_pointer = arc(graph, "both", "leaf");
    assert!(
        by_pointer.is_none_or(|arc| arc["calls"].is_null()),
        "{by_pointer:?}"
    );
}

#[test]
fn every_call_is_counted_in_all_kinds_of_programs() {
    if !can_record() {
        return;
    }
    for (name, flags) in [
        ("pie", &[][..]),
        ("fixed", &["-no-pie"]),
        ("static", &["-static"]),
        ("static-pie", &["-static-pie"]),
        ("got", &["-fno-plt"]),
        ("cet", &["-fcf-protection=full"]),
    ] {
        let room = Room::new();
        let Some(program) = built(&room, CALLS, flags, name) else {
            return;
        };
        let plain = Command::new(&program).output().unwrap();
        let program = program.to_str().unwrap();
        let counted = room.record(&[
            "--counts",
            "-F",
            "4999",
            "-e",
            "cpu-clock",
            "-o",
            "out.data",
            "--",
            program,
        ]);
        assert_eq!(
            counted.status.code(),
            Some(7),
            "{name}: {}",
            stderr(&counted)
        );
        assert_eq!(counted.stdout, plain.stdout);
        check(&graph(&room, &[]));
    }
}

#[test]
fn a_count_is_a_lower_bound_if_code_that_was_never_seen_may_call() {
    const HOPS: &str = r#"
    __attribute__((noipa)) int goal(int x) { return x * 3; }
    __attribute__((noipa)) int hop(int x) { return goal(x + 1); }
    int main(void) {
        int (*volatile pointer)(int) = hop;
        int sum = 0;
        for (int i = 0; i < 3; i++) sum += goal(i);
        for (int i = 0; i < 5; i++) sum += pointer(i);
        return sum == 0;
    }
    "#;
    if !can_record() {
        return;
    }
    let room = Room::new();
    // A jump of two bytes leads from hop to goal, which is not counted.
    let flags = ["-foptimize-sibling-calls"];
    let Some(program) = built(&room, HOPS, &flags, "hops") else {
        return;
    };
    let output = counted(&room, &[], &[program.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let graph = graph(&room, &["--no-inline"]);
    assert!(arc(&graph, "hop", "goal").is_none(), "{graph}");
    let mut functions = graph["functions"].as_array().unwrap().iter();
    let goal = functions
        .find(|function| function["name"] == "goal")
        .unwrap();
    assert_eq!(goal["calls"], 3, "{goal}");
    assert_eq!(goal["calls_at_least"], true, "{goal}");
}

#[test]
fn a_count_is_a_lower_bound_if_code_may_compute_the_address() {
    const TABLE: &str = r#"
    #define NOIPA __attribute__((noipa))
    NOIPA int one(int x) { return x + 1; }
    NOIPA int two(int x) { return x + 2; }
    NOIPA int sure(int x) { return x * 3; }
    extern const int table[] __attribute__((visibility("hidden")));
    __asm__(".section .rodata\n.balign 4\ntable: .long one - " BASE ", two - " BASE "\n.text\n");
    int main(void) {
        int sum = 0;
        for (int i = 0; i < 1000; i++) sum += ((int (*)(int))(FROM + table[i % 2]))(i);
        for (int i = 0; i < 7; i++) sum += one(i) + sure(i);
        return sum == 0;
    }
    "#;
    if !can_record() {
        return;
    }
    let of_table = ["-DBASE=\"table\"", "-DFROM=(char *)table"];
    let of_words = ["-DBASE=\".\"", "-DFROM=(char *)&table[i % 2]"];
    let short = ["-DBASE=\"0\"", "-DFROM=(long)"];
    let fixed = ["-no-pie", "-fno-pie"];
    for flags in [
        &of_table[..],
        &of_words,
        &[of_table, fixed].concat(),
        &[short, fixed].concat(),
    ] {
        let room = Room::new();
        let Some(program) = built(&room, TABLE, flags, "prog") else {
            return;
        };
        let output = counted(&room, &[], &[program.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        let graph = graph(&room, &["--no-inline"]);
        for (name, is_least) in [("one", true), ("sure", false)] {
            let mut functions = graph["functions"].as_array().unwrap().iter();
            let function = functions.find(|function| function["name"] == name).unwrap();
            assert_eq!(function["calls"], 7, "{flags:?}: {function}");
            let at_least = function["calls_at_least"] == true;
            assert_eq!(at_least, is_least, "{flags:?}: {function}");
            let arc = arc(&graph, "main", name).unwrap();
            assert_eq!(arc["calls_at_least"] == true, is_least, "{flags:?}: {arc}");
        }
    }
}

#[test]
fn an_ordinary_user_may_count() {
    if !can_record() || !is_root() {
        return;
    }
    let room = Room::new();
    let Some(program) = built(&room, CALLS, &[], "prog") else {
        return;
    };
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", PROFTOOL]);
    command.args([
        "record",
        "--counts",
        "-e",
        "cpu-clock:u",
        "-o",
        "out.data",
        "--",
    ]);
    let output = command
        .arg(program)
        .current_dir(&room.0)
        .env("HOME", "/")
        .output();
    let output = output.unwrap();
    if stderr(&output).contains("does not let this user record") {
        return skipped("an ordinary user may not record here");
    }
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    check(&graph(&room, &[]));
}

#[test]
fn perf_reads_a_recording_with_counts() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(program) = built(&room, CALLS, &[], "prog") else {
        return;
    };
    let path = room.path("out.data");
    room.record(&[
        "--counts",
        "-F",
        "4999",
        "-e",
        "cpu-clock",
        "-o",
        "out.data",
        "--",
        program.to_str().unwrap(),
    ]);
    let Some(text) = perf(&["script", "-i", path.to_str().unwrap(), "--header"]) else {
        return;
    };
    assert!(text.contains("# cmdline"), "{text}");
}

#[test]
fn a_command_that_cannot_be_run_is_reported_as_without_counts() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    fs::write(room.path("text"), "not a program").unwrap();
    for command in ["./missing", "./text", "true"] {
        let plain = room.record(&["-q", "-e", "cpu-clock", "-o", "a.data", "--", command]);
        let counted = room.record(&[
            "-q",
            "--counts",
            "-e",
            "cpu-clock",
            "-o",
            "b.data",
            "--",
            command,
        ]);
        assert_eq!(
            plain.status.code(),
            counted.status.code(),
            "{}",
            stderr(&counted)
        );
    }
    let output = room.record(&["--counts", "-a"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_process_that_runs_counts_for_a_while_and_is_as_before() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(program) = built(&room, RUNS, &[], "prog") else {
        return;
    };
    let mut process = Running::start(&mut Command::new(program));
    let options = ["--counts", "--counts-limit", "none", "-e", "cpu-clock"];
    let options = [&options[..], &["-d", "1", "-o", "out.data"]].concat();
    let output = room.record(&[&options[..], &["-p", &process.pid()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(process.line_at_end(), "as before");
    assert_eq!(process.end(), Some(9));
    let graph = graph(&room, &[]);
    let calls = |from, to| arc(&graph, from, to).unwrap()["calls"].as_u64().unwrap();
    let (outer, inner) = (calls("work", "middle"), calls("middle", "leaf"));
    assert!(outer > 1000, "{outer}");
    // Two threads may each be between the calls, when it begins and when it ends.
    assert!(inner.abs_diff(2 * outer) <= 8, "{outer}, {inner}");
}

#[test]
fn views_have_the_calls_and_filters_leave_them_out() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let text = "__attribute__((noipa)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n\
        __attribute__((noipa)) long twice(long n) { return fib(n) + fib(n); }\n\
        int main(void) { return twice(30) == 0; }\n";
    let Some(program) = built(&room, text, &[], "prog") else {
        return;
    };
    let program = program.to_str().unwrap();
    let options = [
        "--counts",
        "-F",
        "4999",
        "-e",
        "cpu-clock:u",
        "-o",
        "out.data",
        "--",
        program,
    ];
    room.record(&options);
    // fib(30) is called 2 × 1346269 − 1 times for each call from outside.
    let flat = answer(&room, &["flat", "out.data", "--format", "json"]);
    let flat: Value = serde_json::from_slice(&flat.stdout).unwrap();
    let functions = flat["functions"].as_array().unwrap();
    let fib = functions.iter().find(|it| it["name"] == "fib").unwrap();
    assert_eq!(
        (&fib["calls"], &fib["recursive_calls"]),
        (&2.into(), &5_385_072.into())
    );
    assert_eq!(fib["calls_at_least"], false);
    let (own, each) = (
        fib["self"].as_f64().unwrap(),
        fib["self_per_call"].as_f64().unwrap(),
    );
    assert!((own / 5_385_074.0 - each).abs() < 1e-6);
    // main is called by code that was not counted.
    let main = functions.iter().find(|it| it["name"] == "main").unwrap();
    assert!(
        main["calls"].is_null() && main["self_per_call"].is_null(),
        "{main}"
    );
    let text = answer(&room, &["flat", "out.data"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("2+5,385,072"), "{text}");
    let graph = answer(&room, &["graph", "out.data", "--function", "fib"]);
    let graph = String::from_utf8(graph.stdout).unwrap();
    assert!(
        graph.contains("2/2") && graph.contains("5385072"),
        "{graph}"
    );
    let annotated = answer(&room, &["export", "out.data", "--to", "callgrind"]);
    let annotated = String::from_utf8(annotated.stdout).unwrap();
    assert!(
        annotated.lines().any(|line| line.starts_with("calls=2 ")),
        "{annotated}"
    );
    for filter in [["--time", "0..1"], ["--focus", "fib"], ["--comm", "prog"]] {
        let output = answer(
            &room,
            &[&["flat", "out.data", "--format", "json"], &filter[..]].concat(),
        );
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(!text.contains("recursive_calls"), "{filter:?}: {text}");
        assert!(
            stderr(&output).contains("call counts are not shown"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn programs_that_are_started_by_exec_are_reported() {
    if !can_record() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let room = Room::new();
    let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    room.record(&[
        "--counts",
        "-e",
        "cpu-clock",
        "-o",
        "out.data",
        "--",
        "env",
        "sh",
        "-c",
        burn,
    ]);
    let output = answer(&room, &["report", "out.data"]);
    assert!(
        stderr(&output).contains("1 program started by exec"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn counts_of_a_program_that_executes_itself_uncounted_are_lower_bounds() {
    const AGAIN: &str = r#"
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noipa)) int unit(int x) { return x + 1; }
    int main(int count, char **words) {
        int sum = 0;
        for (int i = 0; i < 7; i++) sum += unit(i);
        if (count > 1) return sum == 0;
        if (fork() == 0) {
            for (int i = 0; i < 5; i++) sum += unit(i);
            execl(words[0], words[0], "again", (char *)0);
        }
        wait(0);
        return sum == 0;
    }
    "#;
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(program) = built(&room, AGAIN, &[], "again") else {
        return;
    };
    let program = program.to_str().unwrap();
    for (options, calls, is_least) in [(&[][..], 12, true), (&["--follow-exec"], 19, false)] {
        let output = counted(&room, options, &[program]);
        assert!(output.status.success(), "{}", stderr(&output));
        let graph = graph(&room, &["--no-inline"]);
        let mut functions = graph["functions"].as_array().unwrap().iter();
        let unit = functions
            .find(|function| function["name"] == "unit")
            .unwrap();
        let found = (unit["calls"].as_u64(), unit["calls_at_least"] == true);
        assert_eq!(found, (Some(calls), is_least), "{options:?}: {unit}");
        let arc = arc(&graph, "main", "unit").unwrap();
        assert_eq!(
            arc["calls_at_least"] == true,
            is_least,
            "{options:?}: {arc}"
        );
    }
}

#[test]
fn what_is_counted_and_took_no_time_is_listed_and_has_its_callers() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let text = format!("{TRACED}int main(void) {{ return many(7) != 7; }}");
    if built(&room, &text, &[], "app").is_none() {
        return;
    }
    let output = counted(&room, &["-F", "49"], &["./app"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let flat = answer(
        &room,
        &["flat", "out.data", "--format", "json", "--limit", "0"],
    );
    let flat: Value = serde_json::from_slice(&flat.stdout).unwrap();
    let rows = flat["functions"].as_array().unwrap();
    let leaf = rows.iter().find(|row| row["name"] == "leaf").unwrap();
    assert_eq!((&leaf["calls"], &leaf["self"]), (&7.into(), &0.into()));
    let detail = answer(&room, &["detail", "leaf", "out.data", "--format", "json"]);
    let detail: Value = serde_json::from_slice(&detail.stdout).unwrap();
    let caller = &detail["callers"][0];
    assert_eq!(
        (&caller["name"], &caller["calls"]),
        (&"many".into(), &7.into())
    );
}

/// `again` jumps to its own start, by which it is entered without a counted call.
const SELF_JUMP: &str = r#"
void again(int n), once(int n);
__asm__(".text\n.globl again\n.type again, @function\nagain: test %edi, %edi\n jle 1f\n dec %edi\n"
        " jmp again\n1: ret\n.size again, .-again\n"
        ".globl once\n.type once, @function\nonce: dec %edi\n2: dec %edi\n jg 2b\n ret\n.size once, .-once\n");
int main(void) { for (volatile int i = 0; i < 10; i++) { again(7); once(7); } return 0; }
"#;

#[test]
fn a_jump_to_the_own_start_makes_a_count_a_lower_bound() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(program) = built(&room, SELF_JUMP, &[], "program") else {
        return;
    };
    counted(&room, &[], &[program.to_str().unwrap()]);
    let graph = graph(&room, &[]);
    let functions = graph["functions"].as_array().unwrap();
    for (name, is_least) in [("again", true), ("once", false)] {
        let function = functions.iter().find(|it| it["name"] == name).unwrap();
        assert_eq!(function["calls"], 10, "{function}");
        assert_eq!(function["calls_at_least"] == true, is_least, "{function}");
        let arc = arc(&graph, "main", name).unwrap();
        assert_eq!(arc["calls"], 10, "{arc}");
        assert_ne!(arc["calls_at_least"], true, "{arc}");
    }
}
