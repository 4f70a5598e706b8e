//! Functions that a stripped program does not list are those that its symbols had.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::scan::Unlisted;

use crate::support::cli::proftool;
use crate::support::written::{CPU_CLOCK, Recording, Taken};
use crate::support::{compile_text, directory, ran};

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

fn programs(folder: &Path) -> Option<[Binary; 2]> {
    programs_of(folder, "musl-gcc", &["-O2", "-static"], CALLBACKS)
}

/// The program with its symbols, and stripped.
fn programs_of(folder: &Path, compiler: &str, flags: &[&str], text: &str) -> Option<[Binary; 2]> {
    let [program, stripped] = ["named", "stripped"].map(|name| folder.join(name));
    compile_text(compiler, flags, text, &program)?;
    let mut strip = Command::new("strip");
    ran(strip.arg("-o").args([&stripped, &program]))?;
    Some([program, stripped].map(|file| Binary::open(&file).unwrap()))
}

#[test]
#[cfg(target_arch = "x86_64")]
fn functions_of_a_stripped_musl_program_are_found_by_the_code_that_calls_them() {
    let Some([named, stripped]) = programs(&directory("unlisted")) else {
        return;
    };
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

#[test]
#[cfg(target_arch = "x86_64")]
fn the_code_of_such_a_function_is_listed_as_with_its_symbol() {
    let folder = directory("unlisted-code");
    let Some([named, stripped]) = programs(&folder) else {
        return;
    };
    let mut functions = named.functions().iter();
    let sift = functions.find(|it| named.function_name(it).as_deref() == Some("sift"));
    let sift = sift.unwrap();
    assert!(stripped.function_at(sift.start).is_none());
    let instructions = |binary: &Binary, name: &str| {
        let piece = binary.code().unwrap().piece(sift.start, sift.end());
        let offset = piece.unwrap().offset.0;
        let (page, base) = (offset & !0xfff, 0x5000_0000);
        let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
        recording.process(7, "program");
        recording.mapping(7, binary.path().to_str().unwrap(), (base, 0x2000), page);
        recording.sample(Taken {
            task: 7,
            time: 10,
            user: &[base + offset - page],
            ..Taken::default()
        });
        let data = folder.join("perf.data");
        recording.write(&data);
        let mut command = proftool(&["annotate", name, "--all", "--format", "json"]);
        let output = command.arg(&data).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let code = json["code"]["instructions"].as_array().unwrap().iter();
        let line =
            |it: &serde_json::Value| format!("{} {} {}", it["address"], it["text"], it["self"]);
        // Nothing leads to padding.
        let is_code = |line: &String| !line.contains("nop") && !line.contains("%ax,%ax");
        code.map(line).filter(is_code).collect::<Vec<String>>()
    };
    let expected = instructions(&named, "sift");
    assert!(expected[0].ends_with(" 1"), "{expected:?}");
    let name = format!("sub_{:x}", sift.start.0);
    assert_eq!(instructions(&stripped, &name), expected);
}

/// `cold` belongs to `first` and goes back to it, `third` goes on after its first call. Only pointers
/// would lead to `pointed`, `after_import` and `after_slot`.
const SPLIT: &str = r#"asm(
    ".globl api\n .type api,@function\n api: call first; call second; call third; ret\n .size api, .-api\n"
    ".type first,@function\n first: test %edi,%edi; js cold; jne callee; 1: ret\n .size first, .-first\n"
    ".type second,@function\n second: call dies\n .size second, .-second\n"
    ".type pointed,@function\n pointed: nop; ret\n .size pointed, .-pointed\n"
    ".type third,@function\n third: call *%rax; 2: dec %edi; jz third_end; call *%rdx; jmp 2b; third_end: call unseen@plt\n .size third, .-third\n"
    ".type after_import,@function\n after_import: nop; call *%rax\n .size after_import, .-after_import\n"
    ".type after_slot,@function\n after_slot: nop; ret\n .size after_slot, .-after_slot\n"
    ".type dies,@function\n dies: call exit@plt\n .size dies, .-dies\n"
    ".type callee,@function\n callee: nop; ret\n .size callee, .-callee\n"
    ".type cold,@function\n cold: nop; jmp 1b\n .size cold, .-cold\n");
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn what_is_called_by_conditional_jumps_or_follows_what_never_returns_is_no_part() {
    let folder = directory("unlisted-split");
    let flags = ["-shared", "-nostdlib"];
    let Some([named, stripped]) = programs_of(&folder, "gcc", &flags, SPLIT) else {
        return;
    };
    let unlisted = Unlisted::find(&stripped);
    let start = |name: &str| {
        let mut functions = named.functions().iter();
        let found = functions.find(|it| named.function_name(it).as_deref() == Some(name));
        found.unwrap().start
    };
    let found = |name| unlisted.function_at(start(name));
    for name in ["first", "second", "third", "dies", "callee"] {
        assert_eq!(found(name), Some(start(name)), "{name}");
    }
    assert_eq!(found("cold"), Some(start("first")));
    for name in ["pointed", "after_import", "after_slot"] {
        assert_eq!(found(name), None, "{name}");
    }
}
