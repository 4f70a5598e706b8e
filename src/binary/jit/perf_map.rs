//! Functions that were compiled while the program ran, as it lists them in `/tmp/perf-PID.map`.
//!
//! ```text
//!   START SIZE NAME       start and size in hexadecimal; the name may hold spaces
//! ```

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::JitNames;
use super::name::function_name;
use crate::base::{Avma, Interner, NameId, utf8};
use crate::binary::Error;
use crate::files::{LastLink, Root};

// The most bytes of a map that are read.
const SIZE_LIMIT: u64 = 256 << 20;
// Pieces of code that are kept.
const COUNT_LIMIT: usize = 1 << 22;
// Longer names are passed over, in bytes.
const NAME_LIMIT: usize = 8 << 10;

// How far the start of a process, computed from another clock, and the time of a file may be apart.
const CLOCK_SLACK: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
struct CompiledCode {
    start: u64,
    end: u64,
    function: NameId,
}

// A range of addresses at which the same functions were.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    first: NameId,
    second: Option<NameId>,
    others: u32,
}

/// The functions by address, without times. Where code of several functions overlaps, the program
/// has reused the memory, and an address there belongs to any of them.
///
/// ```
/// use proftool::base::Avma;
/// use proftool::binary::PerfMap;
/// let map = PerfMap::parse(b"1000 20 sum\n1010 20 sum\n1020 10 mul\n");
/// assert_eq!(map.at(Avma(0x1010)).unwrap().label(), "sum");
/// assert!(map.at(Avma(0x1020)).unwrap().is_ambiguous());
/// ```
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    names: Interner,
    code: Vec<CompiledCode>,
    parts: Vec<Part>,
}

impl PerfMap {
    /// Where the map of a process is.
    pub fn path(pid: u32) -> PathBuf {
        PathBuf::from(format!("/tmp/perf-{pid}.map"))
    }

    /// Reads a map. `user` is the user id of the process, where it is known.
    ///
    /// # Errors
    /// If there is no file, it is a link or not a regular file, it belongs to somebody else
    /// ([`Error::Foreign`]), it is larger than 256 MB, or the system refuses.
    pub fn read(path: &Path, user: Option<u32>) -> Result<PerfMap, Error> {
        PerfMap::read_below(&Root::default(), path, user, None)
    }

    // The path begins at `root`; the process began at this time.
    pub(in crate::binary) fn read_below(
        root: &Root,
        path: &Path,
        user: Option<u32>,
        began: Option<SystemTime>,
    ) -> Result<PerfMap, Error> {
        let opened = root.open(path, LastLink::Refuse)?;
        let written = opened.metadata.modified().ok();
        if written
            .zip(began)
            .is_some_and(|(written, began)| written + CLOCK_SLACK < began)
        {
            return Err(Error::OlderThanProcess {
                path: root.full(path),
            });
        }
        let (file, size) = super::checked(opened, path, user)?;
        if size > SIZE_LIMIT {
            return Err(Error::TooLarge {
                what: "the map".to_owned(),
                size,
                limit: SIZE_LIMIT,
            });
        }
        let mut bytes = Vec::new();
        let read = file.take(SIZE_LIMIT).read_to_end(&mut bytes);
        read.map_err(Error::at(path))?;
        Ok(PerfMap::parse(&bytes))
    }

    /// Reads a map that is in memory.
    pub fn parse(bytes: &[u8]) -> PerfMap {
        let mut map = PerfMap::default();
        for line in bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            if let Some((start, size, name)) = line_of(line) {
                map.add(start, size, &name);
            }
        }
        map.settle();
        map
    }

    // Start, size and name.
    pub(crate) fn of<'a>(code: impl Iterator<Item = (u64, u64, &'a str)>) -> PerfMap {
        let mut map = PerfMap::default();
        for (start, size, name) in code {
            map.add(start, size, name);
        }
        map.settle();
        map
    }

    /// The functions that `address` may belong to.
    pub fn at(&self, address: Avma) -> Option<JitNames<'_>> {
        let after = self.parts.partition_point(|part| part.start <= address.0);
        let part = self.parts.get(after.checked_sub(1)?)?;
        (address.0 < part.end).then(|| JitNames {
            first: &self.names[part.first],
            second: part.second.map(|name| &self.names[name]),
            others: part.others,
        })
    }

    // Adds a piece of code, if there is room for it.
    fn add(&mut self, start: u64, size: u64, name: &str) {
        if self.code.len() < COUNT_LIMIT {
            let function = self.names.intern(&function_name(name));
            let end = start.saturating_add(size);
            self.code.push(CompiledCode {
                start,
                end,
                function,
            });
        }
    }

    // Goes through the borders of all code in order of address and counts, for each function, the
    // pieces of code that lie there. Takes n log n steps, however they overlap.
    fn settle(&mut self) {
        let code = std::mem::take(&mut self.code);
        let mut borders: Vec<(u64, bool, NameId)> = Vec::with_capacity(2 * code.len());
        for piece in code.iter().filter(|piece| piece.start < piece.end) {
            borders.push((piece.start, true, piece.function));
            borders.push((piece.end, false, piece.function));
        }
        borders.sort_unstable();
        // Names are numbered in order of first appearance, and so are the functions here.
        let mut here: BTreeMap<NameId, u32> = BTreeMap::new();
        let mut from = 0;
        for (at, begins, function) in borders {
            if from < at {
                self.add_part(from, at, &here);
            }
            from = at;
            if begins {
                *here.entry(function).or_default() += 1;
            } else if let Some(count) = here.get_mut(&function) {
                // Ends sort before beginnings at one address, but never before their own.
                *count -= 1;
                if *count == 0 {
                    here.remove(&function);
                }
            }
        }
    }

    fn add_part(&mut self, start: u64, end: u64, here: &BTreeMap<NameId, u32>) {
        let mut functions = here.keys().copied();
        let Some(first) = functions.next() else {
            return;
        };
        let second = functions.next();
        let others = here.len().saturating_sub(2) as u32;
        if let Some(last) = self.parts.last_mut()
            && (last.end, last.first, last.second) == (start, first, second)
            && last.others == others
            && others == 0
        {
            last.end = end;
            return;
        }
        self.parts.push(Part {
            start,
            end,
            first,
            second,
            others,
        });
    }
}

// Start, size and name.
fn line_of(line: &[u8]) -> Option<(u64, u64, String)> {
    if line.len() > NAME_LIMIT {
        return None;
    }
    let text = utf8(line);
    let (start, rest) = text.trim_start().split_once(' ')?;
    let (size, name) = rest.trim_start().split_once(' ')?;
    let number = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        u64::from_str_radix(digits, 16).ok()
    };
    let (start, size, name) = (number(start)?, number(size)?, name.trim());
    (size > 0 && !name.is_empty()).then(|| (start, size, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(map: &PerfMap, range: std::ops::Range<u64>) -> Vec<String> {
        let name = |at| {
            map.at(Avma(at))
                .map_or("-".into(), |names| names.label().replace(" or ", "|"))
        };
        let names = range.map(name);
        names
            .map(|name| name.replace(" (address reused)", ""))
            .collect()
    }

    #[test]
    fn every_function_that_was_at_an_address_is_named() {
        let map = PerfMap::parse(b"2 4 a\n1 2 b\n3 1 c\n8 2 d\n0 1 e\n7 1 f\n");
        assert_eq!(
            names(&map, 0..11),
            "e b a|b a|c a a - f d d -".split(' ').collect::<Vec<_>>()
        );
    }

    #[test]
    fn code_of_one_function_does_not_conflict_with_itself() {
        let map =
            PerfMap::parse(b"10 10 JS:~f a.js:1:1\n10 10 JS:*f a.js:1:1\n18 10 JS:^f a.js:1:1\n");
        let one: Vec<String> = vec!["JS:f a.js:1:1".into(); 0x18];
        assert_eq!(names(&map, 0x10..0x28), one);
    }

    #[test]
    fn at_a_shared_address_two_functions_are_named_and_the_others_counted() {
        let map = PerfMap::parse(b"10 10 a\n10 10 b\n0 40 c\n10 8 d\n");
        assert_eq!(names(&map, 0x10..0x11), ["a|b|2 more"]);
        assert_eq!(names(&map, 0x18..0x19), ["a|b|1 more"]);
    }

    #[test]
    fn bad_lines_are_passed_over() {
        let map = PerfMap::parse(b"x\n1 2\n1 0 a\nffffffffffffffff 8 end\nzz 1 b\n10 1 \xff\n");
        assert_eq!(names(&map, 0x10..0x11), ["\\xff"]);
        // The one of one byte is all that there is.
        assert_eq!(map.parts.len(), 1);
    }
}
