//! What was recorded is kept: whatever becomes of the output, of the recorder, of the disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::support::record::{PROFTOOL, Room, can_record, is_root, samples, stderr};
use crate::support::record_kept::said;
use crate::support::record_others::record_as_nobody;
use crate::support::skipped;

/// A shell loop that burns processor time for some tenths of a second.
const BURN: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";

#[test]
fn an_earlier_recording_that_cannot_be_kept_stops_the_recording_before_the_command() {
    let room = Room::new();
    fs::write(room.path("perf.data"), "PERFILE2 precious").unwrap();
    fs::create_dir(room.path("perf.data.old")).unwrap();
    let output = room.record(&["-e", "cpu-clock", "touch", "has-run"]);
    assert_eq!(output.status.code(), Some(125));
    let said = stderr(&output);
    assert!(
        said.contains("perf.data.old: that is a directory"),
        "{said}"
    );
    assert!(said.contains("hint: move perf.data.old away"), "{said}");
    assert_eq!(room.names(), ["perf.data", "perf.data.old"]);
    assert_eq!(
        fs::read(room.path("perf.data")).unwrap(),
        b"PERFILE2 precious"
    );
}

#[test]
fn a_file_of_another_user_in_a_sticky_directory_also_stops_it() {
    if !is_root() {
        skipped("only root can be another user");
        return;
    }
    let room = Room::new();
    fs::set_permissions(&room.0, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(room.path("perf.data"), "PERFILE2 precious").unwrap();
    let output = record_as_nobody(&room, &["-e", "cpu-clock:u", "true"]);
    assert_eq!(output.status.code(), Some(125));
    let said = stderr(&output);
    assert!(said.contains("only its owner may rename"), "{said}");
    // There is no perf.data.old to move.
    assert!(
        said.ends_with("hint: record to another file: -o FILE\n"),
        "{said}"
    );
    assert_eq!(room.names(), ["perf.data", "proftool"]);
}

#[test]
fn a_recording_that_cannot_get_its_name_is_kept_as_its_part_file() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    fs::write(room.path("perf.data"), "PERFILE2 precious").unwrap();
    let script = format!("mkdir perf.data.old; {BURN}");
    let output = room.record(&["-q", "-e", "cpu-clock", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(125));
    let told = stderr(&output);
    assert!(told.contains("it is in perf.data.part"), "{told}");
    assert!(told.contains("proftool report perf.data.part"), "{told}");
    assert_eq!(
        fs::read(room.path("perf.data")).unwrap(),
        b"PERFILE2 precious"
    );
    assert!(samples(&room.path("perf.data.part")) > 10);
    // It is whole: only its name is another one.
    let report = said(&room, &["report", "perf.data.part"]);
    assert!(!report.contains("recording was not finished"), "{report}");
}

#[test]
fn a_part_file_that_the_command_removes_is_written_again() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let script = format!("rm perf.data.part; {BURN}");
    let output = room.record(&["-q", "-e", "cpu-clock", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(room.names(), ["perf.data"]);
    assert!(samples(&room.path("perf.data")) > 10);
}

#[test]
fn records_up_to_a_limit_of_the_file_size_are_kept() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let record = format!(
        "ulimit -f 64; exec '{PROFTOOL}' record -q -e cpu-clock -F 4999 -- sh -c '{BURN}; {BURN}'"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &record]).current_dir(&room.0);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let told = stderr(&output);
    assert!(
        told.contains("what was recorded before is in perf.data.part"),
        "{told}"
    );
    assert!(samples(&room.path("perf.data.part")) > 1);
    let report = said(&room, &["report", "perf.data.part"]);
    assert!(report.contains("recording was not finished"), "{report}");
}
