//! Functions that a stripped program does not list are those that its symbols had.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::scan::Unlisted;

use crate::support::{compile_text, skipped};

/// Each of them calls back into the program, from functions that musl does not export.
const CALLBACKS: &str = "\
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void visit(const void *node, VISIT order, int depth) { puts(\"node\"); }
int main(int count, char **words) {
    int numbers[4] = {count, 3, 1, 2};
    void *root = 0;
    qsort(numbers, 4, sizeof *numbers, compare);
    for (int i = 0; i < 4; i++) tsearch(numbers + i, &root, compare);
    twalk(root, visit);
    printf(\"%d %f\\n\", numbers[0], strtod(words[0], 0));
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn functions_of_a_stripped_musl_program_are_found_by_the_code_that_calls_them() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join("unlisted");
    let stripped = folder.join("unlisted-stripped");
    let flags = ["-O2", "-static"];
    if compile_text("musl-gcc", &flags, CALLBACKS, &program).is_none() {
        return;
    }
    let mut strip = Command::new("strip");
    strip.arg("-o").args([&stripped, &program]);
    if !strip.status().is_ok_and(|status| status.success()) {
        return skipped("no strip");
    }
    let (named, stripped) = (
        Binary::open(&program).unwrap(),
        Binary::open(&stripped).unwrap(),
    );
    let unlisted = Unlisted::find(&stripped);
    let function = |at: u64| {
        let function = named.function_at(Svma(at))?;
        Some((
            function.start.0,
            named.function_name(function)?.into_owned(),
        ))
    };
    let (mut all, mut found, mut wrong) = (0, 0, BTreeSet::new());
    let mut names = BTreeSet::new();
    for symbol in named.functions() {
        for at in symbol.start.0..symbol.end().0 {
            if stripped.function_at(Svma(at)).is_some() {
                continue;
            }
            all += 1;
            let Some(start) = unlisted.function_at(Svma(at)) else {
                continue;
            };
            found += 1;
            if function(start.0).map(|it| it.0) == function(at).map(|it| it.0) {
                names.extend(function(at).filter(|it| it.0 == start.0).map(|it| it.1));
            } else {
                wrong.insert((function(at), function(start.0)));
            }
        }
    }
    assert!(wrong.is_empty(), "{found} of {all} bytes: {wrong:x?}");
    for name in ["qsort_r", "sift", "trinkle", "walk", "printf_core"] {
        assert!(
            names.iter().any(|known| known.contains(name)),
            "{name}: {names:?}"
        );
    }
    // Pointers alone lead to the others.
    assert!(found * 2 > all, "{found} of {all} bytes");
}
