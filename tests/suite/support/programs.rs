//! Programs that tests write, copy and leave running.
//!
//! The kernel runs no file that somebody holds open for writing (`ETXTBSY`). What this process holds open, a
//! child that another test starts at the moment holds, too, until it executes its program. So programs are
//! written by a process of their own, which nobody inherits from.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let status = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(status.success(), "{} cannot be copied", from.display());
}

/// Writes a script that everybody may execute.
pub fn write_script(path: impl AsRef<Path>, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]);
    let mut writer = command
        .arg(path.as_ref())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    assert!(writer.wait().unwrap().success());
}

/// A command that is killed when the test's thread ends, however it ends: a run that is killed leaves
/// no program behind.
pub fn bound_to_test(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}
