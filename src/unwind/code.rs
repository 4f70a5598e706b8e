//! The code of a process, as the unwinder's callers describe it.

use super::rules::Rules;
use crate::base::Svma;

/// The code of one process at one moment.
pub trait ProcessCode {
    /// A number that tells it from other code, and from the same before it changed. Of one
    /// [`Unwinder`](super::Unwinder)'s codes, no two that answer differently have the same.
    fn number(&self) -> u32;

    /// What an address in its memory shows.
    fn place(&self, address: u64) -> CodeAt<'_>;
}

/// What an address shows.
#[derive(Clone, Copy, Debug)]
pub enum CodeAt<'a> {
    /// Nothing that could be run.
    Unmapped,
    /// Code without rules.
    Unruled,
    /// Code of a file that has rules.
    Ruled {
        /// Tells the file from others.
        file: u32,
        /// The file's rules.
        rules: &'a Rules,
        /// The address as the file states it.
        address: Svma,
    },
}
