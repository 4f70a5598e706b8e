//! The section with lists of generated code that readers could not find again.
//!
//! Only proftool writes and reads it. The map of a process in a container is below that container's
//! root, and nobody finds it there once the process has ended.

use super::super::cursor::Cursor;
use super::super::error::Flaw;

/// The list of the code that a process generated, as it was when the recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPerfMap {
    /// The process, by its number outside of containers.
    pub pid: i32,
    /// The lines of its `perf-PID.map`.
    pub lines: Vec<u8>,
    /// The number of bytes behind these, which were too many to keep.
    pub left_out: u64,
}

impl KeptPerfMap {
    pub(super) fn read(mut c: Cursor<'_>) -> Result<Vec<KeptPerfMap>, Flaw> {
        let count = c.u32("the number of perf maps")?;
        // Each takes 12 bytes and more: a count beyond that ends in an error.
        let map = |_| {
            let pid = c.i32("the process of a perf map")?;
            let size = c.u64("the size of a perf map")?;
            let lines = c.take(size, "a perf map")?.to_vec();
            Ok(KeptPerfMap {
                pid,
                lines,
                left_out: 0,
            })
        };
        let mut maps: Vec<KeptPerfMap> = (0..count).map(map).collect::<Result<_, _>>()?;
        // Recordings of older versions end here.
        if c.left() > 0 {
            for map in &mut maps {
                map.left_out = c.u64("the rest of a perf map")?;
            }
        }
        Ok(maps)
    }
}
