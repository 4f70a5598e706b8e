//! Debug information: source lines, inlined calls and full names, from DWARF.
//!
//! It is optional, often in another file, and large. Whether a file has it changes what is known
//! about an address, never which function the address is in; that is the ELF file's own matter.

pub(super) mod demangle;
pub(super) mod diagnosis;
pub(super) mod dwarf;
pub(super) mod lines;
