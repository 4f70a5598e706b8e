//! Programs whose static call graph is known.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::support;
use crate::support::cli::proftool;

/// An empty directory for one test.
pub fn directory(test: &str) -> PathBuf {
    support::directory(&format!("callgraph-{test}"))
}

/// Compiles a program with these options.
pub fn compile(directory: &Path, source: &str, args: &[&str]) -> Option<PathBuf> {
    support::compile_text("gcc", args, source, &directory.join("prog"))
}

pub fn run(args: &[&str]) -> Output {
    proftool(args).output().unwrap()
}

/// The document for a program.
pub fn document(program: &Path, args: &[&str]) -> Value {
    let program = program.to_str().unwrap();
    let args = [&["callgraph", program, "--format", "json"], args].concat();
    let output = run(&args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub const POINTERS: &str = r#"
#define FAR __attribute__((noinline, noclone, noipa))
volatile unsigned long sink;
FAR void touch(void) { sink++; }
FAR void burn(void) { for (unsigned long i = 0; i < 150000000; i++) sink += i; touch(); sink++; }
static inline __attribute__((always_inline)) void middle(void) { burn(); sink++; }
FAR void never(void) { sink = 1; }
FAR void by_pointer(void) { burn(); sink++; }
void (*volatile hook)(void) = by_pointer;
int main(int argc, char **argv) {
    middle();
    hook();
    if (argc > 5) never();
    return 0;
}
"#;

pub const WITH_FRAMES: [&str; 3] = ["-O2", "-g", "-fno-omit-frame-pointer"];
