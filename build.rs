//! Tells the program which commit it is built from.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = commit().unwrap_or_else(|| "unknown (not built from a clone)".to_owned());
    println!("cargo::rustc-env=PROFTOOL_COMMIT={commit}");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=PROFTOOL_TARGET={target}");
    println!("cargo::rerun-if-changed=build.rs");
}

/// The commit of a release build. Builds for development are made again after each commit only where
/// something has changed, so theirs would often be false.
fn commit() -> Option<String> {
    if std::env::var("PROFILE").ok()? != "release" {
        return Some("unknown (built for development)".to_owned());
    }
    // A package inside of somebody else's clone has no commit of its own.
    if !Path::new(".git").exists() {
        return None;
    }
    println!("cargo::rerun-if-changed=.git/logs/HEAD");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["log", "-1", "--format=%h %cs", "--abbrev=12"])?;
    let is_changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if is_changed.is_empty() {
        commit
    } else {
        format!("{commit}, with changes")
    })
}
