//! Functions whose addresses code computes from distances and short pointers.

use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::scan::{self, CodeFunctionId, FileTables};

use crate::support::{compile_text, directory};

const START: &str = r#"
#define NOINLINE __attribute__((noipa))
NOINLINE int one(int x) { return x + 1; }
NOINLINE int two(int x) { return x * 2; }
NOINLINE int sure(int x) { return x ^ 3; }
int main(int argc, char **argv) {
    (void)argv;
    return sure(argc) + CALL(argc);
}
"#;

/// Distances from the table, from the words themselves, and pointers of 32 bits.
const TABLE: &str = r#"
int read_table(int);
__asm__(SECTION "\n.balign 4\ntable: " WORDS "\n.text\n"
    ".type read_table,@function\nread_table: lea table(%rip),%rax\nret\n"
    ".size read_table,.-read_table\n");
#define CALL read_table
"#;

/// The table of a switch. Its second word leads to the end of the function, and counted from
/// itself, to the function behind it.
const SWITCH: &str = r#"
int choose(int);
__asm__(".section .rodata\n.balign 4\ntable: .long 1f - table, next - 4 - table\n.text\n"
    ".type choose,@function\nchoose: lea table(%rip),%rax\nmovslq (%rax,%rdi,4),%rdi\n"
    "add %rdi,%rax\njmp *%rax\n1: nop\nnop\nnop\nnop\nret\n.size choose,.-choose\n"
    ".type next,@function\nnext: ret\n.size next,.-next\n");
#define CALL choose
"#;

const LARGE: &str = "__attribute__((noipa)) int far(int x) { return x - 1; }\n\
    #define CALL far\n";

/// What is taken by distances alone.
fn taken(name: &str, flags: &[&str], text: &str) -> Option<Vec<String>> {
    let program = directory(&format!("scan-distances-{name}")).join(name);
    let flags = [&["-O2"], flags].concat();
    let program = compile_text("gcc", &flags, &[text, START].concat(), &program)?;
    let binary = Binary::open(&program).unwrap();
    let tables = FileTables::read(&binary).unwrap();
    let calls = scan::calls_in(&tables, None);
    let code = binary.code().unwrap();
    let sections = code.sections().map(|(start, size)| {
        let piece = code.piece(start, Svma(start.0 + size)).unwrap();
        (start, code.read(piece, &mut Vec::new()).unwrap().to_vec())
    });
    let sections: Vec<(Svma, Vec<u8>)> = sections.collect();
    let taken = scan::taken_by_distance(&tables, &calls, &|at| {
        let mut from = sections.iter().rev().filter(|(start, _)| *start <= at);
        let (start, bytes) = from.next()?;
        bytes.get((at.0 - start.0) as usize..)
    });
    // Those of start-up are in whole words, too.
    let is_new = |id: &&CodeFunctionId| calls.functions[**id].pointers_in_data == 0;
    let functions = taken.functions.iter().filter(is_new);
    let names = functions.map(|&id| binary.function_name(&calls.functions[id].symbol));
    let names = names.map(|name| name.unwrap().into_owned());
    let mut names: Vec<String> = names.chain(taken.imports).collect();
    names.sort();
    Some(names)
}

#[test]
fn tables_of_distances_and_short_pointers_take_addresses() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let fixed = ["-no-pie", "-fno-pie"];
    let of_table = "-DWORDS=\".long one - table, 0, two - table\"";
    let of_words = "-DWORDS=\".long one - ., 7, two - .\"";
    let wide = "-DWORDS=\".quad one - table, two - table\"";
    let short = "-DWORDS=\".long 7, one, two\"";
    let [constant, data, code] = [
        "-DSECTION=\".section .rodata\"",
        "-DSECTION=\".data\"",
        "-DSECTION=\".text\"",
    ];
    for (place, words, flags) in [
        (constant, of_table, &[][..]),
        (constant, of_table, &fixed),
        (constant, of_words, &[]),
        (constant, of_words, &fixed),
        (constant, wide, &[]),
        (data, of_table, &[]),
        (data, of_words, &[]),
        (constant, short, &fixed),
        (data, short, &fixed),
        (code, "-DWORDS=\".long one - table, two - table\"", &[]),
    ] {
        let flags = [&[place, words], flags].concat();
        let Some(names) = taken("table", &flags, TABLE) else {
            return;
        };
        assert_eq!(names, ["one", "two"], "{flags:?}");
    }
}

#[test]
fn the_table_of_a_switch_takes_no_address() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    if let Some(names) = taken("switch", &[], SWITCH) {
        assert!(names.is_empty(), "{names:?}");
    }
}

#[test]
fn the_large_model_takes_addresses_by_their_distance_from_the_slots() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    if let Some(names) = taken("large", &["-mcmodel=large", "-fpie", "-pie"], LARGE) {
        let has = |name: &str| names.iter().any(|taken| taken == name);
        assert!(has("far") && has("sure") && !has("one"), "{names:?}");
    }
    // Other files may define these, too, so their slots are used.
    let flags = ["-mcmodel=large", "-fPIC", "-shared"];
    if let Some(names) = taken("large", &flags, LARGE) {
        assert_eq!(names, ["far", "sure"]);
    }
}
