//! Whether code reads flags of the processor that were set before it was entered.
//!
//! Compilers never let flags live across a call. Assembly written by hand may: it compares, calls,
//! and the callee jumps by what was compared; or it compares, calls something that leaves the flags
//! alone, and jumps afterwards.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, RflagsBits};

use super::code::CodeBytes;

// The flags that counting writes: all arithmetic ones but the carry.
const WRITTEN: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;
// How many instructions are looked at. Most functions write flags within the first few.
const STEPS: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flags {
    /// They are overwritten, or nothing shows that they are read.
    Dead,
    Read,
    /// They are as they were when the code returns.
    Kept,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_reads_flags_before_it_writes_them_is_found() {
        let cases: [(&[u8], Flags); 8] = [
            // sete %al; ret
            (&[0x0f, 0x94, 0xc0, 0xc3], Flags::Read),
            // mov $1,%eax; jne
            (&[0xb8, 1, 0, 0, 0, 0x75, 0x00, 0xc3], Flags::Read),
            // sub $8,%rsp; sete %al
            (&[0x48, 0x83, 0xec, 0x08, 0x0f, 0x94, 0xc0], Flags::Dead),
            // inc %eax leaves the carry, which counting does not write either: setc %al
            (&[0xff, 0xc0, 0x0f, 0x92, 0xc0], Flags::Dead),
            // endbr64; ret
            (&[0xf3, 0x0f, 0x1e, 0xfa, 0xc3], Flags::Kept),
            // jmp to the sete behind a ret
            (&[0xeb, 0x01, 0xc3, 0x0f, 0x94, 0xc0], Flags::Read),
            // pushfq
            (&[0x9c], Flags::Read),
            // Not an instruction.
            (&[0x06], Flags::Dead),
        ];
        for (bytes, flags) in cases {
            let code = CodeBytes::of(0x1000, bytes);
            assert_eq!(at(&code, 0x1000), flags, "{bytes:x?}");
        }
    }
}
