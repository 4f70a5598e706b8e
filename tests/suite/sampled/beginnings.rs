//! How programs and threads begin, where some stacks show it and those by frame pointers do not.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::compile_text;
use crate::support::cut::json;
use crate::support::repair::{proftool, recorded};
use crate::support::repeated::repeated;
use crate::support::shares::at_least;

/// Works with few frames on the stack, and with more than is copied of one; on another thread too, and at
/// last as another program, which has many frames only.
const DEEP: &str = "\
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
#define ALONE __attribute__((noipa)) static
ALONE void work(void) { for (int i = 0; i < 100000; i++) sink += i; }
ALONE void deep(int n) { volatile char room[256]; room[n] = 0; if (n) deep(n - 1); else work(); room[n] = 1; }
ALONE void *both(void *times) {
    for (int i = 0; i < *(int *)times; i++) { work(); deep(60); }
    return times;
}
";

const FIRST: &str = "\
int main(int argc, char **argv) {
    int times = 2000;
    pthread_t thread;
    pthread_create(&thread, 0, both, &times);
    pthread_join(thread, 0);
    both(&times);
    execl(SECOND, SECOND, (char *)0);
    return 1;
}
";

const SECOND: &str = "\
ALONE void second(void) { for (int i = 0; i < 2000; i++) deep(60); }
int main(void) { second(); return 0; }
";

#[test]
#[cfg(target_arch = "x86_64")]
fn stacks_by_frame_pointers_begin_as_the_others_of_their_program_do() {
    repeated(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = |name: &str| folder.join(format!("begins-{name}-{}", std::process::id()));
        let [first, second, data] = ["first", "second", "data"].map(path);
        let flags = ["-O1", "-fno-omit-frame-pointer", "-pthread"];
        let with_path = format!("-DSECOND=\"{}\"", second.display());
        let built = compile_text("gcc", &flags, &[DEEP, SECOND].concat(), &second).and_then(|_| {
            let flags = [&flags[..], &[&with_path]].concat();
            compile_text("gcc", &flags, &[DEEP, FIRST].concat(), &first)
        });
        if built.is_none() {
            return;
        }
        let Some(data) = recorded("fp,1024", &first, data) else {
            return;
        };
        let args = ["export", "--to", "folded", "--unit", "samples"];
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let of = |program: &Path| format!("_start [{}];", name(program));
        let (mut programs, mut threads, mut others) = ([0, 0], [0, 0], 0);
        for line in proftool(&args, &data).lines() {
            let line = line.replace('~', "");
            let (stack, samples) = line.rsplit_once(' ').unwrap();
            let samples: u64 = samples.parse().unwrap();
            if stack.contains(";second;") {
                // A program that begins in another `_start` than its own would be false.
                let is_of_first = stack.starts_with("_start;") || stack.starts_with(&of(&first));
                assert!(!is_of_first, "{stack}");
                others += samples;
            } else if stack.contains("start_thread;both;") {
                threads[usize::from(stack.starts_with("clone3;"))] += samples;
            } else if stack.contains("];both;") {
                programs[usize::from(stack.starts_with("_start"))] += samples;
            }
        }
        let all = [programs, threads]
            .map(|[not, whole]| (whole > 100, at_least(whole, not + whole, 99.0)));
        assert_eq!(all, [(true, true); 2], "{programs:?} {threads:?}");
        assert!(others > 50, "{others}");
    });
}

/// A thread that runs code without unwinding rules, as a runtime compiles it, which keeps a frame pointer.
const WITHOUT_RULES: &str = "\
#include <pthread.h>
#include <time.h>
static volatile unsigned long sink;
void bare(void (*called)(void));
__asm__(\".text\\n.globl bare\\n.type bare,@function\\nbare: push %rbp\\nmov %rsp,%rbp\\ncall *%rdi\\npop %rbp\\nret\\n\"
        \".size bare,.-bare\\n\");
static void work(void) { for (int i = 0; i < 100000; i++) sink += i; }
static void *thread(void *none) {
    while (clock() < CLOCKS_PER_SEC / 2) bare(work);
    return none;
}
int main(void) {
    pthread_t id;
    pthread_create(&id, 0, thread, 0);
    pthread_join(id, 0);
    return 0;
}
";

/// The copy of the stack goes on behind such code, and so do rules: start_thread keeps no frame pointer, and
/// its caller is found all the same.
#[test]
#[cfg(target_arch = "x86_64")]
fn behind_code_without_rules_no_caller_is_skipped_where_there_are_rules() {
    repeated(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = |name: &str| folder.join(format!("bare-thread-{name}-{}", std::process::id()));
        let [program, data] = ["program", "data"].map(path);
        let flags = ["-O1", "-fno-omit-frame-pointer", "-pthread"];
        if compile_text("gcc", &flags, WITHOUT_RULES, &program).is_none() {
            return;
        }
        let Some(data) = recorded("fp,4096", &program, data) else {
            return;
        };
        let graph = json(&["graph", data.to_str().unwrap()]);
        let function = |name: &str| {
            let functions = graph["functions"].as_array().unwrap();
            functions
                .iter()
                .position(|function| function["name"] == name)
        };
        let (from, to) = (
            function("clone3").unwrap(),
            function("start_thread").unwrap(),
        );
        let arcs = graph["arcs"].as_array().unwrap();
        let arc = arcs
            .iter()
            .find(|arc| arc["from"] == from && arc["to"] == to);
        let arc = arc.unwrap_or_else(|| panic!("{graph}"));
        assert!(arc["samples"].as_u64().unwrap() > 100, "{arc}");
        assert_eq!(arc["across_gaps"], 0, "{arc}");
    });
}

/// Reads the clock, which is code of the kernel in user space, and is interrupted there by signals.
const CLOCK: &str = "\
#include <signal.h>
#include <sys/time.h>
#include <time.h>
static volatile unsigned long sink;
#define ALONE __attribute__((noipa)) static
ALONE void burn(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
static void handle(int number) { burn(1000000); sink++; }
ALONE void work(void) {
    struct timespec time;
    for (int i = 0; i < 1000; i++) { clock_gettime(CLOCK_MONOTONIC, &time); sink += time.tv_nsec; }
    burn(100000);
}
int main(void) {
    struct itimerval interval = {{0, 3000}, {0, 3000}};
    signal(SIGPROF, handle);
    setitimer(ITIMER_PROF, &interval, 0);
    while (clock() < CLOCKS_PER_SEC / 2) work();
    return 0;
}
";

/// Some stacks end in the copy, and show one function more than those that go on by frame pointers.
#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn all_stacks_of_a_program_begin_alike() {
    repeated(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = |name: &str| folder.join(format!("alike-{name}-{}", std::process::id()));
        let [program, data] = ["program", "data"].map(path);
        let flags = ["-O1", "-fno-omit-frame-pointer"];
        if compile_text("gcc", &flags, CLOCK, &program).is_none() {
            return;
        }
        let Some(data) = recorded("fp", &program, data) else {
            return;
        };
        let folded = proftool(&["export", "--to", "folded"], &data).replace('~', "");
        let outer = folded.lines().filter_map(|line| line.split_once(";main;"));
        let begins: BTreeSet<&str> = outer.map(|(outer, _)| outer).collect();
        assert_eq!(begins.len(), 1, "{folded}");
    });
}
