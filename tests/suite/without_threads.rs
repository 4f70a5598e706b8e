//! Where no thread can be made, every command answers on the one that it has, or says in a line why it
//! does not. Kind: process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{self, skipped};

/// A user without any process, who may have so many.
fn limited(room: &Path, processes: u32, user: u32, args: &str) -> Output {
    let tool = env!("CARGO_BIN_EXE_proftool");
    let script = format!(
        "ulimit -u {processes}; exec setpriv --reuid {user} --regid {user} --clear-groups {tool} {args}"
    );
    Command::new("bash")
        .args(["-c", &script])
        .current_dir(room)
        .env("PROFTOOL_CONFIG", "")
        .env("PROFTOOL_NO_CACHE", "1")
        .output()
        .unwrap()
}

#[test]
fn every_command_answers_on_one_thread() {
    support::watch();
    let room = support::directory("without-threads");
    fs::set_permissions(&room, fs::Permissions::from_mode(0o777)).unwrap();
    let is_root = fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.contains("\nUid:\t0\t0\t"));
    if !is_root {
        skipped("only root can be another user");
        return;
    }
    let data = format!(
        "{}/tests/cases/p05_cycle3/perf.data",
        env!("CARGO_MANIFEST_DIR")
    );
    for args in [
        format!("flat {data}"),
        format!("report {data}"),
        format!("graph {data}"),
        format!("tree {data}"),
        format!("cycles {data}"),
        format!("info {data}"),
        format!("doctor {data}"),
        format!("export {data} --to folded"),
        format!("export {data} --to parquet"),
        format!("export {data} --to html"),
        "callgraph /bin/ls".to_owned(),
    ] {
        let usual = limited(&room, 1000, 54_321, &args);
        assert!(usual.status.success(), "{args}: {usual:?}");
        let alone = limited(&room, 1, 54_321, &args);
        let said = String::from_utf8_lossy(&alone.stderr);
        assert!(alone.status.success(), "{args}: {said}");
        assert!(alone.stdout == usual.stdout, "{args}: another answer");
    }
}
