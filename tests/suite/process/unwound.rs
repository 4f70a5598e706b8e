//! Recordings that are unwound while they are made: the same views as of their copies.

use std::path::Path;
use std::process::Command;

use proftool::sampler::{self, Bounds, CopySize, Rate, Stacks, Subject};

use crate::support::cli::proftool;
use crate::support::record::{Room, can_record, stderr};
use crate::support::unwind::unwound_again;
use crate::support::{compile_text, ran, skipped};

/// Threads, callbacks, recursion, a library that comes and goes, handlers on a stack of their own,
/// and processes that become other programs.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
static volatile unsigned sink;
NOINLINE void spin(unsigned n) { for (unsigned i = 0; i < n * 1000; i++) sink += i * 7; }
NOINLINE int compare(const void *a, const void *b) {
    spin(1);
    return *(const int *)a - *(const int *)b;
}
NOINLINE void sort(void) {
    int all[300];
    for (int i = 0; i < 300; i++) all[i] = i * 7919 % 300;
    qsort(all, 300, sizeof(int), compare);
}
NOINLINE unsigned down(unsigned n) {
    volatile char room[96];
    room[n % 96] = n;
    if (n == 0) spin(3000);
    return (n ? down(n - 1) : 0) + room[n % 96];
}
NOINLINE void *thread(void *of) { down(*(int *)of); return 0; }
NOINLINE void handler(int number) { (void)number; spin(300); }
NOINLINE void library(const char *name, const char *function) {
    void *opened = dlopen(name, RTLD_NOW);
    if (!opened) return;
    double (*called)(double) = dlsym(opened, function);
    for (int i = 0; i < 300000 && called; i++) sink += called(i);
    dlclose(opened);
}
int main(int count, char **words) {
    if (count > 1) { down(20); return 0; }
    stack_t other = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&other, 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGVTALRM, &action, 0);
    struct itimerval often = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_VIRTUAL, &often, 0);
    int depths[] = {3, 40, 1500};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(threads + i, 0, thread, depths + i);
    for (int i = 0; i < 4; i++) { sort(); library("libm.so.6", "sin"); }
    for (int i = 0; i < 5; i++) {
        pid_t child = i % 2 ? vfork() : fork();
        if (child == 0) {
            if (i % 2 == 0) spin(300);
            execl("/proc/self/exe", words[0], "child", (char *)0);
            _exit(1);
        }
        waitpid(child, 0, 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

fn views(room: &Path, file: &str) -> Vec<(String, Vec<String>)> {
    let all = [
        &["flat", "--min", "0", "--limit", "0", "--format", "json"][..],
        &["tree", "--min", "0", "--format", "json"],
        &["graph", "--min", "0", "--limit", "0", "--format", "csv"],
        &["report", "--full"],
        &["flat", "--by", "thread", "--format", "csv"],
    ];
    let view = |arguments: &&[&str]| {
        let output = proftool(arguments)
            .arg(file)
            .current_dir(room)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        let mut lines: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        // Functions are numbered in the order in which they are found, which is another one.
        if arguments[0] == "graph" {
            lines.sort_unstable();
        }
        (arguments.join(" "), lines)
    };
    all.iter().map(view).collect()
}

#[test]
fn views_of_an_unwound_recording_are_those_of_its_copies() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let program = room.path("many");
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread"];
    if compile_text("gcc", &flags, PROGRAM, &program).is_none() {
        return;
    }
    let mut commands = vec![vec![program.to_str().unwrap().to_owned()]];
    let python = "sum(sorted(str(i) for i in range(200000)) == [] for _ in range(1))";
    if ran(Command::new("python3").args(["-c", "1"])).is_some() {
        commands.push(["python3", "-c", python].map(str::to_owned).to_vec());
    } else {
        skipped("there is no python3");
    }
    for command in commands {
        let mut arguments = vec!["-q", "-g", "dwarf", "--keep-copies", "-o", "kept", "--"];
        arguments.extend(command.iter().map(String::as_str));
        let output = room.record(&arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_same_views(&room, &command[0]);
    }
}

#[test]
fn views_of_joined_chains_are_those_of_chains_and_copies() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let program = room.path("many");
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-pthread"];
    if compile_text("gcc", &flags, PROGRAM, &program).is_none() {
        return;
    }
    let command = sampler::Command::find(&[program.into()]).unwrap();
    let options = sampler::Options {
        events: vec!["cpu-clock:u".parse().unwrap()],
        rate: Some(Rate::Frequency(4999)),
        stacks: Stacks::Joined(CopySize::TOP),
        unwinds: true,
        // They are emptied every few samples, so that there are many rounds.
        ring_pages: Some(8),
        ..sampler::Options::default()
    };
    // Without a stage, the file has what the unwinder would be given.
    let (subject, bounds) = (Subject::Command(&command), Bounds::default());
    let kept = room.path("kept");
    sampler::record(&options, subject, &bounds, &kept, None, None, &mut |_| ()).unwrap();
    assert_same_views(&room, "joined");
}

/// Compares the views of the recording `kept` with those of the same when it was unwound.
fn assert_same_views(room: &Room, what: &str) {
    let copies = room.path("copies");
    let kept = room.path("kept");
    let of_copies = views(&room.path(""), "kept");
    std::fs::rename(&kept, &copies).unwrap();
    // Never, every second round if there are as many, and always.
    for late in [usize::MAX, 2, 1] {
        // Under the same name.
        let left = unwound_again(&copies, &kept, late);
        let is_right = late == 2 || (left > 0) == (late == 1);
        assert!(is_right, "{what}: {left} copies are kept");
        let found = views(&room.path(""), "kept");
        for ((view, expected), (_, found)) in of_copies.iter().zip(found) {
            let differs = expected.iter().zip(&found).find(|(a, b)| a != b);
            assert_eq!(differs, None, "{what}, {late}: {view}");
            assert_eq!(expected.len(), found.len(), "{what}, {late}: {view}");
        }
    }
}
