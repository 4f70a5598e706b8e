//! Where the bytes come from: a file, a pipe, or memory.
//!
//! Files are read into buffers of our own. They are never mapped into memory: a file
//! that shrinks while it is read would end the process with SIGBUS.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use super::error::Error;
use super::spill;

// `O_NONBLOCK` of Linux on all architectures but alpha, mips, parisc and sparc: opening a FIFO
// returns at once, and the file is then refused.
const O_NONBLOCK: i32 = 0o4000;

// A whole file on a pipe is held in memory up to this size, on disk beyond it.
const PIPED_IN_MEMORY: u64 = 16 << 20;

// What the standard library wants to have left of a buffer so as not to make it larger.
const PROBE: usize = 64;

pub(super) enum Source {
    /// A regular file of this many bytes, and when it was written, where it has been somewhere
    /// before.
    File {
        file: File,
        len: u64,
        written: Option<SystemTime>,
    },
    Memory(Vec<u8>),
    /// A pipe, which is read once from front to back; `at` is the number of bytes read so far.
    Stream {
        stream: Box<dyn Read>,
        at: u64,
    },
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Source, Error> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open(path)?;
        Source::regular(file)
    }

    /// Takes a regular file that is open; others are refused.
    pub(super) fn regular(file: File) -> Result<Source, Error> {
        let metadata = file.metadata()?;
        let kind = metadata.file_type();
        let kind = if kind.is_file() {
            return Ok(Source::File {
                len: metadata.len(),
                written: metadata.modified().ok(),
                file,
            });
        } else if kind.is_dir() {
            "a directory"
        } else if kind.is_fifo() {
            "a named pipe"
        } else if kind.is_char_device() || kind.is_block_device() {
            "a device"
        } else {
            "a socket"
        };
        Err(Error::NotRegular { kind })
    }

    /// A pipe that turned out to hold a file with sections, as one that can be read at any place:
    /// what has to be known of the records (the machine, the builds of files) stands behind them.
    /// Its header, `head`, was read already.
    pub(super) fn into_seekable(self, head: Vec<u8>) -> Result<Source, Error> {
        let Source::Stream { mut stream, .. } = self else {
            return Ok(self);
        };
        let mut bytes = head;
        let got = (&mut stream)
            .take(PIPED_IN_MEMORY)
            .read_to_end(&mut bytes)?;
        if (got as u64) < PIPED_IN_MEMORY {
            return Ok(Source::Memory(bytes));
        }
        let mut kept = || {
            let mut file = spill::nameless_file()?;
            file.write_all(&bytes)?;
            let more = io::copy(&mut (&mut stream).take(spill::MOST), &mut file)?;
            let len = bytes.len() as u64 + more;
            if more == spill::MOST {
                Err(io::Error::other("it is larger than 64 GiB"))
            } else {
                Ok((file, len))
            }
        };
        let (file, len) = kept().map_err(|error| {
            let text = format!("the file on the pipe could not be kept: {error}");
            io::Error::other(text)
        })?;
        Ok(Source::File {
            file,
            len,
            written: None,
        })
    }

    pub(super) fn len(&self) -> Option<u64> {
        match self {
            Source::File { len, .. } => Some(*len),
            Source::Memory(bytes) => Some(bytes.len() as u64),
            Source::Stream { .. } => None,
        }
    }

    pub(super) fn written(&self) -> Option<SystemTime> {
        match self {
            Source::File { written, .. } => *written,
            Source::Memory(_) | Source::Stream { .. } => None,
        }
    }

    /// Appends up to `n` bytes from `offset` to `buffer`; fewer at the end. A stream passes over
    /// what lies before `offset`, and cannot go back.
    pub(super) fn append(
        &mut self,
        offset: u64,
        n: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<usize> {
        match self {
            Source::Memory(bytes) => {
                let from = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let to = from.saturating_add(n).min(bytes.len());
                buffer.extend_from_slice(&bytes[from..to]);
                Ok(to - from)
            }
            Source::File { file, len, .. } => {
                let there = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
                let n = n.min(there);
                file.seek(SeekFrom::Start(offset))?;
                // With room for all of it and a little more nothing is moved; and what is read into
                // was not filled with zeros before.
                buffer.reserve_exact(n.saturating_add(PROBE));
                file.take(n as u64).read_to_end(buffer)
            }
            Source::Stream { stream, at } => {
                if *at > offset {
                    return Err(io::Error::other("a pipe cannot be read twice"));
                }
                *at += io::copy(&mut stream.take(offset - *at), &mut io::sink())?;
                let got = stream.take(n as u64).read_to_end(buffer)?;
                *at += got as u64;
                Ok(got)
            }
        }
    }

    /// Exactly the bytes of `offset..offset + len`, or what there is of them.
    pub(super) fn section(&mut self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let there = self
            .len()
            .map_or(len, |end| len.min(end.saturating_sub(offset)));
        let mut buffer = Vec::new();
        self.append(offset, usize::try_from(there).unwrap_or(0), &mut buffer)?;
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_on_a_pipe_is_read_whole_from_disk() {
        for (size, in_memory) in [(1000, true), (PIPED_IN_MEMORY + 1000, false)] {
            let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            let stream = Box::new(io::Cursor::new(bytes[16..].to_vec()));
            let pipe = Source::Stream { stream, at: 16 };
            let mut kept = pipe.into_seekable(bytes[..16].to_vec()).unwrap();
            assert_eq!(matches!(kept, Source::Memory(_)), in_memory);
            assert_eq!((kept.len(), kept.written()), (Some(size), None));
            assert!(kept.section(0, size).unwrap() == bytes);
            assert_eq!(
                kept.section(size - 10, 100).unwrap(),
                bytes[bytes.len() - 10..]
            );
        }
    }
}
