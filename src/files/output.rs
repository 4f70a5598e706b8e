//! Writes files that take their name when they are whole.
//!
//! ```text
//!   name ─ links are followed ─▶ a regular file, or nothing yet: a new file beside it ─ rename
//!                            └─▶ a pipe, a device, /dev/stdout:  written as it comes
//! ```
//!
//! Until the new file is whole, the old one is as it was: neither a full disk nor a signal leaves
//! half of one. The new file has the owner and the permissions of the old one. Where it cannot (a
//! directory that may not be changed, a file that is mounted by itself, another owner), the answer
//! is collected in a temporary file, the room for it is reserved, and then the old one is written
//! over.
//!
//! What this process reads, it does not replace: see [`is_read`].

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

// The most links that lead from a name to a file, as in the kernel.
const MOST_LINKS: usize = 40;
// How many names are tried for a file beside another.
const MOST_NAMES: usize = 100;
const PROC: i64 = 0x9fa0;
// The bits of a mode that say who may do what.
const PERMISSIONS: u32 = 0o777;
const OWN_DESCRIPTORS: &str = "/proc/self/fd";
const BUFFER: usize = 1 << 16;

static READ: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// Takes note of a file that is read as an input.
pub fn note_read(metadata: &Metadata) {
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.insert((metadata.dev(), metadata.ino()));
}

/// Whether this process has opened a file as an input: by whatever name, it must not be replaced.
///
/// ```
/// use proftool::files;
/// let opened = files::open_named("Cargo.toml".as_ref()).unwrap();
/// assert!(files::is_read(&std::fs::metadata("./Cargo.toml").unwrap()));
/// ```
pub fn is_read(metadata: &Metadata) -> bool {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.contains(&(metadata.dev(), metadata.ino()))
}

/// Where an output goes.
#[derive(Debug)]
pub struct Output {
    target: PathBuf,
    is_direct: bool,
    earlier: Option<Metadata>,
}

impl Output {
    /// Finds where the output of this name goes. Nothing is opened yet.
    ///
    /// # Errors
    ///
    /// If it is a directory, or its links lead nowhere.
    pub fn to(path: &Path) -> io::Result<Output> {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Errno::ISDIR.into());
        }
        let mut target = path.to_owned();
        for _ in 0..MOST_LINKS {
            let found = match fs::symlink_metadata(&target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Output::new(target, false, None));
                }
                found => found?,
            };
            if !found.is_symlink() {
                if found.is_dir() {
                    return Err(Errno::ISDIR.into());
                }
                return Ok(Output::new(target, !found.is_file(), Some(found)));
            }
            // Such a link of /proc leads to an open file, whatever name that has by now.
            let directory = directory_of(&target).to_owned();
            if rustix::fs::statfs(&directory)?.f_type == PROC
                && directory.file_name() != Some(OsStr::new("proc"))
            {
                let found = fs::metadata(&target)?;
                return Ok(Output::new(target, true, Some(found)));
            }
            target = directory.join(fs::read_link(&target)?);
        }
        Err(Errno::LOOP.into())
    }

    fn new(target: PathBuf, is_direct: bool, earlier: Option<Metadata>) -> Output {
        Output {
            target,
            is_direct,
            earlier,
        }
    }

    /// The file that is replaced, after all links; `None` if there is none yet.
    pub fn earlier(&self) -> Option<&Metadata> {
        self.earlier.as_ref()
    }

    /// The path of the file that is replaced or made.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes the output. If that fails, an earlier file is as it was.
    ///
    /// # Errors
    ///
    /// Those of `write` and of the system.
    pub fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        self.refuse_input()?;
        if self.is_direct {
            return buffered(&self.open_directly()?, write);
        }
        // Nobody replaces what he may not write, and no program that runs.
        let earlier = match &self.earlier {
            Some(earlier) => Some((earlier, open_earlier(&self.target, earlier)?)),
            None => None,
        };
        let directory = directory_of(&self.target);
        let mut new = match NewFile::beside(directory, earlier.as_ref().map(|(it, _)| *it)) {
            Ok(new) => new,
            Err(error) => return self.write_over(earlier, error, write),
        };
        buffered(&new.file, write)?;
        self.refuse_input()?;
        if earlier.is_some() {
            // Some systems find out only now that there is no room.
            new.file.sync_data()?;
        }
        let Err(error) = new.replace(&self.target) else {
            return Ok(());
        };
        // A file that is mounted by itself, or is another user's.
        let mut whole = &new.file;
        whole.rewind()?;
        match earlier {
            Some((_, file)) => copy_over(whole, &file),
            None => Err(error),
        }
    }

    /// Refuses to replace what was read, maybe only while the output was written.
    fn refuse_input(&self) -> io::Result<()> {
        if self.earlier.as_ref().is_some_and(is_read) {
            return Err(io::Error::other("this command reads it"));
        }
        Ok(())
    }

    /// Writes over an earlier file beside which there can be no other.
    fn write_over(
        &self,
        earlier: Option<(&Metadata, File)>,
        error: io::Error,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some((_, file)) = earlier else {
            return Err(error);
        };
        let new = NewFile::beside(&std::env::temp_dir(), None)?;
        buffered(&new.file, write)?;
        self.refuse_input()?;
        let mut whole = &new.file;
        whole.rewind()?;
        copy_over(whole, &file)
    }

    fn open_directly(&self) -> io::Result<File> {
        let own = |number: &str| {
            let same = |directory: &Path| fs::canonicalize(directory).ok();
            self.target.file_name() == Some(OsStr::new(number))
                && same(directory_of(&self.target)) == same(Path::new(OWN_DESCRIPTORS))
        };
        // The descriptor itself: its position is where the output goes on, and a socket cannot be
        // opened.
        let standard = if own("1") {
            Some(io::stdout().as_fd().try_clone_to_owned()?)
        } else if own("2") {
            Some(io::stderr().as_fd().try_clone_to_owned()?)
        } else {
            None
        };
        if let Some(standard) = standard {
            return Ok(File::from(standard));
        }
        let is_file = self.earlier.as_ref().is_some_and(Metadata::is_file);
        OpenOptions::new()
            .write(true)
            .append(is_file)
            .open(&self.target)
    }
}

/// Opens the file that is to be replaced for writing, if it still is that file.
fn open_earlier(path: &Path, earlier: &Metadata) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let found = file.metadata()?;
    if (found.dev(), found.ino()) != (earlier.dev(), earlier.ino()) {
        return Err(io::Error::other("it was replaced meanwhile"));
    }
    Ok(file)
}

/// Replaces the contents of a file. The room is reserved first, so that a full disk leaves it as it
/// was.
fn copy_over(mut from: &File, mut to: &File) -> io::Result<()> {
    let length = from.metadata()?.len();
    match rustix::fs::fallocate(to, FallocateFlags::empty(), 0, length.max(1)) {
        // Not every file system can.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    to.rewind()?;
    io::copy(&mut from, &mut to)?;
    to.set_len(length)
}

fn buffered(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    let written = write(&mut out).and_then(|()| out.flush());
    // What is still in the buffer after an error must not be tried again.
    let _ = out.into_parts();
    written
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A file that has no name yet, or one that nobody looks for.
struct NewFile {
    file: File,
    directory: PathBuf,
    /// Its name, which goes with this value unless the file gets another one.
    name: Option<PathBuf>,
}

impl NewFile {
    /// Makes one in a directory, with the owner and the permissions of an earlier file.
    fn beside(directory: &Path, earlier: Option<&Metadata>) -> io::Result<NewFile> {
        // Until it has the right owner it is for nobody else.
        let mode = Mode::from_raw_mode(if earlier.is_some() { 0o600 } else { 0o666 });
        let open = |path: &Path, how: OFlags| {
            let flags = OFlags::RDWR | OFlags::CLOEXEC | how;
            rustix::fs::openat(CWD, path, flags, mode)
        };
        let (file, name) = match open(directory, OFlags::TMPFILE) {
            // It gets its name through /proc.
            Ok(file) if Path::new(OWN_DESCRIPTORS).is_dir() => (file, None),
            // Not every file system has files without names.
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                let exclusively = OFlags::CREATE | OFlags::EXCL;
                let (file, name) = named(directory, |path| open(path, exclusively))?;
                (file, Some(name))
            }
            Err(error) => return Err(error.into()),
        };
        let new = NewFile {
            file: File::from(file),
            directory: directory.to_owned(),
            name,
        };
        if let Some(earlier) = earlier {
            let own = new.file.metadata()?;
            if (own.uid(), own.gid()) != (earlier.uid(), earlier.gid()) {
                fchown(&new.file, Some(earlier.uid()), Some(earlier.gid()))?;
            }
            let mode = earlier.permissions().mode() & PERMISSIONS;
            new.file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(new)
    }

    /// Gives the file a name, in place of what has it.
    fn replace(&mut self, target: &Path) -> io::Result<()> {
        let name = match self.name.take() {
            Some(name) => name,
            None => {
                let own = format!("{OWN_DESCRIPTORS}/{}", self.file.as_raw_fd());
                let follow = AtFlags::SYMLINK_FOLLOW;
                let link = |path: &Path| rustix::fs::linkat(CWD, &own, CWD, path, follow);
                named(&self.directory, link)?.1
            }
        };
        let renamed = fs::rename(&name, target);
        if renamed.is_err() {
            self.name = Some(name);
        }
        renamed
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Nothing can be done if it stays.
            let _ = fs::remove_file(name);
        }
    }
}

/// Makes something under the first free name of a directory.
fn named<T>(
    directory: &Path,
    make: impl Fn(&Path) -> Result<T, Errno>,
) -> io::Result<(T, PathBuf)> {
    let process = fs::read_link("/proc/self").unwrap_or_default();
    for number in 0..MOST_NAMES {
        let path = directory.join(format!(".proftool-{}-{number}", process.display()));
        match make(&path) {
            Ok(made) => return Ok((made, path)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}
