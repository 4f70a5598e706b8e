//! A recorded program whose calls stand on known lines.

use std::path::{Path, PathBuf};
use std::process::Output;

use proftool::analysis::call_sites::{self, CallSites};
use proftool::profile::{EventId, Filter, FunctionId, Profile};

use crate::support::cli::proftool;
use crate::support::{compile, skipped};

pub fn of(profile: &Profile, filter: &Filter, function: usize) -> CallSites {
    let selection = profile.select(EventId::new(0), filter);
    call_sites::of(profile, &selection, FunctionId::new(function)).unwrap()
}

pub fn succeeded(output: std::io::Result<Output>) -> bool {
    output.is_ok_and(|output| output.status.success())
}

/// Compiles a program of the fixtures with `options` and records it. The files carry the name of
/// the test, as tests run at the same time. Returns `None` where this machine cannot do it.
pub fn recorded(test: &str, options: &str) -> Option<(PathBuf, PathBuf)> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = directory.join(format!("{test}{}", options.replace(' ', "")));
    let recording = program.with_extension("data");
    let mut flags = vec![
        "-g",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ];
    flags.extend(options.split(' '));
    compile("gcc", &flags, &source(), &program)?;
    // What is compared with follows frame pointers alone.
    let mut record = proftool(&["record", "-q", "-g", "fp,0", "-e", "cpu-clock", "-o"]);
    record.arg(&recording).arg("--").arg(&program).arg("0.5");
    if !succeeded(record.output()) {
        skipped("recording is not possible");
        return None;
    }
    Some((program, recording))
}

pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs/recurse.c")
}
