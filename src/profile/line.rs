//! Positions in source code.

use crate::base::define_id;

define_id! {
    /// A row of [`Profile::lines`](super::Profile::lines).
    pub LineId
}

/// A position in source code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The path of the file as debug information has it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}
