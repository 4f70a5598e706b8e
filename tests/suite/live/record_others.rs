//! How long `record` records, and processes of other users.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::record::{PROFTOOL, Room, can_record, each_record, is_root, stderr};
use crate::support::record_attach::{BURN_LONG, Running, record_samples, succeeds};
use crate::support::record_others::{NOBODY, paranoid, record_as_nobody};
use crate::support::repeated::repeated;
use crate::support::{bound_to_test, copy_program, skipped};

/// The times of all samples in a file, in seconds.
fn times(path: &Path) -> Vec<f64> {
    let mut times = Vec::new();
    each_record(path, |kind, record| {
        // The header, IDENTIFIER, IP, TID, TIME.
        if kind == 9 {
            times.push(u64::from_ne_bytes(record[32..40].try_into().unwrap()) as f64 / 1e9);
        }
    });
    times
}

#[test]
fn the_duration_is_that_of_sampling() {
    repeated(|| {
        let room = Room::new();
        // A processor has samples also while it is idle, or busy with others.
        let args = ["-q", "-e", "cpu-clock", "-F", "997", "-C", "0", "-d", "1"];
        let output = room.record(&[&args[..], &["-g", "fp"]].concat());
        if !output.status.success() {
            return skipped(&stderr(&output));
        }
        let times = times(&room.path("perf.data"));
        let first = times.iter().copied().fold(f64::INFINITY, f64::min);
        let last = times.iter().copied().fold(0.0, f64::max);
        assert!(last - first > 0.98, "{} s", last - first);
    });
}

#[test]
fn processes_of_other_users_with_the_name_are_left_out_and_reported() {
    repeated(|| {
        if !is_root() || !can_record() {
            return skipped("only root can give privileges up");
        }
        if paranoid() > 2 {
            return skipped("kernel.perf_event_paranoid is above 2");
        }
        let room = Room::new();
        let name = format!("mix-{}", std::process::id());
        let program = room.path(&name);
        copy_program("/bin/sh", &program);
        let burning = || {
            let mut command = bound_to_test(program.to_str().unwrap());
            command.args(["-c", BURN_LONG]);
            command
        };
        let other = Running::new(burning());
        let record = |seconds: &str| {
            record_as_nobody(&room, &["-q", "-g", "fp", "-d", seconds, "--comm", &name])
        };
        let output = record("0.4");
        assert_eq!(output.status.code(), Some(125));
        let text = stderr(&output);
        assert!(text.contains("which belongs to user 0"), "{text}");

        let mut own = burning();
        own.gid(NOBODY).uid(NOBODY);
        let own = Running::new(own);
        let (_, output, _) = record_samples(&room, 10, record);
        let told = format!(
            "left out 1 of 2 processes, which this user may not record: {} of user 0;",
            other.pid()
        );
        assert!(stderr(&output).contains(&told), "{}", stderr(&output));
        let mut flat = Command::new(PROFTOOL);
        flat.args(["flat", "--pid", &own.pid(), "--format", "json"]);
        let flat = flat.current_dir(&room.0).output().unwrap();
        succeeds(&flat);
        let all = times(&room.path("perf.data")).len();
        let own = format!("\"samples\":{all},");
        let told = String::from_utf8_lossy(&flat.stdout);
        assert!(told.contains(&own), "{all} samples: {told}");
    });
}
