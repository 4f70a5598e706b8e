//! Recording as another user.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use crate::support::copy_program;
use crate::support::record::{PROFTOOL, Room};

pub const NOBODY: u32 = 65534;

/// `proftool record ARGS…` in a room, as nobody. The tested program may lie where nobody may go.
pub fn record_as_nobody(room: &Room, args: &[&str]) -> Output {
    let program = room.path("proftool");
    if !program.exists() {
        copy_program(PROFTOOL, &program);
    }
    let mut command = Command::new(program);
    command.arg("record").args(args).current_dir(&room.0);
    command.gid(NOBODY).uid(NOBODY).output().unwrap()
}

pub fn paranoid() -> i32 {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    level.trim().parse().unwrap()
}
