//! Recordings of programs that recurse.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{compile_text, skipped};

/// A program whose stack is deep and all its own: two functions that call each other.
pub const RECURSION: &str = r#"
    volatile unsigned sink;
    __attribute__((noinline)) unsigned odd(unsigned n, unsigned depth);
    __attribute__((noinline)) unsigned even(unsigned n, unsigned depth) {
        unsigned sum = 0;
        for (unsigned i = 0; i < 40; i++) sum += i * n;
        sink += sum;
        return depth ? odd(n + 1, depth - 1) + sum : sum;
    }
    __attribute__((noinline)) unsigned odd(unsigned n, unsigned depth) {
        char bytes[64];
        for (int i = 0; i < 64; i++) bytes[i] = n + i;
        sink += bytes[n & 63];
        return depth ? even(n + bytes[3], depth - 1) ^ n : n;
    }
    __attribute__((noinline)) unsigned rounds(unsigned n) {
        unsigned sum = 0;
        for (unsigned i = 0; i < n; i++) sum += even(i, i % 40);
        return sum;
    }
    int main(void) { sink = rounds(1000000); return 0; }
"#;

/// What a command prints; `None` where it is missing or fails.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

/// A program of this source; `None` without the compiler.
pub fn compiled(name: &str, source: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    compile_text(
        compiler,
        flags,
        source,
        &folder.join(format!("unwind-{name}")),
    )
}

/// A recording of a program with copied stacks; `None` where perf is missing or may not.
pub fn recorded(program: &Path) -> Option<PathBuf> {
    let file = program.with_extension("data");
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-F",
        "1999",
        "--call-graph",
    ])
    .args(["dwarf,16384", "-o"])
    .args([&file, &program.to_owned()]);
    if output(&mut perf).is_none() {
        skipped("perf is not there, or may not record");
        return None;
    }
    Some(file)
}
