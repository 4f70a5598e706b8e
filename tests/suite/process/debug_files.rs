//! Where debug files are found.

use std::fs;
use std::path::Path;
use std::process::Command;

use proftool::binary::Binary;

use crate::support::cli::proftool;
use crate::support::record::Room;
use crate::support::{compile_text, ran};

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
