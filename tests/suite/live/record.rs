//! `proftool record`: signals, and a recorder that is killed.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::support::record::{Room, can_record, is_alive, perf, samples, send, stderr, wait_for};
use crate::support::repeated::repeated;

const BURN_LONG: &str = "while :; do :; done";

/// Starts a recording of a shell that writes its number and burns; gives both numbers.
fn start_burning(room: &Room, script: &str) -> (std::process::Child, u32) {
    let script = format!("echo $$ > pid; {script}");
    let recorder = room
        .command(&["-q", "--", "sh", "-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pid = None;
    wait_for("the command's number", || {
        pid = fs::read_to_string(room.path("pid"))
            .ok()
            .and_then(|text| text.trim().parse().ok());
        pid.is_some()
    });
    sleep(Duration::from_millis(700));
    (recorder, pid.unwrap())
}

#[test]
fn a_recorder_that_is_killed_leaves_a_readable_file_and_no_command() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let (mut recorder, pid) = start_burning(&room, BURN_LONG);
        send("KILL", recorder.id());
        recorder.wait().unwrap();
        assert_eq!(room.names(), ["perf.data.part", "pid"]);
        let count = samples(&room.path("perf.data.part"));
        assert!(count > 50, "{count} samples");
        wait_for("the end of the command", || !is_alive(pid));
        let part = room.path("perf.data.part");
        if let Some(stats) = perf(&["report", "--stats", "-i", part.to_str().unwrap()]) {
            assert!(stats.contains(&format!(" {count} ")), "{stats}");
        }
        // The next recording leaves it alone, and says so.
        let output = room.record(&["-e", "cpu-clock", "true"]);
        assert!(stderr(&output).contains("proftool report perf.data.part"));
        assert_eq!(room.names(), ["perf.data", "perf.data.part", "pid"]);
    });
}

#[test]
fn signals_end_the_recording_and_all_that_was_started() {
    repeated(|| {
        if !can_record() {
            return;
        }
        for signal in ["INT", "TERM", "HUP"] {
            let room = Room::new();
            let script = format!("sh -c 'echo $$ > inner; {BURN_LONG}'; {BURN_LONG}");
            let (mut recorder, pid) = start_burning(&room, &script);
            let inner = fs::read_to_string(room.path("inner")).unwrap();
            send(signal, recorder.id());
            let status = recorder.wait().unwrap();
            assert_eq!(status.code(), Some(143), "{signal}");
            assert!(!is_alive(pid));
            let inner = inner.trim().parse().unwrap();
            wait_for("the end of the inner command", || !is_alive(inner));
            assert!(samples(&room.path("perf.data")) > 50, "{signal}");
        }
    });
}

#[test]
fn a_command_that_ignores_signals_is_killed() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let (mut recorder, pid) = start_burning(&room, &format!("trap '' TERM; {BURN_LONG}"));
        send("TERM", recorder.id());
        assert_eq!(recorder.wait().unwrap().code(), Some(137));
        assert!(!is_alive(pid));
        assert!(samples(&room.path("perf.data")) > 50);
    });
}
