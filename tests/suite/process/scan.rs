//! What calls in code refer to: by records of files that are not linked yet, by slots of static
//! programs, through parts of functions, in other files; and files that are made to do harm.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proftool::base::Svma;
use proftool::binary::{Binary, Finder, Libraries, SlotTarget, SymbolSource};
use proftool::scan::{self, CallKind, Callee, Calls};

use crate::support;

/// An empty directory for one test.
fn directory(test: &str) -> PathBuf {
    support::directory(&format!("scan-{test}"))
}

/// Runs a compiler or another tool; whether it did what it was told.
fn run(directory: &Path, tool: &str, args: &[&str]) -> bool {
    support::ran(Command::new(tool).args(args).current_dir(directory)).is_some()
}

/// The calls of a file as `caller -> callee: kind`, each once.
fn told(binary: &Binary, calls: &Calls) -> BTreeSet<String> {
    let name = |id| {
        let name = binary.function_name(&calls.functions[id].symbol);
        name.map_or_else(|| "?".to_owned(), |name| name.into_owned())
    };
    let told = calls.sites.iter().map(|site| {
        let callee = match site.callee {
            Callee::Function(callee) => name(callee),
            Callee::Import(import) => calls.imports[import].clone(),
        };
        format!("{} -> {callee}: {:?}", name(site.caller), site.kind)
    });
    told.collect()
}

/// What was told without the addresses that are taken.
fn called(binary: &Binary, calls: &Calls) -> BTreeSet<String> {
    let mut told = told(binary, calls);
    // Position-independent code for 32-bit x86 calls a function that reads its return address.
    told.retain(|line| !line.ends_with(": Pointer") && !line.contains("get_pc_thunk"));
    told
}

fn scanned(path: &Path) -> (Binary, Calls) {
    let binary = Binary::open(path).unwrap();
    let calls = scan::calls(&binary, None).unwrap();
    (binary, calls)
}

const PARTS: &str = r#"
#define FAR __attribute__((noinline, noclone, noipa))
extern int there(int);
extern int (*volatile hook)(int);
extern void never(void) __attribute__((noreturn, cold));
FAR static int near(int x) { return there(x) + 1; }
FAR int first(int x) { return near(x) * near(x + 1) + 1; }
FAR int last(int x) { return first(x + 1); }
FAR int passes(int x) { return there(x + 2); }
FAR int through(int x) { return hook(x) + 1; }
FAR int rare(int x) { if (__builtin_expect(x == 77, 0)) never(); return near(x) + 2; }
int (*const fixed[])(int) = {near, first, near, there};
"#;

#[test]
fn calls_of_objects_are_those_that_a_linker_would_make() {
    let directory = directory("objects");
    fs::write(directory.join("parts.c"), PARTS).unwrap();
    let expected = [
        "first -> near: Call",
        "last -> first: Tail",
        "near -> there: Import",
        "passes -> there: Import",
        "rare -> near: Call",
        "rare -> never: Import",
    ];
    let expected: BTreeSet<String> = expected.map(String::from).into();
    let all = [
        &["-O2"][..],
        &["-O2", "-ffunction-sections"],
        &["-O2", "-fPIC"],
        &["-O2", "-fno-pic"],
        &["-O2", "-g", "-gz"],
    ];
    let plain = "-fno-asynchronous-unwind-tables";
    let x86 = [
        &["-O2", "-fPIC", "-fno-plt"][..],
        &["-O2", "-fno-pic", "-mcmodel=kernel"],
        &["-O2", "-ffunction-sections", plain],
    ];
    let own = if cfg!(target_arch = "x86_64") {
        &x86[..]
    } else {
        &[]
    };
    let compilers = [
        ("gcc", [&all[..], own].concat()),
        ("aarch64-linux-gnu-gcc", all.to_vec()),
        ("riscv64-linux-gnu-gcc", all.to_vec()),
        (
            "i686-linux-gnu-gcc",
            // With -fPIC no tail call is made there: it would leave a register changed.
            vec![all[0], all[1], all[3], all[4]],
        ),
    ];
    for (compiler, options) in compilers {
        for options in options {
            let args = [options, &["-c", "parts.c", "-o", "parts.o"]].concat();
            if !run(&directory, compiler, &args) {
                break;
            }
            let (binary, calls) = scanned(&directory.join("parts.o"));
            let what = format!("{compiler} {options:?}");
            assert_eq!(called(&binary, &calls), expected, "{what}");
            assert_eq!((calls.astray, calls.indirect().0), (0, 1), "{what}");
            assert_eq!(calls.problems, Vec::<String>::new(), "{what}");
            let pointers: Vec<(String, u64)> = calls
                .functions
                .iter()
                .filter(|function| function.pointers_in_data > 0)
                .map(|function| {
                    let name = binary.function_name(&function.symbol).unwrap();
                    (name.into_owned(), function.pointers_in_data)
                })
                .collect();
            let mut pointers = pointers;
            pointers.sort();
            assert_eq!(
                pointers,
                [("first".into(), 1), ("near".into(), 2)],
                "{what}"
            );
            let there = calls.imports.iter().position(|name| name == "there");
            let counts: Vec<u64> = calls.pointers_to_imports.iter().copied().collect();
            assert_eq!(counts[there.unwrap()], 1, "{what}");
        }
    }
}

#[test]
fn objects_of_other_machines_have_references_and_slots() {
    let directory = directory("machines");
    fs::write(directory.join("parts.c"), PARTS).unwrap();
    for compiler in ["i686-linux-gnu-gcc", "riscv64-linux-gnu-gcc"] {
        if !run(
            &directory,
            compiler,
            &["-O2", "-c", "parts.c", "-o", "parts.o"],
        ) {
            continue;
        }
        let binary = Binary::open(&directory.join("parts.o")).unwrap();
        let (references, slots) = (binary.references(), binary.slots());
        let start = |name: &str| {
            let mut functions = binary.functions().iter();
            let named = |f: &&_| binary.function_name(f).as_deref() == Some(name);
            functions.find(named).unwrap().start
        };
        let near = binary.function_at(start("near")).unwrap();
        let size = fs::metadata(directory.join("parts.o")).unwrap().len();
        let fields = (0..size).filter_map(|at| Some((at, references.at(Svma(at))?)));
        let (mut calls, mut imports) = (0, 0);
        for (at, reference) in fields {
            match reference {
                proftool::binary::Reference::To(SlotTarget::Address(to)) => {
                    calls += usize::from(to == near.start);
                }
                proftool::binary::Reference::To(SlotTarget::Symbol(symbol)) => {
                    let name = slots.name(symbol).unwrap();
                    assert!(
                        ["there", "never", "hook"].contains(&&*name),
                        "{at:x} {name}"
                    );
                    imports += usize::from(name == "there");
                }
                _ => {}
            }
        }
        // Those that an assembler may resolve itself need no record.
        assert!(calls >= 2 || compiler.starts_with("i686"), "{compiler}");
        assert!(imports >= 2, "{compiler}");
        let mut pointed = 0;
        let problems = binary.data_pointers(|to| {
            pointed += usize::from(to == SlotTarget::Address(near.start));
        });
        assert_eq!((pointed, problems), (2, Vec::new()), "{compiler}");

        let args = [
            "-O2",
            "-shared",
            "-fPIC",
            "-nostdlib",
            "parts.c",
            "-o",
            "parts.so",
        ];
        if run(&directory, compiler, &args) {
            let binary = Binary::open(&directory.join("parts.so")).unwrap();
            let stubs = binary.functions().iter();
            let stubs = stubs.filter(|f| f.source == SymbolSource::Plt);
            let mut names: Vec<_> = stubs.filter_map(|f| binary.function_name(f)).collect();
            names.sort();
            let expected = ["never@plt", "there@plt"];
            assert!(
                expected.iter().all(|name| names.contains(&(*name).into())),
                "{names:?}"
            );
            let near = {
                let mut functions = binary.functions().iter();
                let named = |f: &&_| binary.function_name(f).as_deref() == Some("near");
                functions.find(named).unwrap().start
            };
            let mut pointed = 0;
            binary.data_pointers(|to| pointed += usize::from(to == SlotTarget::Address(near)));
            assert_eq!(pointed, 2, "{compiler}");
            let calls = scan::calls(&binary, None).unwrap();
            let told = called(&binary, &calls);
            for line in [
                "near -> there: Import",
                "rare -> never: Import",
                "rare -> near: Call",
            ] {
                assert!(told.contains(line), "{compiler}: {line} {told:?}");
            }
        }
    }
}

const POINTERS: &str = r#"
#include <stdlib.h>
#define FAR __attribute__((noinline, noclone, noipa))
FAR static int near(const void *a, const void *b) { return *(int *)a - *(int *)b; }
FAR static int other(const void *a, const void *b) { return *(int *)a + *(int *)b; }
FAR void sorts(int *p, int n) { qsort(p, n, 4, near); }
FAR void either(int *p, int n) { qsort(p, n, 4, n > 5 ? near : other); }
extern void give(void *);
FAR void itself(int n) { if (n > 1) give((void *)itself); }
FAR int number(void) { return 0x40; }
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn addresses_that_code_takes_are_pointers_and_numbers_are_not() {
    let directory = directory("pointers");
    fs::write(directory.join("pointers.c"), POINTERS).unwrap();
    let within = [
        "sorts -> near: Pointer",
        "either -> near: Pointer",
        "either -> other: Pointer",
        "itself -> itself: Pointer",
    ];
    let expected: BTreeSet<String> = within.map(String::from).into();
    for options in [
        &["-shared", "-fPIC"][..],
        &["-shared", "-fPIC", "-fno-plt"],
        &["-c", "-fPIC"],
        &["-c", "-fno-pic"],
        &["-c", "-fno-pic", "-ffunction-sections"],
    ] {
        let args = [options, &["-O2", "pointers.c", "-o", "pointers"]].concat();
        if !run(&directory, "gcc", &args) {
            return;
        }
        let (binary, calls) = scanned(&directory.join("pointers"));
        let mut told = told(&binary, &calls);
        told.retain(|line| line.ends_with(": Pointer") && !line.contains("_"));
        assert_eq!(told, expected, "{options:?}");
    }
}

const STATIC: &str = r#"
#include <string.h>
#include <stdlib.h>
#include <stdio.h>
#define FAR __attribute__((noinline, noclone, noipa))
FAR int one(int x) { return x + 1; }
FAR int other(int x) { return x + 2; }
FAR int rare(int x) {
    if (__builtin_expect(x == 77, 0)) { puts("rare"); if (x == one(3)) abort(); x = one(x) * 3; }
    return x * one(x + 1);
}
FAR int passes(int x) { return other(x + 1); }
int (*hook)(int) = other;
int (*const table[])(int) = {one, one};
__attribute__((used)) static int (*const fixed)(int) = one;
FAR int through(int x) { THROUGH; return table[x & 1](x); }
int main(int argc, char **argv) {
    return through(argc) + rare(argc) + passes(argc) + hook(argc) + (int)strlen(argv[0]);
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn slots_without_relocations_are_read_where_programs_are_not_moved() {
    let directory = directory("static");
    fs::write(directory.join("static.c"), STATIC).unwrap();
    let through = r#"-DTHROUGH=__asm__ volatile("call *fixed(%rip)")"#;
    for (options, is_static) in [
        (&["-static"][..], true),
        (&["-static-pie"], true),
        (&["-no-pie", "-fno-pie"], false),
        (&["-pie"], false),
        (&["-pie", "-Wl,-z,pack-relative-relocs"], false),
    ] {
        let args = [options, &["-O2", through, "static.c", "-o", "static"]].concat();
        if !run(&directory, "gcc", &args) {
            continue;
        }
        let (binary, calls) = scanned(&directory.join("static"));
        let told = told(&binary, &calls);
        for line in [
            "through -> one: Call",
            "passes -> other: Tail",
            "rare -> one: Call",
            "main -> strlen: Import",
        ] {
            assert!(told.contains(line), "{options:?}: {line}");
        }
        // What the C library has written by hand may call into the middle of functions.
        assert!(
            !is_static || calls.astray < 10,
            "{options:?}: {}",
            calls.astray
        );
        let pointers = |name: &str| {
            let mut functions = calls.functions.iter();
            let named =
                |f: &&scan::CodeFunction| binary.function_name(&f.symbol).as_deref() == Some(name);
            functions.find(named).unwrap().pointers_in_data
        };
        let found = (pointers("one"), pointers("other"), pointers("rare"));
        assert_eq!(found, (3, 1, 0), "{options:?}");
    }
}

/// The calls between functions by address, parts folded.
fn addresses(calls: &Calls) -> BTreeSet<(u64, u64, CallKind)> {
    let start = |id| calls.functions[id].symbol.start.0;
    let sites = calls.sites.iter().filter_map(|site| match site.callee {
        Callee::Function(callee) => Some((start(site.caller), start(callee), site.kind)),
        Callee::Import(_) => None,
    });
    sites.collect()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn parts_of_functions_are_folded_with_and_without_symbols() {
    let directory = directory("parts");
    fs::write(directory.join("static.c"), STATIC).unwrap();
    let args = ["-O2", "-DTHROUGH=", "static.c", "-o", "program"];
    if !run(&directory, "gcc", &args) || !run(&directory, "strip", &["program", "-o", "stripped"]) {
        return;
    }
    let (binary, calls) = scanned(&directory.join("program"));
    let name = |id| binary.function_name(&calls.functions[id].symbol).unwrap();
    let parts = |calls: &Calls| -> Vec<(u64, u64)> {
        let parts = calls.functions.iter().filter_map(|function| {
            let whole = &calls.functions[function.part_of?].symbol;
            Some((function.symbol.start.0, whole.start.0))
        });
        parts.collect()
    };
    let mut folded = calls
        .functions
        .enumerate()
        .filter(|(_, f)| f.part_of.is_some());
    let (part, function) = folded.next().unwrap();
    let whole = function.part_of.unwrap();
    assert_eq!((&*name(part), &*name(whole)), ("rare.cold", "rare"));
    assert!(folded.next().is_none());
    let told = told(&binary, &calls);
    assert!(told.contains("rare -> abort: Import"), "{told:?}");
    assert!(told.iter().all(|line| !line.contains(".cold")), "{told:?}");

    let (_, stripped) = scanned(&directory.join("stripped"));
    assert_eq!(parts(&stripped), parts(&calls));
    // Functions of the C runtime have no bounds there.
    let known: BTreeSet<u64> = stripped
        .functions
        .iter()
        .map(|f| f.symbol.start.0)
        .collect();
    let mut expected = addresses(&calls);
    expected.retain(|(from, to, _)| known.contains(from) && known.contains(to));
    assert!(expected.len() >= 5, "{expected:x?}");
    assert_eq!(addresses(&stripped), expected);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn recursion_through_a_part_stays_a_call() {
    // f: call f.part.0; ret    f.part.0: call f; call f.part.0; jmp f; jmp g    g: ret
    let code = b"\xe8\x01\0\0\0\xc3\xe8\xf5\xff\xff\xff\xe8\xf6\xff\xff\xff\xeb\xee\xeb\x00\xc3";
    let symbols = [("f", 0x1000, 6), ("f.part.0", 0x1006, 14), ("g", 0x1014, 1)];
    let binary = Binary::from_bytes(Elf::program(code, &symbols).bytes()).unwrap();
    let calls = scan::calls(&binary, None).unwrap();
    let sites: Vec<(u64, CallKind)> = calls.sites.iter().map(|s| (s.at.0, s.kind)).collect();
    let expected = [
        (0x1006, CallKind::Call),
        (0x100b, CallKind::Call),
        (0x1012, CallKind::Tail),
    ];
    assert_eq!(sites, expected);
    let told = told(&binary, &calls);
    assert_eq!(
        told,
        ["f -> f: Call", "f -> g: Tail"].map(String::from).into()
    );
}

#[test]
fn libraries_are_searched_in_the_order_of_the_dynamic_linker() {
    let directory = directory("libraries");
    let root = directory.join("root");
    fs::create_dir_all(root.join("opt/app/lib")).unwrap();
    fs::create_dir_all(root.join("opt/app/bin")).unwrap();
    let sources = [
        (
            "deep.c",
            "int both(int x) { return x; } int deep(int x) { return x + 1; }\n",
        ),
        (
            "wide.c",
            "int deep(int); int wide(int x) { return deep(x); }\n",
        ),
        (
            "late.c",
            "int both(int x) { return x + 3; }\n\
             int old(int x) { return x; } int new(int x) { return x + 1; }\n\
             __asm__(\".symver old, named@V1\"); __asm__(\".symver new, named@@V2\");\n",
        ),
        (
            "late.map",
            "V1 { global: named; }; V2 { global: named; both; } V1;\n",
        ),
        (
            "program.c",
            "int wide(int), both(int), named(int);\n\
             int own(int x) { return x; }\n\
             int main(int c, char **v) { return wide(c) + both(c) + named(c) + own(c); }\n",
        ),
    ];
    for (name, text) in sources {
        fs::write(directory.join(name), text).unwrap();
    }
    let library = |name: &str, args: &[&str]| {
        let (source, soname) = (format!("{name}.c"), format!("-Wl,-soname,lib{name}.so.1"));
        let file = format!("root/opt/app/lib/lib{name}.so.1");
        let fixed = [
            "-shared",
            "-fPIC",
            "-nostdlib",
            &source,
            "-o",
            &file,
            &soname,
        ];
        run(&directory, "gcc", &[&fixed[..], args].concat())
    };
    let lib = "root/opt/app/lib";
    let made = library("deep", &[])
        && library(
            "wide",
            &[&format!("{lib}/libdeep.so.1"), "-Wl,-rpath,$ORIGIN"],
        )
        && library("late", &["-Wl,--version-script=late.map"])
        && run(
            &directory,
            "gcc",
            &[
                "program.c",
                "-o",
                "root/opt/app/bin/program",
                "-Wl,-rpath,$ORIGIN/../lib",
                &format!("-Wl,-rpath-link,{lib}"),
                &format!("{lib}/libwide.so.1"),
                &format!("{lib}/liblate.so.1"),
                "-rdynamic",
            ],
        );
    if !made {
        return;
    }
    let program = Arc::new(Binary::open(&root.join("opt/app/bin/program")).unwrap());
    let needed = program.needed();
    assert_eq!(needed.libraries[0], b"libwide.so.1");
    assert_eq!(needed.runpath.as_deref(), Some(&b"$ORIGIN/../lib"[..]));
    for finder in [Finder::new(None), Finder::new(Some(&root))] {
        let libraries = Libraries::of(&program, &finder);
        let file = |binary: &Arc<Binary>| {
            let name = binary.path().file_name().unwrap();
            name.to_str().unwrap().to_owned()
        };
        let files: Vec<String> = libraries.files().map(&file).collect();
        assert_eq!(files[..3], ["program", "libwide.so.1", "liblate.so.1"]);
        assert!(files.contains(&"libdeep.so.1".to_owned()), "{files:?}");
        let defined = |name| {
            let (binary, start) = libraries.definition(name)?;
            let function = binary.function_at(start).filter(|f| f.start == start)?;
            Some((file(binary), binary.function_name(function)?.into_owned()))
        };
        let is = |name, in_file: &str, function: &str| {
            assert_eq!(
                defined(name),
                Some((in_file.to_owned(), function.to_owned()))
            );
        };
        is("own", "program", "own");
        is("deep", "libdeep.so.1", "deep");
        // Needed by the program itself, so before what its libraries need.
        is("both", "liblate.so.1", "both");
        let (binary, start) = libraries.definition("named").unwrap();
        assert_eq!(start, binary.exports().start(b"new").unwrap_or(start));
        assert_eq!(defined("no_such_function"), None);
        // The C library is nowhere below the second root.
        let missing = libraries.problems.iter().any(|p| p.contains("libc.so.6"));
        let has_libc = files.iter().any(|name| name.starts_with("libc.so"));
        assert_eq!(missing, !has_libc, "{:?}", libraries.problems);
    }
}

/// A section of a file that is made by hand.
#[derive(Clone, Default)]
struct Section {
    kind: u32,
    flags: u64,
    address: u64,
    contents: Vec<u8>,
    /// Where it says that its contents are, and how many: what is true, if nothing else is said.
    stated: Option<(u64, u64)>,
    link: u32,
    info: u32,
    entry: u64,
    name: &'static str,
}

/// A 64-bit ELF file for x86-64 that is made by hand.
struct Elf {
    kind: u16,
    sections: Vec<Section>,
}

const CODE: u64 = 6;

impl Elf {
    /// Code at 0x1000, with functions of these names, starts and sizes.
    fn program(code: &[u8], functions: &[(&str, u64, u64)]) -> Elf {
        let (mut symbols, mut strings) = (vec![0; 24], vec![0]);
        for (name, start, size) in functions {
            symbols.extend(symbol(strings.len() as u32, 1, *start, *size));
            strings.extend(name.bytes().chain([0]));
        }
        Elf {
            kind: 3,
            sections: vec![
                Section {
                    name: ".text",
                    kind: 1,
                    flags: CODE,
                    address: 0x1000,
                    contents: code.to_vec(),
                    ..Section::default()
                },
                Section {
                    name: ".symtab",
                    kind: 2,
                    link: 3,
                    entry: 24,
                    contents: symbols,
                    ..Section::default()
                },
                Section {
                    name: ".strtab",
                    kind: 3,
                    contents: strings,
                    ..Section::default()
                },
            ],
        }
    }

    fn bytes(mut self) -> Vec<u8> {
        let mut names = vec![0];
        let mut headers = vec![0; 64];
        let mut file = vec![0; 64];
        let shown = self.sections.len() + 1;
        self.sections.push(Section {
            name: ".shstrtab",
            kind: 3,
            ..Section::default()
        });
        for section in &self.sections {
            let at = names.len() as u32;
            names.extend(section.name.bytes().chain([0]));
            headers.extend([at.to_le_bytes(), section.kind.to_le_bytes()].concat());
        }
        // Headers are filled in below; names come last.
        let (mut all, mut at) = (vec![0; 64], 1);
        let last = self.sections.len();
        for section in &self.sections {
            let contents = if at == last {
                &names
            } else {
                &section.contents
            };
            let true_place = (file.len() as u64, contents.len() as u64);
            let (offset, size) = section.stated.unwrap_or(true_place);
            all.extend(&headers[64 + 8 * (at - 1)..64 + 8 * at]);
            for word in [section.flags, section.address, offset, size] {
                all.extend(word.to_le_bytes());
            }
            all.extend([section.link.to_le_bytes(), section.info.to_le_bytes()].concat());
            all.extend([1_u64.to_le_bytes(), section.entry.to_le_bytes()].concat());
            file.extend(contents);
            at += 1;
        }
        let table = file.len() as u64;
        file.extend(all);
        file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
        file[0x10..0x12].copy_from_slice(&self.kind.to_le_bytes());
        file[0x12..0x14].copy_from_slice(&62_u16.to_le_bytes());
        file[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        for (at, value) in [(0x34, 64), (0x3a, 64), (0x3c, shown + 1), (0x3e, shown)] {
            file[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        }
        file
    }
}

/// A global function.
fn symbol(name: u32, section: u16, start: u64, size: u64) -> Vec<u8> {
    let mut symbol = name.to_le_bytes().to_vec();
    symbol.extend([0x12, 0]);
    symbol.extend(section.to_le_bytes());
    symbol.extend([start.to_le_bytes(), size.to_le_bytes()].concat());
    symbol
}

/// A record that adds -4 to a symbol.
fn record(at: u64, kind: u32, symbol: u32) -> Vec<u8> {
    let info = u64::from(symbol) << 32 | u64::from(kind);
    [at.to_le_bytes(), info.to_le_bytes(), (-4_i64).to_le_bytes()].concat()
}

/// What a file tells, within the deadline of the suite.
fn endured(what: &str, file: Vec<u8>) -> Calls {
    support::watch();
    let size = file.len() as u64;
    let binary = Arc::new(Binary::from_bytes(file).unwrap());
    let calls = scan::calls(&binary, None).unwrap();
    let _ = (binary.exports(), binary.problems());
    let _ = Libraries::of(&binary, &Finder::new(Some(Path::new("/nonexistent"))));
    assert!(calls.decoded + calls.undecoded <= size, "{what}");
    calls
}

#[test]
fn sections_that_do_not_fit_into_the_file_are_reported() {
    for stated in [
        (u64::MAX, 5),
        (1 << 40, 5),
        (64, 1 << 63),
        (64, u64::MAX),
        (u64::MAX - 2, u64::MAX - 2),
    ] {
        let functions = [("f", 0x1000, u64::MAX)];
        let mut elf = Elf::program(b"\xe8\xfb\xff\xff\xff", &functions);
        elf.sections[0].stated = Some(stated);
        let calls = endured("code", elf.bytes());
        assert!(
            calls.sites.is_empty() && !calls.problems.is_empty(),
            "{stated:x?}"
        );

        let mut elf = Elf::program(b"\xe8\xfb\xff\xff\xff", &functions);
        elf.sections.push(Section {
            name: ".rela.dyn",
            kind: 4,
            flags: 2,
            stated: Some(stated),
            ..Section::default()
        });
        let calls = endured("relocations", elf.bytes());
        let told = "relocations: 1 sections do not fit into the file";
        assert_eq!(
            (calls.sites.len(), calls.problems),
            (1, vec![told.to_owned()])
        );
    }
}

#[test]
fn a_million_symbols_with_one_long_name_take_no_longer_than_the_file() {
    // Every name begins one byte later and ends at the same byte, a megabyte on.
    let mut elf = Elf::program(&[0x90; 64], &[]);
    let symbols = (0..1_000_000_u32).flat_map(|i| symbol(1 + i, 1, 0x1000 + u64::from(i % 64), 64));
    elf.sections[1].contents.extend(symbols);
    elf.sections[2].contents = [vec![0], vec![b'a'; 1 << 20], vec![0]].concat();
    let calls = endured("names", elf.bytes());
    assert!(calls.functions.len() <= 64 && calls.decoded <= 64);
}

#[test]
fn a_million_records_for_one_field_are_one_reference() {
    // 1000 f: call …; ret    1006 g: ret
    let functions = [("f", 0, 6), ("g", 6, 1)];
    let mut elf = Elf::program(b"\xe8\0\0\0\0\xc3\xc3", &functions);
    elf.kind = 1;
    elf.sections.push(Section {
        name: ".rela.text",
        kind: 4,
        link: 2,
        info: 1,
        entry: 24,
        contents: record(1, 4, 2).repeat(1_000_000),
        ..Section::default()
    });
    let calls = endured("records", elf.bytes());
    let site = &calls.sites[0];
    assert_eq!((calls.sites.len(), site.kind), (1, CallKind::Call));
    let Callee::Function(callee) = site.callee else {
        panic!("{site:?}");
    };
    assert_eq!(calls.functions[callee].symbol.size, 1);
}

#[test]
fn sections_that_share_their_bytes_are_read_once() {
    let code = b"\xe8\xfb\xff\xff\xff".repeat(200_000);
    let mut elf = Elf::program(&code, &[("f", 0x1000, 1 << 62)]);
    let size = code.len() as u64;
    for i in 1..20_000_u64 {
        elf.sections.push(Section {
            name: ".text",
            kind: 1,
            flags: CODE,
            address: 0x1000 + i * 16,
            stated: Some((64, size)),
            ..Section::default()
        });
        elf.sections.push(Section {
            name: ".rela.dyn",
            kind: 4,
            flags: 2,
            stated: Some((64, size)),
            ..Section::default()
        });
    }
    let calls = endured("shared", elf.bytes());
    assert!(
        calls
            .problems
            .iter()
            .any(|p| p.contains("larger than the file"))
    );
    assert!(
        calls.problems.iter().any(|p| p.contains("do not fit")),
        "{:?}",
        calls.problems
    );
}

#[test]
fn a_function_ends_with_its_section() {
    let elf = Elf::program(&[0x90; 5], &[("f", 0x1000, u64::MAX)]);
    let binary = Binary::from_bytes(elf.bytes()).unwrap();
    let function = binary.functions().first().unwrap();
    assert_eq!(function.end().0 - function.start.0, 5);
}
