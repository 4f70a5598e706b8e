//! The room `binary`, on programs that are compiled on the spot and on what is made of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use proftool::base::{BuildId, FileOffset, Svma};
use proftool::binary::{Binary, Error, Finder, InlineFrame, PerfMap, SymbolSource, demangle, vdso};

use crate::support;
use crate::support::elf::Elf;
use crate::support::skipped;

const PROGRAM: &str = r#"#include <stdio.h>
static inline __attribute__((always_inline)) int leaf(int x) {
    return x * x + 7;
}
static inline __attribute__((always_inline)) int middle(int x) {
    volatile int y = leaf(x);
    return y + 1;
}
__attribute__((noinline)) static int local_work(int x) {
    return middle(x) ^ 3;
}
__attribute__((noinline)) int shared_work(int x) {
    puts("working");
    return local_work(x) + 1;
}
int alias_work(int) __attribute__((weak, alias("shared_work")));
int main(int argc, char **argv) {
    return shared_work(argc);
}
"#;

/// An empty directory for one test.
fn directory(test: &str) -> PathBuf {
    support::directory(&format!("binary-{test}"))
}

/// Runs a tool in `directory`; whether it is there and succeeded.
fn run(directory: &Path, tool: &str, args: &[&str]) -> bool {
    support::ran(Command::new(tool).args(args).current_dir(directory)).is_some()
}

/// Compiles `source` to `prog`.
fn compile(directory: &Path, source: &str, args: &[&str]) -> Option<PathBuf> {
    let args = [&["-O2"], args].concat();
    support::compile_text("gcc", &args, source, &directory.join("prog"))
}

/// The address of the function of this name.
fn start(binary: &Binary, name: &str) -> Option<Svma> {
    let mut functions = binary.functions().iter();
    let found = functions.find(|f| binary.function_name(f).as_deref() == Some(name))?;
    Some(found.start)
}

/// The frames of an address as text: `name:line`.
fn frames(binary: &Binary, at: Svma) -> Vec<String> {
    let (lines, mut out) = (binary.lines(), Vec::new());
    lines.frames(at, &mut out);
    let text = out.iter().map(|frame| {
        let name = frame.function.as_deref().unwrap_or("?");
        format!("{name}:{}", frame.line.unwrap_or(0))
    });
    text.collect()
}

/// Every distinct chain of frames in the function of this name.
fn chains(binary: &Binary, name: &str) -> BTreeSet<Vec<String>> {
    let at = start(binary, name).unwrap();
    let function = binary.function_at(at).unwrap();
    let addresses = function.start.0..function.end().0;
    addresses.map(|at| frames(binary, Svma(at))).collect()
}

#[test]
fn symbols_name_functions_and_aliases_fold_to_the_strongest() {
    let directory = directory("symbols");
    let Some(program) = compile(&directory, PROGRAM, &[]) else {
        return;
    };
    let binary = Binary::open(&program).unwrap();
    let at = start(&binary, "shared_work").unwrap();
    let function = binary.function_at(Svma(at.0 + 1)).unwrap();
    assert_eq!(function.source, SymbolSource::Symtab);
    assert_eq!(binary.function_name(function).unwrap(), "shared_work");
    assert!(
        binary
            .function_at(Svma(function.end().0))
            .is_none_or(|f| f.start != at)
    );
    assert_eq!(start(&binary, "alias_work"), None);
    assert!(start(&binary, "local_work").is_some());
    assert!(
        binary
            .functions()
            .windows(2)
            .all(|pair| pair[0].start < pair[1].start)
    );
    assert!(binary.has_symbols() && !binary.has_debug_info());
    assert_eq!(binary.problems(), Vec::<String>::new());
    assert_eq!(binary.svma(FileOffset(u64::MAX)), None);
}

#[test]
fn inlined_calls_come_innermost_first_with_their_lines() {
    for flags in [
        &["-g"][..],
        &["-g", "-gdwarf-4"],
        &["-g", "-gdwarf-5", "-gz=zlib"],
        &["-g", "-gz=zstd"],
        &["-g1"],
    ] {
        let directory = directory(&format!("inlines{}", flags.join("")));
        let Some(program) = compile(&directory, PROGRAM, flags) else {
            continue;
        };
        let binary = Binary::open(&program).unwrap();
        assert!(binary.has_debug_info());
        let chains = chains(&binary, "local_work");
        let wanted: Vec<String> = ["leaf:3", "middle:6", "local_work:10"]
            .map(String::from)
            .into();
        assert!(chains.contains(&wanted), "{flags:?}: {chains:?}");
        let lines = binary.lines();
        let mut out = Vec::new();
        lines.frames(start(&binary, "main").unwrap(), &mut out);
        let file = out[0].file.unwrap();
        assert_eq!(Path::new(file), directory.join("prog.c"));
        assert!(!lines.is_exhausted());
    }
}

#[test]
fn frames_are_those_of_the_addr2line_crate() {
    let directory = directory("oracle");
    // The oracle is built without what inflates sections.
    let Some(program) = compile(&directory, PROGRAM, &["-g", "-gz=none", "-static"]) else {
        return;
    };
    let binary = Binary::open(&program).unwrap();
    let bytes = fs::read(&program).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let sections = gimli::DwarfSections::load(|id| {
        use object::{Object, ObjectSection};
        let section = object.section_by_name(id.name());
        let data = section.map(|section| section.uncompressed_data().unwrap());
        Ok::<_, gimli::Error>(data.unwrap_or_default())
    });
    let sections = sections.unwrap();
    let dwarf = sections.borrow(|s| gimli::EndianSlice::new(s, gimli::RunTimeEndian::Little));
    let oracle = addr2line::Context::from_dwarf(dwarf).unwrap();
    let (lines, mut out) = (binary.lines(), Vec::new());
    // Asked first, it has read no line table for what the other is asked.
    let (bare, mut without) = (binary.lines(), Vec::new());
    let mut compared = 0;
    for function in binary.functions() {
        for at in (function.start.0..function.end().0).step_by(3) {
            bare.frames_without_lines(Svma(at), &mut without);
            lines.frames(Svma(at), &mut out);
            let known = |frames: &[InlineFrame<'_>]| -> Vec<_> {
                let frames = frames.iter();
                let known = frames.map(|frame| {
                    let definition = frame.definition.map(|definition| definition.id);
                    let function = frame.function.as_deref().map(str::to_owned);
                    (function, definition, frame.is_split_off)
                });
                known.collect()
            };
            assert_eq!(known(&without), known(&out), "at {at:#x}");
            assert!(
                without
                    .iter()
                    .all(|frame| frame.file.or(frame.line.map(|_| "")).is_none())
            );
            let mut expected = oracle.find_frames(at).skip_all_loads().unwrap();
            for frame in &out {
                let other = expected.next().unwrap().unwrap();
                let name = other
                    .function
                    .map(|name| name.raw_name().unwrap().into_owned());
                assert_eq!(frame.function.as_deref(), name.as_deref(), "at {at:#x}");
                let location = other.location;
                assert_eq!(
                    frame.file,
                    location.as_ref().and_then(|l| l.file),
                    "at {at:#x}"
                );
                assert_eq!(
                    frame.line,
                    location.as_ref().and_then(|l| l.line),
                    "at {at:#x}"
                );
                compared += 1;
            }
            assert!(expected.next().unwrap().is_none(), "at {at:#x}");
        }
    }
    assert!(compared > 10);
}

#[test]
fn linkage_stubs_are_named_after_what_they_call() {
    for flags in [
        &["-Wl,-z,lazy"][..],
        &["-Wl,-z,now"],
        &["-fcf-protection=full", "-Wl,-z,ibtplt"],
        &["-static"],
    ] {
        let directory = directory(&format!("plt{}", flags.len()));
        let Some(program) = compile(&directory, PROGRAM, flags) else {
            continue;
        };
        let binary = Binary::open(&program).unwrap();
        let stubs = binary
            .functions()
            .iter()
            .filter(|f| f.source == SymbolSource::Plt);
        let names: Vec<String> = stubs
            .map(|f| binary.function_name(f).unwrap().into_owned())
            .collect();
        if flags != ["-static"] {
            assert!(
                names.iter().any(|name| name == "puts@plt"),
                "{flags:?}: {names:?}"
            );
        } else {
            assert!(
                !names.is_empty() && names.iter().all(|name| !name.starts_with("*ABS*")),
                "{names:?}"
            );
        }
    }
}

#[test]
fn a_stripped_program_keeps_the_bounds_of_its_functions() {
    let directory = directory("stripped");
    let Some(program) = compile(&directory, PROGRAM, &[]) else {
        return;
    };
    let whole = Binary::open(&program).unwrap();
    let at = start(&whole, "local_work").unwrap();
    if !run(&directory, "strip", &["-o", "stripped", "prog"]) {
        return;
    }
    let stripped = Binary::open(&directory.join("stripped")).unwrap();
    let function = stripped.function_at(Svma(at.0 + 2)).unwrap();
    assert_eq!(
        (function.start, function.source),
        (at, SymbolSource::Unwind)
    );
    assert_eq!(stripped.function_name(function), None);
    assert!(!stripped.has_symbols());
}

#[test]
fn a_debug_file_is_found_by_link_and_believed_only_by_id_or_checksum() {
    for id in ["-Wl,--build-id=sha1", "-Wl,--build-id=none"] {
        let directory = directory(&format!("link{}", id.len()));
        let Some(_) = compile(&directory, PROGRAM, &["-g", id]) else {
            return;
        };
        fs::create_dir(directory.join(".debug")).unwrap();
        let split = run(
            &directory,
            "objcopy",
            &["--only-keep-debug", "prog", ".debug/prog.debug"],
        ) && run(
            &directory,
            "objcopy",
            &[
                "--strip-all",
                "--add-gnu-debuglink=.debug/prog.debug",
                "prog",
                "lean",
            ],
        );
        if !split {
            return;
        }
        let lean = directory.join("lean");
        let binary = Binary::open(&lean).unwrap();
        assert!(binary.has_debug_info() && start(&binary, "local_work").is_some());
        assert!(
            chains(&binary, "local_work")
                .iter()
                .any(|chain| chain.len() == 3)
        );

        let other = PROGRAM.replace("leaf", "leaf_of_another_build");
        compile(&directory, &other, &["-g", id]).unwrap();
        run(
            &directory,
            "objcopy",
            &["--only-keep-debug", "prog", ".debug/prog.debug"],
        );
        let binary = Binary::open(&lean).unwrap();
        assert!(!binary.has_debug_info() && start(&binary, "local_work").is_none());
    }
}

#[test]
fn a_debug_file_is_found_by_build_id_below_symfs() {
    let directory = directory("by-id");
    let Some(program) = compile(&directory, PROGRAM, &["-g", "-Wl,--build-id=sha1"]) else {
        return;
    };
    let id = Binary::open(&program).unwrap().build_id().unwrap().clone();
    let hex = id.to_string();
    let root = directory.join("root");
    let debug = root.join("usr/lib/debug/.build-id").join(&hex[..2]);
    fs::create_dir_all(&debug).unwrap();
    fs::create_dir_all(root.join("opt")).unwrap();
    if !run(&directory, "strip", &["-o", "root/opt/prog", "prog"]) {
        return;
    }
    let finder = Finder::new(Some(&root));
    assert!(
        !finder
            .find("/opt/prog", Some(&id))
            .unwrap()
            .has_debug_info()
    );
    fs::rename(&program, debug.join(format!("{}.debug", &hex[2..]))).unwrap();
    let binary = finder.find("/opt/../../../opt/prog", Some(&id)).unwrap();
    assert!(binary.has_debug_info() && start(&binary, "local_work").is_some());
    assert!(matches!(finder.find("/bin/sh", None), Err(Error::NotFound)));
}

/// An ELF file whose build ID is 20 times this byte.
fn with_build_id(byte: u8) -> Elf {
    let mut note = [4u32, 20, 3].map(u32::to_ne_bytes).concat();
    note.extend(b"GNU\0");
    note.extend([byte; 20]);
    let elf = Elf::with_functions(&[("work", 0x1000, 0x100)]);
    elf.with(".note.gnu.build-id", 7, 2, &note)
}

#[test]
fn symfs_comes_first_and_host_files_count_only_by_build_id() {
    let directory = directory("symfs-first");
    let id = |byte: u8| BuildId::new(&[byte; 20]).unwrap();
    let (root, host) = (directory.join("root"), directory.join("host"));
    let below = root.join(host.strip_prefix("/").unwrap());
    fs::create_dir_all(below.parent().unwrap()).unwrap();
    let finder = Finder::new(Some(&root));
    with_build_id(1).write(&host);
    // Only the host has it.
    assert_eq!(
        finder.find(&host, Some(&id(1))).unwrap().build_id(),
        Some(&id(1))
    );
    assert!(matches!(finder.find(&host, None), Err(Error::NotFound)));
    assert!(matches!(
        finder.find(&host, Some(&id(2))),
        Err(Error::NotFound)
    ));
    // Both have it, as different builds.
    with_build_id(2).write(&below);
    for byte in [1, 2] {
        let found = finder.find(&host, Some(&id(byte))).unwrap();
        assert_eq!(found.build_id(), Some(&id(byte)));
    }
    assert_eq!(finder.find(&host, None).unwrap().build_id(), Some(&id(2)));
    let changed = finder.find(&host, Some(&id(3)));
    assert!(matches!(changed, Err(Error::ChangedBuild { .. })));
}

#[test]
fn a_path_that_a_recording_lists_for_a_build_is_tried() {
    let directory = directory("listed");
    let id = BuildId::new(&[7; 20]).unwrap();
    let other = BuildId::new(&[8; 20]).unwrap();
    let host = directory.join("jail-app");
    with_build_id(7).write(&host);
    let listed = |build_id| {
        let files = [(build_id, "relative"), (build_id, host.to_str().unwrap())];
        Finder::default().with_listed(files.into_iter())
    };
    let inside = "/of-no-host/app";
    assert!(listed(&id).find(inside, Some(&id)).is_ok());
    assert!(listed(&id).find(inside, None).is_err());
    // The list is believed as little as a path.
    assert!(listed(&other).find(inside, Some(&other)).is_err());
}

#[test]
fn symbols_in_gnu_debugdata_name_a_stripped_program() {
    let directory = directory("mini");
    let Some(_) = compile(&directory, PROGRAM, &[]) else {
        return;
    };
    let packed = run(
        &directory,
        "objcopy",
        &["--only-keep-debug", "prog", "mini"],
    ) && run(&directory, "xz", &["mini"])
        && run(&directory, "strip", &["-o", "lean", "prog"])
        && run(
            &directory,
            "objcopy",
            &["--add-section", ".gnu_debugdata=mini.xz", "lean"],
        );
    if !packed {
        return;
    }
    let binary = Binary::open(&directory.join("lean")).unwrap();
    let at = start(&binary, "local_work").unwrap();
    assert_eq!(
        binary.function_at(at).unwrap().source,
        SymbolSource::MiniDebug
    );
    assert_eq!(binary.problems(), Vec::<String>::new());
}

#[test]
fn split_debug_information_is_followed() {
    for package in [false, true] {
        let directory = directory(&format!("split{package}"));
        // The dwp of binutils knows DWARF 4 only.
        let flags: &[&str] = match package {
            true => &["-g", "-gdwarf-4", "-gsplit-dwarf"],
            false => &["-g", "-gsplit-dwarf"],
        };
        let Some(program) = compile(&directory, PROGRAM, flags) else {
            return;
        };
        if package {
            if !run(&directory, "dwp", &["-e", "prog", "-o", "prog.dwp"]) {
                return;
            }
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "dwo") {
                    fs::remove_file(path).unwrap();
                }
            }
        }
        let binary = Binary::open(&program).unwrap();
        let chains = chains(&binary, "local_work");
        assert!(chains.iter().any(|chain| chain.len() == 3), "{chains:?}");
    }
}

#[test]
fn names_in_a_supplementary_file_are_followed() {
    let directory = directory("dwz");
    let Some(program) = compile(&directory, PROGRAM, &["-g", "-gdwarf-4"]) else {
        return;
    };
    fs::copy(&program, directory.join("other")).unwrap();
    if !run(&directory, "dwz", &["-m", "common.debug", "prog", "other"]) {
        return;
    }
    let binary = Binary::open(&program).unwrap();
    let chains = chains(&binary, "local_work");
    assert!(chains.iter().any(|chain| chain.len() == 3), "{chains:?}");
}

#[test]
fn a_changed_build_is_not_used() {
    let directory = directory("changed");
    let Some(program) = compile(&directory, PROGRAM, &["-Wl,--build-id=sha1"]) else {
        return;
    };
    let path = program.to_str().unwrap();
    let finder = Finder::default();
    let other = BuildId::new(&[0xab; 20]).unwrap();
    let Err(error) = finder.find(path, Some(&other)) else {
        panic!("it was used")
    };
    let text = error.to_string();
    assert!(
        text.starts_with("its build id is ") && text.ends_with(&other.to_string()),
        "{text}"
    );
    let id = finder.find(path, None).unwrap().build_id().unwrap().clone();
    assert!(finder.find(path, Some(&id)).is_ok());
    let deleted = finder.find(format!("{path} (deleted)"), Some(&id));
    assert!(matches!(deleted, Err(Error::Deleted)));
}

#[test]
fn only_regular_files_with_absolute_paths_are_opened() {
    let directory = directory("doors");
    let finder = Finder::default();
    assert!(matches!(
        finder.find("Cargo.toml", None),
        Err(Error::RelativePath)
    ));
    assert!(matches!(finder.find("//anon", None), Err(Error::NotFound)));
    assert!(matches!(
        finder.find("/dev/zero", None),
        Err(Error::NotRegular)
    ));
    assert!(matches!(finder.find("/", None), Err(Error::NotRegular)));
    let text = directory.join("text");
    fs::write(&text, "#!/bin/sh").unwrap();
    assert!(matches!(Binary::open(&text), Err(Error::NotElf)));
    if run(&directory, "mkfifo", &["fifo"]) {
        assert!(matches!(
            Binary::open(&directory.join("fifo")),
            Err(Error::NotRegular)
        ));
    }
}

#[test]
fn objects_are_looked_up_by_offset() {
    let directory = directory("object");
    fs::write(directory.join("prog.c"), PROGRAM).unwrap();
    if !run(
        &directory,
        "gcc",
        &["-O2", "-g", "-ffunction-sections", "-c", "prog.c"],
    ) {
        return;
    }
    let binary = Binary::open(&directory.join("prog.o")).unwrap();
    let at = start(&binary, "shared_work").unwrap();
    assert_eq!(binary.svma(FileOffset(at.0)), Some(at));
    let main = start(&binary, "main").unwrap();
    assert_ne!(at, main);
}

#[test]
fn functions_inside_functions_and_labels() {
    let directory = directory("nested");
    let source = r#"
        .text
        .globl outer, inner, bare, label, behind
        .type outer, @function
        .type inner, @function
        .type bare, @function
        outer: .skip 16
        inner: .skip 8
        .size inner, 8
        label: .skip 8
        .size outer, . - outer
        .skip 4
        bare: .skip 12
        behind: .skip 4
    "#;
    fs::write(directory.join("prog.s"), source).unwrap();
    if !run(&directory, "gcc", &["-c", "prog.s", "-o", "prog.o"]) {
        return;
    }
    let binary = Binary::open(&directory.join("prog.o")).unwrap();
    let base = start(&binary, "outer").unwrap().0;
    let name = |offset: u64| {
        let function = binary.function_at(Svma(base + offset))?;
        binary.function_name(function).map(|name| name.into_owned())
    };
    let names: Vec<Option<String>> = [0, 15, 16, 23, 24, 31, 32, 36, 47, 48, 51, 52]
        .map(name)
        .into();
    let (outer, inner, bare, behind) = ("outer", "inner", "bare", "behind");
    let wanted = [
        outer, outer, inner, inner, outer, outer, "", bare, bare, behind, behind, "",
    ];
    let names: Vec<&str> = names
        .iter()
        .map(|name| name.as_deref().unwrap_or(""))
        .collect();
    assert_eq!(names, wanted);
}

#[test]
fn calls_inlined_a_hundred_thousand_deep_do_not_overflow_the_stack() {
    let directory = directory("deep");
    // A unit with one function, in which calls are inlined into one another.
    let source = r#"
        .text
        .globl deep
        .type deep, @function
        deep: .skip 64
        .size deep, . - deep
        .section .debug_abbrev
        .byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0
        .byte 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 7, 0, 0
        .byte 3, 0x1d, 1, 3, 8, 0x11, 1, 0x12, 7, 0, 0
        .byte 0
        .section .debug_info
        .long 2f - 1f
    1:  .short 4
        .long .debug_abbrev
        .byte 8, 1
        .quad deep, 64
        .byte 2
        .asciz "deep"
        .quad deep, 64
        .rept 100000
        .byte 3
        .asciz "in"
        .quad deep, 64
        .endr
        .rept 100002
        .byte 0
        .endr
    2:
    "#;
    fs::write(directory.join("prog.s"), source).unwrap();
    if !run(
        &directory,
        "gcc",
        &["-shared", "-nostdlib", "prog.s", "-o", "prog.so"],
    ) {
        return;
    }
    let binary = Binary::open(&directory.join("prog.so")).unwrap();
    let found = frames(&binary, start(&binary, "deep").unwrap());
    assert_eq!(found.len(), 513);
    assert_eq!(found.last().unwrap(), "deep:0");
}

#[test]
fn names_of_cxx_are_linkage_names_that_can_be_demangled() {
    let directory = directory("cxx");
    let source = "namespace a { struct B { __attribute__((noinline)) int f(int x) const; \
                  template <class T> __attribute__((noinline)) T g(T t) { return t + f(1); } }; \
                  int B::f(int x) const { asm(\"\"); return x + 1; } } \
                  int main(int c, char **) { a::B b; return b.g(c); }";
    fs::write(directory.join("prog.cc"), source).unwrap();
    if !run(&directory, "g++", &["-O1", "-g", "prog.cc", "-o", "prog"]) {
        return;
    }
    let binary = Binary::open(&directory.join("prog")).unwrap();
    let names = binary
        .functions()
        .iter()
        .filter_map(|f| binary.function_name(f));
    let names: Vec<String> = names.map(|name| demangle(&name).into_owned()).collect();
    assert!(
        names.iter().any(|name| name == "a::B::f(int) const"),
        "{names:?}"
    );
    assert!(
        names.iter().any(|name| name == "int a::B::g<int>(int)"),
        "{names:?}"
    );
    let at = start(&binary, "_ZNK1a1B1fEi").unwrap();
    assert!(
        frames(&binary, at)
            .last()
            .unwrap()
            .starts_with("_ZNK1a1B1fEi:")
    );
}

#[test]
fn damaged_files_are_refused_or_degraded_but_never_panic() {
    let directory = directory("damaged");
    let flags = ["-g", "-Wl,--build-id=sha1", "-gz=zlib"];
    let Some(program) = compile(&directory, PROGRAM, &flags) else {
        return;
    };
    let sound = fs::read(&program).unwrap();
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let step = sound.len() / 150 + 1;
    let cut = (0..sound.len())
        .step_by(step)
        .map(|length| sound[..length].to_vec());
    let mut damaged: Vec<Vec<u8>> = cut.collect();
    for _ in 0..400 {
        let mut bytes = sound.clone();
        for _ in 0..=random() % 8 {
            let at = random() as usize % bytes.len();
            bytes[at] = random() as u8;
        }
        // The headers decide most, so every file gets one bad byte there.
        let table = u64::from_le_bytes(sound[0x28..0x30].try_into().unwrap()) as usize;
        let at = table + random() as usize % (bytes.len() - table);
        bytes[at] = random() as u8;
        damaged.push(bytes);
    }
    for bytes in damaged {
        let Ok(binary) = Binary::from_bytes(bytes) else {
            continue;
        };
        let (lines, mut out) = (binary.lines(), Vec::new());
        for function in binary.functions().iter().take(200) {
            binary.function_name(function);
            for at in [function.start.0, function.start.0.wrapping_add(9), u64::MAX] {
                lines.frames(Svma(at), &mut out);
                binary.function_at(Svma(at));
            }
        }
        for problem in binary.problems() {
            assert!(!problem.is_empty());
        }
    }
}

#[test]
fn hostile_names_are_demangled_in_bounded_time() {
    // What doubles sixty times takes so long that the deadline of the suite ends it.
    support::watch();
    let mut doubling = "_Z1fI".to_owned();
    for _ in 0..60 {
        doubling.push_str("St4pairI");
    }
    let deep = format!("_Z{}", "N".repeat(4000));
    let pointers = format!("_Z1f{}i", "P".repeat(8000));
    let arrays = format!("_RNvC{}", "A".repeat(8000));
    let mut doubled = "_Z1fSt4pairIiiE".to_owned();
    for index in 0..30 {
        let back = char::from_digit(index, 36).unwrap().to_ascii_uppercase();
        doubled.push_str(&format!("St4pairIS{back}_S{back}_E"));
    }
    for name in [
        doubling,
        deep,
        pointers,
        arrays,
        doubled,
        "_Z".repeat(9000),
        "_Z\u{202e}".into(),
    ] {
        let readable = demangle(&name);
        assert!(readable.len() <= 64 << 10);
    }
}

#[test]
fn the_vdso_of_this_process_has_functions() {
    let Ok(binary) = vdso::own() else {
        return skipped("this kernel gives no vdso");
    };
    let names = binary
        .functions()
        .iter()
        .filter_map(|f| binary.function_name(f));
    assert!(names.into_iter().any(|name| name.contains("vdso_")));
}

#[test]
fn a_map_counts_only_from_its_owner() {
    let directory = directory("map");
    let path = directory.join("perf-1.map");
    fs::write(&path, "1000 10 f\n").unwrap();
    assert!(PerfMap::read(&path, None).is_ok());
    symlink(&path, directory.join("link")).unwrap();
    assert!(matches!(
        PerfMap::read(&directory.join("link"), None),
        Err(Error::NotRegular)
    ));
    assert!(matches!(
        PerfMap::read(&directory.join("none"), None),
        Err(Error::NotFound)
    ));
    if chown(&path, Some(54321), None).is_err() {
        return skipped("only root may give files away");
    }
    let foreign = PerfMap::read(&path, None);
    assert!(matches!(foreign, Err(Error::Foreign { owner: 54321, .. })));
    assert!(PerfMap::read(&path, Some(54321)).is_ok());
}
