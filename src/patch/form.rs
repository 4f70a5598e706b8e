//! The forms of calls that can be redirected to a stub, and their new bytes.
//!
//! ```text
//!   [67|f2] e8 distance      call function      the same, but the distance leads to the stub
//!   [f2] e9 distance         jmp function       the same
//!   0f 8x distance           jcc function       the same
//!   [f2] ff 15 distance      call *slot         [f2] 67 e8 distance
//!   [f2] ff 25 distance      jmp *slot          [f2] e9 distance 90
//! ```
//!
//! An instruction keeps its place and its length, so a call returns to where it returned before.

/// The length of the longest form, in bytes.
pub const LONGEST: usize = 8;

/// A direct call or jump, or one through a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A call, an unconditional or a conditional jump: only its distance changes.
    Direct,
    /// `call *slot(%rip)`.
    CallSlot,
    /// `jmp *slot(%rip)`.
    JumpSlot,
}

/// An instruction that can be redirected to a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallForm {
    pub form: Form,
    pub is_jump: bool,
    /// Where it leads: to a function, or to the slot that holds the function's address.
    pub to: u64,
}

impl CallForm {
    /// Reads the instruction of exactly these bytes at the address `at`; `None` if it has none of
    /// the forms.
    ///
    /// ```
    /// use proftool::patch::{CallForm, Form};
    /// let call = CallForm::read(&[0xe8, 0x10, 0, 0, 0], 0x1000).unwrap();
    /// assert_eq!((call.form, call.is_jump, call.to), (Form::Direct, false, 0x1015));
    /// // A jump of two bytes cannot reach a stub.
    /// assert!(CallForm::read(&[0xeb, 0x10], 0x1000).is_none());
    /// ```
    pub fn read(instruction: &[u8], at: u64) -> Option<CallForm> {
        if instruction.len() > LONGEST {
            return None;
        }
        let (opcode, distance) = instruction.split_last_chunk::<4>()?;
        let (form, is_jump) = match opcode {
            [prefix @ .., 0xe8] if may_precede_call(prefix) => (Form::Direct, false),
            [0xe9] | [0xf2, 0xe9] => (Form::Direct, true),
            [0x0f, 0x80..=0x8f] => (Form::Direct, true),
            [0xff, 0x15] | [0xf2, 0xff, 0x15] => (Form::CallSlot, false),
            [0xff, 0x25] | [0xf2, 0xff, 0x25] => (Form::JumpSlot, true),
            _ => return None,
        };
        let end = at.wrapping_add(instruction.len() as u64);
        let distance = i64::from(i32::from_le_bytes(*distance));
        Some(CallForm {
            form,
            is_jump,
            to: end.wrapping_add_signed(distance),
        })
    }

    /// Returns the bytes that lead to `stub` in place of `instruction`, which is at the address
    /// `at` and has this form; `None` if the stub is out of reach.
    pub fn led_to(self, stub: u64, instruction: &[u8], at: u64) -> Option<[u8; LONGEST]> {
        let length = instruction.len();
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..length)?.copy_from_slice(instruction);
        let opcode = length.checked_sub(6);
        let distance = match self.form {
            Form::Direct => length.checked_sub(4)?,
            Form::CallSlot => {
                // The prefix 67 means nothing here. It makes up for the shorter opcode.
                *bytes.get_mut(opcode?)? = 0x67;
                *bytes.get_mut(opcode? + 1)? = 0xe8;
                length.checked_sub(4)?
            }
            Form::JumpSlot => {
                *bytes.get_mut(opcode?)? = 0xe9;
                *bytes.get_mut(length.checked_sub(1)?)? = 0x90;
                length.checked_sub(5)?
            }
        };
        let behind = at.wrapping_add(distance as u64 + 4);
        let field = bytes.get_mut(distance..distance + 4)?;
        field.copy_from_slice(&reach(behind, stub)?.to_le_bytes());
        Some(bytes)
    }
}

// Prefixes that linkers and compilers put before a direct call, and that change nothing: 67 where a
// call through a slot became a direct one, f2 for bounds checks, and those that pad calls of
// `__tls_get_addr`.
fn may_precede_call(prefix: &[u8]) -> bool {
    matches!(
        prefix,
        [] | [0x67] | [0xf2] | [0x48] | [0x66, 0x48] | [0x66, 0x66, 0x48]
    )
}

pub(super) fn reach(from: u64, to: u64) -> Option<i32> {
    i32::try_from(to.wrapping_sub(from).cast_signed()).ok()
}
