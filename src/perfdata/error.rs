//! Why a recording could not be read, and why one of its records could not.

use std::fmt;
use std::io;

/// Why a file cannot be read as a recording at all. Each message fits after
/// `could not open FILE: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Opening or reading failed.
    #[error("{}", io_text(.0))]
    Io(#[from] io::Error),
    /// Not a regular file, a pipe on standard input or a recording's directory.
    #[error("{0}, not a regular file")]
    NotRegular(&'static str),
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
    /// A field of the header that nothing can be read without is wrong.
    #[error("bad header: {0}")]
    BadHeader(String),
    /// The recording describes no event.
    #[error("the recording describes no event")]
    NoEvents,
}

/// The operating system's words, in lower case and without the number.
fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::from("unknown error"),
    }
}

/// What is wrong with one record or section, which is skipped and reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// `what` needs more bytes than there are.
    Short {
        what: &'static str,
        needed: u64,
        left: u64,
    },
    /// `what` has a value that cannot be.
    Value { what: &'static str, value: u64 },
    /// A fact without numbers.
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
