//! What the first screen says of stacks that are given.

use std::fs;

use crate::support::cli::proftool;
use crate::support::directory;

fn screen_of(name: &str, stacks: &str) -> String {
    let file = directory(&format!("first-screen-{name}")).join("stacks.folded");
    fs::write(&file, stacks).unwrap();
    let output = proftool(&["report"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_heaviest_path_names_a_function_that_calls_itself_once() {
    let screen = screen_of(
        "recursion",
        "main;walk;walk;walk;walk;visit 60\nmain;walk;note 40\n",
    );
    let path = "heaviest path: main 100.0 → walk 100.0 → visit 60.0\n";
    assert!(screen.contains(path), "{screen}");
}

#[test]
fn code_of_the_user_on_few_samples_is_not_what_the_screen_is_about() {
    let stacks = |own: u32| {
        format!(
            "std::rt::lang_start;core::str::parse {}\nshim {own}\n",
            100 - own
        )
    };
    let few = screen_of("few", &stacks(4));
    assert!(few.contains("  functions by total\n"), "{few}");
    assert!(few.contains(" core::str::parse"), "{few}");
    let many = screen_of("many", &stacks(5));
    assert!(many.contains("  your code, by total\n"), "{many}");
}
