//! Stacks by frame pointers, held against the code: a program whose small functions keep no frames
//! is recorded, and its stacks have them nevertheless.

use std::path::Path;

use serde_json::Value;

use crate::support::compile_text;
use crate::support::repair::{NESTED, THROWS, proftool, recorded, stacks_of};

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

/// `visit` calls `enter` by its address or its name, and `enter` jumps back to it.
const VISITS: &str = r"
    struct node { void (*enter)(struct node *); struct node *kid; };
    volatile long turns;
    __attribute__((noinline)) void visit(struct node *node) {
        for (long i = 0; i < 300; i++) turns++;
        if (node->kid) CALL;
        turns++;
    }
    __attribute__((noinline)) void enter(struct node *node) { turns++; visit(node); }
    void (*volatile first)(struct node *) = visit;
    int main(void) {
        static struct node nodes[8];
        for (int i = 0; i < 8; i++) nodes[i] = (struct node){ enter, i ? nodes + i - 1 : 0 };
        for (int i = 0; i < 60000; i++) first(nodes + 7);
    }";

/// What a pointer led to may have jumped on: that the next function on the stack was called is not said.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_is_next_through_a_pointer_is_not_said_to_be_called() {
    let calls = [
        ("pointer", "node->kid->enter(node->kid)", true),
        ("itself", "visit(node->kid)", false),
    ];
    for (name, call, is_pointer) in calls {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let program = program.join(format!("visits-{name}-{}", std::process::id()));
        let flags = ["-O1", "-foptimize-sibling-calls"];
        let text = VISITS.replace("CALL", call);
        if compile_text("gcc", &flags, &text, &program).is_none() {
            return;
        };
        let Some(data) = recorded("dwarf", &program, program.with_extension("data")) else {
            return;
        };
        let json = |view: &str| -> Value {
            serde_json::from_str(&proftool(&[view, "--format", "json"], &data)).unwrap()
        };
        let cycles = json("cycles");
        let rows = cycles["recursive"].as_array().unwrap().iter();
        let rows: Vec<&Value> = rows.filter(|row| row["name"] == "visit").collect();
        assert_eq!(rows.len(), 1, "{name}: {cycles}");
        assert_eq!(rows[0]["only_through_pointer"], is_pointer, "{name}");
        let graph = json("graph");
        let functions = graph["functions"].as_array().unwrap();
        let is_visit =
            |place: &Value| functions[place.as_u64().unwrap() as usize]["name"] == "visit";
        let arcs = graph["arcs"].as_array().unwrap().iter();
        let itself: Vec<&Value> = arcs
            .filter(|arc| is_visit(&arc["from"]) && is_visit(&arc["to"]))
            .collect();
        assert_eq!(itself.len(), 1, "{name}: {graph}");
        let (part, origin) = (&itself[0]["through_pointer"], &itself[0]["origin"]);
        if is_pointer {
            assert_eq!((part, origin), (&itself[0]["total"], &"pointer".into()));
        } else {
            assert_eq!(part, 0);
            assert_ne!(origin, "pointer");
        }
        let page = proftool(&["cycles"], &data);
        assert_eq!(page.contains("(through a pointer)"), is_pointer, "{page}");
    }
}
