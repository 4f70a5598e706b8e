//! The words of the command line, before they are parsed and where they cannot be.

pub mod defaults;
pub mod habits;
pub mod short;
