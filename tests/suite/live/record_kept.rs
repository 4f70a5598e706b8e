//! What every view says of an unfinished recording.

use std::fs;
use std::process::Stdio;

use crate::support::record::{Room, can_record};
use crate::support::record_kept::said;
use crate::support::repeated::repeated;

#[test]
fn every_view_says_that_a_recording_was_not_finished() {
    repeated(|| {
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
    });
}
