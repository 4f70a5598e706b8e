//! Registers and a copy of the stack in the RAW field of a sample.
//!
//! perf and samply unwind a copy wherever a sample has one, and append what they find to the chain
//! of frame pointers: a file with both shows each stack twice in their views. So a recorder that
//! takes a small copy in addition to the chain moves it to a field that they do not read:
//!
//! ```text
//!   from the kernel  … CALLCHAIN [RAW] REGS_USER STACK_USER {room, bytes, valid}
//!   in the file      … CALLCHAIN RAW {[the event's own data] registers, valid bytes, abi, size}
//! ```
//!
//! The attr in the file asks for RAW alone, but still states which registers there are and how many
//! bytes were to be copied; without the bits of `sample_type` nobody else reads these two fields. A
//! moved sample is never larger than it was.

use linux_perf_event_reader::Endianness;

use super::Registers;
use crate::perfdata::cursor::Cursor;

// Ends the field: a magic number, the ABI of the registers, and how many bytes of the stack there
// are before it. So what is not of this form is told apart.
pub(super) const MAGIC: u32 = 0x6b74_7350;
pub(super) const TRAILER: usize = 8;
pub(super) const WORD: usize = 8;

pub(super) struct Carried<'a> {
    pub(super) own: &'a [u8],
    pub(super) registers: Registers<'a>,
    pub(super) stack: &'a [u8],
}

/// Takes what was moved into this field, with these registers, out of it; `None` where nothing was.
pub(super) fn split(raw: &[u8], mask: u64, endian: Endianness) -> Option<Carried<'_>> {
    let (rest, trailer) = raw.split_at_checked(raw.len().checked_sub(TRAILER)?)?;
    let mut c = Cursor::new(trailer, endian);
    if c.u32("").ok()? != MAGIC {
        return None;
    }
    let (abi, size) = (c.u16("").ok()?, c.u16("").ok()?);
    let size = usize::from(size);
    let begin = rest.len().checked_sub(size.next_multiple_of(WORD))?;
    let (rest, stack) = rest.split_at_checked(begin)?;
    let registers = mask.count_ones() as usize * WORD;
    let (own, registers) = rest.split_at_checked(rest.len().checked_sub(registers)?)?;
    let mut c = Cursor::new(registers, endian);
    Some(Carried {
        own,
        registers: Registers {
            abi: u64::from(abi),
            mask,
            values: c.words(u64::from(mask.count_ones()), "").ok()?,
        },
        stack: stack.get(..size)?,
    })
}
