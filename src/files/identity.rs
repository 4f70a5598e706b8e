//! What tells a file from another one that has, or had, its path.
#![expect(
    unsafe_code,
    reason = "the generation of an inode has no safe interface"
)]

use std::ffi::c_long;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::ioctl::{Getter, ioctl, opcode};
use twox_hash::XxHash3_128;

use super::OpenedFile;
use super::elf_notes;
use crate::base::{FileContent, FileId, FileStatus};

const PIECE: usize = 1 << 20;
// The largest file that is hashed, in bytes. It takes a fifth of a second.
const HASHED: u64 = 1 << 30;

/// The status of a file when it was opened.
///
/// ```
/// use proftool::files::{open_named, status};
/// let program = std::env::current_exe().unwrap();
/// let opened = open_named(&program).unwrap();
/// assert_eq!(status(&opened).size, std::fs::metadata(&program).unwrap().len());
/// ```
pub fn status(opened: &OpenedFile) -> FileStatus {
    let metadata = &opened.metadata;
    let device = metadata.dev();
    FileStatus {
        id: FileId {
            device: (rustix::fs::major(device), rustix::fs::minor(device)),
            inode: metadata.ino(),
            generation: generation(&opened.file),
        },
        size: metadata.len(),
        modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// What a file consists of. `None` if it cannot be read, or is too large to be hashed.
pub fn content(file: &File) -> Option<FileContent> {
    elf_notes::find(file, FileContent::go_in_notes).or_else(|| hash(file))
}

fn hash(file: &File) -> Option<FileContent> {
    let size = file.metadata().ok()?.len();
    if size > HASHED {
        return None;
    }
    let mut hasher = XxHash3_128::default();
    let mut piece = vec![0; PIECE.min(usize::try_from(size).ok()?)];
    let mut at = 0;
    while at < size {
        let length = (piece.len() as u64).min(size - at);
        let bytes = &mut piece[..length as usize];
        file.read_exact_at(bytes, at).ok()?;
        hasher.write(bytes);
        at += length;
    }
    Some(FileContent::Hash(hasher.finish_128()))
}

// The generation of a file's inode; 0 where the file system does not tell it. An inode of a file
// that was removed is soon used for another one: the next build may well have it.
fn generation(file: &File) -> u32 {
    const FS_IOC_GETVERSION: rustix::ioctl::Opcode = opcode::read::<c_long>(b'v', 1);
    // SAFETY: the kernel writes an int, or on some file systems a long, through the pointer, which
    // is to a long. Regular files have no other meaning for this number.
    let found = unsafe {
        ioctl(
            file,
            Getter::<FS_IOC_GETVERSION, [u32; size_of::<c_long>() / 4]>::new(),
        )
    };
    found.map_or(0, |words| {
        if cfg!(target_endian = "big") {
            0
        } else {
            words[0]
        }
    })
}

fn nanoseconds(seconds: i64, more: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::open_named;

    #[test]
    fn a_copy_is_another_file_of_the_same_content() {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let directory = std::env::temp_dir().join(format!("proftool-identity-{now}"));
        std::fs::create_dir_all(&directory).unwrap();
        let [one, two] = ["one", "two"].map(|name| directory.join(name));
        std::fs::write(&one, vec![7; PIECE + 1]).unwrap();
        std::fs::copy(&one, &two).unwrap();
        let opened = [&one, &two].map(|path| open_named(path).unwrap());
        assert_ne!(status(&opened[0]).id, status(&opened[1]).id);
        let contents = [0, 1].map(|at| content(&opened[at].file));
        assert!(contents[0].is_some());
        assert_eq!(contents[0], contents[1]);
        std::fs::write(&two, vec![8; PIECE + 1]).unwrap();
        assert_ne!(content(&opened[0].file), content(&opened[1].file));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
