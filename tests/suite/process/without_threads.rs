//! Where no thread can be made, every command answers on the one that it has, or says in a line why it
//! does not.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::record::{PROFTOOL, Room, is_root};
use crate::support::{copy_program, skipped};

/// The answer to a user without any process, who may have this number of them.
fn limited(room: &Room, processes: u32, args: &str) -> Output {
    let script = format!(
        "ulimit -u {processes}; exec setpriv --reuid 54321 --regid 54321 --clear-groups ./proftool {args}"
    );
    Command::new("bash")
        .args(["-c", &script])
        .current_dir(&room.0)
        .env("PROFTOOL_CONFIG", "")
        .env("PROFTOOL_NO_CACHE", "1")
        .output()
        .unwrap()
}

#[test]
fn every_command_answers_on_one_thread() {
    if !is_root() {
        return skipped("only root can be another user");
    }
    // The tested program and its cases may lie where nobody else may go.
    let room = Room::new();
    copy_program(PROFTOOL, room.path("proftool"));
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/p05_cycle3/perf.data");
    fs::copy(case, room.path("perf.data")).unwrap();
    for args in [
        "flat",
        "report",
        "graph",
        "tree",
        "cycles",
        "info",
        "doctor perf.data",
        "export perf.data --to folded",
        "export perf.data --to parquet",
        "export perf.data --to html",
        "callgraph /bin/ls",
    ] {
        let usual = limited(&room, 1000, args);
        assert!(usual.status.success(), "{args}: {usual:?}");
        let alone = limited(&room, 1, args);
        let said = String::from_utf8_lossy(&alone.stderr);
        assert!(alone.status.success(), "{args}: {said}");
        assert!(alone.stdout == usual.stdout, "{args}: another answer");
    }
}
