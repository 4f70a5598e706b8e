//! `proftool record` of what cannot be recorded, or not all of it, and how long it records.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::record::{PROFTOOL, Room, can_record, is_root, stderr};
use crate::record_attach::{BURN_LONG, Running, succeeds};
use crate::record_stacks::build;
use crate::support::{copy_program, skipped};

const NOBODY: u32 = 65534;

/// `proftool record ARGS…` in a room, as nobody. The tested program may lie where nobody may go.
fn record_as_nobody(room: &Room, args: &[&str]) -> Output {
    let program = room.path("proftool");
    if !program.exists() {
        copy_program(PROFTOOL, &program);
    }
    let mut command = Command::new(program);
    command.arg("record").args(args).current_dir(&room.0);
    command.gid(NOBODY).uid(NOBODY).output().unwrap()
}

fn paranoid() -> i32 {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    level.trim().parse().unwrap()
}

/// The times of all samples in a file, in seconds.
fn times(path: &Path) -> Vec<f64> {
    let file = fs::read(path).unwrap();
    let word = |at: usize| u64::from_ne_bytes(file[at..at + 8].try_into().unwrap());
    let (mut at, size) = (word(40) as usize, word(48) as usize);
    let end = at + size;
    let mut times = Vec::new();
    while at < end {
        let header = word(at);
        // The header, IDENTIFIER, IP, TID, TIME.
        if header as u32 == 9 {
            times.push(word(at + 32) as f64 / 1e9);
        }
        at += (header >> 48) as usize;
    }
    times
}

#[test]
fn the_duration_is_that_of_sampling() {
    let room = Room::new();
    // A processor has samples also while it is idle, or busy with others.
    let args = ["-q", "-e", "cpu-clock", "-F", "997", "-C", "0", "-d", "1"];
    let output = room.record(&[&args[..], &["-g", "fp"]].concat());
    if !output.status.success() {
        return skipped(&stderr(&output));
    }
    let times = times(&room.path("perf.data"));
    let first = times.iter().copied().fold(f64::INFINITY, f64::min);
    let last = times.iter().copied().fold(0.0, f64::max);
    assert!(last - first > 0.98, "{} s", last - first);
}

#[test]
fn missing_samples_of_short_processes_are_reported() {
    if !can_record() || !is_root() {
        return skipped("the kernel's part of the time is needed");
    }
    let room = Room::new();
    let script = |command: &str, rounds: u32| {
        format!("i=0; while [ $i -lt {rounds} ]; do {command}; i=$((i+1)); done")
    };
    let record = |script: &str| {
        let args = [
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            "499",
            "-g",
            "fp",
            "--",
            "sh",
            "-c",
        ];
        let output = room.record(&[&args[..], &[script]].concat());
        succeeds(&output);
        stderr(&output)
    };
    let told = record(&script("/bin/true", 500));
    let warning = "warning: samples miss processor time that was used: cpu-clock: ";
    assert!(told.contains(warning), "{told}");
    assert!(told.contains("record the whole machine (-a;"), "{told}");
    assert_eq!(record(&script(":", 600_000)), "");
}

#[test]
fn a_zombie_is_reported_as_one() {
    let room = Room::new();
    // What the shell becomes does not wait for the shell's child, which ends after that.
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 0.2 & echo $!; exec sleep 60"]);
    command.stdout(Stdio::piped());
    let mut parent = command.spawn().unwrap();
    let mut line = String::new();
    let mut told = BufReader::new(parent.stdout.take().unwrap());
    told.read_line(&mut line).unwrap();
    let pid = line.trim();
    let stat = format!("/proc/{pid}/stat");
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    for (option, what) in [("-p", "process"), ("-t", "thread")] {
        let output = room.record(&[option, pid, "-d", "5"]);
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        let expected = format!(
            "proftool: {what} {pid} has ended; its parent has not read its exit status (a zombie)\n"
        );
        assert_eq!(stderr(&output), expected);
    }
    assert!(room.names().is_empty());
    parent.kill().unwrap();
    parent.wait().unwrap();
}

#[test]
fn processes_of_other_users_with_the_name_are_left_out_and_reported() {
    if !is_root() || !can_record() {
        return skipped("only root can give privileges up");
    }
    if paranoid() > 2 {
        return skipped("kernel.perf_event_paranoid is above 2");
    }
    let room = Room::new();
    let name = format!("mix-{}", std::process::id());
    let program = room.path(&name);
    copy_program("/bin/sh", &program);
    let burning = || {
        let mut command = Command::new(&program);
        command.args(["-c", BURN_LONG]);
        command
    };
    let other = Running::new(burning());
    let args = ["-q", "-g", "fp", "-d", "0.4", "--comm", &name];
    let output = record_as_nobody(&room, &args);
    assert_eq!(output.status.code(), Some(125));
    let text = stderr(&output);
    assert!(text.contains("which belongs to user 0"), "{text}");

    let mut own = burning();
    own.gid(NOBODY).uid(NOBODY);
    let own = Running::new(own);
    let output = record_as_nobody(&room, &args);
    succeeds(&output);
    let told = format!(
        "left out 1 of 2 processes, which this user may not record: {} of user 0;",
        other.pid()
    );
    assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    let mut flat = Command::new(PROFTOOL);
    flat.args(["flat", "--pid", &own.pid(), "--format", "json"]);
    let flat = flat.current_dir(&room.0).output().unwrap();
    succeeds(&flat);
    let all = times(&room.path("perf.data")).len();
    let own = format!("\"samples\":{all},");
    let told = String::from_utf8_lossy(&flat.stdout);
    assert!(all > 10 && told.contains(&own), "{all} samples: {told}");
}

#[test]
fn a_set_uid_program_is_given_as_the_reason_why_there_are_no_samples() {
    if !is_root() || paranoid() > 2 || !can_record() {
        return skipped("needs root, and that nobody may record");
    }
    let room = Room::new();
    let program = room.path("changes-user");
    copy_program("/bin/true", &program);
    let record = |mode: u32| {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let output = record_as_nobody(&room, &["-e", "cpu-clock:u", "./changes-user"]);
        let _ = fs::remove_file(room.path("perf.data"));
        (output.status.code(), stderr(&output))
    };
    let (status, said) = record(0o4755);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("set-uid"), "{said}");
    assert!(said.contains("as root"), "{said}");
    assert!(!said.contains("longer") && !said.contains("-F "), "{said}");
    // The same program without that bit is not said to be one.
    let (status, said) = record(0o755);
    assert_eq!(status, Some(0), "{said}");
    assert!(!said.contains("set-uid"), "{said}");
}

/// Burns for a quarter of a second, without a library.
const ALONE: &str = "\
#include <time.h>
volatile unsigned long sink;
__attribute__((noinline)) void in_the_jail(void) { for (int i = 0; i < 100000; i++) sink += i; }
int main(void) { while (clock() < CLOCKS_PER_SEC / 4) in_the_jail(); return 0; }
";

#[test]
fn programs_of_containers_that_start_meanwhile_have_names_afterwards() {
    if !can_record() || !is_root() {
        return skipped("needs root, for chroot and mounts");
    }
    let room = Room::new();
    let flags = ["-O2", "-static", "-Wl,--build-id=sha1"];
    let Some(built) = build(&room, "alone", ALONE, &flags) else {
        return;
    };
    let (jail, mounted) = (room.path("jail"), room.path("mounted"));
    fs::create_dir_all(jail.join("bin")).unwrap();
    fs::create_dir_all(&mounted).unwrap();
    fs::rename(built, jail.join("bin/app")).unwrap();
    let (jail, mounted) = (jail.display(), mounted.display());
    let bind = format!("mount --bind {jail} {mounted} && exec {mounted}/bin/app");
    for script in [
        format!("exec chroot {jail} /bin/app"),
        format!("exec unshare -m sh -c '{bind}'"),
    ] {
        let output = room.record(&["-g", "none", "sh", "-c", &script]);
        if !output.status.success() {
            skipped(&format!("{script}: {}", stderr(&output)));
            continue;
        }
        let flat = Command::new(PROFTOOL)
            .arg("flat")
            .arg(room.path("perf.data"))
            .output()
            .unwrap();
        let rows = String::from_utf8(flat.stdout).unwrap();
        assert!(rows.contains("in_the_jail"), "{script}: {rows}");
    }
}
