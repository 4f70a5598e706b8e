//! `record --counts` on programs that harm the memory of their counters, share it with threads that nobody
//! traces, or were counted before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use crate::support::record::{Room, can_record, is_root, stderr};
use crate::support::record_calls::{Recorder, Running, built, counted, graph};
use crate::support::record_calls_later::calls;
use crate::support::{ran, skipped};

/// Another process shares the descriptors, so it is not stopped. It acts as soon as there is a new one.
const SIBLING: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
static int victim, next;
static void act(void);
__attribute__((noipa)) unsigned leaf(unsigned x) { return x * 69069 + 1; }
__attribute__((noipa)) unsigned work(unsigned n, unsigned x) { while (n--) x = leaf(x); return x; }
static int other(void *none) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (fcntl(next, F_GETFD) == -1) {}
    act();
    return 0;
}
int main(int argc, char **argv) {
    static char stack[1 << 16], line[8];
    victim = fcntl(open(argv[argc - 1], O_PATH), F_DUPFD, 100);
    for (int i = 3; i < 50; i++) close(i);
    next = dup(0);
    close(next);
    if (victim < 0 || clone(other, stack + sizeof stack, CLONE_FILES | SIGCHLD, 0) < 0) return 77;
    puts("ready");
    fflush(stdout);
    fcntl(0, F_SETFL, O_NONBLOCK);
    unsigned x = 1;
    while (read(0, line, sizeof line)) { x = work(100, x); usleep(100); }
    return 9 + (x == 42);
}
"#;

/// Counts the calls of a process of another user for a moment, as root. The process goes on, and the
/// recorder ends by itself. Returns what it wrote and the messages of it.
fn attacked(act: &str, trials: usize) -> Option<String> {
    if !can_record() {
        return None;
    }
    if !is_root() {
        skipped("needs root, to count the calls of another user");
        return None;
    }
    let room = Room::new();
    let program = built(&room, &[SIBLING, act].concat(), &[], "prog")?;
    fs::set_permissions(&room.0, fs::Permissions::from_mode(0o755)).unwrap();
    let secret = room.path("secret");
    let text = "of root\n".repeat(10_000);
    let mut messages = String::new();
    for trial in 0..trials {
        fs::write(&secret, &text).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new(&program);
        let process = Running::start(command.arg(&secret).gid(65534).uid(65534));
        let options = ["--counts", "-e", "cpu-clock", "-d", "0.3", "-o", "out.data"];
        let output = room.record(&[&options[..], &["-p", &process.pid()]].concat());
        assert_eq!(output.status.signal(), None, "{trial}: {}", stderr(&output));
        assert!(fs::read(&secret).unwrap() == text.as_bytes(), "{trial}");
        assert_eq!(process.end(), Some(9), "{trial}: {}", stderr(&output));
        messages += &stderr(&output);
    }
    Some(messages)
}

#[test]
fn nothing_is_written_into_a_file_that_another_process_puts_under_the_descriptor() {
    // The memory is new when it is exchanged, or has its size already.
    for wait in ["", "usleep(50);", "usleep(300);"] {
        let act = format!("static void act(void) {{ {wait} dup2(victim, next); }}");
        attacked(&act, 16);
    }
}

#[test]
fn a_file_of_the_other_process_is_not_taken_for_the_memory() {
    let act = "#include <sys/mman.h>
        static void act(void) {
            int other = memfd_create(\"proftool-calls\", MFD_ALLOW_SEALING);
            ftruncate(other, 1 << 20);
            dup2(other, next);
        }";
    attacked(act, 8);
}

#[test]
fn memory_that_is_truncated_does_not_end_the_recorder() {
    let act = "static void act(void) {
            int kept = dup(next);
            usleep(150000);
            ftruncate(kept, 0);
        }";
    attacked(act, 2);
}

/// Reads numbers, and calls so often.
const ASKED: &str = r#"
#include <stdio.h>
__attribute__((noipa)) int leaf(int x) { return x + 1; }
__attribute__((noipa)) int many(int n) { int sum = 0; for (int i = 0; i < n; i++) sum = leaf(sum); return sum; }
int main(void) {
    int n;
    puts("ready");
    fflush(stdout);
    while (scanf("%d", &n) == 1) { printf("%d\n", many(n)); fflush(stdout); }
    return 9;
}
"#;

#[test]
fn a_process_that_was_counted_is_counted_again() {
    if !can_record() {
        return;
    }
    for flags in [&[][..], &["-static"]] {
        let room = Room::new();
        let Some(program) = built(&room, ASKED, flags, "prog") else {
            return;
        };
        let mut process = Running::start(&mut Command::new(program));
        for times in ["1000", "20", "300"] {
            let recorder = Recorder::attach(&room, &process.pid());
            assert_eq!(process.ask(times), times);
            recorder.end();
            let counts = graph(&room, &["--no-inline"]);
            let times = times.parse().unwrap();
            assert_eq!(calls(&counts, "many", "leaf"), Some((times, false)));
            assert_eq!(process.ask("7"), "7");
        }
        assert_eq!(process.end(), Some(9));
    }
}

#[test]
fn a_process_that_is_counted_is_refused_for_that_reason() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(program) = built(&room, ASKED, &[], "prog") else {
        return;
    };
    let mut process = Running::start(&mut Command::new(program));
    let recorder = Recorder::attach(&room, &process.pid());
    let options = ["--counts", "-e", "cpu-clock", "-d", "0.3", "-o", "b.data"];
    let output = room.record(&[&options[..], &["-p", &process.pid()]].concat());
    let expected = "its calls lead to the stubs of another recorder";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    // The first one counts on.
    assert_eq!(process.ask("1000"), "1000");
    recorder.end();
    let counts = graph(&room, &["--no-inline"]);
    assert_eq!(calls(&counts, "many", "leaf"), Some((1000, false)));
    assert_eq!(process.end(), Some(9));
}

/// Makes two threads or processes that share memory and that no tracer is told of.
const UNTRACED: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#define N 3000000
static volatile int over;
__attribute__((noipa)) int leaf(int x) { return x * 3 + 1; }
__attribute__((noipa)) int many(int n) { int sum = 0; for (int i = 0; i < n; i++) sum = leaf(sum); return sum; }
static int work(void *none) { many(N); __atomic_add_fetch(&over, 1, __ATOMIC_SEQ_CST); return syscall(SYS_exit, 0); }
static char stacks[2][1 << 16];
int main(void) {
    for (int i = 0; i < 2; i++)
        if (clone(work, stacks[i] + sizeof stacks[i], FLAGS | CLONE_UNTRACED, 0) < 0) return 77;
    while (over < 2) usleep(1000);
    kill(getpid(), 0);
    _exit(9);
}
"#;

#[test]
fn counts_of_threads_that_nobody_traces_are_lower_bounds() {
    if !can_record() {
        return;
    }
    let thread = "CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM";
    for flags in [thread, "CLONE_VM | CLONE_FILES | SIGCHLD"] {
        let room = Room::new();
        let flags = format!("-DFLAGS=({flags})");
        let Some(program) = built(&room, UNTRACED, &[&flags], "prog") else {
            return;
        };
        let options = ["--counts-limit", "none"];
        let output = counted(&room, &options, &[program.to_str().unwrap()]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(9), "{said}");
        assert!(said.contains("cannot be traced"), "{said}");
        let (count, is_least) = calls(&graph(&room, &["--no-inline"]), "many", "leaf").unwrap();
        assert!(is_least && count <= 6_000_000, "{count} {is_least}: {said}");
    }
}

#[test]
fn children_that_the_program_traces_itself_are_reported_as_not_followed() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(program) = built(&room, ASKED, &[], "prog") else {
        return;
    };
    let program = program.to_str().unwrap();
    let script = ["-nx", "-batch", "-ex", "run < /dev/null", program];
    // A debugger starts programs through a shell. Nothing that reports is put into strace, which may
    // restrict its system calls.
    for (tool, arguments, told) in [
        (
            "strace",
            &["-f", "-o", "/dev/null", program][..],
            ["1 program started by exec", "calls were not counted"],
        ),
        ("gdb", &script, ["sh", "traces it"]),
    ] {
        if ran(Command::new(tool).arg("--version").stderr(Stdio::null())).is_none() {
            continue;
        }
        let command = [&[tool][..], arguments].concat();
        let output = counted(&room, &["--follow-exec"], &command);
        let said = stderr(&output);
        let expected = |line: &&str| told.iter().all(|part| line.contains(part));
        assert!(said.lines().any(|line| expected(&line)), "{said}");
    }
}

/// Gives up the rights of root, and executes a program.
const LAUNCHES: &str = r#"
#include <unistd.h>
int main(int argc, char **argv) {
    if (setgid(65534) || setuid(65534)) return 77;
    execv(argv[argc - 1], argv + argc - 1);
    return 78;
}
"#;

#[test]
fn a_program_that_gains_privileges_shares_no_code() {
    if !can_record() {
        return;
    }
    if !is_root() {
        return skipped("needs root, to make a set-user-ID program");
    }
    let room = Room::new();
    let programs = [(LAUNCHES, "launches"), (ASKED, "gains")];
    let [Some(launches), Some(gains)] = programs.map(|(text, name)| built(&room, text, &[], name))
    else {
        return;
    };
    fs::set_permissions(&room.0, fs::Permissions::from_mode(0o755)).unwrap();
    for (mode, expected) in [(0o4755, true), (0o755, false)] {
        fs::set_permissions(&gains, fs::Permissions::from_mode(mode)).unwrap();
        let command = [&launches, &gains].map(|program| program.to_str().unwrap());
        let output = counted(&room, &["--follow-exec"], &command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(9), "{said}");
        let refused = said.contains("it has gained privileges");
        assert_eq!(refused, expected, "{mode:o}: {said}");
    }
}
