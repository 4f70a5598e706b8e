//! A program of nested calls, and how its stacks are recorded.

use std::path::PathBuf;

use crate::support::compile_text;
use crate::support::record::{Room, stderr};

/// `main` calls `outer`, which calls `middle`, which calls `inner`, for about half a second.
pub const NESTED: &str = "\
#include <stdio.h>
#include <time.h>
volatile unsigned long sink;
__attribute__((noinline)) unsigned long inner(unsigned long n) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++) { sink += i; sum += sink * 3; }
    return sum;
}
__attribute__((noinline)) unsigned long middle(unsigned long n) { return inner(n) + 1; }
__attribute__((noinline)) unsigned long outer(unsigned long n) { return middle(n) * 3; }
int main(void) {
    unsigned long sum = 0;
    while (clock() < CLOCKS_PER_SEC / 2) sum += outer(20000);
    printf(\"%lu\\n\", sum);
    return 0;
}
";

/// Builds a program from C; `None`, and why the test is skipped, where there is no compiler.
pub fn build(room: &Room, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    compile_text("gcc", flags, source, &room.path(name))
}

/// The line of stderr that says how stacks are recorded.
pub fn choice(room: &Room, args: &[&str]) -> String {
    let output = room.record(args);
    let text = stderr(&output);
    let line = text.lines().find(|line| line.contains("call stacks:"));
    line.unwrap_or(&text).to_owned()
}
