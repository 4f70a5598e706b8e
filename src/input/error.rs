//! Why something could not be opened.

use std::io;

/// Why something could not be opened. The message fits after `could not open x: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("{0}")]
    Io(io::Error),
    /// A pipe, a socket, a device, by name.
    #[error("it is {0}, not a regular file")]
    NotRegular(&'static str),
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
    #[error("it is compressed with {0}")]
    Compressed(&'static str),
    /// Nothing that is known.
    #[error("it is neither a perf.data file nor folded stacks nor a gmon.out")]
    Unknown,
    /// A part of the time was asked for, and the input has no times.
    #[error("{0} no times, so no time range can be shown")]
    NoTimes(&'static str),
    /// A gmon.out without the program that made it.
    #[error(
        "it is a gmon.out, which has addresses only: the names are in the program that made it"
    )]
    NoProgram,
    /// A gmon.out that cannot be read, or that another program made.
    #[error("as a gmon.out: {0}")]
    Gmon(String),
    /// A program that the samples are not of.
    #[error("the recording has no samples in it")]
    NotSampled,
    /// A file that was to be added to a gmon.out is not a gmon.out.
    #[error("it is not a gmon.out; only those can be added up")]
    NotGmon,
    /// A recording that cannot be read.
    #[error(transparent)]
    Recording(#[from] crate::perfdata::Error),
    /// A program that cannot be looked at.
    #[error(transparent)]
    Binary(crate::binary::Error),
}
