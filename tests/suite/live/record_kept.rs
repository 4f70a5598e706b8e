//! What every view says of an unfinished recording.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

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
        // The name of its first row, as soon as there is one.
        let hottest = || {
            let flat = said(&room, &["flat", "perf.data.part", "--format", "csv"]);
            let row = flat.lines().nth(1)?;
            row.split(',').nth(7).map(str::to_owned)
        };
        let begin = Instant::now();
        let function = loop {
            if let Some(function) = hottest() {
                break function;
            }
            assert!(begin.elapsed().as_secs() < 60, "no sample is written");
            sleep(Duration::from_millis(100));
        };
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        for view in [
            &["report"] as &[&str],
            &["flat"],
            &["tree"],
            &["graph"],
            &["cycles"],
            &["info"],
            &["doctor"],
            &["detail", &function],
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
