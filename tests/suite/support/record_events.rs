//! Programs that count their own events.

use std::path::PathBuf;
use std::process::Command;

use crate::support::compile_text;
use crate::support::record::{PROFTOOL, Room, can_record, stderr};

/// Touches pages in its threads and children; prints how often it faulted, all together.
pub const FAULTS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *unused) {
    volatile unsigned long sum = 0;
    size_t size = 8 << 20;
    for (int turn = 0; turn < 12; turn++) {
        for (long i = 0; i < 500000; i++) sum += i * i;
        char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, size, MADV_NOHUGEPAGE);
        for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
        munmap(memory, size);
        for (long i = 0; i < 500000; i++) sum += i * i;
    }
    return unused;
}
int main(void) {
    pthread_t threads[2];
    if (fork() == 0) { work(0); _exit(0); }
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    work(0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    wait(0);
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    printf("%ld\n", self.ru_minflt + children.ru_minflt);
    return 0;
}
"#;

/// Builds `program` from C; `None`, and why the test is skipped, where nothing can be built or
/// recorded.
pub fn program(room: &Room, text: &str) -> Option<PathBuf> {
    if !can_record() {
        return None;
    }
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-pthread"];
    compile_text("gcc", &flags, text, &room.path("program"))
}

/// Records the program with `args`. Gives the faults that it counted itself, and what was said.
pub fn record_faults(room: &Room, args: &[&str]) -> (f64, String) {
    let output = room.record(&[args, &["./program"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let counted = String::from_utf8_lossy(&output.stdout).trim().parse();
    (counted.unwrap(), stderr(&output))
}

pub fn json(room: &Room, args: &[&str]) -> serde_json::Value {
    let output = Command::new(PROFTOOL)
        .args(args)
        .args(["--format", "json", "perf.data"])
        .current_dir(&room.0)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The weight of all samples of an event, and what it is counted in.
pub fn weight(room: &Room, event: &str) -> (f64, String) {
    let answer = json(room, &["flat", "--event", event]);
    let text = answer.to_string();
    let total = answer["total"].as_f64();
    let unit = answer["event"]["unit"].as_str();
    (total.expect(&text), unit.expect(&text).to_owned())
}

pub fn path(room: &Room) -> String {
    room.path("perf.data").display().to_string()
}

pub const SPIN: &str = include_str!("../../../fixtures/programs/spin.c");
