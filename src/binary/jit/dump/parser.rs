//! The records of a jitdump file, one after the other.

use std::io::{Read, Seek};
use std::path::Path;

use gimli::{Endianity, RunTimeEndian};
use rustc_hash::FxHashMap;

use super::{CompiledCode, ELF_HEADER, JitDump, Line};
use crate::base::{GeneratedCode, NameId, utf8};
use crate::binary::Error;
use crate::binary::jit::name::function_name;

const MAGIC: u32 = 0x4a69_5444;
const HEADER: u64 = 40;
const PREFIX: u64 = 16;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const LINES: u32 = 2;
// The bytes of a load record between its prefix and its name, and of a move record.
const LOAD_FIELDS: usize = 40;
const MOVE_FIELDS: usize = 48;
// Times are those of a counter of the processor, which no recording has.
const ARCH_TIMESTAMP: u64 = 1;

// Zeros that a record of lines may end with.
const PADDING: usize = 7;
// The number of functions from which on it is significant that none has a line before such a
// header.
const SOME: u64 = 4;

// Loads with longer names are passed over, in bytes.
const NAME_LIMIT: u64 = 8 << 10;
// Records, pieces of code, lines and bytes of names that are kept.
const RECORD_LIMIT: u64 = 1 << 24;
const CODE_LIMIT: usize = 1 << 22;
const LINE_LIMIT: usize = 1 << 23;
const TEXT_LIMIT: u64 = 256 << 20;
// The largest record of lines that is read.
const LINES_LIMIT: u64 = 64 << 20;

pub(super) struct Parser<'a, R> {
    input: R,
    // For errors.
    path: &'a Path,
    size: u64,
    endian: RunTimeEndian,
    dump: JitDump,
    // The code of an index.
    by_index: FxHashMap<u64, u32>,
    // The lines of the next load, and the address that they are for.
    pending: Option<(u64, (u32, u32))>,
    // Bytes of names so far.
    text: u64,
    // Records that could not be believed, and the offset of the first.
    bad: Option<(u64, u64)>,
    // Lines that lie outside of their code if addresses count from the code, or from a header.
    outside: u64,
    outside_after_header: u64,
    // Loads that have lines.
    with_lines: u64,
}

impl<'a, R: Read + Seek> Parser<'a, R> {
    pub(super) fn new(input: R, path: &'a Path, size: u64) -> Self {
        Parser {
            input,
            path,
            size,
            endian: RunTimeEndian::Little,
            dump: JitDump::default(),
            by_index: FxHashMap::default(),
            pending: None,
            text: 0,
            bad: None,
            outside: 0,
            outside_after_header: 0,
            with_lines: 0,
        }
    }

    pub(super) fn file(mut self) -> Result<JitDump, Error> {
        let mut at = self.header()?;
        self.input
            .seek_relative(at as i64 - HEADER as i64)
            .map_err(Error::at(self.path))?;
        let mut records = 0;
        while at < self.size {
            let Some(end) = self.record(at)? else {
                break;
            };
            at = end;
            records += 1;
            if records == RECORD_LIMIT || self.text > TEXT_LIMIT {
                self.problem(format!("too large: read up to offset {at:#x}"));
                break;
            }
        }
        if let Some((count, first)) = self.bad {
            self.problem(format!(
                "{count} records are damaged, the first at offset {first:#x}"
            ));
        }
        let mut dump = self.dump;
        dump.lines_after_header =
            self.outside_after_header == 0 && (self.outside > 0 || self.with_lines >= SOME);
        dump.changes.sort_by_key(|change| change.time);
        Ok(dump)
    }

    // Returns where the records begin.
    fn header(&mut self) -> Result<u64, Error> {
        let malformed = |what: String| Err(Error::Malformed { problem: what });
        if self.size < HEADER {
            return Err(Error::Truncated {
                what: "the header",
                needed: HEADER,
                size: self.size,
            });
        }
        let mut bytes = [0; HEADER as usize];
        self.input
            .read_exact(&mut bytes)
            .map_err(Error::at(self.path))?;
        if self.u32(&bytes, 0) != MAGIC {
            self.endian = RunTimeEndian::Big;
        }
        if self.u32(&bytes, 0) != MAGIC {
            return malformed("it does not start as a jitdump does".to_owned());
        }
        let (version, size) = (self.u32(&bytes, 4), u64::from(self.u32(&bytes, 8)));
        if version != 1 {
            return malformed(format!("version {version} of jitdump is not known"));
        }
        if size < HEADER {
            return malformed(format!("the header has {size} bytes, below {HEADER}"));
        }
        self.dump.machine = u16::try_from(self.u32(&bytes, 12)).unwrap_or(0);
        self.dump.pid = self.u32(&bytes, 20);
        self.dump.has_clock = self.u64(&bytes, 32) & ARCH_TIMESTAMP == 0;
        Ok(size)
    }

    // Returns where the record ends, or `None` where nothing can follow.
    fn record(&mut self, at: u64) -> Result<Option<u64>, Error> {
        let mut prefix = [0; PREFIX as usize];
        if self.size - at < PREFIX {
            self.problem(format!("cut short at offset {at:#x}"));
            return Ok(None);
        }
        self.input
            .read_exact(&mut prefix)
            .map_err(Error::at(self.path))?;
        let (kind, size) = (self.u32(&prefix, 0), u64::from(self.u32(&prefix, 4)));
        let time = self.u64(&prefix, 8);
        if size < PREFIX {
            self.problem(format!("a record of {size} bytes at offset {at:#x}"));
            return Ok(None);
        }
        let end = at.saturating_add(size);
        if end > self.size {
            self.problem(format!("cut short at offset {at:#x}"));
            return Ok(None);
        }
        let most = match kind {
            LOAD => LOAD_FIELDS as u64 + NAME_LIMIT + 1,
            MOVE => MOVE_FIELDS as u64,
            LINES => LINES_LIMIT,
            _ => 0,
        };
        // What is read is in the file, so its length can be believed.
        let mut body = vec![0; most.min(size - PREFIX) as usize];
        self.input
            .read_exact(&mut body)
            .map_err(Error::at(self.path))?;
        let is_good = match kind {
            LOAD => self.load(at, end, time, &body),
            MOVE => self.moved(time, &body),
            LINES => self.lines(&body),
            _ => Some(()),
        };
        if is_good.is_none() {
            let (count, _) = self.bad.get_or_insert((0, at));
            *count += 1;
        }
        let rest = size - PREFIX - body.len() as u64;
        self.input
            .seek_relative(rest as i64)
            .map_err(Error::at(self.path))?;
        Ok(Some(end))
    }

    fn load(&mut self, at: u64, end: u64, time: u64, body: &[u8]) -> Option<()> {
        let pending = self.pending.take();
        let fields = body.get(..LOAD_FIELDS)?;
        let after = body.get(LOAD_FIELDS..)?;
        let length = after.iter().position(|&b| b == 0)?;
        let (start, size) = (self.u64(fields, 16), self.u64(fields, 24));
        let index = self.u64(fields, 32);
        let place = at + PREFIX + (LOAD_FIELDS + length + 1) as u64;
        // A process that was forked with the file writes of itself.
        if self.u32(fields, 0) != self.dump.pid || size == 0 {
            return Some(());
        }
        start.checked_add(size)?;
        let is_inside = place.checked_add(size).is_some_and(|last| last <= end);
        if !is_inside || self.dump.code.len() >= CODE_LIMIT {
            return None;
        }
        let name = utf8(&after[..length]);
        let name = self.text(&function_name(&name));
        let lines = pending
            .filter(|(address, _)| *address == start)
            .map_or((0, 0), |(_, lines)| lines);
        let of_code = self.dump.lines.get(lines.0 as usize..lines.1 as usize);
        self.with_lines += u64::from(of_code.is_some_and(|lines| !lines.is_empty()));
        for line in of_code.unwrap_or_default() {
            let is_outside = |offset: Option<u64>| u64::from(offset.is_none_or(|at| at > size));
            self.outside += is_outside(Some(line.offset));
            self.outside_after_header += is_outside(line.offset.checked_sub(ELF_HEADER));
        }
        self.by_index.insert(index, self.dump.code.len() as u32);
        self.dump.code.push(CompiledCode {
            place,
            start,
            size,
            name,
            lines,
        });
        self.dump.changes.push(GeneratedCode {
            time,
            start,
            size,
            place,
            moved_from: None,
        });
        Some(())
    }

    fn moved(&mut self, time: u64, body: &[u8]) -> Option<()> {
        let fields = body.get(..MOVE_FIELDS)?;
        if self.u32(fields, 0) != self.dump.pid {
            return Some(());
        }
        let [from, start, size, index] = [16, 24, 32, 40].map(|at| self.u64(fields, at));
        let code = *self.by_index.get(&index)?;
        let code = self.dump.code.get_mut(code as usize)?;
        let size = size.min(code.size);
        start.checked_add(size)?;
        code.start = start;
        let place = code.place;
        if size > 0 && self.dump.changes.len() < 2 * CODE_LIMIT {
            self.dump.changes.push(GeneratedCode {
                time,
                start,
                size,
                place,
                moved_from: Some(from),
            });
        }
        Some(())
    }

    // A damaged record is dropped as a whole.
    fn lines(&mut self, body: &[u8]) -> Option<()> {
        self.pending = None;
        let first = self.dump.lines.len();
        let lines = self.entries(body);
        if lines.is_none() {
            self.dump.lines.truncate(first);
        }
        self.pending = Some((lines?, (first as u32, self.dump.lines.len() as u32)));
        Some(())
    }

    // Sorted; returns the address of the code that they are for.
    fn entries(&mut self, body: &[u8]) -> Option<u64> {
        let address = self.u64(body.get(..8)?, 0);
        let count = self.u64(body.get(8..16)?, 0);
        let mut rest = body.get(16..)?;
        let first = self.dump.lines.len();
        let mut file: Option<NameId> = None;
        for _ in 0..count {
            let fields = rest.get(..16)?;
            let after = rest.get(16..)?;
            let length = after.iter().position(|&b| b == 0)?;
            let name = after.get(..length)?;
            rest = after.get(length + 1..)?;
            if name != b"\xff" {
                let name = std::str::from_utf8(name)
                    .ok()
                    .filter(|name| !name.chars().any(char::is_control))?;
                file = Some(self.text(name));
            }
            let (at, line) = (self.u64(fields, 0), self.u32(fields, 8));
            if self.dump.lines.len() >= LINE_LIMIT {
                return None;
            }
            if let Some(file) = file
                && let Some(offset) = at.checked_sub(address)
                && line > 0
            {
                self.dump.lines.push(Line { offset, file, line });
            }
        }
        // V8 in Node.js 20 writes names of files from memory that it has freed, zeros included. The
        // entries then seem to end elsewhere, and nothing in the record can be believed.
        if rest.len() > PADDING || rest.iter().any(|&b| b != 0) {
            return None;
        }
        let lines = self.dump.lines.get_mut(first..)?;
        lines.sort_by_key(|line| line.offset);
        Some(address)
    }

    fn text(&mut self, text: &str) -> NameId {
        self.text = self.text.saturating_add(text.len() as u64);
        self.dump.names.intern(text)
    }

    fn problem(&mut self, problem: String) {
        self.dump.problems.push(problem);
    }

    fn u32(&self, bytes: &[u8], at: usize) -> u32 {
        self.endian.read_u32(&bytes[at..at + 4])
    }

    fn u64(&self, bytes: &[u8], at: usize) -> u64 {
        self.endian.read_u64(&bytes[at..at + 8])
    }
}
