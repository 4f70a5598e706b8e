//! Functions that were compiled while the program ran, as it lists them in `/tmp/perf-PID.map`.
//!
//! ```text
//!   START SIZE NAME       start and size in hexadecimal; the name may hold spaces
//! ```
//!
//! Everybody may write to `/tmp`, so a map counts only if it belongs to the reader, to root or
//! to the user whose process it describes.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Error;
use crate::base::{Avma, utf8};

/// The most bytes of a map that are read.
const SIZE_LIMIT: u64 = 256 << 20;
/// The most functions that are kept.
const COUNT_LIMIT: usize = 1 << 22;
/// Longer names are passed over, in bytes.
const NAME_LIMIT: usize = 8 << 10;

/// A function that was compiled while the program ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitFunction {
    /// The address of its first byte.
    pub start: Avma,
    /// Its size in bytes.
    pub size: u64,
    /// Its name, as the program gave it.
    pub name: Box<str>,
}

/// A part of a function over which no later function was written.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    function: u32,
}

/// The functions in a map. Where they overlap, the later line is right: the program reused the
/// memory.
///
/// ```
/// use proftool::base::Avma;
/// use proftool::binary::PerfMap;
/// let map = PerfMap::parse(b"1000 20 old code\n1010 10 new\n");
/// assert_eq!(&*map.at(Avma(0x100f)).unwrap().name, "old code");
/// assert_eq!(&*map.at(Avma(0x1010)).unwrap().name, "new");
/// ```
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    functions: Vec<JitFunction>,
    parts: Vec<Part>,
    bad_lines: u64,
}

impl PerfMap {
    /// Where the map of a process is.
    pub fn path(pid: u32) -> PathBuf {
        PathBuf::from(format!("/tmp/perf-{pid}.map"))
    }

    /// Reads a map. `user` is the user id of the process, where it is known.
    ///
    /// # Errors
    /// When there is none, it is a link or not a regular file, it belongs to somebody else
    /// ([`Error::Foreign`]), it is larger than 256 MB, or the system refuses.
    pub fn read(path: &Path, user: Option<u32>) -> Result<PerfMap, Error> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW)
            .open(path);
        let file = file.map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => Error::NotRegular,
            _ => Error::from(error),
        })?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Error::NotRegular);
        }
        // The owner of our own directory in /proc is the user that we act for.
        let own = std::fs::metadata("/proc/self")?.uid();
        let owner = metadata.uid();
        if owner != own && owner != 0 && Some(owner) != user {
            return Err(Error::Foreign {
                path: path.to_owned(),
                owner,
            });
        }
        if metadata.len() > SIZE_LIMIT {
            return Err(Error::TooLarge {
                what: "the map".to_owned(),
                size: metadata.len(),
                limit: SIZE_LIMIT,
            });
        }
        let mut bytes = Vec::new();
        file.take(SIZE_LIMIT).read_to_end(&mut bytes)?;
        Ok(PerfMap::parse(&bytes))
    }

    /// Reads a map that is in memory.
    pub fn parse(bytes: &[u8]) -> PerfMap {
        let mut map = PerfMap::default();
        for line in bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            match function(line).filter(|_| map.functions.len() < COUNT_LIMIT) {
                Some(function) => map.functions.push(function),
                None => map.bad_lines = map.bad_lines.saturating_add(1),
            }
        }
        map.find_parts();
        map
    }

    /// How many lines were not understood, or were too many.
    pub fn bad_lines(&self) -> u64 {
        self.bad_lines
    }

    /// The function that contains `address`.
    pub fn at(&self, address: Avma) -> Option<&JitFunction> {
        let after = self.parts.partition_point(|part| part.start <= address.0);
        let part = self.parts.get(after.checked_sub(1)?)?;
        if address.0 >= part.end {
            return None;
        }
        self.functions.get(part.function as usize)
    }

    /// Goes through the functions from the last to the first; each gets what is still free of its
    /// range. What is taken is kept as few large ranges, so this takes n log n steps.
    fn find_parts(&mut self) {
        let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
        for (index, function) in self.functions.iter().enumerate().rev() {
            let Ok(number) = u32::try_from(index) else {
                continue;
            };
            let start = function.start.0;
            let end = start.saturating_add(function.size);
            let (mut from, mut to, mut at) = (start, end, start);
            let before = taken.range(..=start).next_back();
            if let Some((&left, &right)) = before
                && right >= start
            {
                (from, to, at) = (left, end.max(right), right);
            }
            let inside: Vec<(u64, u64)> = taken
                .range(start..=end)
                .map(|(&left, &right)| (left, right))
                .collect();
            for (left, right) in inside {
                if at < left {
                    self.parts.push(Part {
                        start: at,
                        end: left,
                        function: number,
                    });
                }
                at = at.max(right);
                to = to.max(right);
                taken.remove(&left);
            }
            if at < end {
                self.parts.push(Part {
                    start: at,
                    end,
                    function: number,
                });
            }
            taken.insert(from, to);
        }
        self.parts.sort_unstable_by_key(|part| part.start);
    }
}

fn function(line: &[u8]) -> Option<JitFunction> {
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
    (size > 0 && !name.is_empty()).then(|| JitFunction {
        start: Avma(start),
        size,
        name: name.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(map: &PerfMap, range: std::ops::Range<u64>) -> Vec<&str> {
        let name = |at| map.at(Avma(at)).map_or("-", |f| &*f.name);
        range.map(name).collect()
    }

    #[test]
    fn later_lines_win_wherever_they_overlap() {
        let map = PerfMap::parse(b"2 4 a\n1 2 b\n3 1 c\n8 2 d\n0 1 e\n7 1 f\n");
        assert_eq!(
            names(&map, 0..11),
            "e b b c a a - f d d -".split(' ').collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_last_of_many_equal_lines_wins() {
        let map = PerfMap::parse(b"10 10 a\n10 10 b\n0 40 c\n");
        assert_eq!(names(&map, 0x10..0x12), ["c", "c"]);
    }

    #[test]
    fn bad_lines_are_counted() {
        let map = PerfMap::parse(b"x\n1 2\n1 0 a\nffffffffffffffff 8 end\nzz 1 b\n10 1 \xff\n");
        assert_eq!(map.bad_lines(), 4);
        assert_eq!(names(&map, 0x10..0x11), ["\\xff"]);
    }
}
