//! Callers that no stack had: what a frame pointer leads to where the function that ran keeps no frame.

use std::path::Path;

use crate::support::compile_text;
use crate::support::cut::{json, row};
use crate::support::repair::{recorded, stacks};
use crate::support::repeated::repeated;
use crate::support::shares::at_least;

/// The stacks of a C program of this name, by the number of samples, recorded in this way; `None` where it
/// cannot be recorded.
fn stacks_of(
    name: &str,
    unwinding: &str,
    flags: &[&str],
    text: &str,
) -> Option<Vec<(String, u64)>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("{name}-{unwinding}-{}", std::process::id()));
    let data = folder.join(format!("{name}-{unwinding}-{}.data", std::process::id()));
    let flags = [&["-O2"], flags].concat();
    compile_text("gcc", &flags, text, &program)?;
    let data = recorded(unwinding, &program, data)?;
    Some(stacks(&data, &[]).into_iter().collect())
}

/// The number of samples of all stacks, and of those of which this is true.
fn counted(stacks: &[(String, u64)], of: impl Fn(&str) -> bool) -> (u64, u64) {
    let all = stacks.iter().map(|(_, weight)| weight).sum();
    let such = stacks.iter().filter(|(stack, _)| of(stack));
    (all, such.map(|(_, weight)| weight).sum())
}

/// `outer` calls `middle` through a pointer, which calls code that is written by hand, without unwinding
/// rules, under this name.
fn without_rules(label: &str) -> String {
    format!(
        "\
#include <time.h>
volatile unsigned long sink;
#define ALONE __attribute__((noipa)) static void
__asm__(\".text\\n.type before,@function\\nbefore: ret\\n.size before,.-before\\nnop\\n\"
        \"{label}: dec %rdi\\njne {label}\\nret\\n\"
        \".type behind,@function\\nbehind: ret\\n.size behind,.-behind\\n\");
ALONE middle(unsigned long n) {{
    __asm__ volatile(\"call {label}\" : \"+D\"(n) : : \"memory\", \"cc\");
    sink += clock();
}}
ALONE outer(void (*called)(unsigned long)) {{ called(200000); sink++; }}
int main(void) {{
    while (clock() < CLOCKS_PER_SEC / 2) outer(middle);
    return 0;
}}
"
    )
}

/// The frame pointer is that of `middle` there, and leads to its caller. What is called there is known only
/// at run time; it is not what has no frame.
#[test]
#[cfg(target_arch = "x86_64")]
fn code_without_rules_is_not_called_by_the_caller_of_its_caller() {
    repeated(|| {
        for (name, label) in [("named", "bare"), ("nameless", ".Lbare")] {
            for unwinding in ["dwarf", "fp", "fp,0"] {
                let flags = ["-fno-omit-frame-pointer", "-fno-shrink-wrap"];
                let text = without_rules(label);
                let Some(stacks) = stacks_of(&format!("bare-{name}"), unwinding, &flags, &text)
                else {
                    return;
                };
                let (_, all) = counted(&stacks, |stack| stack.contains(";outer;"));
                let (_, gaps) =
                    counted(&stacks, |stack| stack.contains(";outer;[frames missing];"));
                assert!(all > 100, "{stacks:?}");
                assert!(at_least(gaps, all, 98.0), "{gaps} of {all}: {stacks:?}");
            }
        }
    });
}

/// `hub` keeps the frame pointer for data, and calls `outer`, which has no frame, and whose address is
/// taken; `outer` calls `inner`, which has one.
const ENDS: &str = "\
#include <time.h>
volatile unsigned long sink;
#define ALONE __attribute__((noipa)) void
ALONE outer(unsigned long n);
ALONE hub(unsigned long n);
__asm__(\".text\\n.globl hub\\n.type hub,@function\\n\"
        \"hub: push %rbp\\nmov $1,%ebp\\ncall outer\\npop %rbp\\nret\\n.size hub,.-hub\\n\");
static __attribute__((noipa, optimize(\"no-omit-frame-pointer,no-shrink-wrap\"))) void inner(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) sink += i;
    sink += clock();
}
ALONE outer(unsigned long n) { inner(n); sink++; }
void (*volatile taken)(unsigned long) = outer;
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 2) hub(200000);
    return 0;
}
";

/// Any function could be called through a pointer; the first of a stack never returns.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_stack_that_ends_in_a_function_without_a_frame_is_incomplete() {
    repeated(|| {
        let flags = ["-fomit-frame-pointer", "-rdynamic"];
        let Some(stacks) = stacks_of("ends-in", "fp,0", &flags, ENDS) else {
            return;
        };
        let (_, all) = counted(&stacks, |stack| stack.ends_with("outer;inner"));
        let (_, whole) = counted(&stacks, |stack| stack == "outer;inner");
        assert!(all > 100 && whole == 0, "{whole} of {all}: {stacks:?}");
    });
}

/// `hub` keeps the frame pointer for data that look like the frame of a thread's first function, and calls
/// `outer`, which has no frame; `outer` calls `inner`, which has one.
const OLD_FRAME: &str = "\
#include <time.h>
volatile unsigned long sink;
#define ALONE __attribute__((noipa)) void
#define FRAMED __attribute__((noipa, optimize(\"no-omit-frame-pointer,no-shrink-wrap\"))) void
ALONE outer(unsigned long n);
ALONE hub(unsigned long n);
void thread(unsigned long n);
extern char inside[];
void *first[2], *old[2] = { first, inside };
__asm__(\".text\\n.globl hub\\n.type hub,@function\\n\"
        \"hub: push %rbp\\nlea old(%rip),%rbp\\ncall outer\\npop %rbp\\nret\\n.size hub,.-hub\\n\"
        \".globl thread\\n.type thread,@function\\nthread: .cfi_startproc\\n\"
        \"push %rbp\\n.cfi_def_cfa_offset 16\\n.cfi_offset %rbp,-16\\nmov %rsp,%rbp\\n\"
        \".cfi_def_cfa_register %rbp\\ncall sinks\\ninside: pop %rbp\\n.cfi_def_cfa %rsp,8\\nret\\n\"
        \".cfi_endproc\\n.size thread,.-thread\\n\");
ALONE sinks(void) { sink++; }
FRAMED inner(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) sink += i;
    sink += clock();
}
ALONE outer(unsigned long n) { inner(n); sink++; }
void (*volatile taken)(unsigned long) = thread;
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 2) hub(200000);
    return 0;
}
";

/// A pointer that went past a caller leads to whatever is there.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_frame_that_is_left_over_begins_no_stack() {
    repeated(|| {
        let flags = ["-fomit-frame-pointer", "-rdynamic"];
        // Also where the frame is of a function that calls the next one.
        for called in ["sinks", "outer"] {
            let text = OLD_FRAME.replace("call sinks", &format!("call {called}"));
            let Some(stacks) = stacks_of(&format!("old-frame-{called}"), "fp,0", &flags, &text)
            else {
                return;
            };
            let (_, all) = counted(&stacks, |stack| stack.ends_with("outer;inner"));
            let (_, of_thread) = counted(&stacks, |stack| stack.starts_with("thread"));
            assert!(
                all > 100 && of_thread == 0,
                "{of_thread} of {all}: {stacks:?}"
            );
        }
    });
}

/// A coroutine: `entry` is entered by a return, with zeros outside of it; `mid`, which it calls by way of
/// `work`, has no frame.
const COROUTINE: &str = "\
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
#define ALONE __attribute__((noipa)) void
#define FRAMED __attribute__((noipa, optimize(\"no-omit-frame-pointer,no-shrink-wrap\"))) void
static void *main_stack, *own_stack;
void change(void **save, void *to);
__asm__(\".text\\n.globl change\\n.type change,@function\\nchange: .cfi_startproc\\n\"
        \"push %rbp\\npush %rbx\\npush %r12\\npush %r13\\npush %r14\\npush %r15\\nmov %rsp,(%rdi)\\n\"
        \"mov %rsi,%rsp\\npop %r15\\npop %r14\\npop %r13\\npop %r12\\npop %rbx\\npop %rbp\\nret\\n\"
        \".cfi_endproc\\n.size change,.-change\\n\");
FRAMED inner(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) sink += i;
    sink += clock();
}
ALONE mid(unsigned long n) { inner(n); sink++; }
FRAMED work(unsigned long n) { mid(n); sink++; }
FRAMED entry(void) {
    while (clock() < CLOCKS_PER_SEC / 2) { work(200000); sink++; }
    change(&own_stack, main_stack);
}
int main(void) {
    void **top = (void **)((char *)aligned_alloc(64, 1 << 20) + (1 << 20));
    for (int i = 0; i < 10; i++) *--top = i == 3 ? (void *)entry : 0;
    change(&main_stack, top);
    return 0;
}
";

/// What the code explains is no coincidence.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_stack_that_was_set_up_begins_where_it_did() {
    repeated(|| {
        let flags = ["-fomit-frame-pointer"];
        let Some(stacks) = stacks_of("coroutine", "fp,0", &flags, COROUTINE) else {
            return;
        };
        let (_, all) = counted(&stacks, |stack| stack.contains("mid;inner"));
        let (_, whole) = counted(&stacks, |stack| stack.starts_with("entry;~work;mid;inner"));
        assert!(all > 100, "{stacks:?}");
        assert!(at_least(whole, all, 98.0), "{whole} of {all}: {stacks:?}");
    });
}

/// While `leaf` runs, the frame pointer holds the address of an object with the address of a function.
const POINTS: &str = "\
#include <time.h>
volatile unsigned long sink;
__attribute__((noipa)) void cleanup(void) { sink = 0; }
struct { unsigned long kind; void (*cleanup)(void); } object = {1, cleanup};
__attribute__((noipa)) void leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
void hub(unsigned long n);
__asm__(\".text\\n.globl hub\\n.type hub,@function\\n\"
        \"hub: push %rbp\\nlea object(%rip),%rbp\\ncall leaf\\npop %rbp\\nret\\n.size hub,.-hub\\n\");
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 2) hub(200000);
    return 0;
}
";

/// An exception has such a pointer, too: the unwinder's functions seemed to be called by what deletes it.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_whose_address_is_in_an_object_has_called_nothing() {
    repeated(|| {
        let flags = ["-fomit-frame-pointer", "-rdynamic"];
        let Some(stacks) = stacks_of("points", "fp,0", &flags, POINTS) else {
            return;
        };
        let (all, called) = counted(&stacks, |stack| stack.contains("cleanup"));
        assert!(all > 100 && called == 0, "{called} of {all}: {stacks:?}");
    });
}

/// `main` calls functions of the C library that keep no frame.
const CALLS_LIBRARY: &str = "\
#include <string.h>
#include <time.h>
static char bytes[1 << 16];
volatile unsigned long sink;
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 2) {
        for (int i = 0; i < 100; i++) { memset(bytes, i, sizeof bytes); sink += bytes[i]; }
        for (int i = 0; i < 100000; i++) sink += i;
    }
    return 0;
}
";

/// What calls `main` calls nothing else through a pointer. The C library can be started as a program, and is
/// none here.
#[test]
#[cfg(target_arch = "x86_64")]
fn main_is_on_the_stacks_of_what_it_calls() {
    repeated(|| {
        let flags = ["-fno-omit-frame-pointer"];
        let Some(stacks) = stacks_of("calls-library", "fp,0", &flags, CALLS_LIBRARY) else {
            return;
        };
        let (_, all) = counted(&stacks, |stack| stack.contains("memset"));
        let is_right = |stack: &str| stack.starts_with("main;") && stack.contains("memset");
        let (_, right) = counted(&stacks, is_right);
        assert!(all > 100 && right == all, "{right} of {all}: {stacks:?}");
    });
}

/// `rec` calls itself twice, and works before it points the frame pointer, which it has saved, at its frame.
const RECURSIVE: &str = "\
#include <time.h>
void rec(unsigned long depth);
__asm__(\".text\\n.globl rec\\n.type rec,@function\\nrec:\\n.cfi_startproc\\n\"
        \"push %rbp\\n.cfi_def_cfa_offset 16\\n.cfi_offset 6,-16\\n\"
        \"mov $200000,%eax\\n1: dec %eax\\njne 1b\\n\"
        \"mov %rsp,%rbp\\n.cfi_def_cfa_register 6\\n\"
        \"dec %rdi\\nje 2f\\ncall rec\\n\"
        \"2: pop %rbp\\n.cfi_def_cfa 7,8\\nret\\n.cfi_endproc\\n.size rec,.-rec\\n\");
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 2) rec(3);
    return 0;
}
";

/// Called by `main`, it would lead to what called that. Who was called by `main` called it.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_has_no_frame_yet_was_called_by_itself() {
    repeated(|| {
        let flags = ["-fno-omit-frame-pointer"];
        let Some(stacks) = stacks_of("recursive", "fp,0", &flags, RECURSIVE) else {
            return;
        };
        let (_, all) = counted(&stacks, |stack| stack.ends_with("rec"));
        assert!(all > 100, "{stacks:?}");
        for depth in 1..=3 {
            let stack = format!("main{}", ";rec".repeat(depth));
            let plain = |other: &str| other.replace("[frames missing];", "").replace('~', "");
            let (_, such) = counted(&stacks, |other| plain(other) == stack);
            let share = such * 100 / all;
            assert!(
                (23..43).contains(&share),
                "{stack}: {such} of {all}: {stacks:?}"
            );
        }
    });
}

/// What `main` makes way for, after it has started another program.
const SERVE: &str = "\
#include <time.h>
static volatile unsigned long sink;
#define ALONE __attribute__((noipa)) static void
ALONE seldom(void) { for (int i = 0; i < 20000; i++) sink += i; }
ALONE often(void) { for (int i = 0; i < 80000; i++) sink += i; }
int serve(void) {
    while (clock() < CLOCKS_PER_SEC / 2) { seldom(); often(); }
    return 0;
}
";

const STARTS_ANOTHER: &str = "\
#include <stdlib.h>
int serve(void);
int main(void) { return system(\":\") ? 1 : serve(); }
";

/// It is not known which of the two programs was in `main`, but nothing else than a `main` is missing.
#[test]
#[cfg(target_arch = "x86_64")]
fn only_main_is_missing_where_it_makes_way_for_a_library() {
    repeated(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = |name: &str| folder.join(format!("{name}-{}", std::process::id()));
        let [library, program, data] = ["libserve", "serves", "serves.data"].map(path);
        let shared = ["-O2", "-fPIC", "-shared"];
        let linked = ["-O2", library.to_str().unwrap()];
        let built = compile_text("gcc", &shared, SERVE, &library)
            .and_then(|_| compile_text("gcc", &linked, STARTS_ANOTHER, &program));
        if built.is_none() {
            return;
        }
        let Some(data) = recorded("dwarf", &program, data) else {
            return;
        };
        let stacks: Vec<(String, u64)> = stacks(&data, &[]).into_iter().collect();
        let (_, all) = counted(&stacks, |stack| stack.ends_with("serve;often"));
        let (_, apart) = counted(&stacks, |stack| {
            stack.ends_with("[frames missing];serve;often")
        });
        assert!(all > 100 && apart == all, "{apart} of {all}: {stacks:?}");
        let flat = json(&["flat", data.to_str().unwrap()]);
        for name in ["seldom", "often", "serve"] {
            let row = row(&flat, "functions", name);
            assert_eq!(row["total"], row["total_max"], "{row}");
        }
    });
}
