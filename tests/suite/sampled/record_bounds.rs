//! `proftool record --max-size`: the file keeps within it, whatever a sample holds.

use std::fs;
use std::process::Command;

use crate::support::record::{PROFTOOL, Room, UNTIL_RECORDED, can_record, stderr};
use crate::support::repeated::repeated;

#[test]
fn a_file_keeps_within_its_limit() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let cases: [(&[&str], u64, u64); 7] = [
            (&["-g", "dwarf", "--keep-copies"], 200_000, 10),
            (&["-g", "dwarf", "--keep-copies"], 1_000_000, 60),
            (&["-g", "dwarf", "-F", "4999"], 100_000, 100),
            (&["-g", "fp,0", "-F", "4999"], 100_000, 300),
            (&["-g", "fp", "-F", "4999"], 100_000, 100),
            (&["-g", "fp,0", "-F", "4999", "-z"], 15_000, 300),
            // Copies of stacks that are new each time.
            (
                &["-g", "dwarf,32768", "-F", "4999", "-z1", "--keep-copies"],
                120_000,
                10,
            ),
        ];
        for (options, limit, least) in cases {
            let room = Room::new();
            let text = limit.to_string();
            let args = [
                options,
                &["--max-size", &text, "--", "sh", "-c", UNTIL_RECORDED],
            ]
            .concat();
            let output = room.record(&args);
            assert!(output.status.success(), "{}", stderr(&output));
            let said = stderr(&output);
            let ends = "the recording ended at --max-size";
            assert!(said.contains(ends), "{options:?}: {said}");
            let file = room.path("perf.data");
            let size = fs::metadata(&file).unwrap().len();
            assert!(size <= limit, "{options:?}: {size} of {limit}");
            // All that was mapped before the last sample is there.
            let flat = Command::new(PROFTOOL)
                .args(["flat", "--format", "json"])
                .arg(&file)
                .output()
                .unwrap();
            assert!(flat.status.success(), "{}", stderr(&flat));
            let page: serde_json::Value = serde_json::from_slice(&flat.stdout).unwrap();
            let count = page["samples"].as_u64().unwrap();
            assert!(count >= least, "{options:?}: {count} samples in {size}");
            for kind in ["unmapped", "truncated", "skipped", "unfinished"] {
                let found = page.to_string().contains(&format!("\"kind\":\"{kind}\""));
                assert!(!found, "{options:?}: {page}");
            }
        }
    });
}
