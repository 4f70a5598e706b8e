//! `proftool record` in a time namespace, whose clocks are shifted.

use std::process::Command;

use crate::support::html::json;
use crate::support::record::{PROFTOOL, Room, can_record};
use crate::support::skipped;

#[test]
fn a_recording_in_a_time_namespace_is_as_long_as_it_was() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    for shift in ["50000", "-5"] {
        let mut command = Command::new("unshare");
        command.args(["--time", "--monotonic", shift]);
        command.args([PROFTOOL, "record", "-q", "-e", "cpu-clock:u", "-g", "fp"]);
        command.args([
            "sh",
            "-c",
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
        ]);
        let output = command.current_dir(&room.0).output();
        if !output.is_ok_and(|output| output.status.success()) {
            return skipped("no time namespace can be made");
        }
        let report = json(&["report", "perf.data"], &room.0);
        let duration = report["duration"].as_u64().unwrap();
        assert!(duration < 4_900_000_000, "{shift}: {duration}");
        let caveats = report["caveats"].to_string();
        assert!(!caveats.contains("missed-time"), "{shift}: {caveats}");
    }
}
