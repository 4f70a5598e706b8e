//! Files that this user may not read.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::record::{PROFTOOL, Room, is_root};
use crate::support::record_others::NOBODY;
use crate::support::{copy_program, skipped};

const FOLDED: &str = "main;work 3\n";

/// Writes a file of this owner and mode.
fn write(path: &Path, owner: u32, mode: u32) {
    fs::write(path, FOLDED).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    chown(path, Some(owner), Some(owner)).unwrap();
}

#[test]
fn a_file_that_may_not_be_read_comes_with_what_permits_it() {
    if !is_root() {
        return skipped("only root can give files away");
    }
    let room = Room::new();
    copy_program(PROFTOOL, room.path("proftool"));
    let said_by = |view: &str, file: &str| {
        let mut command = Command::new(room.path("proftool"));
        command.args([view, file]).env("PROFTOOL_CONFIG", "");
        command.current_dir(&room.0).gid(NOBODY).uid(NOBODY);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    let said = |file: &str| said_by("flat", file);
    let refused = |file: &str, advice: &str| {
        let text = format!("proftool: could not open {file}: permission denied\nhint: {advice}\n");
        (Some(1), text)
    };
    write(&room.path("of root"), 0, 0o600);
    let advice =
        "it belongs to root: sudo chown $USER 'of root', or run as root: proftool flat 'of root'";
    assert_eq!(said("of root"), refused("of root", advice));
    // That may be a program as well, whose owner is to stay.
    let advice = "run as root: proftool doctor 'of root'";
    assert_eq!(said_by("doctor", "of root"), refused("of root", advice));
    write(&room.path("own"), NOBODY, 0o200);
    assert_eq!(said("own"), refused("own", "permit it: chmod u+r own"));
    write(&room.path("other"), 1, 0o600);
    let advice = "it belongs to another user: run as root: proftool flat other";
    assert_eq!(said("other"), refused("other", advice));
    write(&room.path("shared"), 0, 0o644);
    assert_eq!(said("shared"), (Some(0), String::new()));

    fs::create_dir_all(room.path("closed/below")).unwrap();
    write(&room.path("closed/below/file"), NOBODY, 0o644);
    fs::set_permissions(room.path("closed"), Permissions::from_mode(0o700)).unwrap();
    let closed = room.path("closed");
    let file = "closed/below/file";
    let advice = format!(
        "this user may not enter {}: run as root: proftool flat {file}",
        closed.display()
    );
    assert_eq!(said(file), refused(file, &advice));
}
