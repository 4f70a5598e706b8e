//! Sorted records on disk, for recordings that need more memory for sorting than is allowed.
//!
//! An external merge sort (Knuth, *The Art of Computer Programming* 3, 5.4): what waits in memory
//! is sorted and written as one run; in the end all runs are read side by side.
//!
//! ```text
//!   memory 3 1 2 ──▶ run 0: 1 2 3 ─┐
//!   memory 5 2 4 ──▶ run 1: 2 4 5 ─┼─▶ 1 2 2 3 4 5
//! ```
//!
//! The file has no name, so that it is gone when the process ends, however it ends. It is made in
//! `$TMPDIR`, else in `/var/tmp`, which is on a disk where `/tmp` may be memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

// The file is never larger.
pub(super) const MOST: u64 = 64 << 30;
// All runs together read so much at once, but each at least the least.
const READ: usize = 16 << 20;
const LEAST_READ: usize = 16 << 10;
const MOST_READ: usize = 1 << 20;
const HEAD: usize = 8 + 8 + 4;

pub(super) fn nameless_file() -> io::Result<File> {
    let dir = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
    let dir = PathBuf::from(dir.unwrap_or_else(|| OsString::from("/var/tmp")));
    nameless_in(&dir).or_else(|_| nameless_in(Path::new("/tmp")))
}

fn nameless_in(dir: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    let nameless = options.clone().custom_flags(libc::O_TMPFILE).open(dir);
    // Network file systems refuse O_TMPFILE. A new file there loses its name at once; nobody can
    // have put a link in its place, as `create_new` follows none.
    nameless.or_else(|_| {
        let random = RandomState::new().hash_one(dir);
        let path = dir.join(format!(".proftool-{random:016x}"));
        let file = options.create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    })
}

pub(super) struct Spill {
    // Made when the first run is written.
    file: Option<File>,
    /// The end of the last whole run.
    len: u64,
    most: u64,
    runs: Vec<Run>,
    /// The time of the next record of each run that has one, and which run that is: of equal times
    /// the earlier run's first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    is_full: bool,
}

struct Run {
    /// What is not in `bytes` yet.
    from: u64,
    to: u64,
    bytes: Vec<u8>,
    /// Where in `bytes` the next record is.
    at: usize,
}

pub(super) struct Spilled {
    pub(super) time: u64,
    pub(super) place: u64,
}

impl Spill {
    /// No runs yet; at most `most` bytes may be on disk at a time.
    pub(super) fn new(most: u64) -> Spill {
        Spill {
            file: None,
            len: 0,
            most,
            runs: Vec::new(),
            next: BinaryHeap::new(),
            is_full: false,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        !self.is_full
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Writes a run: records in order of time, each with its time and place. Later runs have
    /// records that came later. Where that fails, there is no such run, and no room for another.
    pub(super) fn write<'a>(
        &mut self,
        records: impl Iterator<Item = (u64, u64, &'a [u8])>,
    ) -> io::Result<()> {
        let result = self.write_run(records);
        self.is_full |= result.is_err();
        result
    }

    fn write_run<'a>(
        &mut self,
        records: impl Iterator<Item = (u64, u64, &'a [u8])>,
    ) -> io::Result<()> {
        let mut block = Vec::with_capacity(MOST_READ + (1 << 17));
        let (mut first, mut at) = (None, self.len);
        if self.file.is_none() {
            self.file = Some(nameless_file()?);
        }
        let file = self.file.as_ref().expect("it was made");
        for (time, place, bytes) in records {
            first.get_or_insert(time);
            block.write_all(&time.to_ne_bytes())?;
            block.write_all(&place.to_ne_bytes())?;
            let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            block.write_all(&size.to_ne_bytes())?;
            block.write_all(bytes)?;
            if block.len() >= MOST_READ {
                at = write_block(file, at, &mut block, self.most)?;
            }
        }
        at = write_block(file, at, &mut block, self.most)?;
        let Some(first) = first else {
            return Ok(());
        };
        self.next.push(Reverse((first, self.runs.len())));
        self.runs.push(Run {
            from: self.len,
            to: at,
            bytes: Vec::new(),
            at: 0,
        });
        self.len = at;
        Ok(())
    }

    /// The next record of all runs in order of time, if it is not later than `limit`. Its bytes,
    /// with the header, go to `bytes`.
    pub(super) fn next(&mut self, limit: u64, bytes: &mut Vec<u8>) -> io::Result<Option<Spilled>> {
        let first = self.next.peek().filter(|first| first.0.0 <= limit);
        let (Some(&Reverse((time, index))), Some(file)) = (first, &self.file) else {
            return Ok(None);
        };
        self.next.pop();
        let amount = (READ / self.runs.len()).clamp(LEAST_READ, MOST_READ);
        let run = &mut self.runs[index];
        let place = run.take(file, amount, bytes)?;
        if run.is_done() {
            run.bytes = Vec::new();
        } else {
            let time = run.time(file, amount)?;
            self.next.push(Reverse((time, index)));
        }
        if self.next.is_empty() {
            // All was read: what comes next takes the same place on disk.
            self.runs.clear();
            self.len = 0;
        }
        Ok(Some(Spilled { time, place }))
    }
}

fn write_block(file: &File, at: u64, block: &mut Vec<u8>, most: u64) -> io::Result<u64> {
    let end = at + block.len() as u64;
    if end > most {
        return Err(io::Error::other("the limit of the temporary file"));
    }
    file.write_all_at(block, at)?;
    block.clear();
    Ok(end)
}

impl Run {
    fn is_done(&self) -> bool {
        self.from == self.to && self.at == self.bytes.len()
    }

    fn fill(&mut self, file: &File, needed: usize, amount: usize) -> io::Result<()> {
        if self.bytes.len() - self.at >= needed {
            return Ok(());
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        let known = self.bytes.len();
        let left = usize::try_from(self.to - self.from).unwrap_or(usize::MAX);
        let more = amount.max(needed - known).min(left);
        self.bytes.resize(known + more, 0);
        file.read_exact_at(&mut self.bytes[known..], self.from)?;
        self.from += more as u64;
        if self.bytes.len() >= needed {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    fn head(&mut self, file: &File, amount: usize) -> io::Result<[u8; HEAD]> {
        self.fill(file, HEAD, amount)?;
        let head = self.bytes[self.at..].first_chunk();
        head.copied().ok_or(io::ErrorKind::UnexpectedEof.into())
    }

    fn time(&mut self, file: &File, amount: usize) -> io::Result<u64> {
        let [a, b, c, d, e, f, g, h, ..] = self.head(file, amount)?;
        Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
    }

    fn take(&mut self, file: &File, amount: usize, bytes: &mut Vec<u8>) -> io::Result<u64> {
        let head = self.head(file, amount)?;
        let [.., a, b, c, d, e, f, g, h, s, t, u, v] = head;
        let place = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        let size = u32::from_ne_bytes([s, t, u, v]) as usize;
        self.fill(file, HEAD + size, amount)?;
        let from = self.at + HEAD;
        self.at = from + size;
        bytes.clear();
        bytes.extend_from_slice(&self.bytes[from..self.at]);
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn read(spill: &mut Spill, limit: u64) -> Vec<(u64, u64, Vec<u8>)> {
        let mut bytes = Vec::new();
        let mut read = Vec::new();
        while let Some(Spilled { time, place }) = spill.next(limit, &mut bytes).unwrap() {
            read.push((time, place, bytes.clone()));
        }
        read
    }

    #[test]
    fn a_nameless_file_is_in_no_directory() {
        let mut file = nameless_in(Path::new("/tmp")).unwrap();
        file.write_all(b"abc").unwrap();
        let mut read = [0; 3];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"abc");
        assert_eq!(file.metadata().unwrap().nlink(), 0);
        assert!(nameless_in(Path::new("/proc/self/no-such-directory")).is_err());
    }

    #[test]
    fn runs_are_merged_and_equal_times_keep_their_order() {
        let mut spill = Spill::new(MOST);
        assert!(spill.is_empty());
        // More than is read at once.
        let long = vec![7; 3 * LEAST_READ];
        let run = |times: &[u64], place: u64| -> Vec<(u64, u64)> {
            times.iter().map(|&time| (time, place)).collect()
        };
        for (times, place) in [([1, 2, 3], 0), ([2, 2, 9], 1), ([0, 3, 9], 2)] {
            let run = run(&times, place);
            let records = run.iter().map(|&(time, place)| (time, place, &long[..]));
            spill.write(records).unwrap();
        }
        let until_2 = read(&mut spill, 2);
        let order: Vec<(u64, u64)> = until_2.iter().map(|record| (record.0, record.1)).collect();
        assert_eq!(order, [(0, 2), (1, 0), (2, 0), (2, 1), (2, 1)]);
        assert!(until_2.iter().all(|record| record.2 == long));
        // What is written meanwhile comes behind what is equal.
        spill.write([(3, 3, &[5][..])].into_iter()).unwrap();
        let rest = read(&mut spill, u64::MAX);
        let order: Vec<(u64, u64)> = rest.iter().map(|record| (record.0, record.1)).collect();
        assert_eq!(order, [(3, 0), (3, 2), (3, 3), (9, 1), (9, 2)]);
        assert!(spill.is_empty() && spill.runs.is_empty());
    }

    #[test]
    fn a_run_beyond_the_limit_is_dropped() {
        let mut spill = Spill::new(1000);
        let record = [1; 100];
        let run = |n: u64| (0..n).map(|time| (time, 0, &record[..]));
        spill.write(run(5)).unwrap();
        assert!(spill.write(run(5)).is_err());
        assert!(!spill.has_room());
        assert_eq!(read(&mut spill, u64::MAX).len(), 5);
    }

    #[test]
    fn a_record_is_whole_where_less_is_read_at_once() {
        let mut spill = Spill::new(MOST);
        let long = vec![7; 3 * LEAST_READ];
        let runs = (READ / LEAST_READ) as u64;
        for time in 0..runs {
            let record = if time % 100 == 0 { &long[..] } else { &[1] };
            spill.write([(time, 0, record)].into_iter()).unwrap();
        }
        let records = read(&mut spill, u64::MAX);
        assert_eq!(records.len() as u64, runs);
        assert!(records.iter().step_by(100).all(|record| record.2 == long));
    }
}
