//! Whether code reads flags of the processor that were set before it was entered.
//!
//! Compilers never let flags live across a call. Assembly written by hand may: it compares, calls, and
//! the callee jumps by what was compared; or it compares, calls something that leaves the flags
//! alone, and jumps afterwards.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, RflagsBits};

use super::code::CodeBytes;

/// The flags that counting writes: all arithmetic ones but the carry.
const WRITTEN: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;
/// How many instructions are looked at. Most functions write flags within the first few.
const STEPS: usize = 48;

/// What becomes of the flags that were set before some code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flags {
    /// They are overwritten, or nothing shows that they are read.
    Dead,
    /// They are read.
    Read,
    /// They are as they were when the code returns.
    Kept,
}

/// Follows the code from an address on.
pub(super) fn at(code: &CodeBytes, mut address: u64) -> Flags {
    let mut live = WRITTEN;
    let mut instruction = Instruction::default();
    for _ in 0..STEPS {
        let Some(bytes) = code.from(address) else {
            return Flags::Dead;
        };
        let window = bytes.get(..16).unwrap_or(bytes);
        let mut decoder = Decoder::with_ip(64, window, address, DecoderOptions::NONE);
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return Flags::Dead;
        }
        if instruction.rflags_read() & live != 0 {
            return Flags::Read;
        }
        live &= !instruction.rflags_modified();
        if live == 0 {
            return Flags::Dead;
        }
        address = match instruction.flow_control() {
            FlowControl::Next => instruction.next_ip(),
            FlowControl::UnconditionalBranch | FlowControl::Call => {
                instruction.near_branch_target()
            }
            FlowControl::Return => return Flags::Kept,
            _ => return Flags::Dead,
        };
    }
    Flags::Dead
}
