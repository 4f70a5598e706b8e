//! The bytes of a file, read piece by piece into owned buffers.
//!
//! Files are never mapped into memory: a mapped file that another process cuts short kills the
//! reader with SIGBUS. Every length is held against the size of the file before memory is asked
//! for.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::Error;

/// The most bytes that one piece may have.
pub(super) const PIECE_LIMIT: u64 = 1 << 30;

/// Where the bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    /// An open regular file and its size when it was opened.
    File { file: File, size: u64 },
    /// Bytes already in memory.
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a regular file. `O_NONBLOCK` keeps a FIFO from holding us up before we can see what
    /// it is.
    pub(super) fn open(path: &Path) -> Result<Source, Error> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Error::NotRegular);
        }
        Ok(Source::File {
            file,
            size: metadata.len(),
        })
    }

    /// The size in bytes.
    pub(super) fn size(&self) -> u64 {
        match self {
            Source::File { size, .. } => *size,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Whether it has `length` bytes from `offset` on, and those are not too many for a piece.
    pub(super) fn check(&self, what: &'static str, offset: u64, length: u64) -> Result<(), Error> {
        let end = offset.saturating_add(length);
        if end > self.size() {
            return Err(Error::Truncated {
                what,
                needed: end,
                size: self.size(),
            });
        }
        if length > PIECE_LIMIT {
            return Err(Error::TooLarge {
                what: what.to_owned(),
                size: length,
                limit: PIECE_LIMIT,
            });
        }
        Ok(())
    }

    /// `length` bytes from `offset` on; `what` names them in errors.
    pub(super) fn read(
        &self,
        what: &'static str,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Error> {
        self.check(what, offset, length)?;
        let length = usize::try_from(length).expect("the limit of a piece fits usize");
        match self {
            Source::File { file, .. } => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
            Source::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let piece = bytes.get(start..start.saturating_add(length));
                Ok(piece.unwrap_or_default().to_vec())
            }
        }
    }

    /// The same, into memory that is there already and may be longer.
    pub(super) fn read_into<'a>(
        &self,
        what: &'static str,
        offset: u64,
        length: u64,
        into: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Error> {
        self.check(what, offset, length)?;
        let length = usize::try_from(length).expect("the limit of a piece fits usize");
        if into.len() < length {
            into.resize(length, 0);
        }
        let bytes = into.get_mut(..length).unwrap_or_default();
        match self {
            Source::File { file, .. } => file.read_exact_at(bytes, offset)?,
            Source::Memory(all) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let piece = all.get(start..start.saturating_add(length));
                bytes.copy_from_slice(piece.unwrap_or_default());
            }
        }
        Ok(bytes)
    }
}
