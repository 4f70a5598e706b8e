//! A compressed recording of a recorder that is killed.

use std::process::Command;
use std::time::Duration;

use crate::support::record::{PROFTOOL, Room, can_record, stderr};
use crate::support::repeated::repeated;

#[test]
fn a_compressed_recording_of_a_killed_recorder_can_be_read() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        let mut recorder = room
            .command(&["-z", "-q", "sh", "-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let samples = || {
            let output = Command::new(PROFTOOL)
                .args(["flat", "--format", "json", "perf.data.part"])
                .current_dir(&room.0)
                .output()
                .unwrap();
            let answer: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
            let samples = answer.and_then(|answer| answer["samples"].as_u64());
            (samples.unwrap_or(0), output)
        };
        while samples().0 <= 100 {
            std::thread::sleep(Duration::from_millis(100));
        }
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        let (samples, output) = samples();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(samples > 100, "{}", stderr(&output));
    });
}
