//! Build IDs from ELF notes, for kernels that do not report them with the mappings.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::base::BuildId;
use crate::files::{self, LastLink, Root};

/// The build id of a file of this machine's byte order. Only a regular file is read: opening
/// another one could wait for ever.
pub(in crate::sampler) fn build_id_of(path: &Path) -> Option<BuildId> {
    build_id_below(&Root::default(), path)
}

/// The build ID of the file at a path as another process sees it, which starts at the root of that
/// process.
pub(in crate::sampler) fn build_id_below(root: &Root, path: &Path) -> Option<BuildId> {
    in_file(&root.open(path, LastLink::Follow).ok()?.file)
}

/// The build ID of a file with this inode, to which the path led before.
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

/// The build ID of the file that a link of `/proc/PID` leads to, if it has this inode where one is
/// stated.
pub(in crate::sampler) fn build_id_of_link(link: &Path, inode: Option<u64>) -> Option<BuildId> {
    let opened = files::open_link(link).ok()?;
    let is_meant = inode.is_none_or(|inode| opened.metadata.ino() == inode);
    is_meant.then(|| in_file(&opened.file)).flatten()
}

fn in_file(file: &File) -> Option<BuildId> {
    files::find_in_notes(file, BuildId::in_notes)
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
