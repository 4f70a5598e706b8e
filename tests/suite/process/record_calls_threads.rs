//! `record --counts` on programs with threads: each has counters of its own while the program is traced.

use std::os::unix::process::ExitStatusExt;

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_calls::{TRACED, built, counted, graph};
use crate::support::record_calls_later::{calls, plugin};

/// Threads that make calls, some of them by threads of their own. What is between them is told by the
/// arguments.
const THREADS: &str = r#"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_barrier_t barrier;
static int deep = 3;
static void *work(void *inner) {
    pthread_t thread;
    many(1000000);
    if (inner) pthread_create(&thread, 0, work, inner == &deep ? 0 : &deep);
    many(1000000);
    if (inner) pthread_join(thread, 0);
    return 0;
}
static void *meets(void *none) {
    for (int i = 0; i < 3; i++) { many(500000); pthread_barrier_wait(&barrier); }
    return none;
}
static void handler(int sig) { many(sig * 100); }
static int pipes[2], interrupted;
static void *waits(void *none) {
    struct epoll_event event = { .events = EPOLLIN };
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event);
    while (epoll_wait(epoll, &event, 1, -1) != 1) { interrupted++; if (errno != EINTR) _exit(3); }
    return none;
}
"#;

fn record(text: &str, arguments: &[&str]) -> Option<(Room, std::process::Output)> {
    if !can_record() {
        return None;
    }
    let room = Room::new();
    let program = built(&room, &[TRACED, THREADS, text].concat(), &[], "prog")?;
    let command = [&[program.to_str().unwrap()], arguments].concat();
    let output = counted(&room, &["--counts-limit", "none"], &command);
    Some((room, output))
}

#[test]
fn each_thread_counts_for_itself_and_all_add_up() {
    let text = r#"
        int main(void) {
            pthread_t threads[7];
            int is_traced;
            for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 7; i++) pthread_create(&threads[i], 0, work, i % 2 ? &barrier : 0);
                many(1000000);
                for (int i = 0; i < 7; i++) pthread_join(threads[i], 0);
            }
            is_traced = tracer() > 0;
            printf("%d\n", is_traced);
            return 7;
        }"#;
    let Some((room, output)) = record(text, &[]) else {
        return;
    };
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{text}");
    // No lock was needed to the end.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{text}");
    // Three of seven make one, and that another one.
    let expected = 3 * (1 + 2 * (7 + 3 + 3)) * 1_000_000;
    let found = calls(&graph(&room, &[]), "many", "leaf");
    assert_eq!(found, Some((expected, false)), "{text}");
}

#[test]
fn threads_count_on_when_they_have_to_share_counters() {
    // A signal, a process, a library: all threads are in the middle of calls.
    let text = r#"
        int main(int argc, char **argv) {
            pthread_t threads[5], thread;
            char way = argv[1][0], byte = 0;
            int before, status = 0;
            if (pipe(pipes)) return 1;
            pthread_barrier_init(&barrier, 0, 6);
            for (int i = 0; i < 5; i++) pthread_create(&threads[i], 0, meets, 0);
            pthread_create(&thread, 0, waits, 0);
            usleep(20000);
            before = tracer();
            if (way == 's') { signal(SIGUSR1, handler); raise(SIGUSR1); }
            if (way == 'f' && !fork()) { many(1000); _exit(5); }
            if (way == 'f') wait(&status);
            if (way == 'l' && !dlopen(argv[2], RTLD_NOW)) return 2;
            if (tracer() != 0) return 4;
            for (int i = 0; i < 3; i++) { many(500000); pthread_barrier_wait(&barrier); }
            for (int i = 0; i < 5; i++) pthread_join(threads[i], 0);
            if (write(pipes[1], &byte, 1) != 1) return 5;
            pthread_join(thread, 0);
            printf("%d %d\n", before > 0, interrupted);
            return 60 + WEXITSTATUS(status);
        }"#;
    if !can_record() {
        return;
    }
    let rest = Room::new();
    let Some(library) = plugin(&rest, "first.so") else {
        return;
    };
    for (way, more, status) in [("s", 1000, 60), ("f", 1000, 65), ("l", 0, 60)] {
        let Some((room, output)) = record(text, &[way, library.to_str().unwrap()]) else {
            return;
        };
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{way}: {text}");
        // It was traced before, and nothing was interrupted.
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "1 0\n", "{way}: {text}");
        let found = calls(&graph(&room, &[]), "many", "leaf");
        assert_eq!(found, Some((9_000_000 + more, false)), "{way}: {text}");
    }
}

#[test]
fn a_program_that_makes_many_threads_is_traced_no_more() {
    let text = r#"
        int main(void) {
            pthread_t threads[3];
            for (int round = 0; round < 400; round++) {
                for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, (void *(*)(void *))many, (void *)1000);
                for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
            }
            return tracer() == 0 ? 8 : 1;
        }"#;
    let Some((room, output)) = record(text, &[]) else {
        return;
    };
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(8), "{text}");
    let found = calls(&graph(&room, &[]), "many", "leaf");
    assert_eq!(found, Some((1_200_000, false)), "{text}");
}

#[test]
fn a_program_with_threads_that_is_killed_is_reported_as_killed() {
    let text = r#"
        int main(void) {
            pthread_t threads[5];
            pthread_barrier_init(&barrier, 0, 7);
            for (int i = 0; i < 5; i++) pthread_create(&threads[i], 0, meets, 0);
            many(1000000);
            kill(getpid(), SIGKILL);
            return 1;
        }"#;
    let Some((_room, output)) = record(text, &[]) else {
        return;
    };
    let text = stderr(&output);
    assert_eq!(output.status.signal(), None, "{text}");
    assert_eq!(output.status.code(), Some(128 + 9), "{text}");
}
