//! Build IDs from ELF notes, for kernels that do not report them with the mappings.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::base::BuildId;
use crate::files::{self, LastLink, Root};

const PT_NOTE: u32 = 4;
/// Notes are small; more than this is not read of any file.
const NOTES_LIMIT: u64 = 1 << 16;

/// The build id of a file of this machine's byte order. Only a regular file is read: opening
/// another one could wait for ever.
pub(in crate::sampler) fn build_id_of(path: &Path) -> Option<BuildId> {
    build_id_below(&Root::default(), path)
}

/// The same for a path as another process sees it, which starts at the root of that process.
pub(in crate::sampler) fn build_id_below(root: &Root, path: &Path) -> Option<BuildId> {
    in_file(&root.open(path, LastLink::Follow).ok()?.file)
}

/// The same for a file with this inode, to which the path led before.
pub(in crate::sampler) fn build_id_of_inode(
    root: &Root,
    path: &Path,
    inode: u64,
) -> Option<BuildId> {
    let opened = root.open(path, LastLink::Follow).ok()?;
    (opened.metadata.ino() == inode)
        .then(|| in_file(&opened.file))
        .flatten()
}

/// The same for the file that a link of `/proc/PID` leads to, if it has this inode where one is stated.
pub(in crate::sampler) fn build_id_of_link(link: &Path, inode: Option<u64>) -> Option<BuildId> {
    let opened = files::open_link(link).ok()?;
    let is_meant = inode.is_none_or(|inode| opened.metadata.ino() == inode);
    is_meant.then(|| in_file(&opened.file)).flatten()
}

fn in_file(file: &File) -> Option<BuildId> {
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    let class = header[4];
    if !header.starts_with(b"\x7fELF") || !matches!(class, 1 | 2) {
        return None;
    }
    // Elf64: e_phoff at 32, e_phentsize at 54, e_phnum at 56; p_offset at 8, p_filesz at 32.
    // Elf32: e_phoff at 28, e_phentsize at 42, e_phnum at 44; p_offset at 4, p_filesz at 16.
    let (word, table, sizes, offset_at, size_at) = match class {
        2 => (8, 32, 54, 8, 32),
        _ => (4, 28, 42, 4, 16),
    };
    let start = number(&header, table, word)?;
    let entry_size = number(&header, sizes, 2)?;
    let entries = number(&header, sizes + 2, 2)?;
    if entry_size < 32 || entry_size * entries > NOTES_LIMIT {
        return None;
    }
    let mut segments = vec![0; (entry_size * entries) as usize];
    file.read_exact_at(&mut segments, start).ok()?;
    segments
        .chunks_exact(entry_size as usize)
        .filter(|segment| number(segment, 0, 4) == Some(u64::from(PT_NOTE)))
        .find_map(|segment| {
            let size = number(segment, size_at, word)?.min(NOTES_LIMIT);
            let mut notes = vec![0; size as usize];
            file.read_exact_at(&mut notes, number(segment, offset_at, word)?)
                .ok()?;
            BuildId::in_notes(&notes)
        })
}

/// The number of `size` bytes at `at`, in this machine's byte order.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?;
    Some(match size {
        2 => u64::from(u16::from_ne_bytes(*bytes.first_chunk()?)),
        4 => u64::from(u32::from_ne_bytes(*bytes.first_chunk()?)),
        _ => u64::from_ne_bytes(*bytes.first_chunk()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_elf_have_no_build_id() {
        assert_eq!(build_id_of(Path::new("/dev/null")), None);
        assert_eq!(build_id_of(Path::new("/")), None);
        assert_eq!(build_id_of(Path::new("/proc/version")), None);
    }
}
