//! The usual forms of calls, by their bytes alone.
//!
//! ```text
//!   e8 distance                     call of an address
//!   ff 15 distance                  call of what a slot holds
//!   [REX] ff /2 ModRM SIB disp      call of what memory holds that a register points to
//! ```

use super::shape::operand_size;
use crate::scan::flow::Flow;

// The length of the longest of these forms without a prefix.
pub(in crate::scan) const LONGEST: usize = 7;

/// What the call leads to that ends with these bytes, in front of the address `behind`, if they
/// have the form of one. Calls of registers are left out.
pub(in crate::scan) fn at_end(bytes: [u8; LONGEST], behind: u64) -> Option<Flow> {
    let [_, second, third, a, b, c, d] = bytes;
    let distance = i32::from_le_bytes([a, b, c, d]);
    let to = behind.wrapping_add_signed(distance.into());
    if third == 0xe8 {
        return Some(Flow::Call(to));
    }
    if (second, third) == (0xff, 0x15) {
        return Some(Flow::CallSlot(to));
    }
    let mut ends = (0..LONGEST).filter_map(|from| bytes.get(from..));
    let is_call = |end: &[u8]| {
        let &[0xff, modrm, ref rest @ ..] = end else {
            return false;
        };
        let sib = rest.first().copied().unwrap_or(0);
        let length = operand_size(modrm, sib).wrapping_add(1);
        length as usize == end.len() && goes_through_memory(end)
    };
    ends.any(is_call).then_some(Flow::CallUnknown)
}

/// Whether an instruction calls what memory holds to which a register points.
pub(in crate::scan) fn goes_through_memory(instruction: &[u8]) -> bool {
    let opcode = match instruction {
        [0x40..=0x4f, rest @ ..] => rest,
        all => all,
    };
    let &[0xff, modrm, ..] = opcode else {
        return false;
    };
    let (mode, operation, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
    let is_at_fixed_distance = (mode, rm) == (0, 5);
    operation == 2 && mode != 3 && !is_at_fixed_distance
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of an instruction behind as many others as there is room for.
    fn end(instruction: &[u8]) -> [u8; LONGEST] {
        let mut bytes = [0x90; LONGEST];
        bytes[LONGEST - instruction.len()..].copy_from_slice(instruction);
        bytes
    }

    #[test]
    fn calls_are_known_by_their_last_bytes() {
        let cases: [(&[u8], Option<Flow>); 11] = [
            (&[0xe8, 0xfb, 0xff, 0xff, 0xff], Some(Flow::Call(0xffb))),
            (&[0xff, 0x15, 0x10, 0, 0, 0], Some(Flow::CallSlot(0x1010))),
            (&[0xff, 0x10], Some(Flow::CallUnknown)),
            (&[0x41, 0xff, 0x52, 0x18], Some(Flow::CallUnknown)),
            (&[0xff, 0x14, 0xc8], Some(Flow::CallUnknown)),
            (&[0xff, 0x54, 0x24, 0x18], Some(Flow::CallUnknown)),
            (&[0xff, 0x90, 0, 1, 0, 0], Some(Flow::CallUnknown)),
            (&[0xff, 0x14, 0xc5, 0, 1, 0, 0], Some(Flow::CallUnknown)),
            // call *%rax, jmp *8(%rax), push 8(%rax)
            (&[0xff, 0xd0], None),
            (&[0xff, 0x60, 8], None),
            (&[0xff, 0x70, 8], None),
        ];
        for (instruction, flow) in cases {
            assert_eq!(at_end(end(instruction), 0x1000), flow, "{instruction:x?}");
        }
    }

    #[test]
    fn only_calls_of_what_a_register_points_to_go_through_memory() {
        for call in [&[0xff, 0x50, 8][..], &[0x41, 0xff, 0x14, 0x24]] {
            assert!(goes_through_memory(call), "{call:x?}");
        }
        let others: [&[u8]; 5] = [
            &[0xff, 0xd0],
            &[0xff, 0x15, 0, 0, 0, 0],
            &[0xff, 0x60, 8],
            &[0x48, 0x89, 0xc3],
            &[],
        ];
        for other in others {
            assert!(!goes_through_memory(other), "{other:x?}");
        }
    }
}
