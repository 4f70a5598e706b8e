//! The files that are mapped without a build ID: what they are when they are mapped, and of what
//! they consist.
//!
//! A file is looked at as soon as its mapping is read from the buffers. What it consists of takes
//! longer to find out; that waits for the end of the recording, when the file is still the same or
//! is not hashed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use crate::base::{BuildId, FileContent, FileId};
use crate::files::{self, LastLink, OpenedFile, Root};
use crate::perfdata::MappedFile;

// The most files that are looked at.
const FILES: usize = 10_000;
// The most bytes that are hashed, of all files.
const HASHED: u64 = 4 << 30;

#[derive(Clone, Debug, Default)]
pub(in crate::sampler) struct MappedFiles {
    /// Those that need not be looked at again.
    settled: FxHashSet<(Vec<u8>, FileId)>,
    /// Each as it was at first, with a process that has mapped it.
    seen: Vec<(i32, MappedFile)>,
}

impl MappedFiles {
    /// Looks at a file that a process has mapped. One whose path leads elsewhere by now is left
    /// out. Returns its build ID if it has one that the kernel did not record.
    pub(in crate::sampler) fn look(
        &mut self,
        pid: i32,
        path: &[u8],
        id: FileId,
    ) -> Option<BuildId> {
        let key = (path.to_vec(), id);
        if self.settled.len() >= FILES || !self.settled.insert(key) {
            return None;
        }
        let opened = open(pid, path, id)?;
        let build_id = files::find_in_notes(&opened.file, BuildId::in_notes);
        if build_id.is_some() {
            return build_id;
        }
        let mapped = MappedFile {
            path: path.to_vec(),
            status: files::status(&opened),
            content: files::find_in_notes(&opened.file, FileContent::go_in_notes),
        };
        self.seen.push((pid, mapped));
        None
    }

    /// The files, with what they consist of as far as they are still what they were.
    pub(in crate::sampler) fn with_content(&self) -> Vec<MappedFile> {
        let mut left = HASHED;
        let mut all: Vec<MappedFile> = self
            .seen
            .iter()
            .map(|(pid, file)| {
                let mut file = file.clone();
                if file.content.is_none() && file.status.size <= left {
                    left -= file.status.size;
                    file.content = content(*pid, &file);
                }
                file
            })
            .collect();
        all.sort_by(|one, other| {
            let key = |file: &MappedFile| (file.status.id.device, file.status.id.inode);
            (&one.path, key(one)).cmp(&(&other.path, key(other)))
        });
        all
    }

    pub(in crate::sampler) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.seen.iter().map(|(_, file)| &*file.path)
    }
}

/// What a file consists of, if it is in the state in which it was mapped before and after it was
/// read.
fn content(pid: i32, file: &MappedFile) -> Option<FileContent> {
    let opened = open(pid, &file.path, file.status.id)?;
    if files::status(&opened) != file.status {
        return None;
    }
    let content = files::content(&opened.file)?;
    let again = open(pid, &file.path, file.status.id)?;
    (files::status(&again) == file.status).then_some(content)
}

/// Opens the file that a process has mapped, by its path as the process or we see it.
fn open(pid: i32, path: &[u8], id: FileId) -> Option<OpenedFile> {
    let path = Path::new(OsStr::from_bytes(path));
    let theirs = Root::at(&PathBuf::from(format!("/proc/{pid}/root")));
    [theirs, Root::default()].into_iter().find_map(|root| {
        let opened = root.open(path, LastLink::Follow).ok()?;
        id.may_be(files::status(&opened).id).then_some(opened)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_has_content_as_long_as_it_is_not_written() {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let directory = std::env::temp_dir().join(format!("proftool-mapped-files-{now}"));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("app");
        fs::write(&path, b"first").unwrap();
        let id = files::status(&files::open_named(&path).unwrap()).id;
        let mut mapped = MappedFiles::default();
        let (pid, name) = (std::process::id() as i32, path.as_os_str().as_bytes());
        mapped.look(pid, name, id);
        let other = FileId {
            inode: id.inode + 1,
            ..id
        };
        mapped.look(pid, name, other);
        let first = mapped.with_content();
        assert_eq!(first.len(), 1);
        assert!(matches!(first[0].content, Some(FileContent::Hash(_))));
        fs::write(&path, b"again, longer").unwrap();
        let second = mapped.with_content();
        assert_eq!(
            (second[0].status, &second[0].content),
            (first[0].status, &None)
        );
        fs::remove_dir_all(directory).unwrap();
    }
}
