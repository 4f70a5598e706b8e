//! What a recording may take the place of, and what may be kept as FILE.old.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::perfdata::is_recording;
use crate::sampler::error::Error;
use crate::sampler::status::field;

// The bytes that tell a recording from other files.
const HEAD: u64 = 8;
const EXECUTABLE: u32 = 0o111;
// The bit of a directory in which users cannot rename each other's files.
const STICKY: u32 = 0o1000;
// `CAP_FOWNER`: to act on any file as its owner may.
const CAP_FOWNER: u32 = 3;

// A recording takes the place of another, which is kept as FILE.old. In that of a device, a
// directory, a program, such as the one that is to be recorded, or its source it would be a
// mistake.
pub(super) fn check_target(target: &Path) -> io::Result<()> {
    let refuse = |what| Err(io::Error::other(what));
    if target.file_name().is_none() {
        return refuse("it is a directory");
    }
    // A symbolic link is replaced like a file: the link is kept as FILE.old, and what it leads to
    // is not touched.
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_dir() => refuse("it is a directory"),
        Ok(found) if found.is_file() || found.is_symlink() => {
            if is_program(target) {
                return refuse("it exists and is a program");
            }
            // What is called as recordings are is kept as FILE.old.
            let is_called_so = target.extension().is_some_and(|it| it == "data");
            if !is_called_so && is_something_else(target) {
                return refuse("it exists and is no recording");
            }
            Ok(())
        }
        Ok(found) if found.file_type().is_fifo() => {
            refuse("it is a pipe; a recording needs a file")
        }
        Ok(found) if found.file_type().is_socket() => {
            refuse("it is a socket; a recording needs a file")
        }
        Ok(_) => refuse("it is a device; a recording needs a file"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a path leads to a program, a library or an object file, or to no regular file.
fn is_program(path: &Path) -> bool {
    let Ok(found) = fs::metadata(path) else {
        // A link that leads nowhere.
        return false;
    };
    !found.is_file() || head(path).is_ok_and(|head| head.starts_with(b"\x7fELF")) || {
        found.mode() & EXECUTABLE != 0 && found.len() > 0
    }
}

// Whether a file, after all links, has contents that are no recording. One that cannot be read
// counts as a recording of another user, unless it can be executed.
fn is_something_else(path: &Path) -> bool {
    match head(path) {
        Ok(head) => is_program(path) || !head.is_empty() && !is_recording(&head),
        Err(_) => is_program(path),
    }
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    file.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

// Whether what is at `target` can become `old`. `part` is a file that was just made in the
// same directory: its owner is who will rename.
pub(super) fn check_earlier(target: &Path, old: &Path, part: &File) -> Result<(), Error> {
    let Ok(earlier) = fs::symlink_metadata(target) else {
        return Ok(());
    };
    let refuse = |reason: &str| {
        Err(Error::EarlierStays {
            path: target.to_owned(),
            old: old.to_owned(),
            reason: reason.to_owned(),
        })
    };
    let replaced = fs::symlink_metadata(old).ok();
    if replaced.as_ref().is_some_and(Metadata::is_dir) {
        return refuse("that is a directory");
    }
    if replaced.is_some() && is_something_else(old) {
        return refuse("that exists and is no recording");
    }
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (Ok(directory), Ok(part)) = (fs::metadata(directory), part.metadata()) else {
        return Ok(());
    };
    let may_rename = |file: &Metadata| {
        directory.mode() & STICKY == 0
            || [file.uid(), directory.uid()].contains(&part.uid())
            || may_act_as_owner()
    };
    if !may_rename(&earlier) || replaced.is_some_and(|replaced| !may_rename(&replaced)) {
        return refuse("in this directory only its owner may rename a file");
    }
    Ok(())
}

fn may_act_as_owner() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = field(&status, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok());
    // Where it cannot be known, the attempt will tell.
    effective.is_none_or(|bits| bits >> CAP_FOWNER & 1 == 1)
}
