//! `.gnu_debugdata` where xz is not built in: its symbols are missing, and that is reported.

use super::Elf;
use crate::binary::Error;

// The error that its symbols cannot be read, if `elf` has the section.
pub(in crate::binary) fn unpack(elf: &Elf) -> Option<Result<Elf, Error>> {
    elf.section(b".gnu_debugdata")?;
    Some(Err(Error::NotBuiltIn {
        what: "symbols packed with xz (.gnu_debugdata)",
    }))
}
