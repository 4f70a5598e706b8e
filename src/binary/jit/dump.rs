//! Jitdump files, as the kernel's `tools/perf/Documentation/jitdump-specification.txt` defines
//! them.
//!
//! ```text
//!   header      u32 magic "JiTD", u32 version, u32 size of the header, u32 ELF machine, u32 0,
//!               u32 pid, u64 time, u64 flags (1: times are those of the processor's counter)
//!   records     u32 kind, u32 size, u64 time, then by kind
//!     0 load    u32 pid, u32 tid, u64 vma, u64 address, u64 size, u64 index, name "\0", the code
//!     1 move    u32 pid, u32 tid, u64 vma, u64 old address, u64 new address, u64 size, u64 index
//!     2 lines   u64 address, u64 count; of each: u64 address, u32 line, u32 discriminator,
//!               file "\0" ("\xff\0": that of the entry before); they are those of the next load
//!     3 close   4 unwinding information    others are passed over
//! ```
//!
//! The file is read once from its start to its end; the code in it is passed over, and read by
//! [`JitCode`](super::JitCode) where it is asked for.

mod parser;

use std::io::{self, BufReader};
use std::path::Path;

use self::parser::Parser;
use crate::base::{GeneratedCode, Interner, NameId};
use crate::binary::{Error, Machine};
use crate::files::{OpenedFile, is_jit_dump};

// V8 adds the size of an ELF header to the addresses of lines, as `perf inject` once needed.
const ELF_HEADER: u64 = 0x40;

/// A jitdump file: pieces of code, and when they were where.
#[derive(Clone, Debug, Default)]
pub struct JitDump {
    names: Interner,
    code: Vec<CompiledCode>,
    lines: Vec<Line>,
    changes: Vec<GeneratedCode>,
    // The process as it knows itself.
    pid: u32,
    has_clock: bool,
    // The machine, by its number in ELF files.
    machine: u16,
    // Whether the addresses of lines count from an ELF header before the code.
    lines_after_header: bool,
    problems: Vec<String>,
}

// A piece of code. They are in order of place, and do not overlap.
#[derive(Clone, Copy, Debug)]
struct CompiledCode {
    place: u64,
    start: u64,
    size: u64,
    name: NameId,
    // Its lines among those of the file.
    lines: (u32, u32),
}

// It begins at an offset in the code.
#[derive(Clone, Copy, Debug)]
struct Line {
    offset: u64,
    file: NameId,
    line: u32,
}

/// What a place in a jitdump is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitFrame<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// The file and the line, where they are listed.
    pub line: Option<(&'a str, u32)>,
}

impl JitDump {
    /// Whether a file of this path is one, by its name: `jit-PID.dump`. Programs map the file, so
    /// that recordings name it.
    pub fn is_named_so(path: &Path) -> bool {
        is_jit_dump(path)
    }

    pub(in crate::binary) fn read_opened(
        opened: OpenedFile,
        path: &Path,
        user: Option<u32>,
    ) -> Result<JitDump, Error> {
        let (file, size) = super::checked(opened, path, user)?;
        Parser::new(BufReader::with_capacity(256 << 10, file), path, size).file()
    }

    /// Reads a jitdump that is in memory.
    ///
    /// # Errors
    /// If its header is no jitdump's.
    pub fn parse(bytes: &[u8]) -> Result<JitDump, Error> {
        Parser::new(
            io::Cursor::new(bytes),
            Path::new("(memory)"),
            bytes.len() as u64,
        )
        .file()
    }

    /// Whether its times are those of `CLOCK_MONOTONIC`.
    pub fn has_clock(&self) -> bool {
        self.has_clock
    }

    /// All code in order of time.
    pub fn changes(&self) -> &[GeneratedCode] {
        &self.changes
    }

    /// The function that the code at a place belongs to, and the line.
    pub fn at(&self, place: u64) -> Option<JitFrame<'_>> {
        let code = self.code_at(place)?;
        let mut offset = place - code.place;
        if self.lines_after_header {
            offset += ELF_HEADER;
        }
        let lines = code.lines.0 as usize..code.lines.1 as usize;
        let lines = self.lines.get(lines).unwrap_or_default();
        let after = lines.partition_point(|line| line.offset <= offset);
        let line = after.checked_sub(1).and_then(|at| lines.get(at));
        Some(JitFrame {
            name: &self.names[code.name],
            line: line.map(|line| (&self.names[line.file], line.line)),
        })
    }

    /// Each piece of code wherever it was: start, size and name.
    pub fn everywhere(&self) -> impl Iterator<Item = (u64, u64, &str)> {
        self.changes.iter().filter_map(|change| {
            let code = self.code_at(change.place)?;
            Some((change.start, change.size, &self.names[code.name]))
        })
    }

    /// The same file, of which so many bytes after these are not known.
    pub fn without_rest(mut self, left_out: u64) -> JitDump {
        if left_out > 0 {
            let problem = format!("too large to keep: its last {left_out} bytes were left out");
            self.problems.push(problem);
        }
        self
    }

    /// What could not be read or believed.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    // Where the code begins that has a place, and its size.
    pub(super) fn bounds(&self, place: u64) -> Option<(u64, u64)> {
        let code = self.code_at(place)?;
        Some((code.place, code.size))
    }

    // `None` if it is not known here.
    pub(super) fn machine(&self) -> Option<Machine> {
        Machine::of_number(self.machine, true)
    }

    fn code_at(&self, place: u64) -> Option<&CompiledCode> {
        let after = self.code.partition_point(|code| code.place <= place);
        let code = self.code.get(after.checked_sub(1)?)?;
        (place - code.place < code.size).then_some(code)
    }
}
