//! `proftool record` of programs without frame pointers: stacks are copied as deep as they are.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::record::{PROFTOOL, Room, can_record, is_root, perf, samples, stderr};
use crate::support::record_stacks::build;
use crate::support::repeated::repeated;
use crate::support::shares::{at_least, at_most};
use crate::support::{copy_program, skipped};

/// Recurses until about 30 KiB of the stack are used, and computes there: in the main thread, in
/// another one, in a process that it forks, and in a thread of that.
const DEEP: &str = "\
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) int deep(int n) {
    volatile char room[400];
    room[n] = n;
    if (n == 0) { for (int i = 0; i < 200000; i++) sink += i; return 1; }
    return deep(n - 1) + room[n];
}
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}
__attribute__((noinline)) void *work(void *none) {
    while (now() < 0.15) sink += deep(70);
    return none;
}
__attribute__((noinline)) void both(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    work(0);
    pthread_join(thread, 0);
}
int main(void) {
    int child = fork();
    if (child == 0) { both(); return 0; }
    both();
    waitpid(child, 0, 0);
    return 0;
}
";

/// A coroutine on a stack of its own and the function that runs it compute in turn.
const COROUTINE: &str = "\
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
static ucontext_t outside, inside;
volatile long sink;
__attribute__((noinline)) void burn(void) { for (int i = 0; i < 2000000; i++) sink += i; }
__attribute__((noinline)) void coroutine(void) {
    for (;;) { burn(); sink++; swapcontext(&inside, &outside); }
}
__attribute__((noinline)) void run(void) {
    while (clock() < CLOCKS_PER_SEC / 2) { swapcontext(&outside, &inside); burn(); sink++; }
}
int main(void) {
    getcontext(&inside);
    inside.uc_stack.ss_sp = malloc(65536);
    inside.uc_stack.ss_size = 65536;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    run();
    return 0;
}
";

/// The number of samples whose stack goes from `outer` to `deep`, and of all that are in `deep`.
fn whole(room: &Room, outer: &str) -> (u64, u64) {
    let mut export = Command::new(PROFTOOL);
    export.args(["export", "--to", "folded", "--unit", "samples"]);
    let output = export.current_dir(&room.0).output().unwrap();
    let (mut all, mut found) = (0, 0);
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        let functions: Vec<&str> = stack.split(';').collect();
        if functions.contains(&"deep") {
            all += count;
            let depth = functions.iter().filter(|name| **name == "deep").count();
            found += u64::from(functions.contains(&outer) && depth == 71) * count;
        }
    }
    assert!(all > 100, "{all} samples in deep");
    (found, all)
}

/// The options that a file's event was opened with, and what perf finds in it.
fn check_with_perf(file: &Path) {
    let name = file.to_str().unwrap();
    let Some(stats) = perf(&["report", "--stats", "-i", name]) else {
        return;
    };
    let count = samples(file);
    assert!(stats.contains(&format!(" {count} ")), "{count}: {stats}");
    let events = perf(&["evlist", "-i", name]).unwrap();
    assert_eq!(events.lines().count(), 1, "{events}");
    let script = ["script", "-F", "ip,sym", "--max-stack", "200", "-i", name];
    let script = perf(&script).unwrap();
    let stacks = script.split("\n\n").filter(|stack| stack.contains(" deep"));
    let (mut all, mut whole) = (0, 0);
    for stack in stacks {
        all += 1;
        whole += usize::from(stack.lines().any(|line| line.ends_with(" work")));
    }
    assert!(all > 100 && whole * 10 > all * 9, "{whole} of {all}");
}

#[test]
fn stacks_of_threads_and_processes_are_copied_as_deep_as_they_are() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = [
            "-O1",
            "-pthread",
            "-fomit-frame-pointer",
            "-fno-optimize-sibling-calls",
        ];
        let Some(program) = build(&room, "program", DEEP, &flags) else {
            return;
        };
        let program = program.to_str().unwrap();
        let output = room.record(&["-e", "cpu-clock", "--keep-copies", "--", program]);
        let told = stderr(&output);
        assert!(output.status.success(), "{told}");
        assert!(told.contains(", 0 lost"), "{told}");
        // What the kernel counted is in the samples of all threads and processes.
        assert!(!told.contains("warning"), "{told}");
        if !told.contains("whole stacks up to 60 KiB") || told.contains("limit of locked memory") {
            return skipped(&format!("the buffers hold smaller copies only: {told}"));
        }
        let (found, all) = whole(&room, "work");
        assert!(
            at_least(found, all, 98.0),
            "{found} of {all} stacks are whole"
        );
        let file = room.path("perf.data");
        let bytes = fs::metadata(&file).unwrap().len() / samples(&file) as u64;
        // 30 KiB, and what lies behind: the environment, or what belongs to the thread.
        assert!((30_000..45_000).contains(&bytes), "{bytes} bytes a sample");
        check_with_perf(&file);

        // Unwound while they are recorded they are whole, too, and take no more than their frames.
        let output = room.record(&["-e", "cpu-clock", "-g", "dwarf", "--", program]);
        assert!(output.status.success(), "{}", stderr(&output));
        let (found, all) = whole(&room, "work");
        assert!(
            at_least(found, all, 98.0),
            "{found} of {all} stacks are whole"
        );
        let bytes = fs::metadata(&file).unwrap().len() / samples(&file) as u64;
        assert!(bytes < 1_000, "{bytes} bytes a sample");
        check_with_perf(&file);

        // With 8 KiB each of these stacks is cut.
        let output = room.record(&["-e", "cpu-clock", "-g", "dwarf,8192", "--", program]);
        assert!(output.status.success(), "{}", stderr(&output));
        let (found, all) = whole(&room, "work");
        assert!(
            at_most(found, all, 10.0),
            "{found} of {all} stacks are whole"
        );
    });
}

#[test]
fn a_shallow_stack_takes_less_than_was_to_be_copied() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let source = crate::support::record_stacks::NESTED;
        let Some(program) = build(&room, "shallow", source, &flags) else {
            return;
        };
        let program = program.to_str().unwrap();
        // The environment lies above the stack and is copied with it, and so are the up to 8 KiB by
        // which the kernel randomizes where the stack begins.
        let mut sizes = Vec::new();
        for how in ["auto", "dwarf,60000", "dwarf"] {
            let fixed = ["-e", "cpu-clock", "--keep-copies", "-g", how, "--", program];
            let mut record = room.command(&fixed);
            let output = record.env_clear().output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            let file = room.path("perf.data");
            sizes.push(fs::metadata(&file).unwrap().len() / samples(&file) as u64);
        }
        assert!(sizes.iter().all(|&size| size < 16_000), "{sizes:?}");
    });
}

#[test]
fn copies_shrink_where_little_memory_may_be_locked() {
    repeated(|| {
        if !is_root() || !can_record() {
            return skipped("only root can give privileges up");
        }
        let room = Room::new();
        // The tested program may lie where nobody may go.
        let proftool = room.path("proftool");
        copy_program(PROFTOOL, &proftool);
        let flags = ["-O1", "-pthread", "-fomit-frame-pointer"];
        let Some(program) = build(&room, "program", DEEP, &flags) else {
            return;
        };
        let script = "ulimit -l 64 && exec setpriv --reuid 65534 --regid 65534 --clear-groups \
                  ./proftool record -e cpu-clock -- \"$0\"";
        let output = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .current_dir(&room.0)
            .output()
            .unwrap();
        let told = stderr(&output);
        if !output.status.success() {
            return skipped(&told);
        }
        let smaller = "of each stack are copied (limit of locked memory)";
        assert!(told.contains(smaller), "{told}");
        // perf reads only files of its own user.
        let file = room.path("copy.data");
        fs::copy(room.path("perf.data"), &file).unwrap();
        let Some(shown) = perf(&["evlist", "-v", "-i", file.to_str().unwrap()]) else {
            return;
        };
        assert!(!shown.contains("sample_stack_user: 61440"), "{shown}");
    });
}

#[test]
fn the_stack_of_a_coroutine_begins_where_it_was_set_up() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let forms = [
            ("-fno-omit-frame-pointer", "fp"),
            ("-fno-omit-frame-pointer", "dwarf"),
            ("-fomit-frame-pointer", "dwarf"),
        ];
        for (flag, stacks) in forms {
            let flags = ["-O1", flag, "-fno-optimize-sibling-calls"];
            let Some(program) = build(&room, "program", COROUTINE, &flags) else {
                return;
            };
            let program = program.to_str().unwrap();
            let output = room.record(&["-e", "cpu-clock:u", "-g", stacks, "--", program]);
            assert!(output.status.success(), "{}", stderr(&output));
            let mut export = Command::new(PROFTOOL);
            export.args(["export", "--to", "folded", "--unit", "samples"]);
            let output = export.current_dir(&room.0).output().unwrap();
            let folded = String::from_utf8(output.stdout).unwrap();
            let (mut coroutines, mut runs) = (0, 0);
            for line in folded.lines() {
                let (stack, count) = line.rsplit_once(' ').unwrap();
                let count: u64 = count.parse().unwrap();
                let functions: Vec<&str> = stack.split(';').collect();
                match functions[..] {
                    // What makecontext has the coroutine return to.
                    [outermost, "coroutine", "burn"] if !outermost.starts_with('[') => {
                        coroutines += count;
                    }
                    [.., "main", "run", "burn"] => runs += count,
                    // While the stacks are switched, either may be the one.
                    [.., inner] => assert_ne!(inner, "burn", "{flag} {stacks}: {stack}"),
                    [] => unreachable!("no stack is empty"),
                }
            }
            assert!(coroutines > 50 && runs > 50, "{flag} {stacks}: {folded}");
            // That it was not called contradicts nothing.
            let mut report = Command::new(PROFTOOL);
            report.args(["report", "--format", "json"]);
            let output = report.current_dir(&room.0).output().unwrap();
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let contradicted = &report["quality"]["contradicted"]["samples"];
            assert_eq!(contradicted, 0, "{flag} {stacks}");
        }
    });
}

/// It calls a function of the C library that is chosen by the processor when the program starts, through
/// a stub of its linkage table.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
const CHOSEN: &str = r#"
    #include <string.h>
    static char some[64], other[64];
    __attribute__((noinline)) int compare(int rounds) {
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            some[i & 31] = i;
            sum += memcmp(some, other, (i & 15) + 1) > 0;
        }
        return sum;
    }
    int main(void) { return compare(60000000) == 0; }
"#;

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn a_call_of_what_the_c_library_chooses_is_found_in_the_code() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let Some(program) = build(&room, "program", CHOSEN, &["-O2", "-Wl,-z,lazy"]) else {
            return;
        };
        let program = program.to_str().unwrap();
        let args = [
            "-F",
            "1999",
            "-e",
            "cpu-clock:u",
            "-g",
            "dwarf",
            "--",
            program,
        ];
        let output = room.record(&args);
        assert!(output.status.success(), "{}", stderr(&output));
        let told = |args: &[&str]| {
            let mut command = Command::new(PROFTOOL);
            let output = command.args(args).current_dir(&room.0).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let folded = told(&["export", "--to", "folded"]);
        let mut stubs = folded.lines().filter(|line| line.contains("memcmp@plt"));
        assert!(
            stubs.all(|line| line.contains(";main;compare;memcmp@plt ")),
            "{folded}"
        );
        if !folded.contains("memcmp@plt") {
            return skipped("no sample fell into the two instructions of the stub");
        }
        let report = told(&["report", "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["quality"]["contradicted"]["samples"], 0, "{folded}");
    });
}
