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
