//! Stacks by frame pointers, held against the code: a program whose small functions keep no frames
//! is recorded, and its stacks have them nevertheless.

use crate::support::repair::{NESTED, THROWS, stacks_of};

/// Without frame pointers, a chain of them ends in `inner`, which others called: it is no whole stack, and
/// they may have been on it.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_stack_that_ends_in_what_others_call_is_incomplete() {
    for (kept, is_whole) in [
        ("-fomit-frame-pointer", false),
        ("-fno-omit-frame-pointer", true),
    ] {
        let flags = ["-O2", kept, "-pthread"];
        let name = format!("ends{kept}");
        let Some(stacks) = stacks_of(&name, ("gcc", NESTED), &flags, "fp,0") else {
            return;
        };
        let at_inner = stacks.iter().filter(|(stack, _)| stack.ends_with("inner"));
        let all: u64 = at_inner.clone().map(|(_, weight)| weight).sum();
        let broken = at_inner.filter(|(stack, _)| stack.starts_with("[broken stack]"));
        let broken: u64 = broken.map(|(_, weight)| weight).sum();
        assert!(all > 100, "{stacks:?}");
        let right = if is_whole { all - broken } else { broken };
        assert!(
            right * 100 >= all * 98,
            "{kept}: {broken} of {all}: {stacks:?}"
        );
    }
}

/// Just before the unwinder returns to a handler, the handler's address is where its own caller's was.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_function_that_handles_an_exception_has_not_called_the_unwinder() {
    let Some(stacks) = stacks_of("throws", ("g++", THROWS), &["-O2", "-g"], "dwarf") else {
        return;
    };
    let raising = |stack: &str| stack.contains("_Unwind_RaiseException");
    let all: u64 = { stacks.iter() }
        .filter(|(stack, _)| raising(stack))
        .map(|(_, weight)| weight)
        .sum();
    assert!(all > 100, "{stacks:?}");
    let is_wrong = |stack: &str| raising(stack) && !stack.contains("thrower");
    let wrong: Vec<&String> = { stacks.keys() }
        .filter(|stack| is_wrong(stack) && stack.contains("catcher"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
