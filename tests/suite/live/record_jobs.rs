//! `proftool record` of builds: each process is named after what it compiles.

use crate::support::record::{Room, can_record, stderr, wait_for};
use crate::support::record_jobs::commands;
use crate::support::repeated::repeated;
use crate::support::{bound_to_test, skipped};

#[test]
fn a_compiler_that_runs_already_is_named_too() {
    repeated(|| {
        if !can_record() {
            return;
        }
        let room = Room::new();
        // It only has the arguments of a compiler.
        let script = "exec -a cc1 sh -c 'while :; do :; done' slow.c";
        let mut command = bound_to_test("bash");
        command.args(["-c", script]).current_dir(&room.0);
        let Ok(mut running) = command.spawn() else {
            return skipped("bash cannot be run");
        };
        let pid = running.id().to_string();
        wait_for("the name of a compiler", || {
            let line = std::fs::read(format!("/proc/{pid}/cmdline"));
            line.is_ok_and(|line| line.starts_with(b"cc1\0"))
        });
        let args = ["-q", "-e", "cpu-clock", "-g", "fp", "-d", "1", "-p", &pid];
        let output = room.record(&args);
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let all = commands(&room, &[]);
        assert!(all.contains_key("cc1 slow.c"), "{all:?}");
    });
}
