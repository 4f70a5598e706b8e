//! A program that knows its stacks.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{directory, fixture, ran};

/// Builds `calls` with its library, in a directory of its own.
pub fn build(name: &str, flags: &[&str]) -> Option<PathBuf> {
    let sources = fixture("truth");
    let directory = directory(&format!("truth-{name}"));
    let gcc = |source: &str, more: &[&str]| {
        let mut gcc = Command::new("gcc");
        gcc.current_dir(&directory).arg("-g").args(flags);
        ran(gcc.arg(sources.join(source)).args(more)).is_some()
    };
    let is_built = gcc("library.c", &["-fPIC", "-shared", "-o", "libcalls.so"])
        && gcc("frameless.c", &["-c", "-o", "frameless.o"])
        && gcc(
            "calls.c",
            &[
                "frameless.o",
                "libcalls.so",
                "-Wl,-rpath,$ORIGIN",
                "-o",
                "calls",
            ],
        );
    is_built.then(|| directory.join("calls"))
}
