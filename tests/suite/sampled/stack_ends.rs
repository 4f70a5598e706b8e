//! Where stacks end: at the start of a program or thread, which something proves, or cut and marked.

use std::path::{Path, PathBuf};

use crate::support::record::{Room, can_record, is_root, stderr};
use crate::support::repair::{proftool, recorded};
use crate::support::repeated::repeated;
use crate::support::{compile_text, skipped};

/// The recording of a C program of this name; `None` where it cannot be built or recorded.
fn recording_of(
    name: &str,
    unwinding: &str,
    compiler: &str,
    flags: &[&str],
    text: &str,
) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let number = std::process::id();
    let program = folder.join(format!("ends-{name}-{unwinding}-{number}"));
    let data = folder.join(format!("ends-{name}-{unwinding}-{number}.data"));
    let flags = [&["-O2"], flags].concat();
    compile_text(compiler, &flags, text, &program)?;
    recorded(unwinding, &program, data)
}

/// The stacks of a recording that contain this function, without the marks of restored frames.
fn with(data: &Path, function: &str) -> Vec<Vec<String>> {
    let folded = proftool(&["export", "--to", "folded"], data);
    let stacks = folded.lines().map(|line| {
        let (stack, _) = line.rsplit_once(' ').unwrap();
        stack
            .replace('~', "")
            .split(';')
            .map(str::to_owned)
            .collect()
    });
    let stacks = stacks.filter(|stack: &Vec<String>| stack.iter().any(|name| name == function));
    let stacks: Vec<Vec<String>> = stacks.collect();
    assert!(!stacks.is_empty(), "{function}: {folded}");
    stacks
}

/// Whether a stack has these functions, one inside of the other, or is marked as cut.
fn is_honest(stack: &[String], functions: &[&str]) -> bool {
    let mut rest = stack.iter();
    let is_cut = stack[0].starts_with('[');
    is_cut || functions.iter().all(|name| rest.any(|other| other == name))
}

/// `call_it` has no unwind information, and the frame pointer leads to two words of data in it.
const DATA_AT_POINTER: &str = "\
#include <time.h>
volatile unsigned long sink;
void call_it(void (*called)(unsigned long), unsigned long n);
__asm__(\".text\\n.globl call_it\\n.type call_it,@function\\n\"
        \"call_it: push %rbp\\nsub $32,%rsp\\nlea 8(%rsp),%rbp\\nmovq $0x1234,8(%rsp)\\nmovq $9,16(%rsp)\\n\"
        \"mov %rdi,%rax\\nmov %rsi,%rdi\\ncall *%rax\\nadd $32,%rsp\\npop %rbp\\nret\\n\"
        \".size call_it,.-call_it\\n\");
__attribute__((noipa)) void leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 4) call_it(leaf, 200000);
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn exported_code_without_unwind_information_proves_no_end() {
    repeated(|| {
        for unwinding in ["fp", "fp,0"] {
            let flags = ["-rdynamic", "-fno-omit-frame-pointer"];
            let data = recording_of("exported", unwinding, "gcc", &flags, DATA_AT_POINTER);
            let Some(data) = data else {
                return;
            };
            for stack in with(&data, "leaf") {
                assert!(
                    is_honest(&stack, &["main", "leaf"]),
                    "{unwinding}: {stack:?}"
                );
            }
        }
    });
}

/// While `leaf` runs, the frame pointer leads to data, among which is the kernel's mark of a hypervisor.
const MARK: &str = "\
#include <time.h>
volatile unsigned long sink;
static long words[4] = {(long)(words + 2), -32, 0x1234, 0x8d4866fe014d2889};
__attribute__((noipa)) void leaf(unsigned long n) {
    __asm__ volatile(\"mov %%rbp, %%rbx\\n\\tmov %1, %%rbp\\n1:\\tdec %0\\n\\tjnz 1b\\n\\tmov %%rbx, %%rbp\"
                     : \"+r\"(n) : \"r\"(words) : \"rbx\", \"memory\", \"cc\");
}
__attribute__((noipa)) void middle(unsigned long n) { leaf(n); sink++; }
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 4) middle(200000);
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_mark_of_the_kernel_in_data_is_none() {
    repeated(|| {
        let flags = ["-rdynamic", "-fno-omit-frame-pointer"];
        let Some(data) = recording_of("mark", "fp,0", "gcc", &flags, MARK) else {
            return;
        };
        for stack in with(&data, "leaf") {
            let is_guest = stack.iter().any(|name| name.starts_with("[guest]"));
            assert!(
                !is_guest && is_honest(&stack, &["main", "leaf"]),
                "{stack:?}"
            );
        }
    });
}

/// `work` raises signals with a number in the frame pointer.
const SIGNAL: &str = "\
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
volatile unsigned long sink;
static __attribute__((noipa)) void burn(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
static __attribute__((noipa)) void handle(int number) { burn(200000); sink++; }
__attribute__((noipa)) void work(long pid) {
    long result;
    __asm__ volatile(\"mov %%rbp, %%rbx\\n\\tmov $5, %%ebp\\n\\tsyscall\\n\\tmov %%rbx, %%rbp\"
                     : \"=a\"(result) : \"0\"((long)SYS_kill), \"D\"(pid), \"S\"((long)SIGUSR1)
                     : \"rbx\", \"rcx\", \"r11\", \"memory\");
    sink++;
}
int main(void) {
    signal(SIGUSR1, handle);
    while (clock() < CLOCKS_PER_SEC / 4) work(getpid());
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_stack_does_not_begin_with_the_return_from_a_signal() {
    repeated(|| {
        for (name, flag) in [("signal", "-g"), ("static-signal", "-static")] {
            let flags = ["-fno-omit-frame-pointer", flag];
            let Some(data) = recording_of(name, "fp,0", "gcc", &flags, SIGNAL) else {
                return;
            };
            for stack in with(&data, "burn") {
                assert!(is_honest(&stack, &["main", "work", "handle"]), "{stack:?}");
            }
        }
    });
}

/// `leaf` runs with the stack pointer on a page of the stack that nobody has touched.
const UNTOUCHED: &str = "\
#include <time.h>
volatile unsigned long sink;
static inline __attribute__((always_inline)) void use(void *p) { __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); }
__attribute__((noipa)) void leaf(unsigned long n) {
    char large[300000];
    use(large);
    for (unsigned long i = 0; i < n; i++) sink += i;
    use(large);
}
__attribute__((noipa)) void middle(unsigned long n) { leaf(n); sink++; }
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 4) middle(200000);
    return 0;
}
";

#[test]
fn an_empty_copy_of_a_stack_is_a_cut() {
    repeated(|| {
        let flags = ["-rdynamic", "-fno-omit-frame-pointer"];
        let Some(data) = recording_of("untouched", "dwarf", "gcc", &flags, UNTOUCHED) else {
            return;
        };
        for stack in with(&data, "leaf") {
            assert!(is_honest(&stack, &["main", "middle", "leaf"]), "{stack:?}");
        }
    });
}

const PLAIN: &str = "\
#include <time.h>
volatile unsigned long sink;
__attribute__((noipa)) void work(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 4) { work(200000); sink++; }
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_static_program_that_is_loaded_anywhere_starts_main() {
    repeated(|| {
        let Some(data) = recording_of("static-pie", "dwarf", "gcc", &["-static-pie"], PLAIN) else {
            return;
        };
        for stack in with(&data, "work") {
            let outer = &stack[stack.len().saturating_sub(3)..];
            assert_eq!(
                outer,
                ["__libc_start_call_main", "main", "work"],
                "{stack:?}"
            );
            assert!(!stack[0].starts_with('['), "{stack:?}");
        }
    });
}

/// All of its stacks were marked: the frame pointer leads on from `__libc_start_main_impl`, as the symbols of
/// a static program name it.
#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn stacks_of_a_static_program_by_frame_pointers_are_whole() {
    repeated(|| {
        let flags = ["-static", "-fno-omit-frame-pointer"];
        let Some(data) = recording_of("static", "fp", "gcc", &flags, PLAIN) else {
            return;
        };
        for stack in with(&data, "work") {
            let expected = ["__libc_start_call_main", "main", "work"];
            assert!(stack.ends_with(&expected.map(String::from)), "{stack:?}");
            assert!(!stack[0].starts_with('['), "{stack:?}");
        }
    });
}

/// musl has no unwind information: its start code and its return from a handler are known by their code.
const MUSL: &str = "\
#include <pthread.h>
#include <signal.h>
#include <time.h>
volatile unsigned long sink;
__attribute__((noinline)) void burn(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; sink++; }
static __attribute__((noinline)) void handle(int number) { burn(200000); sink++; }
static void *thread(void *none) { burn(200000); sink++; return none; }
__attribute__((noinline)) void work(void) {
    pthread_t id;
    raise(SIGUSR1);
    sink++;
    pthread_create(&id, 0, thread, 0);
    pthread_join(id, 0);
}
int main(void) {
    signal(SIGUSR1, handle);
    while (clock() < CLOCKS_PER_SEC / 2) { work(); burn(200000); }
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn stacks_begin_in_the_start_code_of_musl() {
    repeated(|| {
        let forms: [(&str, &[&str]); 3] = [
            ("musl", &[]),
            ("musl-static", &["-static"]),
            ("musl-frames", &["-static", "-fno-omit-frame-pointer"]),
        ];
        for (name, flags) in forms {
            let Some(data) = recording_of(name, "dwarf", "musl-gcc", flags, MUSL) else {
                return;
            };
            for stack in with(&data, "burn") {
                let is_called = stack.iter().any(|name| name == "setjmp");
                assert!(!is_called, "{name}: {stack:?}");
                let [.., caller, _] = &stack[..] else {
                    panic!("{name}: {stack:?}");
                };
                // `raise` has no rules either.
                if caller != "handle" {
                    assert!(!stack[0].starts_with('['), "{name}: {stack:?}");
                }
            }
        }
    });
}

/// The old program's stack is gone while the kernel loads the new one: its function that asked for that has
/// no callers any more, and stands on no stack.
#[test]
fn a_program_that_is_being_replaced_begins_no_stack() {
    repeated(|| {
        if !is_root() || !can_record() {
            return skipped("the kernel is not shown");
        }
        let room = Room::new();
        // Of 150 starts some 4 are sampled, and now and then none.
        let script = "i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i+1)); done";
        let output = room.record(&[
            "-g",
            "dwarf",
            "-F",
            "4999",
            "-e",
            "cpu-clock",
            "--",
            "sh",
            "-c",
            script,
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        let folded = proftool(&["export", "--to", "folded"], &room.path("perf.data"));
        assert!(folded.contains("execve"), "{folded}");
        let is_lost = |stack: &&str| {
            let outermost = stack.split(';').next().unwrap_or_default();
            outermost.ends_with("execve") && !outermost.contains("sys")
        };
        let lost: Vec<&str> = folded.lines().filter(is_lost).collect();
        assert!(lost.is_empty(), "{lost:?}");
    });
}
