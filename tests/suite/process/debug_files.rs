//! Where debug files are found, and files that have no name any more.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use proftool::binary::Binary;

use crate::support::cli::proftool;
use crate::support::record::{Room, is_root};
use crate::support::written::{CPU_CLOCK, Recording, Taken};
use crate::support::{compile_text, ran, skipped};

/// Does `proftool callgraph` know the name of a local function of a stripped program?
fn is_named(room: &Room, variables: &[(&str, &Path)]) -> bool {
    let mut command = proftool(&["callgraph", "program", "--format", "json"]);
    command.current_dir(&room.0).env("HOME", room.path("home"));
    for name in ["XDG_CACHE_HOME", "DEBUGINFOD_CACHE_PATH"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .contains("\"inner\"")
}

#[test]
fn debug_files_in_the_caches_of_debuginfod_are_found() {
    const TEXT: &str = "static __attribute__((noinline)) int inner(int x) { return x * 3; }\n\
                        int main(int count, char **words) { return inner(count); }\n";
    let room = Room::new();
    let program = room.path("program");
    let flags = ["-g", "-O1", "-Wl,--build-id"];
    if compile_text("gcc", &flags, TEXT, &program).is_none() {
        return;
    }
    let debug = room.path("debug");
    let keep = ["--only-keep-debug", "program", "debug"];
    for words in [&keep[..], &["--strip-all", "program"]] {
        if ran(Command::new("objcopy").args(words).current_dir(&room.0)).is_none() {
            return;
        }
    }
    let id = Binary::open(&program)
        .unwrap()
        .build_id()
        .unwrap()
        .to_string();
    assert!(!is_named(&room, &[]), "no debug file is there yet");
    let other = room.path("other");
    let relative = Path::new("named");
    for (cache, variables) in [
        ("home/.cache/debuginfod_client", &[][..]),
        ("home/.debuginfod_client_cache", &[]),
        (
            "home/.debuginfod_client_cache",
            &[("XDG_CACHE_HOME", &*other)],
        ),
        ("other/debuginfod_client", &[("XDG_CACHE_HOME", &*other)]),
        ("other", &[("DEBUGINFOD_CACHE_PATH", &*other)]),
        ("named", &[("DEBUGINFOD_CACHE_PATH", relative)]),
    ] {
        let directory = room.path(cache).join(&id);
        fs::create_dir_all(&directory).unwrap();
        fs::copy(&debug, directory.join("debuginfo")).unwrap();
        assert!(is_named(&room, variables), "{cache}: {variables:?}");
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn a_deleted_library_is_read_while_a_process_has_it() {
    const LIBRARY: &str = "int at_work(int x) { return x * 3; }\n";
    const PROGRAM: &str = "#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        int main(int count, char **words)\n\
        { puts(dlopen(words[1], RTLD_NOW) ? \"ready\" : dlerror()); fflush(stdout); pause(); }\n";
    if !is_root() {
        return skipped("only root may follow the links to mapped files");
    }
    let room = Room::new();
    let (library, program) = (room.path("deleted.so"), room.path("program"));
    let flags = ["-O1", "-shared", "-fPIC"];
    if compile_text("gcc", &flags, LIBRARY, &library).is_none()
        || compile_text("gcc", &["-ldl"], PROGRAM, &program).is_none()
    {
        return;
    }
    let binary = Binary::open(&library).unwrap();
    let named = |name: &&str| *name == "at_work";
    let functions = binary.functions();
    let function = functions
        .iter()
        .find(|it| binary.function_name(it).as_deref().filter(named).is_some())
        .unwrap();
    let place = function.start.0;
    let mut holder = Command::new(&program)
        .arg(&library)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    fs::remove_file(&library).unwrap();

    let (task, base, page) = (77, 0x10_0000, place & !0xfff);
    let mut recording = Recording::new(&[("cpu-clock", CPU_CLOCK)], true);
    recording.process(task, "program");
    let path = format!("{} (deleted)", library.display());
    recording.mapping(task, &path, (base + page, 0x1000), page);
    recording.sample(Taken {
        task,
        time: 1,
        user: &[base + place],
        ..Taken::default()
    });
    let data = room.path("perf.data");
    recording.write(&data);
    let flat = || {
        let output = proftool(&["flat"]).arg(&data).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let living = flat();
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(living.contains("at_work"), "{living}");
    let dead = flat();
    assert!(!dead.contains("at_work"), "{dead}");
    assert!(dead.contains("deleted while it was mapped"), "{dead}");
}
