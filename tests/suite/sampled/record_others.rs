//! Processor time that samples miss.

use crate::support::record::{Room, can_record, is_root, stderr};
use crate::support::record_attach::succeeds;
use crate::support::repeated::repeated;
use crate::support::skipped;

#[test]
fn missing_samples_of_short_processes_are_reported() {
    repeated(|| {
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
        let warning = "warning: samples miss processor time at the ends of threads and processes: cpu-clock: ";
        assert!(told.contains(warning), "{told}");
        assert!(told.contains("record the whole machine (-a;"), "{told}");
        assert_eq!(record(&script(":", 600_000)), "");
    });
}
