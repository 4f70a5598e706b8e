//! Recordings of programs that recurse.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

use proftool::base::workers;
use proftool::perfdata::Reader;
use proftool::symbolize::{self, Library};
use proftool::trace::{self, Unwinding, UnwoundRecords};

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

/// Unwinds a recording of copies as the recorder does while it records, into another file, but for
/// those of each `late` round. Returns how many samples have kept their copies.
pub fn unwound_again(kept: &Path, to: &Path, late: usize) -> u64 {
    const FINISHED_ROUND: u32 = 68;
    let bytes = fs::read(kept).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (data, size) = (word(40), word(48));
    let end = data + size;
    let head = Reader::open(kept).unwrap();
    let stated = trace::Recording::stated(&head);
    let library = Library::new(symbolize::Options::default()).for_recording(stated);
    let unwinding = Unwinding {
        rules: &library,
        workers: NonZeroUsize::MIN,
    };
    let mut out = bytes[..data].to_vec();
    let kept = workers::scope(|scope| {
        let on_hit = &mut |_: &trace::Image| ();
        let mut records = UnwoundRecords::new(head, Vec::new(), scope, unwinding, on_hit);
        let (mut round, mut at, mut number) = (Vec::new(), data, 0);
        while at < end {
            let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let size = usize::from(u16::from_le_bytes(
                bytes[at + 6..at + 8].try_into().unwrap(),
            ));
            if kind == FINISHED_ROUND {
                number += 1;
                let is_late = number % late == 0;
                out.extend(records.round(std::mem::take(&mut round), is_late));
                out.extend(&bytes[at..at + size]);
            } else {
                round.extend(&bytes[at..at + size]);
            }
            at += size;
        }
        out.extend(records.round(round, late == 1));
        out.extend(records.finish());
        records.kept()
    });
    let size = out.len() - data;
    out[48..56].copy_from_slice(&(size as u64).to_le_bytes());
    // Behind the data is the place of each feature.
    let features: u32 = (72..104).map(|at| bytes[at].count_ones()).sum();
    let table = end..end + features as usize * 16;
    for entry in table.clone().step_by(16) {
        let moved = word(entry) - end + data + size;
        out.extend((moved as u64).to_le_bytes());
        out.extend((word(entry + 8) as u64).to_le_bytes());
    }
    out.extend(&bytes[table.end..]);
    fs::write(to, out).unwrap();
    kept
}
