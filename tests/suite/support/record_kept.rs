//! What proftool says, on both streams.

use std::process::{Command, Stdio};

use crate::support::record::{PROFTOOL, Room, stderr};

/// What proftool says, on both streams.
pub fn said(room: &Room, args: &[&str]) -> String {
    let output = Command::new(PROFTOOL)
        .args(args)
        .current_dir(&room.0)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        stderr(&output)
    )
}
