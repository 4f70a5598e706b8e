//! `record --counts` on programs whose threads are made, end or wait at the moment when all of them are
//! to stop, as a library is loaded.

use std::process::Command;

use crate::support::record::{Room, can_record, stderr};
use crate::support::record_calls::{Recorder, Running, TRACED, built, counted, graph};
use crate::support::record_calls_faults::{LOADS, loads};
use crate::support::record_calls_later::{calls, plugin};

#[test]
fn a_program_that_ends_while_it_is_stopped_keeps_its_status() {
    // One thread ends all of them at any moment.
    let text = r#"
        static void *ends(void *after) { usleep((long)after); _exit(23); }
        int main(int argc, char **argv) {
            pthread_t thread;
            for (int i = 0; i < 6; i++) pthread_create(&thread, 0, naps, 0);
            pthread_create(&thread, 0, ends, (void *)(10000L + 1777 * atoi(argv[argc - 1])));
            for (;;) load(argv[1]);
        }"#;
    if let Some((_, output)) = loads(text, &[], 30) {
        assert_eq!(output.status.code(), Some(23), "{}", stderr(&output));
    }
}

#[test]
fn a_program_that_is_killed_while_it_is_stopped_is_reported_as_killed() {
    let text = r#"
        int main(int argc, char **argv) {
            pthread_t thread;
            pid_t own = getpid();
            for (int i = 0; i < 6; i++) pthread_create(&thread, 0, naps, 0);
            if (!fork()) {
                usleep(10000 + 1777 * atoi(argv[argc - 1]));
                kill(own, SIGKILL);
                _exit(0);
            }
            for (;;) load(argv[1]);
        }"#;
    if let Some((_, output)) = loads(text, &[], 30) {
        assert_eq!(output.status.code(), Some(128 + 9), "{}", stderr(&output));
    }
}

#[test]
fn threads_that_are_made_while_others_stop_are_stopped_too() {
    // Each thread makes the next one and ends.
    let text = r#"
        static volatile int over;
        static void *next(void *none) {
            pthread_t thread;
            while (!over && pthread_create(&thread, 0, next, 0)) {}
            pthread_detach(pthread_self());
            return none;
        }
        int main(int argc, char **argv) {
            pthread_t thread;
            int calls = 0;
            for (int i = 0; i < 8 + argc; i++) pthread_create(&thread, 0, next, 0);
            for (int i = 0; i < 20; i++) calls += load(argv[1]);
            over = 1;
            usleep(50000);
            return calls;
        }"#;
    if let Some((room, output)) = loads(text, &[], 1) {
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(200), "{text}");
        let graph = graph(&room, &[]);
        // Where a thread has no turn for seconds, what it may have missed is a lower bound.
        let reasons = ["does not stop", "did not for seconds", "cannot be traced"];
        let is_least = reasons.iter().any(|reason| text.contains(reason));
        assert_eq!(
            calls(&graph, "plugin_run", "inside"),
            Some((200, is_least)),
            "{text}"
        );
    }
}

#[test]
fn a_program_whose_first_thread_has_ended_counts_what_it_loads() {
    let text = r#"
        static pthread_t first;
        static void *work(void *path) {
            int calls = 0;
            pthread_join(first, 0);
            for (int i = 0; i < 5; i++) calls += load(path);
            exit(calls);
        }
        int main(int argc, char **argv) {
            pthread_t thread;
            first = pthread_self();
            pthread_create(&thread, 0, work, argv[argc > 1]);
            pthread_exit(0);
        }"#;
    if let Some((room, output)) = loads(text, &[], 1) {
        assert_eq!(output.status.code(), Some(50), "{}", stderr(&output));
        let graph = graph(&room, &[]);
        assert_eq!(calls(&graph, "plugin_run", "inside"), Some((50, false)));
    }
}

#[test]
fn nobody_waits_for_a_thread_that_waits_in_the_kernel() {
    // It waits in the kernel until its child ends, which has its memory. The first thread ends the
    // child when it has loaded the library.
    let text = r#"
        static int ends[2], ready[2];
        static void *waits(void *sum) {
            char byte = 0;
            if (!vfork()) {
                ssize_t done = write(ready[1], &byte, 1) + read(ends[0], &byte, 1);
                _exit(done != 2);
            }
            for (int i = 0; i < 1000; i++) ++*(int *)sum;
            return 0;
        }
        int main(int argc, char **argv) {
            pthread_t thread;
            char byte = 0;
            int sum = 0, calls;
            if (argc < 2 || pipe(ends) || pipe(ready)) return 1;
            pthread_create(&thread, 0, waits, &sum);
            if (read(ready[0], &byte, 1) != 1) return 1;
            calls = load(argv[1]);
            if (write(ends[1], &byte, 1) != 1) return 1;
            pthread_join(thread, 0);
            return sum == 1000 ? calls + load(argv[1]) : 1;
        }"#;
    if let Some((room, output)) = loads(text, &[], 1) {
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(20), "{text}");
        assert!(!text.contains("does not stop"), "{text}");
        // It stops before it executes another instruction.
        let graph = graph(&room, &[]);
        assert_eq!(calls(&graph, "plugin_run", "inside"), Some((20, false)));
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_counts_while_it_is_recorded() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let text = r#"
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        static pthread_t first;
        __attribute__((noipa)) int leaf(int x) { return x + 1; }
        __attribute__((noipa)) int many(int sum) { for (int i = 0; i < 1000; i++) sum = leaf(sum); return sum; }
        static void *work(void *line) {
            int sum = 0;
            pthread_join(first, 0);
            puts("ready");
            fflush(stdout);
            while (fgets(line, 16, stdin)) printf("%d\n", sum = many(sum)), fflush(stdout);
            exit(4);
        }
        int main(void) {
            static char line[16];
            pthread_t thread;
            first = pthread_self();
            pthread_create(&thread, 0, work, line);
            pthread_exit(0);
        }"#;
    let Some(program) = built(&room, text, &[], "prog") else {
        return;
    };
    let mut process = Running::start(&mut Command::new(program));
    assert_eq!(process.ask("before"), "1000");
    let recorder = Recorder::attach(&room, &process.pid());
    assert_eq!(process.ask("while"), "2000");
    assert_eq!(process.ask("while"), "3000");
    recorder.end();
    assert_eq!(process.ask("after"), "4000");
    assert_eq!(process.end(), Some(4));
    let graph = graph(&room, &[]);
    assert_eq!(calls(&graph, "many", "leaf"), Some((2000, false)));
}

#[test]
fn a_signal_that_comes_while_a_program_is_stopped_comes_with_what_was_sent() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    // A child sends signals with numbers, one after the other as they are answered, while libraries are
    // loaded.
    let text = r#"
        #include <sys/wait.h>
        static volatile sig_atomic_t got;
        static int answers[2];
        static pid_t child;
        static void handler(int sig, siginfo_t *info, void *context) {
            char byte = 0;
            if (info->si_code == SI_QUEUE && info->si_pid == child && info->si_value.sival_int == got) got++;
            if (!context || write(answers[1], &byte, 1) != 1) _exit(sig);
        }
        int main(int argc, char **argv) {
            pid_t own = getpid();
            int calls = 0, status, ready[2];
            char byte = 0;
            struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
            if (argc < 2 || pipe(answers) || pipe(ready)) return 1;
            sigaction(SIGUSR1, &action, 0);
            child = fork();
            if (!child) {
                if (read(ready[0], &byte, 1) != 1) _exit(1);
                for (int i = 0; i < 100; i++) {
                    union sigval value = { .sival_int = i };
                    if (sigqueue(own, SIGUSR1, value) || read(answers[0], &byte, 1) != 1) _exit(1);
                    usleep(500); /* so that the program loads and does not only answer */
                }
                _exit(7);
            }
            if (write(ready[1], &byte, 1) != 1) return 1;
            do calls |= load(argv[1]); while (waitpid(child, &status, WNOHANG) != child);
            return got == 100 && WEXITSTATUS(status) == 7 ? calls : 1;
        }"#;
    let (Some(library), Some(program)) = (
        plugin(&room, "first.so"),
        built(&room, &[LOADS, text].concat(), &[], "prog"),
    ) else {
        return;
    };
    let names = [program.to_str().unwrap(), library.to_str().unwrap()];
    let output = counted(&room, &[], &names);
    assert_eq!(output.status.code(), Some(10), "{}", stderr(&output));
}

/// Whether it is traced until it gets a signal or makes a process; and how many calls it makes with one
/// thread and with more.
const ALONE: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *none) { many(3000000); return none; }
static void handler(int sig) { many(sig); }
int main(int argc, char **argv) {
    int before, status = 0, way = atoi(argv[argc - 1]);
    many(1000);
    before = tracer();
    if (way == 0) {
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);
        work(0);
        pthread_join(thread, 0);
    } else if (way == 4) {
        signal(SIGUSR1, handler);
        for (int i = 0; i < 100; i++) raise(SIGUSR1);
    } else {
        /* Twice, as it is not traced any more the second time. */
        for (int i = 0; i < 2; i++) {
            pid_t child = way == 1 ? fork() : way == 2 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : vfork();
            if (!child) { many(3000000); _exit(i + 3); }
            if (way != 3) many(3000000);
            waitpid(child, &status, 0);
            if (WEXITSTATUS(status) != i + 3) return 90;
        }
    }
    if ((tracer() != 0) != (way == 0)) return 91;
    printf("%d\n", before > 0);
    return 40 + way;
}
"#;

#[test]
fn a_program_with_one_thread_counts_without_locks_until_there_is_another() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let Some(program) = built(&room, &[TRACED, ALONE].concat(), &[], "prog") else {
        return;
    };
    // A thread, fork, clone, vfork, signals.
    let expected = [6_000_000, 12_000_000, 12_000_000, 6_000_000, 1000];
    for (way, calls_then) in expected.into_iter().enumerate() {
        let command = [program.to_str().unwrap(), &way.to_string()];
        let output = counted(&room, &["--counts-limit", "none"], &command);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(40 + way as i32), "{text}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{text}");
        let graph = graph(&room, &[]);
        assert_eq!(
            calls(&graph, "many", "leaf"),
            Some((1000 + calls_then, false)),
            "{way}"
        );
    }
}
