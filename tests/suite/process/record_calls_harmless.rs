//! Programs end as they do alone when their calls are counted.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::record::{PROFTOOL, Room, can_record, stderr};
use crate::support::record_calls::{Running, built};
use crate::support::record_calls_later::plugin;

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
fn a_program_has_its_own_segment() {
    // Each thread has a block of its own at gs, set before or after threads are made, by a system call
    // through the library, by one of its own, or by an instruction.
    let text = r#"
        #define _GNU_SOURCE
        #include <asm/prctl.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/auxv.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static __thread long block[64];
        static int mode;
        __attribute__((noipa)) unsigned leaf(unsigned x) { return x * 69069 + 1; }
        __attribute__((noipa)) unsigned work(unsigned n) { unsigned x = n; while (n--) x = leaf(x); return x; }
        static long first(void) { long value; __asm__ volatile("mov %%gs:0,%0" : "=r"(value)); return value; }
        static void set(void) {
            block[0] = (long)block;
            long result;
            if (mode == 0) syscall(SYS_arch_prctl, ARCH_SET_GS, block);
            if (mode == 1) __asm__ volatile("syscall" : "=a"(result) : "a"(158L), "D"(0x1001L), "S"(block) : "rcx", "r11", "memory");
            if (mode == 2) __asm__ volatile("wrgsbase %0" : : "r"(block));
        }
        static void uses(void) {
            for (int i = 0; i < 50; i++) { work(1000); if (first() != (long)block) _exit(5); usleep(100); }
        }
        static void *thread(void *none) { work(1000); set(); uses(); return none; }
        int main(int argc, char **argv) {
            pthread_t threads[2];
            int early = atoi(argv[argc - 1]);
            mode = atoi(argv[argc - 2]);
            if (mode == 2 && !(getauxval(AT_HWCAP2) & 2)) return 0;
            if (early) set();
            for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, thread, 0);
            work(1000);
            if (!early) set();
            uses();
            for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
            puts("ok");
            return 3;
        }"#;
    if let Some((room, program)) = program(text, &[]) {
        for mode in ["0", "1", "2"] {
            for early in ["0", "1"] {
                compared(&room, &program, &[], &[mode, early]);
            }
        }
    }
}

#[test]
fn a_program_that_restricts_its_system_calls_loads_its_plugin() {
    // What is needed to load a plugin and to print; anything else ends the program.
    let text = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <pthread.h>
        #include <stddef.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static long direct(long number, long a, long b, void *c) {
            long result;
            __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
            return result;
        }
        static void *meets(void *none) { return none; }
        int main(int argc, char **argv) {
            static const int allowed[] = { SYS_read, SYS_write, SYS_openat, SYS_close, SYS_fstat, SYS_newfstatat,
                SYS_mmap, SYS_mprotect, SYS_munmap, SYS_brk, SYS_lseek, SYS_pread64, SYS_exit, SYS_exit_group,
                SYS_rt_sigreturn, SYS_getrandom, SYS_access, SYS_readlink, SYS_getcwd };
            struct sock_filter filter[64];
            unsigned short k = 0;
            int mode = atoi(argv[1]), has_threads = atoi(argv[2]), calls = 0;
            pthread_t thread;
            if (has_threads) { pthread_create(&thread, 0, meets, 0); pthread_join(thread, 0); }
            filter[k++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
            for (unsigned i = 0; i < sizeof allowed / sizeof *allowed; i++) {
                filter[k++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
                filter[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
            }
            filter[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
            struct sock_fprog program = { k, filter };
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 77;
            if (mode == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
            if (mode == 1 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) return 77;
            if (mode == 2 && direct(317, SECCOMP_SET_MODE_FILTER, 1, &program)) return 77;
            if (mode == 3 && direct(157, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
            void *library = dlopen(argv[3], RTLD_NOW);
            if (!library) return 3;
            ((int (*)(int, int *))dlsym(library, "plugin_run"))(10, &calls);
            printf("%d\n", calls);
            fflush(stdout);
            return 9;
        }"#;
    let Some((room, program)) = program(text, &[]) else {
        return;
    };
    let Some(library) = plugin(&room, "first.so") else {
        return;
    };
    for mode in ["0", "1", "2", "3"] {
        for has_threads in ["0", "1"] {
            let arguments = [mode, has_threads, library.to_str().unwrap()];
            let output = compared(&room, &program, &[], &arguments);
            assert_eq!(output.status.code(), Some(9), "{arguments:?}");
            let text = stderr(&output);
            assert!(text.contains("may restrict its system calls"), "{text}");
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

/// Waits in a thread while children end and signals come, until its input ends. Prints how often the
/// waiting was interrupted, and how often it should have been.
const INTERRUPTED: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
static int ends[2];
static sigset_t all;
static volatile int interrupted;
__attribute__((noipa)) long tiny(long x) { return x + 1; }
static void handle(int signal) {}
static void *waits(void *none) {
    struct epoll_event event = { .events = EPOLLIN };
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    while (epoll_pwait(epoll, &event, 1, -1, &all) != 1) { if (errno != EINTR) _exit(3); interrupted++; }
    return none;
}
int main(void) {
    pthread_t waiting;
    sigset_t one;
    struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
    int sent = 0;
    char byte;
    if (pipe(ends) || sigaction(SIGUSR1, &action, 0)) return 3;
    /* It comes while the thread waits, never before. */
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, &all);
    pthread_create(&waiting, 0, waits, 0);
    puts("ready");
    fflush(stdout);
    fcntl(0, F_SETFL, O_NONBLOCK);
    while (read(0, &byte, 1)) {
        for (int i = 0; i < 8; i++) if (!fork()) _exit(tiny(i));
        for (int i = 0; i < 8; i++) wait(0);
        int before = interrupted;
        pthread_kill(waiting, SIGUSR1);
        sent++;
        for (int i = 0; interrupted == before && i < 10000; i++) usleep(1000);
    }
    if (write(ends[1], "x", 1) != 1) return 3;
    pthread_join(waiting, 0);
    printf("%d of %d\n", interrupted, sent);
    return 9;
}
"#;

#[test]
fn what_waits_is_interrupted_by_signals_that_are_handled_and_by_no_others() {
    let Some((room, program)) = program(INTERRUPTED, &[]) else {
        return;
    };
    let mut process = Running::start(&mut Command::new(program));
    for _ in 0..10 {
        let options = ["--counts", "-e", "cpu-clock", "-d", "0.1", "-o", "out.data"];
        let output = room.record(&[&options[..], &["-p", &process.pid()]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let line = process.line_at_end();
    let (interrupted, sent) = line.split_once(" of ").unwrap();
    assert_eq!(interrupted, sent);
    assert_eq!(process.end(), Some(9));
}

#[test]
fn a_program_maps_memory_at_fixed_addresses() {
    // By itself, whatever is there, or for AddressSanitizer, which ends where something is.
    let text = r#"
        #include <sys/mman.h>
        const char *__asan_default_options(void) { return "detect_leaks=0"; }
        __attribute__((noipa)) unsigned leaf(unsigned x) { return x * 69069 + 1; }
        int main(void) {
            int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
            if (FIXED && mmap((void *)0x40000000, 0x60000000, PROT_READ, flags, -1, 0) == MAP_FAILED) return 1;
            unsigned x = 0;
            for (int i = 0; i < 1000; i++) x = leaf(x);
            return x % 100;
        }"#;
    let own = ["-no-pie", "-DFIXED=1"];
    let sanitized = ["-no-pie", "-DFIXED=0", "-fsanitize=address"];
    for flags in [&own[..], &sanitized] {
        if let Some((room, program)) = program(text, flags) {
            compared(&room, &program, &[], &[]);
        }
    }
}
