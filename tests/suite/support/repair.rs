//! Recordings of `fixtures/programs`, and their stacks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{compile, compile_text, fixture, skipped};

pub const PROFTOOL: &str = env!("CARGO_BIN_EXE_proftool");

/// The recording of a program of `fixtures/programs`, a file of its own for each test; `None` where
/// it cannot be made, which is reported on stderr.
pub fn recording(test: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    let flags = [&["-fno-omit-frame-pointer"], options].concat();
    recording_by("fp,0", test, source, &flags)
}

/// The same by this way of unwinding.
pub fn recording_by(
    unwinding: &str,
    test: &str,
    source: &str,
    options: &[&str],
) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("{source}-{}-{test}", std::process::id()));
    // Tests of one source run at the same time: each has a recording of its own.
    let data = folder.join(format!("{source}-{}-{test}.data", std::process::id()));
    let flags = [&["-O2", "-g"], options].concat();
    compile("gcc", &flags, &fixture(source), &program)?;
    recorded(unwinding, &program, data)
}

/// The recording of a program in this file; `None` where it cannot be made, which is reported on stderr.
pub fn recorded(unwinding: &str, program: &Path, data: PathBuf) -> Option<PathBuf> {
    let rate = ["record", "-q", "-F", "1999", "-e", "cpu-clock:u"];
    let recorded = Command::new(PROFTOOL)
        .args(rate)
        .args(["-g", unwinding, "-o"])
        .arg(&data)
        .arg(program)
        .output()
        .unwrap();
    if !recorded.status.success() {
        let reason = String::from_utf8_lossy(&recorded.stderr);
        skipped(&format!("cannot record here: {}", reason.trim_end()));
        return None;
    }
    Some(data)
}

pub fn proftool(args: &[&str], data: &Path) -> String {
    let output = Command::new(PROFTOOL)
        .args(args)
        .arg(data)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The weights of stacks from `main` on, by the functions on them.
pub fn stacks(data: &Path, more: &[&str]) -> BTreeMap<String, u64> {
    let args = [&["export", "--to", "folded", "--unit", "samples"], more].concat();
    let mut stacks = BTreeMap::new();
    for line in proftool(&args, data).lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let names: Vec<&str> = stack.split(';').collect();
        let main = names
            .iter()
            .position(|name| name.trim_start_matches('~') == "main");
        let mut from_main = names[main.unwrap_or(0)..].join(";");
        if from_main.starts_with("~main") {
            from_main.remove(0);
        }
        *stacks.entry(from_main).or_insert(0) += weight.parse::<u64>().unwrap();
    }
    stacks
}

/// The stacks of a program of this text, which a compiler builds with these options; `None` where it cannot
/// be built or recorded.
pub fn stacks_of(
    name: &str,
    (compiler, text): (&str, &str),
    options: &[&str],
    unwinding: &str,
) -> Option<BTreeMap<String, u64>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("{name}-{}", std::process::id()));
    compile_text(compiler, options, text, &program)?;
    let data = program.with_extension("data");
    Some(stacks(&recorded(unwinding, &program, data)?, &[]))
}

/// `main` and a thread call `outer`, which calls `inner`.
pub const NESTED: &str = "\
#include <pthread.h>
#include <time.h>
volatile unsigned long sink;
#define ALONE __attribute__((noipa)) static
ALONE void inner(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
ALONE void outer(void) { while (clock() < CLOCKS_PER_SEC / 2) { inner(200000); sink++; } }
static void *start(void *word) { outer(); sink++; return word; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, start, 0);
    outer();
    return pthread_join(thread, 0);
}
";

/// `thrower` throws, and `catcher` handles it.
pub const THROWS: &str = "\
#include <ctime>
volatile unsigned long sink;
[[gnu::noinline]] int thrower(int n) { if (n >= 0) throw n; return 1; }
[[gnu::noinline]] int catcher(int n) {
    try { return thrower(n) + 1; } catch (int e) { sink += e; return 2; }
}
int main() {
    for (int i = 0; clock() < CLOCKS_PER_SEC; i = (i + 1) & 1023) sink += catcher(i);
}
";
