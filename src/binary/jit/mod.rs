//! Functions that a process compiled while it ran (JIT), as it lists them.
//!
//! | list | written by | time | lines |
//! |---|---|---|---|
//! | `/tmp/perf-PID.map` | node `--perf-basic-prof`, java `-XX:+DumpPerfMapAtExit`, … | no | no |
//! | `jit-PID.dump` | node `--perf-prof`, perf's JVMTI agent, … | yes | yes |
//!
//! Compilers compile a function again and move its code, and they put new code where old code was.
//! A name is therefore the identity, not an address: all code of one name is one function. Lists
//! that leave out parameters, as some agents for Java do, give overloaded methods one name; such
//! methods cannot be distinguished and are one function.
//!
//! Where a list has no times and several functions were at an address, nothing says which of them
//! a sample belongs to. The answer is then all of them: see [`JitNames`].

mod code;
mod dump;
mod name;
mod perf_map;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub use code::{JitCode, JitPiece};
pub use dump::{JitDump, JitFrame};
pub use name::JitNames;
pub use perf_map::PerfMap;

use super::Error;
use crate::files::OpenedFile;

// Other users can write to the places where lists are, so a list counts only if it belongs to the
// reader, to root or to `user`, whose process it describes.
fn checked(opened: OpenedFile, path: &Path, user: Option<u32>) -> Result<(File, u64), Error> {
    let OpenedFile { file, metadata, .. } = opened;
    // The owner of our own directory in /proc is the user that we act for.
    let own = std::fs::metadata("/proc/self")
        .map_err(Error::at(path))?
        .uid();
    let owner = metadata.uid();
    if owner != own && owner != 0 && Some(owner) != user {
        return Err(Error::Foreign {
            path: path.to_owned(),
            owner,
        });
    }
    Ok((file, metadata.len()))
}
