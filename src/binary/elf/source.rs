//! The bytes of a file, read piece by piece into owned buffers.
//!
//! Files are never mapped into memory: a mapped file that another process cuts short kills the
//! reader with SIGBUS. Every length is checked against the size of the file before memory is asked
//! for, and holes of a sparse file, which cost nothing on the disk, against its [`Budget`].

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use crate::base::{FileContent, FileStatus};
use crate::binary::Error;
use crate::binary::budget::{self, Budget};
use crate::files::{self, OpenedFile};

// The most bytes that one piece may have.
pub(in crate::binary) const PIECE_LIMIT: u64 = 1 << 30;
// How many bytes a byte of a hole counts: a table that is made of it may be so much larger.
const HOLE_FACTOR: u64 = 4;

// A file and its state, as far as the system tells: where it is, its size, and when it was last
// changed, which nobody can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub(in crate::binary) struct FileState {
    pub(in crate::binary) device: u64,
    pub(in crate::binary) inode: u64,
    pub(in crate::binary) size: u64,
    pub(in crate::binary) seconds: i64,
    pub(in crate::binary) nanoseconds: i64,
}

#[derive(Debug)]
pub(in crate::binary) enum Source {
    File {
        file: File,
        // For errors.
        path: PathBuf,
        size: u64,
        // Device and inode, which tell it from every other file.
        identity: (u64, u64),
        modified: Option<SystemTime>,
        // When it was last changed, in seconds and nanoseconds.
        changed: (i64, i64),
        owner: u32,
        // Its state as recorders see it.
        status: FileStatus,
        // What counts the bytes that are read, if most of the file is holes.
        metered: Option<Arc<Budget>>,
    },
    Memory(Vec<u8>),
}

impl Source {
    // Its share is added to the budget.
    pub(in crate::binary) fn file(opened: OpenedFile, budget: &Arc<Budget>) -> Source {
        let status = files::status(&opened);
        let OpenedFile {
            file,
            metadata,
            path,
        } = opened;
        budget.add_file(&metadata);
        Source::File {
            file,
            path,
            size: metadata.len(),
            identity: (metadata.dev(), metadata.ino()),
            modified: metadata.modified().ok(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            owner: metadata.uid(),
            status,
            metered: budget::is_sparse(&metadata).then(|| budget.clone()),
        }
    }

    pub(in crate::binary) fn size(&self) -> u64 {
        match self {
            Source::File { size, .. } => *size,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    // Holes are no input.
    pub(in crate::binary) fn is_sparse(&self) -> bool {
        matches!(
            self,
            Source::File {
                metered: Some(_),
                ..
            }
        )
    }

    // Device and inode.
    pub(in crate::binary) fn identity(&self) -> Option<(u64, u64)> {
        match self {
            Source::File { identity, .. } => Some(*identity),
            Source::Memory(_) => None,
        }
    }

    // The state that the file was opened in. `None` for bytes in memory.
    pub(in crate::binary) fn state(&self) -> Option<FileState> {
        match self {
            Source::File {
                identity: (device, inode),
                size,
                changed: (seconds, nanoseconds),
                ..
            } => Some(FileState {
                device: *device,
                inode: *inode,
                size: *size,
                seconds: *seconds,
                nanoseconds: *nanoseconds,
            }),
            Source::Memory(_) => None,
        }
    }

    // The file's state as recorders see it. `None` for bytes in memory.
    pub(in crate::binary) fn status(&self) -> Option<FileStatus> {
        match self {
            Source::File { status, .. } => Some(*status),
            Source::Memory(_) => None,
        }
    }

    // `None` for bytes in memory, and where it takes too long to find out.
    pub(in crate::binary) fn content(&self) -> Option<FileContent> {
        match self {
            // Its holes would be read as if they were a file's.
            Source::File {
                metered: Some(_), ..
            }
            | Source::Memory(_) => None,
            Source::File { file, .. } => files::content(file),
        }
    }

    pub(in crate::binary) fn modified(&self) -> Option<SystemTime> {
        match self {
            Source::File { modified, .. } => *modified,
            Source::Memory(_) => None,
        }
    }

    // `None` for bytes in memory.
    pub(in crate::binary) fn owner(&self) -> Option<u32> {
        match self {
            Source::File { owner, .. } => Some(*owner),
            Source::Memory(_) => None,
        }
    }

    // Whether it has `length` bytes from `offset` on, and those are not too many for a piece.
    pub(in crate::binary) fn check(
        &self,
        what: &'static str,
        offset: u64,
        length: u64,
    ) -> Result<(), Error> {
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

    // `what` names the bytes in errors.
    pub(in crate::binary) fn read(
        &self,
        what: &'static str,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Error> {
        let length = self.admit(what, offset, length)?;
        match self {
            Source::File { file, path, .. } => {
                let mut bytes = Vec::new();
                reserve(what, &mut bytes, length)?;
                while bytes.len() < length {
                    let at = offset.saturating_add(bytes.len() as u64);
                    let spare = rustix::buffer::spare_capacity(&mut bytes);
                    match rustix::io::pread(file, spare, at) {
                        Ok(0) => {
                            let short = std::io::ErrorKind::UnexpectedEof;
                            return Err(Error::at(path)(short.into()));
                        }
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(Error::at(path)(error.into())),
                    }
                }
                bytes.truncate(length);
                Ok(bytes)
            }
            Source::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let piece = bytes.get(start..start.saturating_add(length));
                Ok(piece.unwrap_or_default().to_vec())
            }
        }
    }

    // Into memory that is there already and may be longer.
    pub(in crate::binary) fn read_into<'a>(
        &self,
        what: &'static str,
        offset: u64,
        length: u64,
        into: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Error> {
        let length = self.admit(what, offset, length)?;
        if into.len() < length {
            into.resize(length, 0);
        }
        let bytes = into.get_mut(..length).unwrap_or_default();
        match self {
            Source::File { file, path, .. } => {
                file.read_exact_at(bytes, offset).map_err(Error::at(path))?
            }
            Source::Memory(all) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let piece = all.get(start..start.saturating_add(length));
                bytes.copy_from_slice(piece.unwrap_or_default());
            }
        }
        Ok(bytes)
    }

    // Checks that a piece may be read, and counts it where the file is sparse.
    fn admit(&self, what: &'static str, offset: u64, length: u64) -> Result<usize, Error> {
        self.check(what, offset, length)?;
        if let Source::File {
            metered: Some(budget),
            ..
        } = self
            && !budget.take_for_table(length.saturating_mul(HOLE_FACTOR))
        {
            return Err(Error::BeyondShare {
                what: what.to_owned(),
                size: length,
            });
        }
        Ok(usize::try_from(length).expect("the limit of a piece fits usize"))
    }
}

// It is an error if the system has no memory for the bytes.
pub(in crate::binary) fn reserve(
    what: &str,
    bytes: &mut Vec<u8>,
    length: usize,
) -> Result<(), Error> {
    bytes
        .try_reserve_exact(length)
        .map_err(|_| Error::OutOfMemory {
            what: what.to_owned(),
            size: length as u64,
        })
}
