//! The command line of proftool.
fn main() {}
