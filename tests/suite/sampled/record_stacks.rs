//! `proftool record -g`: stacks by frame pointers and by copies, with perf as a witness.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::record::{PROFTOOL, Room, can_record, is_root, perf, samples, stderr};
use crate::support::record_stacks::{NESTED, build, choice};
use crate::support::repeated::repeated;
use crate::support::shares::{at_least, at_most};
use crate::support::{bound_to_test, copy_program, skipped};

/// The share of samples, in percent, of which the stack that perf finds goes through all of
/// these functions.
fn whole_stacks(file: &Path, functions: &[&str]) -> Option<usize> {
    let script = perf(&["script", "-F", "comm,ip,sym", "-i", file.to_str().unwrap()])?;
    let stacks: Vec<&str> = script
        .split("\n\n")
        .filter(|s| !s.trim().is_empty())
        .collect();
    let whole = stacks.iter().filter(|stack| {
        let names: Vec<&str> = stack
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        functions.iter().all(|function| names.contains(function))
    });
    Some(whole.count() * 100 / stacks.len().max(1))
}

/// Becomes the program that its first argument names, after a few calls of its own.
const DRIVER: &str = "\
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void step(int n) { sink += n; }
__attribute__((noinline)) void one(int n) { step(n); step(n + 1); }
__attribute__((noinline)) void two(int n) { one(n); one(n + 2); }
__attribute__((noinline)) void three(int n) { two(n); two(n + 3); }
int main(int count, char **words) {
    three(count);
    return execv(words[1], words + 1);
}
";

#[test]
fn the_program_that_uses_the_time_is_named_after_its_driver_was_judged() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let kept = [
            "-O1",
            "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls",
        ];
        let lacking = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let (Some(driver), Some(worker)) = (
            build(&room, "driver", DRIVER, &kept),
            build(&room, "worker", NESTED, &lacking),
        ) else {
            return;
        };
        let (driver, worker) = (driver.to_str().unwrap(), worker.to_str().unwrap());
        let output = room.record(&["-e", "cpu-clock", "--", driver, worker]);
        let told = stderr(&output);
        assert!(
            told.contains("call stacks: frame pointers (driver"),
            "{told}"
        );
        let line = told.lines().find(|line| line.contains("worker has "));
        let line = line.unwrap_or_else(|| panic!("{told}"));
        assert!(
            line.ends_with(" % of worker's functions keep no frame pointer: record with -g dwarf"),
            "{told}"
        );
        // Where the program that was judged has the samples, there is nothing to add.
        let output = room.record(&["-e", "cpu-clock", "--", worker]);
        let told = stderr(&output);
        assert!(
            told.contains("DWARF") && !told.contains("worker has "),
            "{told}"
        );
    });
}

#[test]
fn copies_of_stacks_are_whole_where_there_are_no_frame_pointers() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let Some(program) = build(&room, "nested", NESTED, &flags) else {
            return;
        };
        let program = program.to_str().unwrap();
        // Small buffers, so that records go around their ends.
        for buffer in [&["-g", "dwarf,8192"][..], &["-g", "dwarf,1001", "-m", "16"]] {
            let mut args = vec!["-e", "cpu-clock"];
            args.extend(buffer);
            args.extend(["--keep-copies", "--", program]);
            let output = room.record(&args);
            assert!(output.status.success(), "{}", stderr(&output));
            let file = room.path("perf.data");
            let count = samples(&file);
            assert!(count > 100, "{count} samples");
            let Some(stats) = perf(&["report", "--stats", "-i", file.to_str().unwrap()]) else {
                return;
            };
            assert!(stats.contains(&format!(" {count} ")), "{stats}");
            let shown = perf(&["evlist", "-v", "-i", file.to_str().unwrap()]).unwrap();
            let size = if buffer.len() > 2 { 1008 } else { 8192 };
            assert!(
                shown.contains(&format!("sample_stack_user: {size}")),
                "{shown}"
            );
            assert!(shown.contains("exclude_callchain_user: 1"), "{shown}");
            let whole = whole_stacks(&file, &["main", "outer", "middle", "inner"]).unwrap();
            // The rest are samples of its start and end, of which a loaded machine has more.
            assert!(whole >= 75, "{whole} % of the stacks are whole");
        }
        // Our own views find what perf finds.
        let mut flat = Command::new(PROFTOOL);
        flat.args(["flat", "--format", "json"]).current_dir(&room.0);
        let answer: serde_json::Value =
            serde_json::from_slice(&flat.output().unwrap().stdout).unwrap();
        let weight = |value: &serde_json::Value| value["total"].as_u64().unwrap();
        let functions = answer["functions"].as_array().unwrap();
        for name in ["main", "outer", "middle", "inner"] {
            let function = functions.iter().find(|function| function["name"] == name);
            let share = weight(function.unwrap()) * 100 / weight(&answer);
            assert!(share >= 75, "{name} has {share} %");
        }
        let output = room.record(&["-e", "cpu-clock", "-g", "fp,0", "--", program]);
        assert!(output.status.success(), "{}", stderr(&output));
        let whole = whole_stacks(
            &room.path("perf.data"),
            &["main", "outer", "middle", "inner"],
        );
        assert!(whole.unwrap() < 10, "there are no frame pointers to follow");
    });
}

#[test]
fn copies_of_stacks_need_no_privilege() {
    repeated(|| {
        if !is_root() || !can_record() {
            skipped("only root can give privileges up");
            return;
        }
        let room = Room::new();
        // The tested program may lie where nobody may go.
        let proftool = room.path("proftool");
        copy_program(PROFTOOL, &proftool);
        let Some(program) = build(&room, "nested", NESTED, &["-O2"]) else {
            return;
        };
        let output = Command::new(&proftool)
            .args(["record", "-F", "4999", "-g", "dwarf", "-e", "cpu-clock"])
            .arg(program)
            .current_dir(&room.0)
            .gid(65534)
            .uid(65534)
            .output()
            .unwrap();
        let text = stderr(&output);
        if !output.status.success() {
            assert!(text.contains("perf_event_paranoid is"), "{text}");
            skipped(&text);
            return;
        }
        // The limit of locked memory is met without a word as long as buffers are of the usual size.
        let count = samples(&room.path("perf.data"));
        assert!(count > 500, "{count} samples: {text}");
    });
}

/// Waits in the C library: `sleeper` sleeps, `syncer` syncs a file, `waiter` waits for a condition
/// that nobody signals.
const WAITS: &str = "\
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void sleeper(void) { usleep(50000); sink++; }
__attribute__((noinline)) void syncer(int file) {
    for (int i = 0; i < 20; i++) if (write(file, \"x\", 1) == 1) fsync(file);
    sink++;
}
__attribute__((noinline)) void waiter(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 1;
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &end);
    pthread_mutex_unlock(&mutex);
    sink++;
}
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) sink += i; }
int main(int count, char **words) {
    int file = open(words[1], O_WRONLY | O_CREAT, 0600);
    work(10000000 * count);
    sleeper();
    syncer(file);
    waiter();
    return 0;
}
";

#[test]
fn auto_copies_stacks_for_off_cpu_time_if_the_c_library_keeps_no_frame_pointers() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = [
            "-O2",
            "-pthread",
            "-fno-omit-frame-pointer",
            "-mno-omit-leaf-frame-pointer",
        ];
        let Some(program) = build(&room, "waiting", WAITS, &flags) else {
            return;
        };
        let program = program.to_str().unwrap();
        let synced = room.path("synced");
        let synced = synced.to_str().unwrap();
        let on_cpu = choice(&room, &[program, synced]);
        if !on_cpu.contains("libc.so.6") {
            return skipped(&format!("the C library may keep frame pointers: {on_cpu}"));
        }
        assert!(on_cpu.contains("call stacks: frame pointers"), "{on_cpu}");
        let off_cpu = choice(&room, &["--off-cpu", program, synced]);
        let expected = "call stacks: DWARF, unwound while it records (threads wait in libc.so.6: ";
        assert!(off_cpu.contains(expected), "{off_cpu}");
        let end = " % of libc.so.6's functions keep no frame pointer; override with -g fp)";
        assert!(off_cpu.contains(end), "{off_cpu}");
        if !is_root() {
            return skipped("stacks of switches need the right to see the kernel");
        }
        let output = Command::new(PROFTOOL)
            .args(["flat", "--event", "off-cpu", "--limit", "0", "--min", "0"])
            .arg(room.path("perf.data"))
            .output()
            .unwrap();
        let rows = String::from_utf8(output.stdout).unwrap();
        for function in ["sleeper", "syncer", "waiter"] {
            let is_row = |line: &str| line.split_whitespace().any(|word| word == function);
            assert!(rows.lines().any(is_row), "{function} waits in:\n{rows}");
        }
        // A process that runs already is judged by what it has mapped, the machine by all processes.
        let mut running = bound_to_test("sleep").arg("60").spawn().unwrap();
        let pid = running.id().to_string();
        let who: [&[&str]; 2] = [&["-p", &pid], &["-a"]];
        for who in who {
            let told = choice(&room, &[&["--off-cpu", "-d", "0.05"], who].concat());
            assert!(told.contains("call stacks: DWARF"), "{told}");
        }
        running.kill().unwrap();
        running.wait().unwrap();
    });
}

/// `main` calls `left` and `right` through `outer`; both call `leaf`, which keeps no frame.
const LEAF: &str = "\
#include <stdio.h>
#include <time.h>
volatile unsigned long sink;
__attribute__((noinline)) unsigned long leaf(unsigned long n) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++) { sink += i; sum += sink * 3; }
    return sum;
}
__attribute__((noinline)) unsigned long left(unsigned long n) { return leaf(n) + 1; }
__attribute__((noinline)) unsigned long right(unsigned long n) { return leaf(n) + 2; }
__attribute__((noinline)) unsigned long outer(unsigned long n) { return left(n) + 3 * right(n); }
int main(void) {
    unsigned long sum = 0;
    while (clock() < CLOCKS_PER_SEC / 2) sum += outer(20000);
    printf(\"%lu\\n\", sum);
    return 0;
}
";

/// The samples in `leaf` whose recorded stack ends with one of these, and all in `leaf`.
fn at_leaf(room: &Room, ends: &[&str]) -> (u64, u64) {
    let mut export = Command::new(PROFTOOL);
    export.args([
        "export",
        "--to",
        "folded",
        "--no-repair",
        "--unit",
        "samples",
    ]);
    let folded = export.current_dir(&room.0).output().unwrap().stdout;
    let folded = String::from_utf8(folded).unwrap();
    let (mut all, mut found) = (0, 0);
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        if stack.ends_with(";leaf") || stack == "leaf" {
            all += count;
            found += u64::from(ends.iter().any(|end| stack.ends_with(end))) * count;
        }
    }
    assert!(all > 100, "{folded}");
    (found, all)
}

/// A chain of frame pointers leads past the caller of a function without a frame. The bytes at the
/// top of the stack name it, without any inference.
#[test]
fn frame_pointers_come_with_the_callers_of_leaves() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let flags = [
            "-O2",
            "-fno-omit-frame-pointer",
            "-momit-leaf-frame-pointer",
            "-fno-optimize-sibling-calls",
        ];
        let Some(program) = build(&room, "leaf", LEAF, &flags) else {
            return;
        };
        let program = program.to_str().unwrap();
        let whole = ["main;outer;left;leaf", "main;outer;right;leaf"];
        let record = |how: &str| {
            let output = room.record(&["-e", "cpu-clock", "-g", how, "--", program]);
            assert!(output.status.success(), "{}", stderr(&output));
        };
        record("fp,0");
        let ((alone, all), (past, _)) =
            (at_leaf(&room, &whole), at_leaf(&room, &["main;outer;leaf"]));
        assert!(
            at_most(alone, all, 5.0) && at_least(past, all, 95.0),
            "{alone} and {past} of {all}"
        );
        for how in ["fp", "fp,64", "auto"] {
            record(how);
            let (found, all) = at_leaf(&room, &whole);
            assert!(at_least(found, all, 99.0), "{how}: {found} of {all}");
        }
        let file = room.path("perf.data");
        let bytes = fs::metadata(&file).unwrap().len() / samples(&file) as u64;
        assert!(bytes < 1200, "{bytes} bytes a sample");

        // perf sees chains, and each stack once.
        let script = ["script", "-F", "comm,ip,sym", "-i", file.to_str().unwrap()];
        let Some(script) = perf(&script) else {
            return;
        };
        let stacks: Vec<&str> = script.split("\n\n").collect();
        let of_main = |stack: &&&str| stack.lines().filter(|line| line.ends_with(" main")).count();
        let once = stacks.iter().filter(|stack| of_main(stack) == 1).count();
        assert!(once * 10 > stacks.len() * 9, "{once} of {}", stacks.len());
        assert!(stacks.iter().all(|stack| of_main(&stack) <= 1));
    });
}

/// `lost` has a return address that its unwinding rules do not know of; `astray` leads the frame pointer to one.
const BROKEN: &str = "\
#include <time.h>
void lost(void), astray(void);
void *fake[2] = { 0, (void *)0x10 };
asm(\".globl lost\\n.type lost,@function\\nlost:\\n.cfi_startproc\\npush $0x10\\nmov $3000000,%ecx\\n\"
    \"1: dec %ecx\\njnz 1b\\npop %rax\\nret\\n.cfi_endproc\\n.size lost,.-lost\\n\");
asm(\".globl astray\\n.type astray,@function\\nastray:\\n.cfi_startproc\\npush %rbp\\nlea fake(%rip),%rbp\\n\"
    \"mov $3000000,%ecx\\n1: dec %ecx\\njnz 1b\\npop %rbp\\nret\\n.cfi_endproc\\n.size astray,.-astray\\n\");
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 2) { lost(); astray(); }
    return fake[0] != 0;
}
";

/// What to do about a broken stack depends on how it was recorded: copies are not recorded again as copies.
#[test]
fn advice_on_broken_stacks_does_not_ask_for_what_was_done() {
    repeated(|| {
        if !can_record() || cfg!(not(target_arch = "x86_64")) {
            return;
        }
        let room = Room::new();
        let flags = ["-O2", "-fno-omit-frame-pointer", "-no-pie"];
        let Some(program) = build(&room, "broken", BROKEN, &flags) else {
            return;
        };
        for (how, broken) in [("dwarf", "broken-copy"), ("fp,0", "broken-stack")] {
            let args = ["-e", "cpu-clock:u", "-g", how, "--"];
            let output = room.record(&[&args[..], &[program.to_str().unwrap()]].concat());
            assert!(output.status.success(), "{}", stderr(&output));
            let flat = Command::new(PROFTOOL)
                .args(["flat", "--format", "json"])
                .arg(room.path("perf.data"))
                .output();
            let flat: serde_json::Value = serde_json::from_slice(&flat.unwrap().stdout).unwrap();
            let caveats = flat["caveats"].as_array().unwrap();
            let of = |kind: &str| caveats.iter().find(|caveat| caveat["kind"] == kind);
            let found = of(broken).unwrap_or_else(|| panic!("{how}: {caveats:?}"));
            let hint = found["hint"].as_str();
            assert_eq!(
                hint.is_some_and(|hint| hint.contains("without -g")),
                how != "dwarf",
                "{found}"
            );
            let other = ["broken-copy", "broken-stack"]
                .into_iter()
                .find(|kind| *kind != broken);
            assert_eq!(of(other.unwrap()), None, "{caveats:?}");
        }
    });
}
