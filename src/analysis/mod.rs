//! Answers computed from a profile: pure functions, one question a file.
//!
//! | module | question |
//! |---|---|
//! | [`inclusive`] | how much weight is in a function or call path itself, and how much under it? |
//! | [`tree`] | who calls whom from the root inwards, or from the leaf outwards? |
//! | [`detail`] | to whom is the time of one function distributed, and from where does it come? |
//! | [`lines`] | on which source lines does a function spend its own weight? |
//! | [`threads`] | which threads and commands does the weight belong to? |
//!
//! All take a [`Profile`](crate::profile::Profile) and a
//! [`Selection`](crate::profile::Selection) of it and give a new value. None does I/O, fails, or
//! recurses; each is a few loops over distinct paths and rows.

pub mod detail;
pub mod inclusive;
pub mod lines;
mod links;
pub mod threads;
pub mod tree;
