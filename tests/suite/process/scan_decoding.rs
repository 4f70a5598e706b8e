//! What the scanner reads out of instructions, on programs that are assembled on the spot and on
//! libraries for other machines where they are installed.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

use proftool::base::Svma;
use proftool::binary::Binary;
use proftool::scan::{self, CallKind, Callee, Calls};

use crate::support::{compile, skipped};

/// Calls through registers: of what `puts` is, of `own`, and of what the caller gives.
const PROGRAM: &str = r#"
    .text
    .globl main, own, twice, given, address
    .type main,@function
main:
    call twice
    call given
    ret
    .size main, .-main
    .type own,@function
own:
    ret
    .size own, .-own
    .type twice,@function
twice:
    push %rbx
    mov puts@GOTPCREL(%rip), %rbx
    lea message(%rip), %rdi
    call *%rbx
    lea message(%rip), %rdi
    call *%rbx
    pop %rbx
    ret
    .size twice, .-twice
    .type given,@function
given:
    push %rbx
    mov %rdi, %rbx
    call *%rbx
    pop %rbx
    ret
    .size given, .-given
    .type address,@function
address:
    lea own(%rip), %rax
    xor %edi, %edi
    call *%rax
    ret
    .size address, .-address
    .section .rodata
message:
    .string "message"
    .section .note.GNU-stack,"",@progbits
"#;

fn assembled() -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        skipped("the code is of x86-64");
        return None;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scan-decoding");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("prog.s"), PROGRAM).unwrap();
    // Immediate binding makes the pointers constant.
    let flags = ["-Wl,-z,relro,-z,now"];
    compile("gcc", &flags, Path::new("prog.s"), &directory.join("prog"))
}

fn calls(path: &Path) -> Calls {
    scan::calls(&Binary::open(path).unwrap(), Some(NonZeroUsize::MIN)).unwrap()
}

#[test]
fn a_call_through_a_register_leads_to_what_was_loaded() {
    let Some(program) = assembled() else { return };
    let binary = Binary::open(&program).unwrap();
    let calls = calls(&program);
    let name = |symbol| {
        binary
            .function_name(symbol)
            .unwrap_or_default()
            .into_owned()
    };
    let mut found = Vec::new();
    for site in &calls.sites {
        let caller = name(&calls.functions[site.caller].symbol);
        let callee = match site.callee {
            Callee::Function(id) => name(&calls.functions[id].symbol),
            Callee::Import(id) => calls.imports[id].clone(),
        };
        if ["twice", "given", "address"].contains(&caller.as_str()) {
            found.push((caller, site.length, site.kind, callee));
        }
    }
    found.sort();
    let row = |caller: &str, length, kind, callee: &str| {
        (caller.to_owned(), length, kind, callee.to_owned())
    };
    // The address is taken where it is loaded, and called where the register is.
    let expected = [
        row("address", 2, CallKind::Call, "own"),
        row("address", 7, CallKind::Pointer, "own"),
        row("twice", 2, CallKind::Import, "puts"),
        row("twice", 2, CallKind::Import, "puts"),
        row("twice", 7, CallKind::Pointer, "puts"),
    ];
    assert_eq!(found, expected);
    let given = calls.functions.iter().find(|f| name(&f.symbol) == "given");
    assert_eq!(given.unwrap().indirect_calls, 1);
}

#[test]
fn calls_in_aarch64_code_are_those_of_objdump() {
    let library = Path::new("/usr/aarch64-linux-gnu/lib/libc.so.6");
    let mut objdump = Command::new("aarch64-linux-gnu-objdump");
    objdump.args(["-d", "--no-show-raw-insn"]);
    let output = objdump.arg(library).output().ok();
    let Some(output) = output.filter(|output| output.status.success()) else {
        skipped("no C library for AArch64, or no objdump for it");
        return;
    };
    // `address:<tab>bl<tab>target <name>`
    let text = String::from_utf8_lossy(&output.stdout);
    let calls_of = |line: &str| {
        let (address, _) = line.trim().split_once(":\tbl\t")?;
        u64::from_str_radix(address, 16).ok()
    };
    let expected: BTreeSet<u64> = text.lines().filter_map(calls_of).collect();
    let calls = calls(library);
    let binary = Binary::open(library).unwrap();
    let code = binary.code().unwrap();
    let is_bl = |at: Svma| {
        let (piece, mut word) = (code.piece(at, Svma(at.0 + 4)).unwrap(), Vec::new());
        let word = code.read(piece, &mut word).unwrap().first_chunk::<4>();
        word.is_some_and(|word| u32::from_le_bytes(*word) & 0xfc00_0000 == 0x9400_0000)
    };
    let sites = calls.sites.iter().map(|site| site.at);
    let found: BTreeSet<u64> = sites.filter(|&at| is_bl(at)).map(|at| at.0).collect();
    let beyond: Vec<_> = found.difference(&expected).collect();
    let missed = expected.difference(&found).count() as u64;
    eprintln!(
        "{} calls, {missed} not found, {} astray",
        expected.len(),
        calls.astray
    );
    assert!(beyond.is_empty(), "{beyond:x?}");
    assert!(missed <= calls.astray + 20);
}
