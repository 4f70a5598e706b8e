//! The bounds of functions in `.eh_frame`: what is left of them in a stripped program.

use gimli::{CallFrameInstruction, CallFrameInstructionIter, Reader};

use super::Elf;
use super::frames::EntrySection;
use super::functions::{FunctionSymbol, Functions};

// A nameless function for each entry that describes code.
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
    let section = EntrySection::new(elf, section, &bytes);
    let code = elf.code_ranges();
    for entry in section.entries() {
        let (start, size) = (entry.initial_address(), entry.len());
        let after = code.partition_point(|&(begin, _)| begin <= start);
        let part = after.checked_sub(1).and_then(|i| code.get(i));
        let room = part.map_or(0, |&(_, end)| end.saturating_sub(start));
        if size > 0 && room > 0 {
            let has_frame = has_frame(entry.instructions(&section.frames, &section.bases));
            into.push(FunctionSymbol::unwind(start, size.min(room), has_frame));
        }
    }
}

// The instructions of an entry change what its common entry says of a function's first byte, if
// they do so before they go on to the next byte.
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
