//! Why something could not be opened.

use std::io;
use std::path::{Path, PathBuf};

use crate::base::system_reason;

/// A file that could not be used, and why.
///
/// ```
/// use std::path::Path;
/// use proftool::input::{self, Options};
///
/// let path = Path::new("/nonexistent/perf.data");
/// let error = input::open(path).unwrap_err();
/// assert_eq!(error.path, path);
/// assert!(error.to_string().starts_with("could not open /nonexistent/perf.data: "));
/// ```
#[derive(Debug, thiserror::Error)]
#[error("could not open {}: {reason}", path.display())]
pub struct Error {
    /// The file as it was named; `-` is standard input.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
}

impl Error {
    pub(super) fn of<R: Into<Reason>>(path: &Path) -> impl FnOnce(R) -> Error {
        move |reason| Error {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Why something could not be opened. The text fits after `could not open x: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The system refused.
    #[error("{}", system_reason(source))]
    Io {
        /// What the system says.
        #[from]
        source: io::Error,
    },
    /// A pipe, a socket, a device.
    #[error("it is {kind}, not a regular file")]
    NotRegular {
        /// What it is.
        kind: &'static str,
    },
    /// A directory that is not a recording.
    #[error("it is a directory without a recording in it")]
    Directory,
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// A program where a profile was expected.
    #[error("it is a program, not a profile")]
    Program,
    /// A compressed file.
    #[error("it is compressed with {format}")]
    Compressed {
        /// How: `gzip` or `zstd`.
        format: &'static str,
    },
    /// A format whose reader is not in this build of the library.
    #[error("this build does not read the format of {format}")]
    NotBuiltIn {
        /// Whose format it is.
        format: &'static str,
    },
    /// Nothing that is known.
    #[error(
        "it is neither a perf.data file nor folded stacks nor a gmon.out, nor a profile of another \
         known format"
    )]
    Unknown,
    /// A text that others write, and nothing that is read.
    #[error("it looks like {what}, which is not read")]
    OtherText {
        /// What it looks like.
        what: &'static str,
    },
    /// Profiles written one after another, whose parts can no longer be told apart.
    #[error("it holds several profiles of {format}, one after another; only one can be read")]
    Several {
        /// Whose format it is.
        format: &'static str,
    },
    /// Folded stacks that are too large to read.
    #[error("as folded stacks: {problem}")]
    Folded {
        /// The first line, and the limit that it passes.
        problem: String,
    },
    /// A part of the time was asked for, and the input has no times.
    #[error("{holder} no times, so no time range can be shown")]
    NoTimes {
        /// The kind of input and its verb: `a gmon.out holds`.
        holder: &'static str,
    },
    /// A gmon.out without the program that made it.
    #[error(
        "it is a gmon.out, which has addresses only: the names are in the program that made it"
    )]
    NoProgram,
    /// A gmon.out that cannot be read, or that another program made.
    #[error("as a gmon.out: {problem}")]
    Gmon {
        /// What is wrong.
        problem: String,
    },
    /// A program that the samples are not of.
    #[error("the recording has no samples in it")]
    NotSampled,
    /// A file that was to be added to a gmon.out is not a gmon.out.
    #[error("it is not a gmon.out; only those can be added up")]
    NotGmon,
    /// A recording that cannot be read.
    #[error(transparent)]
    Recording {
        /// Why.
        #[from]
        source: crate::perfdata::Error,
    },
    /// A program that cannot be looked at.
    #[error(transparent)]
    Binary {
        /// Why.
        #[from]
        source: crate::binary::Error,
    },
}
