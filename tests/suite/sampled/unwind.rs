//! Stacks of recursion, signal handlers and threads, recorded without frame pointers.

use std::path::Path;
use std::process::Command;

use crate::support::repeated::repeated;
use crate::support::shares::at_least;
use crate::support::skipped;
use crate::support::unwind::{RECURSION, compiled, output, recorded};

/// A handler that is busy while the program is.
const SIGNALS: &str = r#"
    #include <signal.h>
    #include <sys/time.h>
    volatile unsigned long sink;
    __attribute__((noinline)) void handle(int n) { for (int i = 0; i < n; i++) sink += i * i; }
    /* Each signal asks for the next, a hundred times: a timer that goes on by itself leaves no time for
       anything else where the handler takes longer than its period. */
    void arm(void) {
        static int armed;
        struct itimerval timer = {{0, 0}, {0, 1000}};
        if (armed++ < 100) setitimer(ITIMER_REAL, &timer, 0);
    }
    void handler(int signal) { handle(1000000); arm(); }
    __attribute__((noinline)) unsigned long busy(unsigned long n) {
        unsigned long sum = 0;
        for (unsigned long i = 0; i < n; i++) sum += i ^ sink;
        return sum;
    }
    int main(void) {
        struct sigaction action = {.sa_handler = handler};
    #ifdef OWN_STACK
        static char own[1 << 16];
        sigaltstack(&(stack_t){.ss_sp = own, .ss_size = sizeof own}, 0);
        action.sa_flags = SA_ONSTACK;
    #endif
        sigaction(SIGALRM, &action, 0);
        arm();
        for (int i = 0; i < 2000; i++) sink += busy(100000);
        return 0;
    }
"#;

/// A program that makes threads all the time.
const THREADS: &str = r#"
    #include <pthread.h>
    static void *run(void *argument) { return argument; }
    __attribute__((noinline)) void make(void) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, run, 0);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    }
    int main(void) {
        for (int i = 0; i < 2000; i++) make();
        return 0;
    }
"#;

/// Samples, and for each function (outermost first) the lines of `proftool export --to folded`.
fn folded(file: &Path) -> Vec<(Vec<String>, u64)> {
    let mut proftool = Command::new(env!("CARGO_BIN_EXE_proftool"));
    proftool.args(["export", "--to", "folded", "--unit", "samples"]);
    let text = output(proftool.arg(file)).unwrap();
    let stacks = text.lines().map(|line| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let stack = stack.split(';').map(str::to_owned).collect();
        (stack, count.parse().unwrap())
    });
    stacks.collect()
}

#[test]
fn recursion_without_frame_pointers_has_complete_stacks() {
    repeated(|| {
        for (name, flags) in [
            ("plain", &["-O2"][..]),
            ("stripped", &["-O2", "-s", "-static"][..]),
            (
                "debug-frame",
                &[
                    "-O2",
                    "-g",
                    "-fno-asynchronous-unwind-tables",
                    "-fno-unwind-tables",
                ][..],
            ),
        ] {
            let program = compiled(name, RECURSION, "gcc", flags);
            let Some(file) = program.as_deref().and_then(recorded) else {
                return;
            };
            let stacks = folded(&file);
            let all: u64 = stacks.iter().map(|(_, count)| count).sum();
            let is_broken = |stack: &[String]| stack.iter().any(|name| name.starts_with('['));
            let whole = stacks.iter().filter(|(stack, _)| !is_broken(stack));
            let whole: u64 = whole.map(|(_, count)| count).sum();
            assert!(
                all > 20 && at_least(whole, all, 95.0),
                "{name}: {whole} of {all}: {stacks:?}"
            );
            if name == "stripped" {
                continue;
            }
            let inside = stacks.iter().filter(|(stack, _)| {
                let Some(main) = stack.iter().position(|name| name == "main") else {
                    return false;
                };
                // main calls rounds, and then even and odd take turns.
                // On a busy machine one stack in four goes on in the kernel.
                let is_kernel =
                    |name: &&str| name.starts_with("asm_") || name.starts_with("entry_");
                let own = stack[main + 1..].iter().map(String::as_str);
                let mut own = own.take_while(|name| !is_kernel(name));
                let turns = ["even", "odd"].iter().cycle();
                own.next() == Some("rounds") && own.zip(turns).all(|(a, b)| a == *b)
            });
            let inside: u64 = inside.map(|(_, count)| count).sum();
            assert!(
                at_least(inside, all, 80.0),
                "{name}: {inside} of {all}: {stacks:?}"
            );
            let deepest = stacks.iter().map(|(stack, _)| stack.len()).max();
            assert!(deepest > Some(35), "{name}: {deepest:?}");
        }
    });
}

/// The stacks of a signal's handler.
fn with_handler(stacks: &[(Vec<String>, u64)]) -> impl Iterator<Item = &(Vec<String>, u64)> {
    let is_handler = |(stack, _): &&(Vec<String>, u64)| stack.iter().any(|name| name == "handle");
    stacks.iter().filter(is_handler)
}

#[test]
fn a_signal_handlers_stack_continues_in_the_interrupted_code() {
    repeated(|| {
        let program = compiled("signals", SIGNALS, "gcc", &["-O2"]);
        let Some(file) = program.as_deref().and_then(recorded) else {
            return;
        };
        let stacks = folded(&file);
        let handled = with_handler(&stacks);
        let (mut all, mut through): (u64, u64) = (0, 0);
        for (stack, count) in handled {
            all += count;
            let at = |wanted: &str| stack.iter().position(|name| name == wanted);
            // The timer goes on while the program exits.
            let start = at("__libc_start_call_main");
            let is_whole = start < at("handler") && start.is_some();
            through += u64::from(is_whole) * count;
        }
        assert!(all > 10, "{stacks:?}");
        assert!(
            at_least(through, all, 95.0),
            "{through} of {all}: {stacks:?}"
        );
    });
}

/// A copy is of one stack. The code that was interrupted is known from the handler's frame; who called it
/// is not, and may have been main.
#[test]
fn a_signal_handler_on_a_stack_of_its_own_has_no_callers_beyond_the_interrupted_code() {
    repeated(|| {
        let flags = ["-O2", "-g", "-DOWN_STACK"];
        let program = compiled("signals-own-stack", SIGNALS, "gcc", &flags);
        let Some(file) = program.as_deref().and_then(recorded) else {
            return;
        };
        let stacks = folded(&file);
        let handled = with_handler(&stacks);
        let (mut all, mut cut): (u64, u64) = (0, 0);
        for (stack, count) in handled {
            all += count;
            let own: Vec<_> = stack.iter().take(5).map(String::as_str).collect();
            let expected = ["[truncated]", "busy", "__restore_rt", "handler", "handle"];
            cut += u64::from(own == expected) * count;
        }
        assert!(all > 10, "{stacks:?}");
        // Some interrupt the arming of the next.
        assert!(at_least(cut, all, 90.0), "{cut} of {all}: {stacks:?}");
        let mut proftool = Command::new(env!("CARGO_BIN_EXE_proftool"));
        let flat = output(proftool.args(["flat", "--format", "json"]).arg(&file)).unwrap();
        let flat: serde_json::Value = serde_json::from_str(&flat).unwrap();
        let caveats = flat["caveats"].as_array().unwrap();
        let kinds: Vec<_> = caveats.iter().map(|caveat| &caveat["kind"]).collect();
        assert!(kinds.contains(&&"signal-stack".into()), "{caveats:?}");
        assert!(!kinds.contains(&&"broken-stack".into()), "{caveats:?}");
        assert!(!kinds.contains(&&"short-copy".into()), "{caveats:?}");
        let functions = flat["functions"].as_array().unwrap();
        let main = functions.iter().find(|function| function["name"] == "main");
        let (main, total) = (main.unwrap(), flat["total"].as_u64().unwrap());
        let most = main["total_max"]
            .as_u64()
            .or_else(|| main["total_limit"].as_u64());
        assert!(most.unwrap() * 100 >= total * 95, "{main} of {total}");
    });
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn a_thread_is_made_by_its_creator() {
    repeated(|| {
        let program = compiled("threads", THREADS, "gcc", &["-O2", "-pthread"]);
        let Some(file) = program.as_deref().and_then(recorded) else {
            return;
        };
        // Most of the time of clone3, or of clone in older libraries, is the kernel's.
        let stacks = folded(&file);
        let (mut all, mut whole): (u64, u64) = (0, 0);
        for (stack, count) in &stacks {
            let Some(call) = stack.iter().position(|name| name.contains("clone3")) else {
                continue;
            };
            let is_new = stack[call + 1..]
                .iter()
                .any(|name| name == "start_thread" || name.starts_with("ret_from_fork"));
            if !is_new && stack.len() > call + 1 {
                all += count;
                let made = stack[..call].iter().map(String::as_str);
                let made: Vec<_> = made.skip_while(|name| *name != "main").collect();
                whole += u64::from(made.starts_with(&["main", "make"])) * count;
            }
        }
        if all < 20 {
            return skipped("the C library makes threads in another way");
        }
        assert!(at_least(whole, all, 95.0), "{whole} of {all}: {stacks:?}");
        // A new thread has no callers, and is not broken.
        let is_broken = |(stack, _): &&(Vec<String>, u64)| {
            let has = |name: &str| stack.iter().any(|it| it == name);
            has("[broken stack]") && (has("start_thread") || has("ret_from_fork"))
        };
        assert_eq!(stacks.iter().find(is_broken), None);
    });
}
