//! The notes of an ELF file; only the build ID is used.

use object::elf;

use super::fields::Fields;
use crate::base::BuildId;

// The build id in a series of notes:
//
//   namesz, descsz, type   4 bytes each
//   name                   padded to 4 bytes: "GNU\0"
//   desc                   padded to 4 bytes; type 3 (NT_GNU_BUILD_ID): the id
pub(super) fn build_id_note(notes: Fields<'_>) -> Option<BuildId> {
    let mut at: usize = 0;
    loop {
        let name_size = notes.u32(at)? as usize;
        let size = notes.u32(at.checked_add(4)?)? as usize;
        let kind = notes.u32(at.checked_add(8)?)?;
        let name = at.checked_add(12)?;
        let desc = name.checked_add(name_size.checked_next_multiple_of(4)?)?;
        if kind == elf::NT_GNU_BUILD_ID.0 && notes.slice(name, name_size)?.bytes == b"GNU\0" {
            return BuildId::new(notes.slice(desc, size)?.bytes);
        }
        at = desc.checked_add(size.checked_next_multiple_of(4)?)?;
    }
}
