//! Where exceptions are caught and cleaned up after.
//!
//! ```text
//!   .eh_frame entry ─▶ .gcc_except_table:  u8 encoding of the base, base
//!                                          u8 encoding of the type table, its distance
//!                                          u8 encoding of the rows, their size
//!                                          rows: start, length, landing pad, action
//! ```
//!
//! A landing pad is a distance from the base, which is the start of the function unless it is
//! stated; 0 stands for no landing pad. The layout is that of LLVM's "Exception Handling Tables"
//! and of GCC's `unwind-c++` (`libstdc++-v3/libsupc++/eh_personality.cc`, `parse_lsda_header`).

use gimli::{EndianSlice, Pointer, Reader, ReaderOffset};

use super::Elf;
use super::frames::EntrySection;
use crate::base::Svma;
use crate::binary::Binary;

const OMITTED: u8 = 0xff;
// `DW_EH_PE_uleb128`, `DW_EH_PE_udata4`, `DW_EH_PE_sdata4`.
const ULEB128: u8 = 0x01;
const UDATA4: u8 = 0x03;
const SDATA4: u8 = 0x0b;

impl Binary {
    /// All landing pads, in order. A table ends where it is damaged.
    pub fn landing_pads(&self) -> Vec<Svma> {
        read(&self.elf).unwrap_or_default()
    }
}

fn read(elf: &Elf) -> Option<Vec<Svma>> {
    let tables = elf.section(b".gcc_except_table")?;
    let section = elf.section(b".eh_frame")?;
    let first = tables.address;
    let tables = elf.contents(".gcc_except_table", tables).ok()?;
    let bytes = elf.contents(".eh_frame", section).ok()?;
    let section = EntrySection::new(elf, section, &bytes);
    let mut pads = Vec::new();
    // Entries that share one table would have it read again and again.
    let mut room = tables.len();
    for entry in section.entries() {
        let Some(Pointer::Direct(table)) = entry.lsda() else {
            continue;
        };
        let Some(at) = table
            .checked_sub(first)
            .and_then(|at| usize::try_from(at).ok())
        else {
            continue;
        };
        let rest = tables.get(at..).unwrap_or_default();
        let rest = EndianSlice::new(rest, elf.endian);
        let before = rest.len();
        let mut left = rest;
        let _ = rows(&mut left, entry.initial_address(), &mut pads);
        room = match room.checked_sub(before - left.len()) {
            Some(room) => room,
            None => break,
        };
    }
    pads.sort_unstable();
    pads.dedup();
    Some(pads)
}

fn rows<R: Reader>(table: &mut R, function: u64, pads: &mut Vec<Svma>) -> gimli::Result<()> {
    let base = match table.read_u8()? {
        OMITTED => function,
        encoding => value(table, encoding)?,
    };
    if table.read_u8()? != OMITTED {
        table.read_uleb128()?;
    }
    let encoding = table.read_u8()?;
    let size = table.read_uleb128()?;
    let mut rows = table.split(R::Offset::from_u64(size)?)?;
    while !rows.is_empty() {
        value(&mut rows, encoding)?;
        value(&mut rows, encoding)?;
        let pad = value(&mut rows, encoding)?;
        rows.read_uleb128()?;
        if pad != 0 {
            pads.push(Svma(base.wrapping_add(pad)));
        }
    }
    Ok(())
}

fn value<R: Reader>(from: &mut R, encoding: u8) -> gimli::Result<u64> {
    match encoding {
        ULEB128 => from.read_uleb128(),
        UDATA4 => from.read_u32().map(u64::from),
        SDATA4 => from
            .read_i32()
            .map(|value| i64::from(value).cast_unsigned()),
        _ => Err(gimli::Error::UnknownPointerEncoding(gimli::DwEhPe(
            encoding,
        ))),
    }
}
