//! Calls and jumps of AArch64.
//!
//! ```text
//!   BL, B               x00101 imm26                    ± 128 MiB
//!   B.cond, BC.cond     01010100 imm19 x cond           ± 1 MiB
//!   CBZ, CBNZ           x011010x imm19 register         ± 1 MiB
//!   TBZ, TBNZ           x011011x bit imm14 register     ± 32 KiB
//!   BLR, BR             1101011 000 x 11111 000000 register 00000
//!   BLRAA…, BRAA…       the same with a key for the pointer
//! ```

use super::flow::{Flow, Step};

/// Hands on every step out of the straight line in `bytes`, which lie at address `start`. Returns
/// the number of bytes behind the last whole instruction.
pub(super) fn walk(bytes: &[u8], start: u64, mut step: impl FnMut(Step)) -> u64 {
    let words = bytes.chunks_exact(4);
    let rest = words.remainder().len() as u64;
    let mut at = start;
    for word in words {
        // Instructions are little-endian whatever the data are.
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        if let Some(flow) = flow(word, at) {
            step(Step {
                at,
                length: 4,
                flow,
                field: at,
            });
        }
        at = at.wrapping_add(4);
    }
    rest
}

fn flow(word: u32, at: u64) -> Option<Flow> {
    // A field of `bits` bits from bit `low` on is a signed number of words.
    let target = |low: u32, bits: u32| {
        let words = (word << (32 - bits - low)).cast_signed() >> (32 - bits);
        at.wrapping_add_signed(i64::from(words) * 4)
    };
    if word & 0xfc00_0000 == 0x9400_0000 {
        Some(Flow::Call(target(0, 26)))
    } else if word & 0xfc00_0000 == 0x1400_0000 {
        Some(Flow::Jump(target(0, 26)))
    } else if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 {
        Some(Flow::Jump(target(5, 19)))
    } else if word & 0x7e00_0000 == 0x3600_0000 {
        Some(Flow::Jump(target(5, 14)))
    } else if word & 0xfeff_f000 == 0xd63f_0000 {
        Some(Flow::CallUnknown)
    } else if word & 0xfeff_f000 == 0xd61f_0000 {
        Some(Flow::JumpUnknown)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_jumps_lead_forward_and_backward() {
        let cases = [
            (0x9400_0004, Some(Flow::Call(0x1010))), // bl
            (0x97ff_fffc, Some(Flow::Call(0xff0))),  // bl
            (0x1400_0004, Some(Flow::Jump(0x1010))), // b
            (0x17ff_fffc, Some(Flow::Jump(0xff0))),  // b
            (0x5400_0081, Some(Flow::Jump(0x1010))), // b.ne
            (0xb4ff_ff80, Some(Flow::Jump(0xff0))),  // cbz x0
            (0x3707_ff80, Some(Flow::Jump(0xff0))),  // tbnz w0, #0
            (0xd63f_0260, Some(Flow::CallUnknown)),  // blr x19
            (0xd73f_0a60, Some(Flow::CallUnknown)),  // blraa x19, x0
            (0xd61f_0220, Some(Flow::JumpUnknown)),  // br x17
            (0xd71f_0a30, Some(Flow::JumpUnknown)),  // braa x17, x16
            (0xd65f_03c0, None),                     // ret
            (0xd400_0001, None),                     // svc #0
            (0xd503_201f, None),                     // nop
        ];
        for (word, expected) in cases {
            assert_eq!(flow(word, 0x1000), expected, "{word:08x}");
        }
    }
}
