//! Anything a person may have, as a [`Profile`].
//!
//! What a file is, is told by what is in it, never by its name:
//!
//! ```text
//!   PERFILE2, 2ELIFREP, PERFFILE     a recording of perf or of proftool
//!   a directory with a file `data`   the same, as perf record --output-dir leaves it
//!   \x7fELF                          a program: refused, with the command that looks at programs
//!   lines `main;parse;lex 12`        folded stacks
//! ```
//!
//! Only regular files are opened, and `-` is standard input: a FIFO or a device that is named by
//! mistake is an error and not a wait.

mod error;
pub mod folded;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::profile::Profile;

pub use error::Error;

/// How to read what is opened. The default reads everything.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory under which binaries and debug files are looked for, instead of `/`.
    pub symfs: Option<PathBuf>,
    /// Whether frames are made of inlined functions.
    pub inlines: bool,
    /// Only samples of this time.
    pub time: TimeRange,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            symfs: None,
            inlines: true,
            time: TimeRange::default(),
        }
    }
}

/// A part of a recording, in nanoseconds from its first sample; an open end reaches to the end
/// of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first nanosecond.
    pub start: Option<u64>,
    /// The nanosecond after the last.
    pub end: Option<u64>,
}

impl TimeRange {
    /// Whether it leaves nothing out.
    pub fn is_all(self) -> bool {
        self == TimeRange::default()
    }
}

/// Told how many bytes are read and how many there are, 0 where that is not known.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// A recording that was recognised and has still to be read, from its first byte.
#[expect(
    dead_code,
    reason = "the reader of recordings comes to stand behind this door"
)]
enum Recording {
    /// A regular file, at its start.
    File { file: File, path: PathBuf },
    /// Standard input.
    Stream(Box<dyn BufRead>),
}

/// How much of the start is looked at to find out what an input is.
const HEAD: u64 = 4096;
const BUFFER: usize = 1 << 18;

/// Opens `path`, finds out what it is, and reads it.
///
/// # Errors
///
/// When it cannot be opened or is nothing that can be read; what is broken *in* a file is a
/// caveat of the profile.
pub fn open(path: &Path, options: &Options, progress: &mut Progress) -> Result<Profile, Error> {
    if path == Path::new("-") || path == Path::new("/dev/stdin") {
        let mut input = BufReader::with_capacity(BUFFER, std::io::stdin().lock());
        let head = head(&mut input)?;
        let kind = kind(&head)?;
        let all = Cursor::new(head).chain(input);
        return match kind {
            Kind::Recording => recording(Recording::Stream(Box::new(all)), options, progress),
            Kind::Folded => folded_stacks(all, 0, options, progress),
        };
    }
    let (mut file, path) = regular(path)?;
    let size = file.metadata().map_err(Error::Io)?.len();
    let kind = kind(&head(&mut file)?)?;
    file.rewind().map_err(Error::Io)?;
    match kind {
        Kind::Recording => recording(Recording::File { file, path }, options, progress),
        Kind::Folded => {
            let input = BufReader::with_capacity(BUFFER, file);
            folded_stacks(input, size, options, progress)
        }
    }
}

/// The first bytes; fewer than [`HEAD`] only where there are no more.
fn head(input: &mut impl Read) -> Result<Vec<u8>, Error> {
    let mut head = Vec::new();
    let read = input.take(HEAD).read_to_end(&mut head);
    read.map_err(Error::Io)?;
    Ok(head)
}

enum Kind {
    Recording,
    Folded,
}

/// What the first bytes say.
fn kind(head: &[u8]) -> Result<Kind, Error> {
    let starts = |magic: &[u8]| head.starts_with(magic);
    if head.is_empty() {
        Err(Error::Empty)
    } else if starts(b"PERFILE2") || starts(b"2ELIFREP") || starts(b"PERFFILE") {
        Ok(Kind::Recording)
    } else if starts(b"\x7fELF") {
        Err(Error::Program)
    } else if starts(b"\x1f\x8b") {
        Err(Error::Compressed("gzip"))
    } else if starts(b"\x28\xb5\x2f\xfd") {
        Err(Error::Compressed("zstd"))
    } else if head.contains(&0) {
        Err(Error::Unknown)
    } else {
        Ok(Kind::Folded)
    }
}

fn folded_stacks(
    input: impl BufRead,
    size: u64,
    options: &Options,
    progress: &mut Progress,
) -> Result<Profile, Error> {
    if !options.time.is_all() {
        return Err(Error::NoTimes);
    }
    folded::read(input, &mut |done| progress(done, size))
}

/// Reads a recording.
fn recording(_: Recording, _: &Options, _: &mut Progress) -> Result<Profile, Error> {
    Err(Error::Recording("recordings cannot be read yet".into()))
}

/// Opens a regular file, or the file `data` in a directory; waits for nothing.
fn regular(path: &Path) -> Result<(File, PathBuf), Error> {
    let open = |path: &Path| {
        let mut how = OpenOptions::new();
        how.read(true).custom_flags(libc::O_NONBLOCK);
        how.open(path)
    };
    let mut path = path.to_owned();
    let mut file = open(&path).map_err(Error::Io)?;
    let mut kind = file.metadata().map_err(Error::Io)?.file_type();
    if kind.is_dir() {
        path.push("data");
        file = open(&path).map_err(|_| Error::Directory)?;
        kind = file.metadata().map_err(Error::Io)?.file_type();
    }
    if kind.is_file() {
        return Ok((file, path));
    }
    Err(Error::NotRegular(if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }))
}
