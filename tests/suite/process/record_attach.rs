//! `proftool record` of targets that do not exist.

use crate::support::record::{Room, stderr};

#[test]
fn a_missing_target_is_reported_in_one_line_and_leaves_no_file() {
    let room = Room::new();
    for (args, message) in [
        (["-p", "2147483647"], "there is no process 2147483647"),
        (["-t", "2147483646"], "there is no thread 2147483646"),
        (
            ["--comm", "no such name"],
            "no process is named \"no such name\"",
        ),
    ] {
        let output = room.record(&args);
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        let first = stderr(&output).lines().next().unwrap().to_owned();
        assert_eq!(first, format!("proftool: {message}"));
    }
    let wrong: [&[&str]; 7] = [
        &["-p", "0"],
        &["-p", "1", "-a"],
        &["-p", "1", "-C", "0"],
        &["-C", "3-1"],
        &["-d", "0", "true"],
        &["--max-size", "1T", "true"],
        &["-d", "1"],
    ];
    for args in wrong {
        let output = room.record(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    assert!(room.names().is_empty());
}
