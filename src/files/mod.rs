//! Opens the files that an input names, without side effects on anything else, and writes files
//! that take their name when they are whole ([`Output`]).
//!
//! A recording, a debug link or a dynamic section may name anything: a FIFO whose writer waits for
//! a reader, a device that acts when it is opened, a link that leads out of `--symfs`. So a name is
//! resolved first, without opening what it leads to; only a regular file is then opened, and it is
//! the one that was checked:
//!
//! ```text
//!   openat2(root, path, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)    no effect on the file
//!     └▶ fstat: regular?  no ─▶ Error::NotRegular
//!          └▶ open("/proc/self/fd/N", O_RDONLY)                             the same object
//!               └▶ fstat: still the same device and inode
//! ```
//!
//! `O_PATH` is described in open(2), the resolution in openat2(2). Kernels before 5.6, and some
//! sandboxes, have no `openat2`; there each component is resolved by itself, with the same result.
//! Without `/proc` the path is resolved a second time and the object is compared.
//!
//! The rooms that import it open such files in no other way;
//! `tests/suite/pure/architecture.rs` enforces that.
//!
//! Files that the kernel makes up, as in `/proc` and `/sys`, are regular, too: to read `/proc/kmsg`
//! takes messages away from others, or waits for one. No input names such a file for a good reason,
//! so only a path that the user states may lead there.

mod access;
mod elf_notes;
mod identity;
mod made_up;
mod output;
mod process;
mod resolve;
mod view;

pub use elf_notes::find as find_in_notes;
pub use identity::{content, status};
pub use output::{Output, is_read, note_read};

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::base::system_reason;

pub use self::process::{ListOfProcess, open_link, read_list};
pub use self::view::{ProcessView, is_jit_dump, living_thread};

// How a checked file is opened. `O_NONBLOCK` matters only where the object is another one than the
// one that was checked; it is then closed again.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing has this name.
    #[error("no such file")]
    NotFound,
    /// A directory, FIFO, device or socket, a link that may not be followed, or a file that the
    /// kernel makes up.
    #[error("not a regular file")]
    NotRegular,
    /// The system refused.
    #[error("{}", system_reason(source))]
    Io {
        /// The path as it was asked for.
        path: PathBuf,
        source: io::Error,
    },
}

impl Error {
    fn at(path: &Path) -> impl Fn(Errno) -> Error {
        move |error| match error {
            Errno::NOENT | Errno::NOTDIR => Error::NotFound,
            // Links that lead to themselves, links of /proc that lead to open descriptors, and
            // sockets, which can be looked at but not opened.
            // So are those that lead out of where they may.
            Errno::LOOP | Errno::NXIO | Errno::XDEV => Error::NotRegular,
            other => Error::Io {
                path: path.to_owned(),
                source: other.into(),
            },
        }
    }
}

/// An open regular file.
#[derive(Debug)]
pub struct OpenedFile {
    /// The file, open for reading.
    pub file: File,
    /// Its metadata, as the system reports them.
    pub metadata: Metadata,
    /// The path as it was asked for.
    pub path: PathBuf,
}

/// How a symbolic link is treated that is the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLink {
    Follow,
    /// It is no regular file.
    Refuse,
}

/// The directory at which the paths of an input begin: `/`, or one that stands for it. No path,
/// no `..` and no symbolic link leads out of it.
///
/// ```
/// use proftool::files::{LastLink, Root};
/// use std::path::Path;
/// let root = Root::default();
/// let program = std::env::current_exe().unwrap();
/// assert!(root.open(&program, LastLink::Follow).is_ok());
/// for other in ["/dev/null", "/proc/version"] {
///     assert!(root.open(Path::new(other), LastLink::Follow).is_err());
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Root {
    directory: Option<Arc<Path>>,
}

impl Root {
    /// A directory that stands for `/`.
    pub fn at(directory: &Path) -> Root {
        Root {
            directory: Some(directory.into()),
        }
    }

    /// The directory that stands for `/`, unless that is `/` itself.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The path outside of this root, to be shown to people; it is right as long as no link is on
    /// the way.
    pub fn full(&self, path: &Path) -> PathBuf {
        let Some(root) = &self.directory else {
            return path.to_owned();
        };
        let mut inside = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => inside.push(name),
                Component::ParentDir => {
                    inside.pop();
                }
                _ => {}
            }
        }
        let mut full = root.to_path_buf();
        full.extend(inside);
        full
    }

    /// Opens the regular file at `path`, which is taken from this root whether it begins with a
    /// slash or not.
    ///
    /// # Errors
    /// When there is no such file, it is not a regular one, or it may not be read.
    pub fn open(&self, path: &Path, link: LastLink) -> Result<OpenedFile, Error> {
        let last = match link {
            LastLink::Follow => OFlags::empty(),
            LastLink::Refuse => OFlags::NOFOLLOW,
        };
        open_checked(path, MadeUp::Refuse, |flags| {
            self.resolve(path, flags | last)
        })
    }

    /// Opens the regular file `name` below `directory`, which is taken from this root. Links may
    /// lead to the directory; from there on none is followed, and `..` does not lead out of it.
    ///
    /// # Errors
    /// As of [`Root::open`].
    pub fn open_below(&self, directory: &Path, name: &Path) -> Result<OpenedFile, Error> {
        let at = Error::at(directory);
        let flags = LOOK | OFlags::DIRECTORY;
        let below = self.resolve(directory, flags).map_err(at)?;
        let opened = open_checked(name, MadeUp::Refuse, |flags| {
            resolve::without_links(&below, name, flags)
        })?;
        Ok(OpenedFile {
            path: self.full(&directory.join(name)),
            ..opened
        })
    }

    /// The names in the directory at `path`, in no particular order.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn names(&self, path: &Path) -> Result<Vec<OsString>, Error> {
        let at = Error::at(path);
        let directory = self.resolve(path, READ | OFlags::DIRECTORY).map_err(&at)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(directory).map_err(&at)? {
            let name = entry.map_err(&at)?.file_name().to_bytes().to_vec();
            if !matches!(name.as_slice(), b"." | b"..") {
                names.push(std::os::unix::ffi::OsStringExt::from_vec(name));
            }
        }
        Ok(names)
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let root = self.directory.as_deref().unwrap_or(Path::new("/"));
        let root = rustix::fs::openat(CWD, root, LOOK | OFlags::DIRECTORY, Mode::empty())?;
        resolve::beneath(&root, path, flags)
    }
}

/// Opens the regular file that a user named. Any link is followed, including those of `/proc`.
///
/// # Errors
/// When there is no such file, it is not a regular one, or it may not be read.
pub fn open_named(path: &Path) -> Result<OpenedFile, Error> {
    open_checked(path, MadeUp::Allow, |flags| {
        rustix::fs::openat(CWD, path, flags, Mode::empty())
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MadeUp {
    Allow,
    Refuse,
}

/// Looks at what `resolve` leads to and opens that, if it is a regular file.
fn open_checked(
    path: &Path,
    made_up: MadeUp,
    resolve: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OpenedFile, Error> {
    let at = Error::at(path);
    let found = resolve(LOOK).map_err(&at)?;
    let looked_at = rustix::fs::fstat(&found).map_err(&at)?;
    if FileType::from_raw_mode(looked_at.st_mode) != FileType::RegularFile {
        return Err(Error::NotRegular);
    }
    if made_up == MadeUp::Refuse && made_up::is_made_up(&found).map_err(&at)? {
        return Err(Error::NotRegular);
    }
    let same = format!("/proc/self/fd/{}", found.as_raw_fd());
    let opened = match rustix::fs::openat(CWD, same, READ, Mode::empty()) {
        Ok(opened) if is_same(&rustix::fs::fstat(&opened).map_err(&at)?, &looked_at) => opened,
        // There is no /proc, or it is not ours.
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => resolve(READ).map_err(&at)?,
        Err(error) => return Err(at(error)),
    };
    if !is_same(&rustix::fs::fstat(&opened).map_err(&at)?, &looked_at) {
        return Err(Error::NotRegular);
    }
    let file = File::from(opened);
    let path = path.to_owned();
    match file.metadata() {
        Ok(metadata) => {
            note_read(&metadata);
            Ok(OpenedFile {
                file,
                metadata,
                path,
            })
        }
        Err(source) => Err(Error::Io { path, source }),
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
