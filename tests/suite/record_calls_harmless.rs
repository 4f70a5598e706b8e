//! Process: programs end as they do alone when their calls are counted.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::record::{PROFTOOL, Room, can_record, stderr};
use crate::record_calls::built;
use crate::record_calls_later::plugin;

/// Runs a program alone and counted, each with these arguments. If the recorder hangs it is killed.
fn compared(room: &Room, program: &PathBuf, options: &[&str], arguments: &[&str]) -> Output {
    let alone = Command::new(program).args(arguments).output().unwrap();
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", PROFTOOL, "record", "--counts"]);
    command
        .args(["-e", "cpu-clock", "-o", "out.data"])
        .args(options);
    command.arg("--").arg(program).args(arguments);
    let command = command.env("PROFTOOL_CONFIG", "").current_dir(&room.0);
    let output = command.output().unwrap();
    let text = stderr(&output);
    // proftool states a signal as shells do.
    let signal = std::os::unix::process::ExitStatusExt::signal(&alone.status);
    let status = alone.status.code().or(signal.map(|signal| 128 + signal));
    assert_eq!(output.status.code(), status, "{arguments:?}: {text}");
    assert_eq!(output.stdout, alone.stdout, "{arguments:?}: {text}");
    let reported = ["in out.data (", "no samples were recorded in out.data"];
    let is_reported = reported.iter().any(|line| text.contains(line));
    assert!(is_reported, "{arguments:?}: {text}");
    output
}

/// A program with its room; `None` if it cannot be built or recorded here.
fn program(text: &str, flags: &[&str]) -> Option<(Room, PathBuf)> {
    if !can_record() {
        return None;
    }
    let room = Room::new();
    let program = built(&room, text, flags, "prog")?;
    Some((room, program))
}

#[test]
fn children_that_are_killed_at_once_are_waited_for() {
    let text = r#"
        #include <signal.h>
        #include <spawn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        extern char **environ;
        int main(void) {
            char *arguments[] = { "true", 0 };
            for (int i = 0; i < 100; i++) {
                pid_t pid;
                if (posix_spawn(&pid, "/bin/true", 0, 0, arguments, environ)) return 1;
                for (volatile int k = rand() % 100000; k > 0; k--) {}
                kill(pid, SIGKILL);
                if (waitpid(pid, 0, 0) != pid) return 2;
            }
            puts("done");
            return 7;
        }"#;
    if let Some((room, program)) = program(text, &[]) {
        compared(&room, &program, &["--follow-exec"], &[]);
    }
}

#[test]
fn a_program_that_is_killed_while_it_makes_threads_has_ended() {
    // What a thread has just made is traced also if that thread is killed before it is known.
    let text = r#"
        #include <pthread.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        static int after;
        static void *ends(void *none) { usleep(after); kill(getpid(), SIGKILL); return none; }
        static void *works(void *none) { for (volatile int i = 0; i < 9000; i++) {} return none; }
        int main(int argc, char **argv) {
            pthread_t killer, threads[4];
            after = atoi(argv[argc - 1]);
            pthread_create(&killer, 0, ends, 0);
            for (;;) {
                for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, works, 0);
                for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
            }
        }"#;
    if let Some((room, program)) = program(text, &[]) {
        for trial in 0..40 {
            compared(&room, &program, &[], &[&(trial * 489).to_string()]);
        }
    }
}

#[test]
fn a_program_that_is_never_executed_holds_nobody_up() {
    // The child is interrupted while it announces the program, and does not return from that.
    let text = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/time.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile int announces;
        static int pipes[2];
        static void handler(int sig) {
            if (!announces) return;
            write(pipes[1], "h", 1);
            for (;;) pause();
        }
        int main(int argc, char **argv) {
            char byte;
            int calls = 0;
            if (pipe(pipes)) return 1;
            pid_t child = fork();
            if (!child) {
                struct itimerval often = { { 0, 100 }, { 0, 100 } };
                signal(SIGALRM, handler);
                setitimer(ITIMER_REAL, &often, 0);
                // It is interrupted here if not later.
                for (int i = 0; i < 1000000; i++) {
                    announces = 1;
                    execl("/nonexistent/program", "program", (char *)0);
                }
                _exit(1);
            }
            read(pipes[0], &byte, 1);
            void *library = dlopen(argv[argc - 1], RTLD_NOW);
            if (!library) return 2;
            ((int (*)(int, int *))dlsym(library, "plugin_run"))(10, &calls);
            kill(child, SIGKILL);
            waitpid(child, 0, 0);
            return calls;
        }"#;
    let Some((room, program)) = program(text, &[]) else {
        return;
    };
    let Some(library) = plugin(&room, "first.so") else {
        return;
    };
    for _ in 0..5 {
        let library = library.to_str().unwrap();
        let output = compared(&room, &program, &["--follow-exec"], &[library]);
        let text = stderr(&output);
        assert!(!text.contains("without an answer"), "{text}");
    }
}

#[test]
fn a_restarted_sequence_is_not_continued() {
    // The kernel takes note of a sequence until the thread leaves it. One that goes on in it without that
    // note was moved out and back.
    let text = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <pthread.h>
        #include <stdint.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/rseq.h>
        #include <unistd.h>
        static volatile int over;
        static long lost;
        __attribute__((noipa)) static void sequence(struct rseq *area) {
            __asm__ volatile(
                ".pushsection __rseq_cs, \"aw\"\n.balign 32\n"
                "3: .long 0, 0\n.quad 1f, 2f - 1f, 4f\n.popsection\n"
                "lea 3b(%%rip), %%rax\nmov %%rax, 8(%[area])\n"
                "1: cmpq $0, 8(%[area])\nje 5f\n"
                "cmpl $0, %[over]\nje 1b\n"
                "2: jmp 6f\n"
                "5: incq %[lost]\njmp 6f\n"
                ".byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n"
                "4: nop\n"
                "6:\n" : [lost] "+m"(lost) : [area] "r"(area), [over] "m"(over) : "rax", "memory", "cc");
        }
        static void *works(void *none) {
            struct rseq *area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
            while (!over) sequence(area);
            return none;
        }
        int main(int argc, char **argv) {
            pthread_t thread;
            int calls = 0;
            if (!__rseq_size) return 0;
            pthread_create(&thread, 0, works, 0);
            for (int i = 0; i < 200; i++) {
                void *library = dlopen(argv[argc - 1], RTLD_NOW);
                if (!library) return 2;
                ((int (*)(int, int *))dlsym(library, "plugin_run"))(10, &calls);
                dlclose(library);
            }
            over = 1;
            pthread_join(thread, 0);
            return lost ? 5 : 6;
        }"#;
    let Some((room, program)) = program(text, &[]) else {
        return;
    };
    let Some(library) = plugin(&room, "first.so") else {
        return;
    };
    compared(&room, &program, &[], &[library.to_str().unwrap()]);
}

#[test]
fn a_program_that_sleeps_is_not_interrupted_when_a_library_is_loaded() {
    let text = r#"
        #include <dlfcn.h>
        #include <errno.h>
        #include <pthread.h>
        #include <stdlib.h>
        #include <sys/epoll.h>
        #include <unistd.h>
        static int pipes[2], interrupted;
        static void *waits(void *none) {
            struct epoll_event event = { .events = EPOLLIN };
            int epoll = epoll_create1(0);
            epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event);
            while (epoll_wait(epoll, &event, 1, -1) != 1) interrupted++;
            return none;
        }
        int main(int argc, char **argv) {
            pthread_t threads[3];
            int calls = 0;
            if (pipe(pipes)) return 1;
            for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, waits, 0);
            for (int i = 0; i < 20; i++) {
                void *library = dlopen(argv[argc - 1], RTLD_NOW);
                if (!library) return 2;
                ((int (*)(int, int *))dlsym(library, "plugin_run"))(10, &calls);
                dlclose(library);
            }
            write(pipes[1], "e", 1);
            for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
            return interrupted ? 5 : 6;
        }"#;
    let Some((room, program)) = program(text, &[]) else {
        return;
    };
    let Some(library) = plugin(&room, "first.so") else {
        return;
    };
    compared(&room, &program, &[], &[library.to_str().unwrap()]);
}
