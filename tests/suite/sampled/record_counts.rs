//! What a recording says that happened, held against programs that measure themselves.

use std::fs;
use std::process::Command;

use proftool::perfdata::Reader;

use crate::support::record::{PROFTOOL, Room, is_root, stderr};
use crate::support::record_counts::POOL;
use crate::support::record_events::program;
use crate::support::repeated::repeated;
use crate::support::skipped;

/// Faults so many times, in so many threads and bursts; prints how often it faulted in all.
const FAULTS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
static long pages;
static int bursts;
static void *work(void *unused) {
    volatile unsigned long sum = 0;
    for (int burst = 0; burst < bursts; burst++) {
        size_t size = pages / bursts * 4096;
        char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, size, MADV_NOHUGEPAGE);
        for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
        munmap(memory, size);
        for (long i = 0; i < 2000000; i++) sum += i;
    }
    return unused;
}
int main(int count, char **words) {
    int threads = atoi(words[2]);
    pthread_t thread[16];
    pages = atol(words[1]) / threads;
    bursts = atoi(words[3]);
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], 0, work, 0);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], 0);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%ld\n", used.ru_minflt + used.ru_majflt);
    return 0;
}
"#;

/// What a program printed, what the recorder said, and the page of the recording.
fn recorded(room: &Room, args: &[&str], select: &[&str]) -> (f64, String, serde_json::Value) {
    let output = room.record(args);
    assert!(output.status.success(), "{}", stderr(&output));
    let own = String::from_utf8_lossy(&output.stdout).trim().parse();
    let flat = Command::new(PROFTOOL)
        .args(["flat", "--format", "json", "perf.data"])
        .args(select)
        .current_dir(&room.0)
        .output()
        .unwrap();
    assert!(flat.status.success(), "{}", stderr(&flat));
    let page = serde_json::from_slice(&flat.stdout).unwrap();
    (own.unwrap(), stderr(&output), page)
}

fn caveat<'a>(page: &'a serde_json::Value, kind: &str) -> Option<&'a str> {
    let all = page["caveats"].as_array().unwrap();
    let one = all.iter().find(|caveat| caveat["kind"] == kind)?;
    one["text"].as_str()
}

#[test]
fn page_faults_are_those_that_happened() {
    repeated(|| {
        let room = Room::new();
        if program(&room, FAULTS).is_none() {
            return;
        }
        for shape in [["245", "1", "1"], ["16000", "1", "20"], ["16000", "8", "5"]] {
            // All samples fit into the buffers: others may have the processors meanwhile.
            let how = ["-g", "fp", "-m", "2048", "-e", "page-faults", "./program"];
            let args = [&how[..], &shape].concat();
            let (own, said, page) = recorded(&room, &args, &[]);
            let sum = page["total"].as_f64().unwrap();
            // Some happened before the program was there, between fork and exec: as many as pages that the
            // recorder's copy used, which are more where memory is short.
            let is_near = sum <= own && own - sum <= 0.02 * own + 40.0;
            assert!(is_near, "{shape:?}: {sum} of {own}; {said}");
            assert_eq!(caveat(&page, "miscounted"), None, "{said}");
        }
    });
}

#[test]
fn a_frequency_that_misjudges_bursts_is_reported_with_the_count() {
    repeated(|| {
        let room = Room::new();
        if program(&room, FAULTS).is_none() {
            return;
        }
        let args = "-g fp -e page-faults -F 997 ./program 16000 8 5";
        let args: Vec<&str> = args.split(' ').collect();
        let (own, said, page) = recorded(&room, &args, &[]);
        let sum = page["total"].as_f64().unwrap();
        if (sum - own).abs() < 0.03 * own {
            return skipped("the kernel judged the bursts well");
        }
        let text = caveat(&page, "miscounted").expect("a caveat");
        assert!(said.contains(text), "{said}");
        let counted = text.split(" in samples, ").nth(1);
        let counted = counted.and_then(|rest| rest.split(' ').next());
        let counted: f64 = counted.unwrap().parse().unwrap();
        assert!((counted - own).abs() <= 0.02 * own, "{text}; own {own}");
        // Of a part of the time, too: it is about the recording.
        let args = ["--time", "..0.001"];
        let part = Command::new(PROFTOOL)
            .args(["flat", "--format", "json", "perf.data"])
            .args(args)
            .current_dir(&room.0)
            .output()
            .unwrap();
        let part: serde_json::Value = serde_json::from_slice(&part.stdout).unwrap();
        assert_eq!(caveat(&part, "miscounted"), Some(text));
    });
}

#[test]
fn time_of_short_threads_that_has_no_samples_is_reported() {
    repeated(|| {
        let room = Room::new();
        if program(&room, POOL).is_none() {
            return;
        }
        if !is_root() {
            return skipped("the clock of user space alone is not known");
        }
        let clock = ["-g", "fp", "-e", "cpu-clock"];
        let (own, said, page) = recorded(
            &room,
            &[&clock[..], &["./program", "300", "700"]].concat(),
            &[],
        );
        let text = caveat(&page, "short-threads").expect("a caveat");
        assert!(said.contains(text), "{said}");
        let counted = text
            .split(" % of ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let counted: f64 = counted.unwrap().parse().unwrap();
        let sum = page["total"].as_f64().unwrap() / 1e6;
        assert!(sum < 0.5 * own, "{sum} of {own} ms");
        // The time between fork and exec is not the program's, and threads end after their last count.
        assert!(
            (counted - own).abs() <= 0.15 * own + 10.0,
            "{text}; own {own} ms"
        );

        // What the advice says works.
        // Other tests run programs, too: this one has a name of its own.
        fs::copy(room.path("program"), room.path("pool-of-all")).unwrap();
        let args = [&clock[..], &["-a", "./pool-of-all", "300", "700"]].concat();
        let (own, _, page) = recorded(&room, &args, &["--comm", "pool-of-all"]);
        let sum = page["total"].as_f64().unwrap() / 1e6;
        // Each sample is a millisecond, and which of them fall into the program is chance.
        let chance = 5.0 * own.sqrt();
        assert!(
            (sum - own).abs() <= 0.05 * own + chance,
            "{sum} of {own} ms"
        );
        let args = [&clock[..], &["./program", "100000", "700"]].concat();
        let (_, said, page) = recorded(&room, &args, &[]);
        assert_eq!(caveat(&page, "short-threads"), None, "{said}");
    });
}

/// Two processes that hand each other each turn over pipes.
const TURNS: &str = r"
    #include <stdio.h>
    #include <unistd.h>
    static volatile long turns;
    __attribute__((noinline)) void work(void) { for (int i = 0; i < 50; i++) turns++; }
    int main(void) {
        int to[2], from[2];
        char turn = 0;
        if (pipe(to) || pipe(from)) return 1;
        pid_t child = fork();
        for (int i = 0; i < 100000; i++) {
            // Both work at once, so that each sleeps and wakes.
            if (child && write(to[1], &turn, 1) != 1) return 1;
            if (!child && read(to[0], &turn, 1) != 1) return 1;
            work();
            if (!child && write(from[1], &turn, 1) != 1) return 1;
            if (child && read(from[0], &turn, 1) != 1) return 1;
        }
        if (child) putchar('0');
        return 0;
    }";

#[test]
fn time_of_switches_that_has_no_samples_has_its_cause() {
    repeated(|| {
        let room = Room::new();
        if program(&room, TURNS).is_none() {
            return;
        }
        if !is_root() {
            return skipped("the clock of user space alone is not known");
        }
        let args = ["-g", "fp", "-e", "cpu-clock", "./program"];
        let (_, said, page) = recorded(&room, &args, &[]);
        let recording = Reader::open(&room.path("perf.data")).unwrap();
        // Each of the two waits for the other in each turn, but where that was faster.
        let switches = recording.features().switches.expect("the kernel counts");
        assert!((20_000..1_000_000).contains(&switches), "{switches}");
        for other in ["short-threads", "missed-time"] {
            assert_eq!(caveat(&page, other), None, "{said}");
        }
        let Some(text) = caveat(&page, "missed-switches") else {
            return skipped("a clock of this machine interrupts switches");
        };
        assert!(said.contains(text), "{said}");
    });
}
