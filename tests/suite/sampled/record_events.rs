//! `proftool record -e`: what events count, held against the kernel's own counts.

use std::process::Command;

use crate::support::record::{PROFTOOL, Room, is_root, perf, stderr};
use crate::support::record_events::{FAULTS, SPIN, path, program, record_faults, weight};
use crate::support::repeated::repeated;
use crate::support::skipped;

/// Whether the kernel lets threads inherit a group that is read (Linux 6.12).
fn inherits_groups(said: &str) -> bool {
    let inherits = !said.contains("before Linux 6.12");
    if !inherits {
        skipped("this kernel does not let threads inherit groups that are read");
    }
    inherits
}

#[test]
fn the_leader_of_a_group_has_the_counts_of_all_threads() {
    repeated(|| {
        let room = Room::new();
        if program(&room, FAULTS).is_none() {
            return;
        }
        let (counted, said) =
            record_faults(&room, &["-g", "fp", "-e", "{cpu-clock,page-faults}:S"]);
        if !inherits_groups(&said) {
            return;
        }
        let (faults, unit) = weight(&room, "page-faults");
        assert_eq!(unit, "page-faults");
        // What comes after a thread's last sample, and before the exec, is not read.
        let share = faults / counted;
        assert!((0.85..=1.0).contains(&share), "{faults} of {counted}");
        let (clock, unit) = weight(&room, "cpu-clock");
        assert!(unit == "ns" && clock > 50e6, "{clock} {unit}");
        // Only the leader has samples; all of them are perf's too.
        let Some(script) = perf(&["script", "-i", &path(&room), "-F", "event,period"]) else {
            return;
        };
        assert!(script.contains("cpu-clock") && script.contains("page-faults"));
        let listed = perf(&["evlist", "-g", "-i", &path(&room)]).unwrap();
        assert_eq!(listed.trim(), "{cpu-clock,page-faults}");
        let report = perf(&["report", "--group", "--stdio", "-i", &path(&room)]).unwrap();
        assert!(report.contains("anon group { cpu-clock, page-faults }"));
    });
}

#[test]
fn three_events_have_their_own_units_in_each_report() {
    repeated(|| {
        let room = Room::new();
        if program(&room, FAULTS).is_none() {
            return;
        }
        let events = "{cpu-clock,page-faults},context-switches";
        let (counted, _) = record_faults(&room, &["-g", "fp", "-c", "100", "-e", "page-faults"]);
        let (faults, unit) = weight(&room, "page-faults");
        assert_eq!(unit, "page-faults");
        // What comes after the last sample of a thread on a processor is not told.
        let share = faults / counted;
        assert!((0.9..=1.0).contains(&share), "{faults} of {counted}");
        record_faults(&room, &["-q", "-g", "fp", "-e", events]);
        for (event, unit) in [
            ("cpu-clock", "ns"),
            ("page-faults", "page-faults"),
            ("context-switches", "context-switches"),
        ] {
            let (weight, counted_in) = weight(&room, event);
            assert_eq!(counted_in, unit);
            assert!(weight > 0.0, "{event}");
        }
        for command in ["report", "flat", "tree"] {
            let output = Command::new(PROFTOOL)
                .args([command, "--event", "page-faults", "perf.data"])
                .current_dir(&room.0)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success() && text.contains("of page-faults"),
                "{command}: {text}"
            );
        }
        if let Some(listed) = perf(&["evlist", "-g", "-i", &path(&room)]) {
            assert_eq!(listed.trim(), "{cpu-clock,page-faults}\ncontext-switches");
        }
    });
}

#[test]
fn groups_on_processors_count_from_the_start() {
    repeated(|| {
        let room = Room::new();
        if program(&room, FAULTS).is_none() {
            return;
        }
        if !is_root() {
            return skipped("only root records whole processors");
        }
        let args = ["-a", "-g", "fp", "-e", "{cpu-clock,page-faults}:S"];
        let (counted, _) = record_faults(&room, &args);
        let (faults, _) = weight(&room, "page-faults");
        assert!(faults > counted * 0.9, "{faults} of {counted} and others'");
    });
}

/// How near the estimate is to the truth is measured by `scripts/compare_slow_down.py`.
#[test]
fn the_costs_of_a_recording_are_reported_with_an_estimate_of_the_slow_down() {
    repeated(|| {
        let room = Room::new();
        if program(&room, SPIN).is_none() {
            return;
        }
        let output = room.record(&["-v", "-g", "fp", "-F", "9973", "./program"]);
        let said = stderr(&output);
        if said.contains("above the limit") {
            return skipped(&said);
        }
        for part in ["the recorder used ", " buffers of ", " bytes per sample"] {
            assert!(said.contains(part), "{said}");
        }
        let share = said.split("≈ ").last();
        let share = share.and_then(|rest| rest.split(' ').next());
        let share: f64 = share.expect(&said).parse().expect(&said);
        assert!(share > 0.0 && share.is_finite(), "{said}");
    });
}
