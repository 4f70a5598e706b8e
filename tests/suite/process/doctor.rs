//! `proftool doctor`: what it finds on the machine, in programs, recordings and processes, and
//! that each thing to change comes with how.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::bound_to_test;
use crate::support::doctor::{checks, doctor, of, one};
use crate::support::record::{PROFTOOL, Room, can_record, is_root, stderr};
use crate::support::record_stacks::{NESTED, build};
use crate::support::{copy_program, skipped, write_script};

#[test]
fn doctor_checks_the_machine_by_trying() {
    let checks = of(&[]);
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let (_, found, _) = one(&checks, "this machine", "kernel.perf_event_paranoid");
    assert!(found.starts_with(level.trim()), "{found}");
    let (status, ..) = one(&checks, "this machine", "recording");
    // What it says of recording is what a recording comes to.
    assert_eq!(status == "ok", can_record());
    let text = doctor(&[]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("this machine\n"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn without_privilege_the_settings_are_named() {
    if !is_root() {
        skipped("only root can give privileges up");
        return;
    }
    let room = Room::new();
    // The tested program may lie where nobody may go.
    let proftool = room.path("proftool");
    copy_program(PROFTOOL, &proftool);
    let nobody = |args: &[&str]| {
        let mut command = Command::new(&proftool);
        command.args(["doctor", "--format", "json"]).args(args);
        checks(&command.gid(65534).uid(65534).output().unwrap())
    };
    let found = nobody(&[]);
    let (_, told, remedy) = one(&found, "this machine", "privilege");
    assert!(told.contains("no CAP_PERFMON"), "{told}");
    assert!(
        remedy.contains("setcap cap_perfmon,cap_syslog,cap_sys_ptrace=ep /"),
        "{remedy}"
    );
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if level.trim().parse::<i32>().unwrap() >= 2 {
        let (status, _, remedy) = one(&found, "this machine", "kernel.perf_event_paranoid");
        assert_eq!(status, "warn");
        assert!(
            remedy.contains("sysctl kernel.perf_event_paranoid=1"),
            "{remedy}"
        );
    }
    // A process of root.
    let mut sleep = bound_to_test("sleep").arg("60").spawn().unwrap();
    let pid = sleep.id().to_string();
    let found = nobody(&["-p", &pid]);
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    let (status, _, remedy) = one(&found, &format!("process {pid} (sleep)"), "sampling");
    assert_eq!(status, "bad");
    assert!(
        remedy.contains("cap_perfmon,cap_syslog,cap_sys_ptrace"),
        "{remedy}"
    );
    one(&found, &format!("process {pid} (sleep)"), "files");
}

#[test]
fn a_program_is_judged_by_how_it_was_built() {
    let room = Room::new();
    let whole = [
        "-O2",
        "-g",
        "-fno-omit-frame-pointer",
        "-mno-omit-leaf-frame-pointer",
    ];
    let Some(program) = build(&room, "whole", NESTED, &whole) else {
        return;
    };
    let found = of(&[program.to_str().unwrap()]);
    for check in [
        "frame pointers",
        "symbols",
        "line tables",
        "build id",
        "debug file",
        "linking",
    ] {
        let (status, told, _) = one(&found, "whole", check);
        assert_eq!(status, "ok", "{check}: {told}");
    }
    let libc = found
        .iter()
        .find(|c| c["subject"].as_str().unwrap().starts_with("libc."));
    assert_eq!(libc.unwrap()["check"], "library");

    let bare = ["-O2", "-fomit-frame-pointer", "-s", "-Wl,--build-id=none"];
    let Some(program) = build(&room, "bare", NESTED, &bare) else {
        return;
    };
    let found = of(&[program.to_str().unwrap()]);
    for (check, status, remedy) in [
        // `record` copies such stacks, and unwinds them.
        ("frame pointers", "note", ""),
        ("symbols", "bad", "do not strip it"),
        ("line tables", "warn", "debug = 1"),
        ("build id", "warn", "-Wl,--build-id"),
        ("debug file", "warn", "-dbgsym"),
    ] {
        let (found_status, told, found_remedy) = one(&found, "bare", check);
        assert_eq!(found_status, status, "{check}: {told}");
        assert!(found_remedy.contains(remedy), "{check}: {found_remedy}");
    }
    let tables = ["-O2", "-gline-tables-only"];
    if Command::new("clang").arg("--version").output().is_ok() {
        let program = room.path("tables");
        let source =
            "static inline int f(int n) { return n * n + 1; } int main(int c) { return f(c); }";
        fs::write(room.path("tables.c"), source).unwrap();
        let mut clang = Command::new("clang");
        let clang = clang.args(tables).arg(room.path("tables.c"));
        if clang
            .arg("-o")
            .arg(&program)
            .output()
            .unwrap()
            .status
            .success()
        {
            let found = of(&[program.to_str().unwrap()]);
            let (status, told, remedy) = one(&found, "tables", "line tables");
            assert_eq!(status, "warn", "{told}");
            assert!(told.contains("line tables only"), "{told}");
            assert!(remedy.contains("debug = 1"), "{remedy}");
        }
    } else {
        skipped("there is no clang");
    }
    if let Some(program) = build(&room, "static", NESTED, &["-O2", "-g", "-static"]) {
        let found = of(&[program.to_str().unwrap()]);
        assert!(one(&found, "static", "linking").1.starts_with("static"));
        assert!(found.iter().all(|check| check["check"] != "library"));
    }
    if let Some(program) = build(&room, "split", NESTED, &["-O2", "-g", "-gsplit-dwarf"]) {
        let found = of(&[program.to_str().unwrap()]);
        let (_, told, _) = one(&found, "split", "line tables");
        assert!(told.contains(".dwo"), "{told}");
    }
}

#[test]
fn doctor_finds_a_debug_file() {
    let room = Room::new();
    let Some(program) = build(&room, "parted", NESTED, &["-O2", "-g"]) else {
        return;
    };
    let debug = room.path("parted.debug");
    let objcopy = |args: &[&str]| {
        let mut command = Command::new("objcopy");
        command.args(args).current_dir(&room.0);
        command.output().is_ok_and(|output| output.status.success())
    };
    let link = "--add-gnu-debuglink=parted.debug";
    if !objcopy(&["--only-keep-debug", "parted", "parted.debug"])
        || !objcopy(&["--strip-all", link, "parted"])
    {
        skipped("objcopy cannot be run");
        return;
    }
    let found = of(&[program.to_str().unwrap()]);
    let (_, told, _) = one(&found, "parted", "debug file");
    assert_eq!(
        told,
        format!("found: {}", fs::canonicalize(&debug).unwrap().display())
    );
    assert_eq!(
        one(&found, "parted", "symbols").1,
        "stripped; in its debug file"
    );
    assert_eq!(one(&found, "parted", "line tables").1, "in its debug file");
    // One of another build is not it.
    copy_program(PROFTOOL, &debug);
    let found = of(&[program.to_str().unwrap()]);
    let (status, told, _) = one(&found, "parted", "debug file");
    assert_eq!(status, "warn");
    assert!(told.contains("/usr/lib/debug/.build-id/"), "{told}");
}

#[test]
fn doctor_checks_a_process_with_its_mapped_files() {
    let room = Room::new();
    let Some(program) = build(&room, "running", NESTED, &["-O2", "-g"]) else {
        return;
    };
    // A copy, which is removed while it runs.
    let copy = room.path("gone");
    copy_program("/bin/sleep", &copy);
    let mut child = bound_to_test(copy.to_str().unwrap())
        .arg("60")
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    // Until it runs its own program it is a copy of this one.
    let name = format!("/proc/{pid}/comm");
    while fs::read_to_string(&name).unwrap().trim() != "gone" {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let subject = format!("process {pid} (gone)");
    let waited = || of(&["-p", &pid]);
    let found = waited();
    assert_eq!(one(&found, &subject, "files").0, "ok");
    one(&found, "gone", "frame pointers");
    fs::remove_file(&copy).unwrap();
    copy_program(program, &copy);
    let found = waited();
    child.kill().unwrap();
    child.wait().unwrap();
    let (status, told, _) = one(&found, &subject, "changed files");
    assert_eq!(status, "bad");
    assert!(told.contains("replaced or removed"), "{told}");
    let ended = doctor(&["-p", &pid]);
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(
        stderr(&ended),
        format!("proftool: there is no process {pid}\n")
    );
}

#[test]
fn what_cannot_be_checked_is_reported_in_one_line() {
    let room = Room::new();
    fs::write(room.path("text"), "hello\n").unwrap();
    fs::write(room.path("empty"), "").unwrap();
    fs::write(room.path("cut"), b"\x7fELF\x02").unwrap();
    let at = |name: &str| room.path(name).to_str().unwrap().to_owned();
    for (file, message) in [
        ("/no/such/file".to_owned(), "no such file or directory"),
        (room.0.to_str().unwrap().to_owned(), "it is a directory"),
        (at("text"), "it is neither a recording nor a program"),
        (at("empty"), "it is empty"),
        (at("cut"), "could not open"),
        ("/dev/null".to_owned(), "it is a device, pipe or socket"),
        ("-".to_owned(), "a file is needed"),
        (
            "no-such-command-xyz".to_owned(),
            "no such file or directory",
        ),
    ] {
        let output = doctor(&[&file]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{file}: {text}");
        assert!(output.stdout.is_empty());
        assert!(text.contains(message), "{file}: {text}");
        let lines = text.lines().filter(|line| line.starts_with("proftool: "));
        assert_eq!(lines.count(), 1, "{text}");
        assert!(text.lines().count() <= 2, "{text}");
    }
    for args in [&["-p", "0"][..], &["-p", "x"], &["-p", "1", "x"]] {
        assert_eq!(doctor(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn doctor_checks_the_program_that_a_command_or_script_runs() {
    let found = of(&["sh"]);
    let program = found[0]["subject"].as_str().unwrap().to_owned();
    assert_eq!(found[0]["check"], "frame pointers");
    let room = Room::new();
    let script = room.path("script");
    write_script(&script, "#!/usr/bin/env sh\n");
    let found = of(&[script.to_str().unwrap()]);
    let sh = fs::canonicalize("/bin/sh").unwrap();
    assert_eq!(Path::new(&program), Path::new(sh.file_name().unwrap()));
    assert!(["sh", &program].contains(&found[0]["subject"].as_str().unwrap()));
}

/// Runs its arguments with `perf_event_open` (298 on x86-64) refused by a seccomp filter.
#[cfg(target_arch = "x86_64")]
const SANDBOX: &str = "
import ctypes, os, struct, sys
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (6, 0, 0, 0x50000 | int(sys.argv[1])), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *row) for row in rows))
program = struct.pack('HxxxxxxQ', len(rows), ctypes.addressof(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
";

#[cfg(target_arch = "x86_64")]
#[test]
fn a_sandbox_that_refuses_is_distinguished_from_a_setting() {
    let room = Room::new();
    let sandboxed = |errno: &str, args: &[&str]| {
        let mut python = Command::new("python3");
        python.args(["-c", SANDBOX, errno, PROFTOOL]).args(args);
        python.current_dir(&room.0).output()
    };
    // EPERM and ENOSYS are what containers answer.
    for errno in ["1", "38"] {
        let Ok(output) = sandboxed(errno, &["doctor", "--format", "json"]) else {
            skipped("python3 cannot be run");
            return;
        };
        let found = checks(&output);
        let (status, _, remedy) = one(&found, "this machine", "recording");
        assert_eq!(status, "bad");
        let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
        if level.trim().parse::<i32>().unwrap() <= 2 {
            assert!(remedy.contains("seccomp=unconfined"), "{remedy}");
            let (.., remedy) = one(&found, "this machine", "kernel.perf_event_paranoid");
            assert!(!remedy.contains("sysctl"), "{remedy}");
        }
        let output = sandboxed(errno, &["record", "-g", "dwarf", "true"]).unwrap();
        assert_eq!(output.status.code(), Some(125));
        let text = stderr(&output);
        assert!(text.contains("seccomp=unconfined"), "{text}");
        assert!(!text.contains("does not copy"), "{text}");
    }
}
