//! `proftool record` of what cannot be recorded, or not all of it, and how long it records.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::support::record::{PROFTOOL, Room, can_record, is_root, stderr};
use crate::support::record_others::{paranoid, record_as_nobody};
use crate::support::record_stacks::build;
use crate::support::{copy_program, skipped};

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
