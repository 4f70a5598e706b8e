//! Reads any known kind of file, or what is being sampled, as a [`Profile`].
//!
//! The kind of a file is recognized by its content, never by its name:
//!
//! ```text
//!   PERFILE2, 2ELIFREP, PERFFILE     a recording of perf or of proftool
//!   a directory with a file `data`   the same, as perf record --threads leaves it
//!   \x7fELF                          a program: refused
//!   gmon, or 0x51879 in its place    what a program built with -pg leaves, with its program
//!   lines `main;parse;lex 12`        folded stacks
//!   gzip, or the first bytes of one  a profile of pprof
//!   {"$schema": …                    a file of speedscope
//!   lines `app 1/2 3.5: 9 cycles:`   the text of perf script
//! ```
//!
//! Only regular files are opened, and `-` is standard input. A FIFO or device is an error, so that
//! a wrong name does not make the program wait.

mod contents;
mod error;
pub mod folded;
mod foreign;
mod gmon;
mod linked;
#[cfg(feature = "record")]
pub mod live;
mod machine_code;
mod parts;
mod perf_script;
mod programs;
#[cfg(feature = "record")]
pub mod recorder;
mod recording;
mod sampled;
mod source_files;
mod stacks;
mod text;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Cursor, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::binary::Finder;
use crate::files;
use crate::perfdata::{Reader, is_recording};
use crate::profile::{Contents, Histogram, Profile};

use self::foreign::{pprof, speedscope};
use self::text::Text;
pub use error::{Error, Reason};
pub use linked::LinkedProgram;
pub use machine_code::{CodeError, MachineCode, Syntax};
pub use programs::programs;
pub use sampled::{SampledProgram, SampledPrograms, sampled_programs};
pub use source_files::{Audience, SourceClaim, SourceFiles, SourceOptions};

pub use crate::symbolize::{SourceLines, StaticCalls};
pub use crate::trace::TimeRange;

/// How to read what is opened. The default reads everything.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory under which binaries and debug files are looked for, instead of `/`.
    pub symfs: Option<PathBuf>,
    /// Whether frames are made of inlined functions.
    pub inlines: bool,
    /// Whether missing frames are restored where the code has only one explanation.
    pub repairs: bool,
    /// Which calls in the code of the sampled files are added.
    pub calls: StaticCalls,
    /// Whether the code of functions is followed if more than a few stacks of a recording were cut,
    /// to find out which functions may be outside of a cut.
    pub ranges: bool,
    /// The directory in which symbols of the running kernel and answers of debug information are
    /// kept for the next start, accessible to its owner only; `None` to keep nothing.
    pub cache: Option<PathBuf>,
    /// Which source lines are looked up, where they are known.
    pub lines: SourceLines,
    /// Whether the places of calls keep the addresses of machine code: [`Place::address`]. It takes
    /// [`SourceLines::OfCalls`].
    ///
    /// [`Place::address`]: crate::profile::Place::address
    pub addresses: bool,
    /// Only samples of this time.
    pub time: TimeRange,
    /// Whether the times of samples are kept, where a recording has them: [`Profile::times`].
    pub keeps_times: bool,
    /// The program that made a gmon.out.
    pub program: Option<PathBuf>,
    /// More gmon.out files of the program, added to the first.
    pub sum: Vec<PathBuf>,
    /// What the weights of folded stacks are.
    pub folded_weights: folded::Weights,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            symfs: None,
            inlines: true,
            repairs: true,
            calls: StaticCalls::Off,
            ranges: false,
            cache: None,
            lines: SourceLines::default(),
            addresses: false,
            time: TimeRange::default(),
            keeps_times: false,
            program: None,
            sum: Vec::new(),
            folded_weights: folded::Weights::default(),
        }
    }
}

/// Called with the bytes read and the number of all bytes, 0 where it is not known.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Opens the file at `path`, finds out what it is, and reads everything that is in it.
///
/// # Errors
///
/// If it cannot be opened, or is not a known kind of file. Damage *within* a file is a caveat of
/// the profile.
pub fn open(path: impl AsRef<Path>) -> Result<Profile, Error> {
    open_with(path.as_ref(), &Options::default(), &mut |_, _| ())
}

/// Does what [`open`] does, with choices, and tells how far it is.
///
/// # Errors
///
/// As [`open`].
pub fn open_with(
    path: &Path,
    options: &Options,
    progress: &mut Progress,
) -> Result<Profile, Error> {
    let profile = match door(path).map_err(Error::of(path))? {
        OpenedInput::Gmon(first) => return gmon_profile(path, first, options),
        _ if !options.sum.is_empty() => Err(Reason::NotGmon),
        OpenedInput::Recording(reader) => recording::read(*reader, options, progress),
        OpenedInput::Stacks(format, input, size) => {
            stacks_of(format, input, size, options, progress)
        }
    };
    profile.map_err(Error::of(path))
}

/// A gmon.out as gprof 2.40 reads it: with the symbols that it keeps and callers that it names.
#[derive(Clone, Debug)]
pub struct AsGprof {
    /// The profile.
    pub profile: Profile,
    /// What gprof's text needs beyond it.
    pub histogram: Histogram,
}

/// Opens the gmon.out at `path` and reads it as gprof does; `None` where the file is something
/// else.
///
/// # Errors
///
/// As [`open`].
pub fn open_as_gprof(path: &Path, options: &Options) -> Result<Option<AsGprof>, Error> {
    match door(path).map_err(Error::of(path))? {
        OpenedInput::Gmon(first) => {
            let (files, program) = gmon_files(path, first, options)?;
            gmon::read_as_gprof(&files, program, options).map(Some)
        }
        _ if !options.sum.is_empty() => Err(Error::of(path)(Reason::NotGmon)),
        _ => Ok(None),
    }
}

/// Lists what the file at `path` holds, without symbolizing it. `weights` is the unit of folded
/// stacks.
///
/// # Errors
///
/// As [`open`].
pub fn contents(
    path: &Path,
    weights: folded::Weights,
    progress: &mut Progress,
) -> Result<Contents, Error> {
    let found = match door(path).map_err(Error::of(path))? {
        OpenedInput::Recording(reader) => contents::of_recording(*reader, progress),
        OpenedInput::Stacks(format, input, size) => {
            let options = Options {
                folded_weights: weights,
                ..Options::default()
            };
            let profile = stacks_of(format, input, size, &options, progress);
            profile.map(|profile| contents::of_stacks(format.name(), profile))
        }
        OpenedInput::Gmon(bytes) => gmon::contents::of(&gmon::Named::new(path, bytes)),
    };
    found.map_err(Error::of(path))
}

/// Reads what is in memory, as if it were a file.
///
/// # Errors
///
/// As [`open`].
pub fn read(bytes: Vec<u8>, options: &Options) -> Result<Profile, Error> {
    let progress = &mut |_, _| ();
    let in_memory = Path::new("-");
    let mut rest = bytes.as_slice();
    let profile = match kind(&mut rest).map_err(Error::of(in_memory))? {
        InputKind::Recording => Reader::from_bytes(bytes)
            .map_err(Reason::from)
            .and_then(|reader| recording::read(reader, options, progress)),
        InputKind::Stacks(format) => stacks_of(format, rest, bytes.len() as u64, options, progress),
        InputKind::Gmon => return gmon_profile(in_memory, bytes, options),
    };
    profile.map_err(Error::of(in_memory))
}

enum OpenedInput {
    Recording(Box<Reader>),
    // Stacks in another format, and the size of the input where it is known, else 0.
    Stacks(StackFormat, Box<dyn BufRead>, u64),
    Gmon(Vec<u8>),
}

// A file, a recording's directory or, for `-`, standard input.
fn door(path: &Path) -> Result<OpenedInput, Reason> {
    if path == Path::new("-") || path == Path::new("/dev/stdin") {
        let stdin = std::io::stdin();
        let file = File::from(stdin.as_fd().try_clone_to_owned()?);
        let metadata = file.metadata()?;
        if metadata.is_file() {
            files::note_read(&metadata);
            return regular_door(file);
        }
        // A pipe may give its first bytes one by one, and several are needed to recognize the kind.
        let mut head = Vec::new();
        let read = (&file).take(HEAD).read_to_end(&mut head);
        read?;
        let rest = BufReader::with_capacity(BUFFER, file);
        let mut input = Cursor::new(head).chain(rest);
        return Ok(match kind(&mut input)? {
            InputKind::Recording => {
                OpenedInput::Recording(Box::new(Reader::from_stream(Box::new(input))?))
            }
            InputKind::Stacks(format) => OpenedInput::Stacks(format, Box::new(input), 0),
            InputKind::Gmon => OpenedInput::Gmon(whole(&mut input)?),
        });
    }
    if path.join("data").is_file() {
        return Ok(OpenedInput::Recording(Box::new(Reader::open(path)?)));
    }
    regular_door(regular(path)?)
}

fn regular_door(file: File) -> Result<OpenedInput, Reason> {
    let size = file.metadata()?.len();
    let mut input = BufReader::with_capacity(BUFFER, file);
    Ok(match kind(&mut input)? {
        InputKind::Recording => {
            OpenedInput::Recording(Box::new(Reader::from_file(input.into_inner())?))
        }
        InputKind::Stacks(format) => OpenedInput::Stacks(format, Box::new(input), size),
        InputKind::Gmon => OpenedInput::Gmon(whole(&mut input)?),
    })
}

const BUFFER: usize = 1 << 18;
// Enough for the notes before the first record of a text.
const HEAD: u64 = 1 << 16;

// Of UTF-8, which editors write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

enum InputKind {
    Recording,
    Stacks(StackFormat),
    Gmon,
}

#[derive(Clone, Copy)]
enum StackFormat {
    Folded,
    PerfScript,
    Speedscope,
    Pprof,
    Gzip,
}

impl StackFormat {
    fn name(self) -> &'static str {
        match self {
            StackFormat::Folded => "folded stacks",
            StackFormat::PerfScript => "the text of perf script",
            StackFormat::Speedscope => "speedscope",
            StackFormat::Pprof | StackFormat::Gzip => "pprof",
        }
    }
}

// Leaves the input where its first line begins.
fn kind(input: &mut impl BufRead) -> Result<InputKind, Reason> {
    if input.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    let head = input.fill_buf()?;
    let starts = |magic: &[u8]| head.starts_with(magic);
    if head.is_empty() {
        Err(Reason::Empty)
    } else if is_recording(head) {
        Ok(InputKind::Recording)
    } else if gmon::is_gmon(head) {
        Ok(InputKind::Gmon)
    } else if starts(b"\x7fELF") {
        Err(Reason::Program)
    } else if starts(b"\x1f\x8b") {
        Ok(InputKind::Stacks(StackFormat::Gzip))
    } else if starts(b"\x28\xb5\x2f\xfd") {
        Err(Reason::Compressed { format: "zstd" })
    } else if foreign::is_pprof(head) {
        Ok(InputKind::Stacks(StackFormat::Pprof))
    } else if head.contains(&0) {
        Err(Reason::Unknown)
    } else if foreign::is_speedscope(head) {
        Ok(InputKind::Stacks(StackFormat::Speedscope))
    } else {
        match text::of(head) {
            Text::PerfScript => Ok(InputKind::Stacks(StackFormat::PerfScript)),
            Text::Folded => Ok(InputKind::Stacks(StackFormat::Folded)),
            Text::Other(Some(what)) => Err(Reason::OtherText { what }),
            Text::Other(None) => Err(Reason::Unknown),
        }
    }
}

fn stacks_of(
    format: StackFormat,
    input: impl BufRead,
    size: u64,
    options: &Options,
    progress: &mut Progress,
) -> Result<Profile, Reason> {
    if !options.time.is_all() {
        return Err(Reason::NoTimes {
            holder: match format {
                StackFormat::Folded => "folded stacks hold",
                StackFormat::PerfScript => "a perf script text is read with",
                StackFormat::Speedscope => "a speedscope file holds",
                StackFormat::Pprof | StackFormat::Gzip => "a pprof profile holds",
            },
        });
    }
    let progress = &mut |done| progress(done, size);
    match format {
        StackFormat::Folded => folded::read_as(options.folded_weights, input, progress),
        StackFormat::PerfScript => perf_script::read(input, progress),
        StackFormat::Speedscope => {
            let bytes = speedscope::whole(input)?;
            if folded::begins_with_stack(&bytes) && !speedscope::is_document(&bytes) {
                return folded::read_as(options.folded_weights, &*bytes, progress);
            }
            speedscope::read(bytes)
        }
        StackFormat::Pprof => pprof::read_plain(input),
        StackFormat::Gzip => pprof::read_compressed(input),
    }
}

fn gmon_profile(path: &Path, first: Vec<u8>, options: &Options) -> Result<Profile, Error> {
    let (files, program) = gmon_files(path, first, options)?;
    gmon::read(&files, program, options)
}

fn gmon_files<'a>(
    path: &Path,
    first: Vec<u8>,
    options: &'a Options,
) -> Result<(Vec<gmon::Named>, &'a Path), Error> {
    if !options.time.is_all() {
        let holder = "a gmon.out holds";
        return Err(Error::of(path)(Reason::NoTimes { holder }));
    }
    let program = options
        .program
        .as_deref()
        .ok_or(Reason::NoProgram)
        .map_err(Error::of(path))?;
    let mut files = vec![gmon::Named::new(path, first)];
    for path in &options.sum {
        files.push(gmon_file(path)?);
    }
    Ok((files, program))
}

/// Joins the calls that gmon.out files counted to the profile of a recording of the same program:
/// that of `options`, else the one that the profile shows to be it.
///
/// # Errors
///
/// The file that cannot be used, and why.
pub fn join_counts(
    profile: &mut Profile,
    files: &[PathBuf],
    options: &Options,
) -> Result<(), Error> {
    let first = files.first().map_or(Path::new(""), PathBuf::as_path);
    let finder = Finder::new(options.symfs.as_deref());
    let (module, binary) = match &options.program {
        Some(path) => {
            let full = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let modules = || profile.modules.enumerate();
            let same = modules()
                .find(|(_, module)| Path::new(&module.path) == full)
                .or_else(|| modules().find(|(_, module)| module.name == name));
            let (module, _) = same.ok_or(Reason::NotSampled).map_err(Error::of(path))?;
            (module, finder.open_named(path))
        }
        None => {
            let module = gmon::join::program(profile)
                .ok_or(Reason::NoProgram)
                .map_err(Error::of(first))?;
            (module, finder.find(&profile.modules[module].path, None))
        }
    };
    let path = PathBuf::from(&profile.modules[module].path);
    let binary = binary.map_err(Error::of(&path))?;
    let files: Vec<gmon::Named> = files
        .iter()
        .map(|path| gmon_file(path))
        .collect::<Result<_, _>>()?;
    gmon::join::counts(profile, module, &files, &binary)
}

fn gmon_file(path: &Path) -> Result<gmon::Named, Error> {
    match door(path).map_err(Error::of(path))? {
        OpenedInput::Gmon(bytes) => Ok(gmon::Named::new(path, bytes)),
        _ => Err(Error::of(path)(Reason::NotGmon)),
    }
}

fn whole(input: &mut dyn Read) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    let limited = &mut input.take(gmon::MAX_SIZE + 1);
    limited.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > gmon::MAX_SIZE {
        return Err(Reason::Gmon {
            problem: "it is larger than 256 MiB".into(),
        });
    }
    Ok(bytes)
}

// Waits for nothing: a FIFO without a writer would hold `open`.
fn regular(path: &Path) -> Result<File, Reason> {
    let mut how = OpenOptions::new();
    how.read(true).custom_flags(libc::O_NONBLOCK);
    let file = how.open(path)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if kind.is_file() {
        files::note_read(&metadata);
        return Ok(file);
    }
    if kind.is_dir() {
        return Err(Reason::Directory);
    }
    let kind = if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(Reason::NotRegular { kind })
}
