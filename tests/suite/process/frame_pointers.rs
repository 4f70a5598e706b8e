//! Which functions keep frame pointers, compared with how programs were compiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proftool::binary::{Binary, Finder, Libraries};
use proftool::frame_pointers::verdict::{self, Time, Verdict};
use proftool::frame_pointers::{FramePointers, frame_pointers};

use crate::support::{compile, fixture, skipped};

/// A program of the fixtures, compiled; `None` where its compiler is missing.
fn compiled(name: &str, compiler: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("frame-pointers");
    fs::create_dir_all(&directory).unwrap();
    compile(compiler, flags, &fixture(source), &directory.join(name))
}

fn looked_at(program: &Path) -> FramePointers {
    frame_pointers(&Binary::open(program).unwrap())
}

fn judged(program: &Path) -> Verdict {
    let finder = Finder::default();
    let binary = Arc::new(finder.open_named(program).unwrap());
    let files = verdict::of_program(&Libraries::of(&binary, &finder));
    verdict::judge(&files, Time::OnCpu)
}

const WITH: [&str; 2] = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];

#[test]
fn how_a_program_was_compiled_is_seen_in_its_code() {
    let c = ["-O0", "-O1", "-O2", "-O3"].map(|level| (level, "gcc", "recurse.c"));
    let cpp = ["-O0", "-O2"].map(|level| (level, "g++", "shapes.cpp"));
    for (level, compiler, source) in c.into_iter().chain(cpp) {
        let name = |keeps: &str| format!("{source}{level}.{keeps}");
        let mut flags = vec![level, "-g"];
        flags.extend(WITH);
        if let Some(program) = compiled(&name("with"), compiler, source, &flags) {
            let found = looked_at(&program);
            assert!(found.keeping > 2, "{source} {level}: {found:?}");
            assert_eq!(found.not_keeping, 0, "{source} {level}");
            let judged = judged(&program);
            assert!(
                matches!(judged, Verdict::FramePointers { .. }),
                "{judged:?}"
            );
        }
        let flags = [level, "-g", "-fomit-frame-pointer"];
        if let Some(program) = compiled(&name("without"), compiler, source, &flags) {
            let found = looked_at(&program);
            // A function that asks for the address of its frame has one all the same.
            assert!(found.lacking() > Some(0.7), "{source} {level}: {found:?}");
            assert_eq!(judged(&program), Verdict::Copies { file: 0 });
        }
    }
}

#[test]
fn a_rust_program_is_judged_without_its_standard_library() {
    // The second has two functions of its own, against a thousand of the library.
    let sources = ["words.rs", "fib.rs"];
    let levels = ["opt-level=0", "opt-level=2", "opt-level=3"];
    for (source, level) in sources
        .into_iter()
        .flat_map(|it| levels.map(|level| (it, level)))
    {
        for keeps in ["yes", "no"] {
            let frames = format!("force-frame-pointers={keeps}");
            let name = format!("{source}.{level}.{keeps}");
            let flags = [
                "-C",
                level,
                "-C",
                &frames,
                "-C",
                "symbol-mangling-version=v0",
            ];
            let flags = if level == "opt-level=2" {
                &flags[..4]
            } else {
                &flags[..]
            };
            let Some(program) = compiled(&name, "rustc", source, flags) else {
                return;
            };
            let judged = judged(&program);
            let found = looked_at(&program);
            match keeps {
                "yes" => assert!(
                    matches!(judged, Verdict::FramePointers { .. }),
                    "{name}: {found:?}"
                ),
                _ => assert_eq!(judged, Verdict::Copies { file: 0 }, "{name}: {found:?}"),
            }
        }
    }
}

#[test]
fn without_symbols_the_answer_is_the_same() {
    // Nothing tells its functions from those of the standard library then, but it has a `main`.
    for (keeps, keeps_none) in [("yes", false), ("no", true)] {
        let frames = format!("force-frame-pointers={keeps}");
        let flags = ["-O", "-C", "strip=symbols", "-C", &frames];
        let name = format!("fib.stripped.{keeps}");
        let Some(program) = compiled(&name, "rustc", "fib.rs", &flags) else {
            break;
        };
        assert_eq!(looked_at(&program).main_keeps_none, keeps_none, "{keeps}");
        let copies = matches!(judged(&program), Verdict::Copies { file: 0 });
        assert_eq!(copies, keeps_none, "{keeps}");
    }
    let flags = ["-O2", WITH[0], WITH[1], "-s"];
    if let Some(program) = compiled("stripped.with", "g++", "shapes.cpp", &flags) {
        assert_eq!(looked_at(&program).not_keeping, 0);
    }
    let flags = ["-O2", "-fomit-frame-pointer", "-s"];
    if let Some(program) = compiled("stripped.without", "g++", "shapes.cpp", &flags) {
        assert!(looked_at(&program).lacking() > Some(0.9));
    }
}

#[test]
fn a_large_library_is_checked_in_part() {
    // The compiler's own library has over a hundred thousand functions; it is where the compiler is.
    let told = Command::new("rustc").args(["--print", "sysroot"]).output();
    let Ok(told) = told else {
        skipped("rustc cannot be run");
        return;
    };
    let sysroot = PathBuf::from(String::from_utf8(told.stdout).unwrap().trim());
    let entries = fs::read_dir(sysroot.join("lib")).unwrap().flatten();
    let mut paths = entries.map(|entry| entry.path());
    let Some(driver) = paths.find(|path| path.to_string_lossy().contains("librustc_driver")) else {
        skipped("there is no librustc_driver");
        return;
    };
    let binary = Binary::open(&driver).unwrap();
    let some = binary.some_functions(500);
    assert!(
        (250..=501).contains(&some.len()),
        "{} functions",
        some.len()
    );
    assert!(some.is_sorted_by_key(|range| range.start));
    assert!(some.iter().all(|range| range.start < range.end));
    assert!(frame_pointers(&binary).decided() > 500);
}

#[test]
fn a_table_that_leads_nowhere_is_passed_over() {
    use object::{Object, ObjectSection};
    let mut bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name(".eh_frame_hdr").unwrap();
    let (start, size) = section.file_range().unwrap();
    // Entries at address 16, before the section of entries, and far behind the end of memory.
    let low = 16 - i32::try_from(section.address()).unwrap();
    let (start, rows) = (start as usize + 12, (size as usize - 12) / 8);
    assert!(rows > 10_000, "{rows} rows: the table would not be used");
    let sound = Binary::from_bytes(bytes.clone())
        .unwrap()
        .some_functions(200);
    assert!(sound.len() > 100, "{} functions", sound.len());
    for row in 0..rows {
        let at = start + row * 8 + 4;
        let entry = if row % 2 == 0 { low } else { i32::MIN };
        bytes[at..at + 4].copy_from_slice(&entry.to_le_bytes());
    }
    let nothing = Binary::from_bytes(bytes).unwrap().some_functions(200);
    assert!(nothing.is_empty(), "{} functions", nothing.len());
}
