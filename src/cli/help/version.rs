//! What `--version` prints.

// The version with the commit and the target that it was built from, as `build.rs` found them.
pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("PROFTOOL_COMMIT"),
    "\ntarget: ",
    env!("PROFTOOL_TARGET"),
);
