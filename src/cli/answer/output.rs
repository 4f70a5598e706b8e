//! Where an answer is written: to a file that is replaced when the new one is whole, or to standard
//! output. It never replaces an input, and it has a limit.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use proftool::files::{self, Output};
use proftool::perfdata::is_recording;

use super::super::failure::hinted;
use super::write_to;

// The size that any output may have, in bytes.
const ANY_INPUT: u64 = 512 << 20;
// How many bytes of output there may be for each byte of input.
const FACTOR: u64 = 16;

pub struct Inputs<'a> {
    // As they were named; `-` is standard input.
    pub files: Vec<&'a Path>,
    // The bytes that were read of one that has no size, a pipe.
    pub read: u64,
}

impl Inputs<'_> {
    pub fn limit(&self) -> u64 {
        let sizes = self.files.iter().map(|path| size(path));
        let size = sizes.fold(0, u64::saturating_add).max(self.read);
        ANY_INPUT.max(size.saturating_mul(FACTOR))
    }

    fn refusal(&self, earlier: &Metadata, path: &Path) -> Option<&'static str> {
        if !earlier.is_file() {
            return None;
        }
        let is_it = |input: &&Path| metadata(input).is_some_and(|it| is_same(&it, earlier));
        if self.files.iter().any(is_it) || files::is_read(earlier) {
            return Some("this command reads it");
        }
        // A recording may be a directory.
        let real = fs::canonicalize(path).ok()?;
        let is_inside = |input: &&Path| {
            let directory = fs::canonicalize(input).ok();
            input.is_dir() && directory.as_deref() == real.parent()
        };
        if self.files.iter().any(is_inside) {
            return Some("this command reads it");
        }
        let mut head = Vec::new();
        // What cannot be read cannot be checked, and mostly not be written either.
        let _ = File::open(&real).and_then(|file| file.take(16).read_to_end(&mut head));
        if is_recording(&head) {
            return Some("it is a recording");
        }
        if head.starts_with(b"\x7fELF") {
            return Some("it is a program");
        }
        head.starts_with(b"gmon").then_some("it is a gmon.out")
    }
}

// Checks before anything is read that the output may be written.
pub fn check(path: Option<&Path>, inputs: &Inputs) -> anyhow::Result<()> {
    let Some(path) = named(path) else {
        return Ok(());
    };
    found(path, inputs).map(drop)
}

// A file is replaced when the new one is whole.
pub fn write_file(
    path: Option<&Path>,
    inputs: &Inputs,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let limit = inputs.limit();
    let limited = |out: &mut dyn Write| {
        let mut out = Limited {
            out,
            left: limit,
            limit,
        };
        write(&mut out)
    };
    let Some(path) = named(path) else {
        return write_to(super::standard_output()?, limited);
    };
    let output = found(path, inputs)?;
    match output.write(limited) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.with_context(|| format!("could not write {}", path.display())),
    }
}

// Writes a file of a directory when it is whole.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Output::to(path)?.write(|out| out.write_all(bytes))
}

fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| *path != Path::new("-"))
}

fn found(path: &Path, inputs: &Inputs) -> anyhow::Result<Output> {
    let name = path.display();
    let output = Output::to(path).with_context(|| format!("could not write {name}"))?;
    let refusal = output
        .earlier()
        .and_then(|earlier| inputs.refusal(earlier, output.target()));
    match refusal {
        Some(reason) => Err(hinted(
            format!("could not write {name}: {reason}"),
            Some("give the output another name".into()),
        )),
        None => Ok(output),
    }
}

// Standard input for `-`.
fn metadata(input: &Path) -> Option<Metadata> {
    let path = match input.to_str() {
        Some("-") => Path::new("/proc/self/fd/0"),
        _ => input,
    };
    fs::metadata(path).ok()
}

// The bytes of a file, or of the files of a directory.
fn size(input: &Path) -> u64 {
    match metadata(input) {
        Some(it) if it.is_dir() => {
            let entries = fs::read_dir(input).into_iter().flatten().flatten();
            let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
            sizes.fold(0, u64::saturating_add)
        }
        Some(it) if it.is_file() => it.len(),
        _ => 0,
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

// Fails beyond a number of bytes.
struct Limited<'a> {
    out: &'a mut dyn Write,
    left: u64,
    limit: u64,
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            let limit = self.limit >> 20;
            let text = format!(
                "it would exceed {limit} MiB, the larger of {} MiB and {FACTOR} times the input",
                ANY_INPUT >> 20
            );
            return Err(io::Error::other(text));
        };
        let written = self.out.write(bytes)?;
        self.left = left.saturating_add((bytes.len() - written) as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
