//! Makes the memory that is shared with programs, so that nobody can exchange it or take it away.
//!
//! ```text
//!   memfd of the recorder ─▶ sealed ─▶ inherited by a command, or opened by the process itself
//!                                        │ it may not: it has another user, or another /proc
//!                                        ▼
//!   memfd of the process ─▶ pidfd_getfd ─▶ new and empty? ─▶ sealed
//! ```
//!
//! A name below `/proc/PID/fd` is never opened. Another process may share the descriptors of that
//! one, and is not stopped with it: it can put any file under a number, also one that it may not
//! write (`O_PATH`), and root would write there. A descriptor that is taken (pidfd_getfd(2)) is the
//! process's own, with no other rights than it has. What is mapped by such a number is checked
//! before any code leads there ([`Place::check`](super::place::Place::check)).
//!
//! The size is fixed (`F_ADD_SEALS` in fcntl(2)): to touch a mapped page behind the end of a file
//! is SIGBUS, which would end the recorder.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FileType, MemfdFlags, SealFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Resource};

use super::install::Stopped;
use crate::patch::FileIdentity;

// The name of the memory, by which readers of recordings know stubs.
pub(super) const NAME: &CStr = c"proftool-calls";
// Its size. Only pages that are written take memory.
const SIZE: u64 = 1 << 36;
const PAGE: u64 = 4096;
// `PIDFD_THREAD` (Linux 6.9): of a thread, whose descriptors may be others than those of the first.
const OF_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());

/// Makes the memory. Its descriptor stays open in what this process starts.
pub(super) fn make() -> io::Result<File> {
    let memory = rustix::fs::memfd_create(NAME, MemfdFlags::ALLOW_SEALING)?;
    fix_size(&memory)?;
    Ok(memory.into())
}

/// Makes memory that is shared with a process, which is stopped. Returns the number of its
/// descriptor there, too.
pub(super) fn share_with(stopped: &mut Stopped) -> io::Result<(File, u64)> {
    let own = make()?;
    if let Ok(descriptor) = open_in(&own, stopped) {
        return Ok((own, descriptor));
    }
    let descriptor = stopped.make_shared_memory(NAME)?;
    match take(stopped.pid(), stopped.thread(), descriptor) {
        Ok(memory) => Ok((memory, descriptor)),
        Err(error) => {
            close(stopped, descriptor)?;
            Err(error)
        }
    }
}

/// Makes a process open memory that this one has. Returns the number of the descriptor there.
pub(super) fn open_in(memory: &File, stopped: &mut Stopped) -> io::Result<u64> {
    let thread = stopped.thread();
    // In another /proc the number is somebody else's, whose files are not to be opened.
    let numbers = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid"));
    if numbers(&thread.to_string())? != numbers("self")? {
        return Err(io::ErrorKind::NotFound.into());
    }
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    let descriptor = stopped.open(&CString::new(path)?)?;
    // There may be other files below its /proc.
    let found = fs::metadata(format!("/proc/{thread}/fd/{descriptor}"));
    match found.and_then(|found| Ok(identity_of(found.dev(), found.ino()) == identity(memory)?)) {
        Ok(true) => Ok(descriptor),
        other => {
            close(stopped, descriptor)?;
            Err(other.err().unwrap_or(io::ErrorKind::NotFound.into()))
        }
    }
}

pub(super) fn close(stopped: &mut Stopped, descriptor: u64) -> io::Result<()> {
    let closed = stopped.call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]);
    closed.map(drop)
}

/// Takes the memory that a process was made to make, by the number of its descriptor. The thread
/// that has made it is stopped.
fn take(pid: i32, thread: i32, descriptor: u64) -> io::Result<File> {
    let taken = descriptor_of(pid, thread, descriptor)?;
    let like = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC)?;
    let (found, like) = (rustix::fs::fstat(&taken)?, rustix::fs::fstat(&like)?);
    // The kernel may forbid execution from the start (vm.memfd_noexec), which is of no interest.
    let is_unsealed =
        rustix::fs::fcntl_get_seals(&taken).is_ok_and(|seals| (seals - SealFlags::EXEC).is_empty());
    if !is_unsealed || !is_empty_like(&found, &like) {
        return Err(exchanged());
    }
    fix_size(&taken)?;
    Ok(taken.into())
}

pub(super) fn identity(memory: &File) -> io::Result<FileIdentity> {
    let found = rustix::fs::fstat(memory)?;
    Ok(identity_of(found.st_dev, found.st_ino))
}

fn identity_of(device: u64, inode: u64) -> FileIdentity {
    FileIdentity {
        device: (rustix::fs::major(device), rustix::fs::minor(device)),
        inode,
    }
}

pub(super) fn size(memory: &File) -> io::Result<u64> {
    Ok(memory.metadata()?.len())
}

fn is_empty_like(found: &Stat, like: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_dev == like.st_dev
        && (found.st_nlink, found.st_size, found.st_blocks) == (0, 0, 0)
}

fn fix_size(memory: &OwnedFd) -> io::Result<()> {
    // A limit on the size of files holds for this one, too.
    let limit = rustix::process::getrlimit(Resource::Fsize).current;
    let size = SIZE.min(limit.unwrap_or(SIZE)) & !(PAGE - 1);
    rustix::fs::ftruncate(memory, size)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(memory, seals)?;
    // Somebody may have changed it in between.
    let is_sealed = rustix::fs::fcntl_get_seals(memory)?.contains(seals);
    let found = rustix::fs::fstat(memory)?.st_size;
    if !is_sealed || u64::try_from(found) != Ok(size) {
        return Err(exchanged());
    }
    Ok(())
}

fn descriptor_of(pid: i32, thread: i32, descriptor: u64) -> io::Result<OwnedFd> {
    let number = i32::try_from(descriptor).map_err(|_| io::ErrorKind::InvalidInput)?;
    let open = |id: i32, flags| {
        let id = Pid::from_raw(id).ok_or(Errno::SRCH)?;
        rustix::process::pidfd_open(id, flags)
    };
    let process = open(thread, OF_THREAD).or_else(|_| open(pid, PidfdFlags::empty()));
    let taken = process.and_then(|process| {
        rustix::process::pidfd_getfd(&process, number, PidfdGetfdFlags::empty())
    });
    taken.map_err(|error| match error {
        // Sandboxes forbid what they do not know.
        Errno::NOSYS | Errno::PERM => io::Error::other(
            "it has another user or another /proc than the recorder, and its descriptor cannot be \
             taken without pidfd_getfd (Linux 5.6), which is missing or forbidden here",
        ),
        Errno::BADF => exchanged(),
        other => other.into(),
    })
}

fn exchanged() -> io::Error {
    io::Error::other("a process that shares its descriptors has exchanged or changed that memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> i32 {
        std::process::id().cast_signed()
    }

    fn taken(file: &impl AsRawFd) -> io::Result<File> {
        take(own(), own(), file.as_raw_fd().cast_unsigned().into())
    }

    #[test]
    fn its_size_cannot_be_changed() {
        let memory = make().unwrap();
        let before = size(&memory).unwrap();
        assert!(memory.set_len(0).is_err() && memory.set_len(before + 4096).is_err());
        assert!(rustix::fs::fcntl_add_seals(&memory, SealFlags::WRITE).is_err());
    }

    #[test]
    fn memory_of_a_process_is_taken_if_it_is_new() {
        let new = rustix::fs::memfd_create(NAME, MemfdFlags::ALLOW_SEALING).unwrap();
        let memory = taken(&new).unwrap();
        assert!(memory.set_len(0).is_err());
        assert_eq!(
            identity(&memory).unwrap(),
            identity(&File::from(new)).unwrap()
        );
    }

    #[test]
    fn no_other_file_is_taken() {
        let file = tempfile();
        file.set_len(0).unwrap();
        let used = rustix::fs::memfd_create(NAME, MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&used, 4096).unwrap();
        let sealed = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC).unwrap();
        let looked_at = File::open("/dev/null").unwrap();
        for file in [&file, &used.into(), &sealed.into(), &looked_at] {
            let error = taken(file).unwrap_err().to_string();
            assert!(error.contains("exchanged"), "{error}");
        }
    }

    fn tempfile() -> File {
        let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR;
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::open(std::env::temp_dir(), flags, mode)
            .unwrap()
            .into()
    }
}
