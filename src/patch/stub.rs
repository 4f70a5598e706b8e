//! The stubs that count.
//!
//! ```text
//!   lock incq counter(%rip)      f0 48 ff 05 distance
//!   jmp function                 e9 distance
//!   or jmp *slot(%rip)           ff 25 distance
//! ```
//!
//! `incq` writes all arithmetic flags but the carry. Where the callee reads them, the stub saves them:
//! `pushfq` (9c) before, `popfq` (9d) behind. Nothing is lost below the stack pointer: behind a
//! call lies nothing there yet, and before a tail call nothing any more.

use super::form::{CallForm, Form, reach};
use crate::perfdata::CountedImage;

/// The size of a stub, in bytes.
pub const STUB: usize = CountedImage::STUB_SIZE as usize;
/// What is behind the last instruction of a stub: `int3`.
const UNUSED: u8 = 0xcc;

/// Returns the stub at address `at` that adds one to the word at `counter` and goes on as `call`
/// did; `None` if something is out of reach.
pub(super) fn stub(call: CallForm, saves_flags: bool, at: u64, counter: u64) -> Option<[u8; STUB]> {
    let mut bytes = Vec::with_capacity(STUB);
    let distance = |bytes: &mut Vec<u8>, to: u64| {
        let behind = at.wrapping_add(bytes.len() as u64 + 4);
        bytes.extend(reach(behind, to)?.to_le_bytes());
        Some(())
    };
    if saves_flags {
        bytes.push(0x9c);
    }
    bytes.extend([0xf0, 0x48, 0xff, 0x05]);
    distance(&mut bytes, counter)?;
    if saves_flags {
        bytes.push(0x9d);
    }
    match call.form {
        Form::Direct => bytes.push(0xe9),
        Form::CallSlot | Form::JumpSlot => bytes.extend([0xff, 0x25]),
    }
    distance(&mut bytes, call.to)?;
    bytes.resize(STUB, UNUSED);
    bytes.try_into().ok()
}

/// Returns the first eight bytes of a stub that leads where this one does, but counts no more; `None` if
/// these bytes are more than one instruction of this one, so that a thread may be between them.
///
/// What was behind the counting instruction comes in its place:
///
/// ```text
///   lock incq counter(%rip)      becomes   jmp function, or jmp *slot(%rip), and two or three
///   jmp function                           bytes that are not executed
/// ```
pub(super) fn without_count(stub: &[u8]) -> Option<[u8; 8]> {
    let (counting, jump) = stub.split_first_chunk::<8>()?;
    if !counting.starts_with(&[0xf0, 0x48, 0xff, 0x05]) {
        return None;
    }
    let opcode = match jump {
        [0xe9, ..] => 1,
        [0xff, 0x25, ..] => 2,
        _ => return None,
    };
    let distance = jump.get(opcode..)?.first_chunk::<4>()?;
    let distance = i32::from_le_bytes(*distance).checked_add(8)?;
    let mut bytes = [UNUSED; 8];
    let (new, place) = bytes.split_at_mut_checked(opcode)?;
    new.copy_from_slice(jump.get(..opcode)?);
    place.get_mut(..4)?.copy_from_slice(&distance.to_le_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_that_was_given_up_leads_where_it_led() {
        let at = 0x10_0000;
        for (form, length) in [(Form::Direct, 5), (Form::CallSlot, 6), (Form::JumpSlot, 6)] {
            let is_jump = form == Form::JumpSlot;
            let to = 0x40_1230;
            let call = CallForm { form, is_jump, to };
            let counting = stub(call, false, at, 0x20_0000).unwrap();
            let bytes = without_count(&counting).unwrap();
            let jump = CallForm::read(&bytes[..length], at).unwrap();
            assert!(jump.is_jump && jump.to == to, "{jump:x?}");
            assert_eq!(jump.form == Form::Direct, form == Form::Direct);
            // A thread may be behind the counter: that jump is as before. Once is enough.
            let mut given_up = counting;
            given_up[..8].copy_from_slice(&bytes);
            assert_eq!(given_up[8..], counting[8..]);
            assert_eq!(without_count(&given_up), None);
        }
        // A thread may have saved the flags.
        let call = CallForm::read(&[0xe8, 0, 0, 0, 0], 0x1000).unwrap();
        let saves = stub(call, true, at, 0x20_0000).unwrap();
        assert_eq!(without_count(&saves), None);
    }
}
