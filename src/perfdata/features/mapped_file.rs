//! The section with the mapped files that have no build ID.
//!
//! Only proftool writes and reads it. Numbers are of the machine's byte order.
//!
//! ```text
//! u32 count, then for each:
//!   string path                         u32 length, bytes
//!   u32 major, u32 minor, u64 inode, u32 generation
//!   u64 size, u64 modified, u64 changed
//!   u32 kind: 0 content unknown; 1 Go's build ID: u32 length, bytes; 2 hash: u64 low, u64 high
//! ```

use super::super::cursor::Cursor;
use super::super::error::Flaw;
use crate::base::{FileContent, FileId, FileStatus};

/// A file that was mapped, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// The path as the record of the mapping has it.
    pub path: Vec<u8>,
    pub status: FileStatus,
    /// What it consisted of, where the recorder could still see that.
    pub content: Option<FileContent>,
}

impl MappedFile {
    /// The most bytes of a file's entry apart from its path.
    pub const ENTRY: u64 = 4 + 20 + 24 + 8 + 256;
    // The longest build ID of Go that is kept; Go's own have 83 bytes.
    const GO_BUILD_ID: usize = 256;

    pub(super) fn read(mut c: Cursor<'_>) -> Result<Vec<MappedFile>, Flaw> {
        let count = c.u32("the number of files")?;
        // Each takes 60 bytes and more: a count beyond that ends in an error.
        (0..count).map(|_| MappedFile::read_one(&mut c)).collect()
    }

    fn read_one(c: &mut Cursor<'_>) -> Result<MappedFile, Flaw> {
        let path = bytes(c, "the path of a file")?.to_vec();
        let status = FileStatus {
            id: FileId {
                device: (c.u32("a file's device")?, c.u32("a file's device")?),
                inode: c.u64("a file's inode")?,
                generation: c.u32("a file's generation")?,
            },
            size: c.u64("a file's size")?,
            modified: c.u64("the time of a file")?.cast_signed(),
            changed: c.u64("the time of a file")?.cast_signed(),
        };
        let content = match c.u32("a file's content")? {
            0 => None,
            1 => Some(FileContent::GoBuildId(bytes(c, "a build ID of Go")?.into())),
            2 => {
                let [low, high] = [c.u64("a file's hash")?, c.u64("a file's hash")?];
                Some(FileContent::Hash(u128::from(high) << 64 | u128::from(low)))
            }
            kind => {
                return Err(Flaw::Value {
                    what: "the kind of a file's content",
                    value: u64::from(kind),
                });
            }
        };
        Ok(MappedFile {
            path,
            status,
            content,
        })
    }

    pub(in crate::perfdata) fn section(files: &[MappedFile]) -> Vec<u8> {
        let mut body = (files.len() as u32).to_ne_bytes().to_vec();
        let put_bytes = |body: &mut Vec<u8>, bytes: &[u8]| {
            body.extend((bytes.len() as u32).to_ne_bytes());
            body.extend(bytes);
        };
        for MappedFile {
            path,
            status,
            content,
        } in files
        {
            put_bytes(&mut body, path);
            let id = status.id;
            body.extend(id.device.0.to_ne_bytes());
            body.extend(id.device.1.to_ne_bytes());
            body.extend(id.inode.to_ne_bytes());
            body.extend(id.generation.to_ne_bytes());
            body.extend(status.size.to_ne_bytes());
            body.extend(status.modified.to_ne_bytes());
            body.extend(status.changed.to_ne_bytes());
            match content {
                Some(FileContent::GoBuildId(id)) if id.len() <= MappedFile::GO_BUILD_ID => {
                    body.extend(1u32.to_ne_bytes());
                    put_bytes(&mut body, id);
                }
                Some(FileContent::Hash(hash)) => {
                    body.extend(2u32.to_ne_bytes());
                    body.extend((*hash as u64).to_ne_bytes());
                    body.extend(((*hash >> 64) as u64).to_ne_bytes());
                }
                _ => body.extend(0u32.to_ne_bytes()),
            }
        }
        body
    }
}

fn bytes<'a>(c: &mut Cursor<'a>, what: &'static str) -> Result<&'a [u8], Flaw> {
    let length = c.u32(what)?;
    c.take(u64::from(length), what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::split::NATIVE;

    #[test]
    fn what_is_written_is_read_again() {
        let file = |content| MappedFile {
            path: b"/srv/app".to_vec(),
            status: FileStatus {
                id: FileId {
                    device: (8, 1),
                    inode: 5,
                    generation: u32::MAX,
                },
                size: 7,
                modified: -1,
                changed: i64::MAX,
            },
            content,
        };
        let go = FileContent::GoBuildId(b"a/b".as_slice().into());
        let hash = FileContent::Hash(1 << 100 | 3);
        let files = [None, Some(go), Some(hash)].map(file);
        let section = MappedFile::section(&files);
        let read = |bytes| MappedFile::read(Cursor::new(bytes, NATIVE));
        assert_eq!(read(&section), Ok(files.to_vec()));
        for end in 0..section.len() {
            assert!(read(&section[..end]).is_err(), "{end}");
        }
        assert!(read(&[0xff; 8]).is_err());
    }
}
