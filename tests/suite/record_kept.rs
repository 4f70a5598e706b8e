//! What was recorded is kept: whatever becomes of the output, of the recorder, of the disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::record::{PROFTOOL, Room, can_record, is_root, samples, stderr};
use crate::support::skipped;

/// A shell loop that burns processor time for some tenths of a second.
const BURN: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";

/// What proftool says, on both streams.
fn said(room: &Room, args: &[&str]) -> String {
    let output = Command::new(PROFTOOL)
        .args(args)
        .current_dir(&room.0)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        stderr(&output)
    )
}

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
    let record = |args: &[&str]| {
        let mut command = room.command(args);
        command.gid(65534).uid(65534).output().unwrap()
    };
    let output = record(&["-e", "cpu-clock:u", "true"]);
    assert_eq!(output.status.code(), Some(125));
    let said = stderr(&output);
    assert!(said.contains("only its owner may rename"), "{said}");
    assert_eq!(room.names(), ["perf.data"]);
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

#[test]
fn every_view_says_that_a_recording_was_not_finished() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let mut recorder = room
        .command(&["-q", "-e", "cpu-clock", "sh", "-c", "while :; do :; done"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let part = room.path("perf.data.part");
    let begin = std::time::Instant::now();
    while fs::metadata(&part).map_or(0, |found| found.len()) < 100_000 {
        assert!(begin.elapsed().as_secs() < 20, "no part file grows");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let flat = said(&room, &["flat", "perf.data.part", "--format", "csv"]);
    let function = flat.lines().nth(1).and_then(|row| row.split(',').nth(7));
    let function = function.unwrap_or_else(|| {
        let info = said(&room, &["info", "perf.data.part"]);
        panic!("no function:\n{flat}\n{info}")
    });
    for view in [
        &["report"] as &[&str],
        &["flat"],
        &["tree"],
        &["graph"],
        &["cycles"],
        &["info"],
        &["doctor"],
        &["detail", function],
        &["export", "--to", "folded"],
    ] {
        let text = said(&room, &[view, &["perf.data.part"]].concat());
        assert!(
            text.contains("recording was not finished"),
            "{view:?}:\n{text}"
        );
        if view[0] != "export" {
            let json = said(
                &room,
                &[view, &["perf.data.part", "--format", "json"]].concat(),
            );
            assert!(json.contains("\"unfinished\""), "{view:?}:\n{json}");
        }
    }
}
