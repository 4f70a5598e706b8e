//! Why a recording could not be read, and why one of its records could not.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::system_reason;

/// Why a file cannot be read as a recording at all. Each message fits after
/// `could not open FILE: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Opening or reading failed.
    #[error("{}", system_reason(source))]
    Io {
        /// The file or directory; `None` where the caller had opened it.
        path: Option<PathBuf>,
        source: io::Error,
    },
    /// Not a regular file, a pipe on standard input or a recording's directory.
    #[error("{kind}, not a regular file")]
    NotRegular {
        /// What it is: `a directory`.
        kind: &'static str,
    },
    /// The first bytes are not those of a recording.
    #[error("not a perf.data file: it does not begin with PERFILE2")]
    BadMagic,
    /// The file ends inside its header or its list of events.
    #[error("cut short: {what} needs {needed} bytes, {found} are there")]
    TooShort {
        /// What could not be read.
        what: &'static str,
        /// The bytes that it needs.
        needed: u64,
        /// The bytes that there are.
        found: u64,
    },
    /// A field of the header is wrong, without which nothing can be read.
    #[error("bad header: {problem}")]
    BadHeader {
        /// What is wrong, with what was found.
        problem: String,
    },
    /// The recording describes no event.
    #[error("the recording describes no event")]
    NoEvents,
}

impl Error {
    /// Names the file where none is named yet.
    pub(super) fn in_file(self, file: Option<&Path>) -> Error {
        match self {
            Error::Io { path: None, source } => Error::Io {
                path: file.map(Path::to_owned),
                source,
            },
            other => other,
        }
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Error {
        Error::Io { path: None, source }
    }
}

/// What is wrong with one record or section, which is skipped and reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Short {
        what: &'static str,
        needed: u64,
        left: u64,
    },
    Value {
        what: &'static str,
        value: u64,
    },
    Fact(&'static str),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Short { what, needed, left } => {
                write!(f, "{what} needs {needed} bytes, {left} are left")
            }
            Flaw::Value { what, value } => write!(f, "{what} is {value:#x}"),
            Flaw::Fact(fact) => f.write_str(fact),
        }
    }
}
