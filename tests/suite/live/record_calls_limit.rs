//! `record --counts-limit`: calls that are too frequent are given up.

use std::fs;
use std::process::Command;

use crate::support::record::{PROFTOOL, Room, can_record, stderr};
use crate::support::record_calls::{RUNS, Running, arc, built, counted, graph};
use crate::support::repeated::repeated;
use crate::support::skipped;

/// Does little but call, in two threads and in a child.
const TINY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) long tiny(long x) { return x + 1; }
__attribute__((noipa)) long rare(long x) { return x * 2; }
__attribute__((noipa)) long many(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum = tiny(sum);
    for (int i = 0; i < 3; i++) sum = rare(sum);
    return sum;
}
static void *work(void *sum) { *(long *)sum = many(400000000); return 0; }
int main(void) {
    pthread_t threads[2];
    long sums[2], child;
    int ends[2], status;
    if (pipe(ends)) return 1;
    if (!fork()) {
        child = many(400000000);
        return write(ends[1], &child, sizeof child) == sizeof child ? 6 : 1;
    }
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, &sums[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    if (read(ends[0], &child, sizeof child) != sizeof child) return 1;
    wait(&status);
    printf("%ld %ld %ld %d\n", sums[0], sums[1], child, WEXITSTATUS(status));
    return 9;
}
"#;

#[test]
fn calls_that_are_too_frequent_are_given_up_and_the_program_goes_on() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let Some(program) = built(&room, TINY, &[], "prog") else {
            return;
        };
        let command = [program.to_str().unwrap()];
        let output = counted(&room, &["--counts-limit", "1"], &command);
        assert_eq!(output.status.code(), Some(9), "{}", stderr(&output));
        let each = 400_000_000u64 * 8;
        let expected = format!("{each} {each} {each} 6\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        let text = stderr(&output);
        assert!(text.contains("counting was given up at"), "{text}");
        assert!(text.contains("by more than 1 %"), "{text}");
        let graph = graph(&room, &[]);
        let tiny = arc(&graph, "many", "tiny").unwrap();
        assert_eq!(tiny["calls_at_least"], true, "{tiny}");
        let calls = tiny["calls"].as_u64().unwrap();
        assert!((1..3 * 400_000_000).contains(&calls), "{tiny}");
        // What is seldom called is exact.
        let rare = arc(&graph, "many", "rare").unwrap();
        assert_eq!(rare["calls"], 9, "{rare}");
        assert_ne!(rare["calls_at_least"], true, "{rare}");
    });
}

/// Calls a function until the call leads to it without a detour, in two threads and in a child. Another thread
/// waits.
const DIRECT: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) long tiny(long x) { return x + 1; }
__attribute__((noipa)) long many(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum = tiny(sum);
    return sum;
}
static int is_direct(void) {
    unsigned char *code = (unsigned char *)many;
    for (int i = 0; i < 64; i++) {
        int distance;
        memcpy(&distance, code + i + 1, sizeof distance);
        if (code[i] == 0xe8 && code + i + 5 + distance == (unsigned char *)tiny) return 1;
    }
    return 0;
}
/* How many million calls it takes, at most 20 000. */
static long until_direct(void) {
    long millions = 0;
    while (!is_direct() && millions++ < 20000) if (many(1000000) != 1000000) return -1;
    return is_direct() ? millions : -1;
}
static void *work(void *result) { *(long *)result = until_direct(); return 0; }
static int ends[2], interrupted;
static void *waits(void *none) {
    struct epoll_event event = { .events = EPOLLIN };
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    while (epoll_wait(epoll, &event, 1, -1) != 1) { interrupted++; if (errno != EINTR) _exit(3); }
    return none;
}
int main(int argc, char **argv) {
    pthread_t thread, waiting;
    long here = 0, there = 1;
    char byte = 0;
    int status = 256;
    if (argc > 1 && argv[1][0] == 'f' && !fork()) return until_direct() < 0 ? 2 : 1;
    if (pipe(ends)) return 3;
    if (argc > 1) {
        pthread_create(&thread, 0, work, &there);
        pthread_create(&waiting, 0, waits, 0);
    }
    here = until_direct();
    if (argc > 1) {
        pthread_join(thread, 0);
        if (write(ends[1], &byte, 1) != 1) return 3;
        pthread_join(waiting, 0);
        if (argv[1][0] == 'f') wait(&status);
    }
    /* Not at the beginning. */
    printf("%d %d %d %d\n", here > 0, there >= 0, WEXITSTATUS(status), interrupted);
    return 9;
}
"#;

#[test]
fn calls_that_were_given_up_are_made_as_they_were() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let Some(program) = built(&room, DIRECT, &[], "prog") else {
            return;
        };
        let program = program.to_str().unwrap();
        // One thread, more that are traced, and a process.
        for arguments in [&[][..], &["threads"], &["fork"]] {
            let output = counted(
                &room,
                &["--counts-limit", "1"],
                &[&[program], arguments].concat(),
            );
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(9), "{arguments:?}: {text}");
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(said, "1 1 1 0\n", "{arguments:?}: {text}");
            let graph = graph(&room, &[]);
            let tiny = arc(&graph, "many", "tiny").unwrap();
            assert_eq!(tiny["calls_at_least"], true, "{arguments:?}: {tiny}");
        }
    });
}

#[test]
fn a_process_is_restored_when_the_disk_is_full() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let Some(program) = built(&room, RUNS, &[], "prog") else {
            return;
        };
        let small = room.path("small");
        fs::create_dir(&small).unwrap();
        let script = "mount -t tmpfs -o size=128k none \"$1\" && cd \"$1\" || exit 77\n\
        exec \"$0\" record --counts -e cpu-clock -F 4999 -d 60 -o \"$1/out.data\" -p \"$2\"";
        let mut process = Running::start(&mut Command::new(program));
        let pid = process.pid();
        // Nobody else sees what is mounted there.
        let mut recorder = Command::new("unshare");
        recorder.args(["-m", "sh", "-c", script, PROFTOOL]);
        recorder.arg(&small).arg(&pid).env("PROFTOOL_CONFIG", "");
        let Ok(output) = recorder.output() else {
            return skipped("there is no unshare");
        };
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let text = stderr(&output);
        if output.status.code() == Some(77) || text.contains("unshare:") {
            return skipped("no mount namespaces here");
        }
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert!(text.contains("small/out.data"), "{text}");
        assert!(text.contains("no space left on device"), "{text}");
        // There is no command that could go on.
        assert!(text.contains("nothing more is recorded"), "{text}");
        assert!(!text.contains("command continues"), "{text}");
        // It did count, and has what is left of that.
        assert!(maps.contains("proftool-calls"), "{maps}");
        assert_eq!(process.line_at_end(), "as before");
        assert_eq!(process.end(), Some(9));
    });
}
