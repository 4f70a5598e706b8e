//! The section with jitdump files that readers could not find again.
//!
//! Only proftool writes and reads it. Such a file of a process in a container is below that
//! container's root, as its perf map is.

use std::sync::Arc;

use super::super::cursor::Cursor;
use super::super::error::Flaw;

/// A jitdump file as it was when the recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptJitDump {
    /// The process that mapped it, by its number outside of containers.
    pub pid: i32,
    /// Its path in the records of mappings.
    pub path: String,
    /// Its bytes from the start on.
    pub bytes: Arc<[u8]>,
    /// The number of bytes after these, which were too many to keep.
    pub left_out: u64,
}

impl KeptJitDump {
    pub(super) fn read(mut c: Cursor<'_>) -> Result<Vec<KeptJitDump>, Flaw> {
        let count = c.u32("the number of jitdump files")?;
        // Each takes 24 bytes and more: a count beyond that ends in an error.
        let dump = |_| {
            let pid = c.i32("the process of a jitdump file")?;
            let path = c.header_string("the path of a jitdump file")?;
            let left_out = c.u64("the rest of a jitdump file")?;
            let size = c.u64("the size of a jitdump file")?;
            let bytes = c.take(size, "a jitdump file")?.into();
            Ok(KeptJitDump {
                pid,
                path,
                bytes,
                left_out,
            })
        };
        (0..count).map(dump).collect()
    }
}
