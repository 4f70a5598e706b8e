//! What bounds the size of a file.

use std::process::Command;

use crate::support::record::{PROFTOOL, Room, UNTIL_RECORDED, can_record, samples, stderr};
use crate::support::skipped;

#[test]
fn a_limit_without_room_for_samples_is_reported() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    let output = room.record(&["--max-size", "1K", "--", "sh", "-c", UNTIL_RECORDED]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains("--max-size leaves no room for samples"),
        "{said}"
    );
    assert_eq!(samples(&room.path("perf.data")), 0);
}

#[test]
fn a_recording_ends_before_the_disk_is_full() {
    if !can_record() {
        return;
    }
    let room = Room::new();
    // Of 64 MiB, 5 % are left. Stacks are copied whole, until the recorder has ended.
    let script = "mount -t tmpfs -o size=64m none . && cd \"$PWD\" || exit 77\n\
        \"$0\" record -e cpu-clock:u -F 20000 -g dwarf,60000 --keep-copies -o out.data -- \
        sh -c 'while [ ! -e out.data ]; do :; done'\n\
        echo status $?; df --output=avail -B1 . | tail -n 1";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, PROFTOOL]);
    let command = command.env("PROFTOOL_CONFIG", "").current_dir(&room.0);
    let Ok(output) = command.output() else {
        return skipped("there is no unshare");
    };
    let said = stderr(&output);
    if output.status.code() == Some(77) || said.contains("unshare:") {
        return skipped("no mount namespaces here");
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let (status, left) = text.split_once('\n').unwrap();
    assert_eq!(status, "status 0", "{said}");
    assert!(said.contains("3.4 MB are left on the disk"), "{said}");
    let left: u64 = left.trim().parse().unwrap();
    let kept = (64 << 20) / 20;
    assert!((kept - 65_536..2 * kept).contains(&left), "{left}: {said}");
}
