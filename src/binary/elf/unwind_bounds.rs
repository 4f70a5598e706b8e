//! The bounds of functions in `.eh_frame`: what is left of them in a stripped program.

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde, EhFrame, EndianSlice,
    Reader, UnwindSection,
};

use super::Elf;
use super::frames::common_entry;
use super::functions::{FunctionSymbol, Functions};

/// Adds a nameless function for each entry that describes code.
pub(in crate::binary) fn read(elf: &Elf, into: &mut Functions) {
    let Some(section) = elf.section(b".eh_frame") else {
        return;
    };
    let bytes = match elf.contents(".eh_frame", section) {
        Ok(bytes) => bytes,
        Err(error) => {
            into.problems.push(error.to_string());
            return;
        }
    };
    let address = |name: &[u8]| elf.section(name).map_or(0, |section| section.address);
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address)
        .set_eh_frame_hdr(address(b".eh_frame_hdr"))
        .set_text(address(b".text"))
        .set_got(address(b".got"));
    let mut frames = EhFrame::from(EndianSlice::new(&bytes, elf.endian));
    frames.set_address_size(if elf.wide { 8 } else { 4 });
    let code = elf.code_ranges();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let parsed = partial.parse(|section, bases, at| common_entry(section, &bytes, bases, at));
        let Ok(entry) = parsed else {
            continue;
        };
        let (start, size) = (entry.initial_address(), entry.len());
        let after = code.partition_point(|&(begin, _)| begin <= start);
        let section = after.checked_sub(1).and_then(|i| code.get(i));
        let room = section.map_or(0, |&(_, end)| end.saturating_sub(start));
        if size > 0 && room > 0 {
            let has_frame = has_frame(entry.instructions(&frames, &bases));
            into.push(FunctionSymbol::unwind(start, size.min(room), has_frame));
        }
    }
}

/// Whether the instructions of an entry, which change what its common entry says of a function's
/// first byte, do so before they go on to the next byte.
pub(in crate::binary) fn has_frame<R: Reader>(
    mut instructions: CallFrameInstructionIter<'_, R>,
) -> bool {
    use CallFrameInstruction as Change;
    while let Ok(Some(instruction)) = instructions.next() {
        match instruction {
            Change::AdvanceLoc { .. } | Change::SetLoc { .. } => return false,
            Change::DefCfa { .. }
            | Change::DefCfaSf { .. }
            | Change::DefCfaRegister { .. }
            | Change::DefCfaOffset { .. }
            | Change::DefCfaOffsetSf { .. }
            | Change::Offset { .. }
            | Change::OffsetExtendedSf { .. }
            | Change::NegateRaState => return true,
            _ => {}
        }
    }
    false
}
