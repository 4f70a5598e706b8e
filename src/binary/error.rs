//! What can go wrong when a file is opened.

use std::io;
use std::path::{Path, PathBuf};

use crate::base::{BuildId, system_reason};
use crate::files;

/// Why a file could not be used. Each text fits after `could not open PATH: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing has this name.
    #[error("no such file")]
    NotFound,
    /// A directory, FIFO, device or socket; opening those can hang or have effects.
    #[error("not a regular file")]
    NotRegular,
    /// The path is not absolute. It would name whatever lies in the current directory.
    #[error("the path is relative; only absolute paths are opened")]
    RelativePath,
    /// The file does not start as an ELF file does.
    #[error("not an ELF file")]
    NotElf,
    /// The file is not the build that was recorded, and no other copy of that build was found.
    #[error("its build id is {}, the recording has {recorded}", shown(.found))]
    ChangedBuild {
        /// The build id of the file that is there, if it has one.
        found: Option<BuildId>,
        recorded: BuildId,
    },
    /// The file was deleted when it was recorded, and no copy of it is kept by build id.
    #[error("the file was deleted while it was mapped")]
    Deleted,
    /// The file ends before its header says.
    #[error("cut short: {what} needs {needed} bytes, the file has {size}")]
    Truncated {
        /// What was to be read.
        what: &'static str,
        /// Where it would end.
        needed: u64,
        /// The size of the file.
        size: u64,
    },
    /// A field has an impossible value.
    #[error("{problem}")]
    Malformed {
        /// What is wrong, with what was found.
        problem: String,
    },
    /// Something that this build of the library does not read.
    #[error("this build does not read {what}")]
    NotBuiltIn { what: &'static str },
    /// Something is larger than the limit of memory for it.
    #[error("{what} is {size} bytes, the limit is {limit}")]
    TooLarge {
        what: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Something would be far larger in memory than what the file has on the disk.
    #[error("{what} is too large: {size} bytes, of a file that has far fewer on the disk")]
    BeyondShare {
        what: String,
        /// Its size in bytes.
        size: u64,
    },
    /// The debug information of a file exceeds the limit for all files together.
    #[error("debug information too large for a file of this size, left out")]
    DebugInfoTooLarge,
    /// The system has no memory for it.
    #[error("{what} left out: no memory for {size} bytes")]
    OutOfMemory {
        what: String,
        /// Its size in bytes.
        size: u64,
    },
    /// A list of generated code that an earlier process of the same number left.
    #[error("{} is older than the process", path.display())]
    OlderThanProcess { path: PathBuf },
    /// The file belongs to somebody else.
    #[error(
        "{} belongs to user {owner}, who is neither you nor root nor the user that ran",
        path.display()
    )]
    Foreign {
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
    },
    /// The instructions of this ELF machine are not understood.
    #[error("its code is for ELF machine {machine}; x86, AArch64 and RISC-V are understood")]
    UnknownMachine {
        /// The number of the machine (`e_machine`).
        machine: u16,
    },
    /// The system reported an error.
    #[error("{}", system_reason(source))]
    Io { path: PathBuf, source: io::Error },
}

impl Error {
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::NotFound,
            _ => Error::Io {
                path: path.to_owned(),
                source,
            },
        }
    }
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Error {
        match error {
            files::Error::NotFound => Error::NotFound,
            files::Error::NotRegular => Error::NotRegular,
            files::Error::Io { path, source } => Error::Io { path, source },
        }
    }
}

fn shown(id: &Option<BuildId>) -> String {
    match id {
        Some(id) => id.to_string(),
        None => "absent".to_owned(),
    }
}
