//! The command, and files to give it.

use std::process::{Command, Stdio};

use crate::support;

/// The program, in the directory of the package, so that paths in its output are the same
/// everywhere, and without what the environment may say about its looks.
pub fn proftool(args: &[&str]) -> Command {
    support::watch();
    let mut command = Command::new(env!("CARGO_BIN_EXE_proftool"));
    command
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("COLUMNS")
        // Not the defaults of the person who runs the tests.
        .env("PROFTOOL_CONFIG", "")
        // Nor what that person keeps.
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null());
    command
}

/// The path of a fixture of folded stacks.
pub fn fixture(name: &str) -> String {
    format!("fixtures/{name}.folded")
}
