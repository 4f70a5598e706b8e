//! The stubs that count.
//!
//! ```text
//!   lock incq counter(%rip)      f0 48 ff 05 distance
//!   jmp function                 e9 distance
//!   or jmp *slot(%rip)           ff 25 distance
//! ```
//!
//! Locking takes most of the time. As long as only one thread counts, a prefix that means nothing
//! (3e) is in the place of `lock` (f0). Where each of several threads has counters of its own, it
//! is the prefix of the segment `gs` (65): the base of that segment is added to the address, and
//! each thread has another one, which is the distance from the counters to its own.
//!
//! `incq` writes all arithmetic flags but the carry. Where the callee reads them, the stub saves
//! them: `pushfq` (9c) before, `popfq` (9d) behind. Nothing is lost below the stack pointer: behind
//! a call lies nothing there yet, and before a tail call nothing any more.

use super::form::{CallForm, Form, reach};
use crate::perfdata::CountedImage;

/// Who adds to the counters of stubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adding {
    Alone,
    /// Several threads, each to counters of its own: the base of its segment `gs` is the distance
    /// to them.
    Apart,
    /// Several threads to the same counters: they lock them.
    Together,
}

/// The size of a stub, in bytes.
pub const STUB: usize = CountedImage::STUB_SIZE as usize;
const LOCK: u8 = 0xf0;
// A prefix that means nothing here: addresses in the segment of data, as all are.
const NO_LOCK: u8 = 0x3e;
// The prefix by which the base of the thread's segment is added to the address.
const OWN: u8 = 0x65;
// How an instruction goes on that counts.
const COUNTS: [u8; 3] = [0x48, 0xff, 0x05];
const SAVE_FLAGS: u8 = 0x9c;
const RESTORE_FLAGS: u8 = 0x9d;
// What is behind the last instruction of a stub: `int3`.
const UNUSED: u8 = 0xcc;

/// Returns the stub at address `at` that adds one to the word at `counter` and goes on as `call`
/// did; `None` if something is out of reach.
pub(super) fn stub(call: CallForm, saves_flags: bool, at: u64, counter: u64) -> Option<[u8; STUB]> {
    let mut bytes = Bytes::default();
    let distance = |bytes: &mut Bytes, to: u64| {
        let behind = at.wrapping_add(bytes.length as u64 + 4);
        bytes.put(&reach(behind, to)?.to_le_bytes())
    };
    if saves_flags {
        bytes.put(&[SAVE_FLAGS])?;
    }
    bytes.put(&[LOCK])?;
    bytes.put(&COUNTS)?;
    distance(&mut bytes, counter)?;
    if saves_flags {
        bytes.put(&[RESTORE_FLAGS])?;
    }
    match call.form {
        Form::Direct => bytes.put(&[0xe9])?,
        Form::CallSlot | Form::JumpSlot => bytes.put(&[0xff, 0x25])?,
    }
    distance(&mut bytes, call.to)?;
    Some(bytes.bytes)
}

struct Bytes {
    bytes: [u8; STUB],
    length: usize,
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes {
            bytes: [UNUSED; STUB],
            length: 0,
        }
    }
}

impl Bytes {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.length + bytes.len();
        let place = self.bytes.get_mut(self.length..end)?;
        place.copy_from_slice(bytes);
        self.length = end;
        Some(())
    }
}

/// Returns the first eight bytes of a stub that leads where this one does, but counts no more;
/// `None` if these bytes are more than one instruction of this one, so that a thread may be between
/// them.
///
/// What was behind the counting instruction comes in its place:
///
/// ```text
///   lock incq counter(%rip)      becomes   jmp function, or jmp *slot(%rip), and two or three
///   jmp function                           bytes that are not executed
/// ```
pub(crate) fn without_count(stub: &[u8]) -> Option<[u8; 8]> {
    let (counting, jump) = stub.split_first_chunk::<8>()?;
    let [LOCK | NO_LOCK | OWN, instruction @ ..] = counting else {
        return None;
    };
    if !instruction.starts_with(&COUNTS) {
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

/// Makes stubs, one after the other, add to their counters in this way. Those that were given up
/// are as they were.
pub(crate) fn set_adding(stubs: &mut [u8], adding: Adding) {
    let new = match adding {
        Adding::Alone => NO_LOCK,
        Adding::Apart => OWN,
        Adding::Together => LOCK,
    };
    for stub in stubs.chunks_exact_mut(STUB) {
        let place = usize::from(stub.first() == Some(&SAVE_FLAGS));
        if let Some([prefix @ (LOCK | NO_LOCK | OWN), rest @ ..]) = stub.get_mut(place..)
            && rest.starts_with(&COUNTS)
        {
            *prefix = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_count_alone_apart_and_together() {
        let at = 0x10_0000;
        let call = CallForm::read(&[0xe8, 0, 0, 0, 0], 0x1000).unwrap();
        let plain = stub(call, false, at, 0x20_0000).unwrap();
        let saves = stub(call, true, at + 16, 0x20_0008).unwrap();
        let mut given_up = plain;
        given_up[..8].copy_from_slice(&without_count(&plain).unwrap());
        let locked = [plain, saves, given_up].concat();
        let mut stubs = locked.clone();
        set_adding(&mut stubs, Adding::Alone);
        let differ: Vec<usize> = (0..stubs.len())
            .filter(|&i| stubs[i] != locked[i])
            .collect();
        assert_eq!(differ, [0, 17]);
        assert_eq!((stubs[0], stubs[17]), (0x3e, 0x3e));
        // One that counts without a lock is given up as well.
        let first = stubs[..16].try_into().unwrap();
        assert_eq!(without_count(first), without_count(&plain));
        set_adding(&mut stubs, Adding::Apart);
        assert_eq!((stubs[0], stubs[17]), (0x65, 0x65));
        let first = stubs[..16].try_into().unwrap();
        assert_eq!(without_count(first), without_count(&plain));
        set_adding(&mut stubs, Adding::Together);
        assert_eq!(stubs, locked);
    }

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
