//! Calls, jumps and taken addresses of AArch64.
//!
//! ```text
//!   BL, B               x00101 imm26                    ± 128 MiB
//!   B.cond, BC.cond     01010100 imm19 x cond           ± 1 MiB
//!   CBZ, CBNZ           x011010x imm19 register         ± 1 MiB
//!   TBZ, TBNZ           x011011x bit imm14 register     ± 32 KiB
//!   BLR, BR             1101011 000 x 11111 000000 register 00000
//!   BLRAA…, BRAA…       the same with a key for the pointer
//!   ADR                 0 immlo2 10000 immhi19 register     ± 1 MiB
//!   ADRP                1 immlo2 10000 immhi19 register     pages of 4096 bytes
//!   ADD                 10010001 0 shift imm12 from to
//!   LDR                 1111100101 imm12 from to            units of 8 bytes
//! ```
//!
//! An address takes two instructions: `adrp` sets a register to the page, and `add` or `ldr` has
//! the place within. The page is known from its instruction up to the first that may change the
//! register, calls, or jumps without condition.

use super::flow::{Flow, Step, Wants};
use super::register_values::{Effect, Next};

/// Puts everything that the code in `bytes`, which lies at address `start`, refers to behind
/// `steps`. Returns the number of bytes behind the last whole instruction.
pub(super) fn walk(bytes: &[u8], start: u64, wants: &Wants, steps: &mut Vec<Step>) -> u64 {
    let words = bytes.chunks_exact(4);
    let rest = words.remainder().len() as u64;
    let mut pages: [Option<u64>; 32] = [None; 32];
    let mut at = start;
    for word in words {
        // Instructions are little-endian whatever the data are.
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let flow = flow(word, at).or_else(|| takes(word, at, &pages));
        if let Some(flow) = flow.filter(|flow| is_wanted(*flow, wants)) {
            steps.push(Step {
                at,
                length: 4,
                flow,
                field: at,
            });
        }
        // Hints and system registers are in the group of branches.
        if is_branch(word) && word >> 24 != 0xd5 {
            let goes_on = matches!(flow, Some(Flow::Jump(_))) && word & 0xfc00_0000 != 0x1400_0000;
            if !goes_on {
                pages = [None; 32];
            }
        } else {
            forget(&mut pages, writes(word));
            if word & 0x9f00_0000 == 0x9000_0000 {
                pages[(word & 31) as usize] =
                    Some((at & !0xfff).wrapping_add_signed(distance(word) << 12));
            }
        }
        at = at.wrapping_add(4);
    }
    rest
}

pub(super) fn effects(bytes: &[u8], start: u64) -> Vec<Effect> {
    let mut at = start;
    let words = bytes.chunks_exact(4).map(|word| {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let mut effect = Effect {
            at,
            reads: u32::MAX,
            writes: writes(word),
            ..Effect::default()
        };
        let from = (word >> 5 & 31) as u8;
        match flow(word, at) {
            Some(Flow::Jump(to)) if word & 0xfc00_0000 == 0x1400_0000 => {
                effect.next = Next::Jump(to)
            }
            Some(Flow::Jump(to)) => effect.next = Next::Branch(to),
            Some(Flow::CallUnknown) => {
                (effect.next, effect.reads, effect.through) = (Next::Call, 1 << from, Some(from));
            }
            Some(Flow::JumpUnknown) => {
                (effect.next, effect.reads, effect.through) =
                    (Next::Unknown, 1 << from, Some(from));
            }
            Some(_) => effect.next = Next::Call,
            // RET and ERET; SVC and the like change registers as calls do; BRK and UDF stop.
            None if word & 0xfe00_0000 == 0xd600_0000 => effect.next = Next::Stop,
            None if word & 0xffe0_0000 == 0xd420_0000 || word >> 16 == 0 => {
                effect.next = Next::Stop
            }
            None if word & 0xff00_0000 == 0xd400_0000 => effect.next = Next::Call,
            None if is_add(word) || is_load(word) || is_adr(word) => {
                effect.loads = Some((word & 31) as u8)
            }
            None => {}
        }
        at = at.wrapping_add(4);
        effect
    });
    words.collect()
}

fn is_wanted(flow: Flow, wants: &Wants) -> bool {
    !matches!(flow, Flow::Address(to) if !wants.addresses.contains(&to))
}

// Branches, exceptions and system instructions: `x101` in bits 28 to 25.
fn is_branch(word: u32) -> bool {
    word & 0x1c00_0000 == 0x1400_0000
}

fn is_adr(word: u32) -> bool {
    word & 0x9f00_0000 == 0x1000_0000
}

fn is_add(word: u32) -> bool {
    word & 0xff80_0000 == 0x9100_0000
}

fn is_load(word: u32) -> bool {
    word & 0xffc0_0000 == 0xf940_0000
}

fn distance(word: u32) -> i64 {
    let high = (word << 8).cast_signed() >> 13;
    i64::from(high << 2 | (word >> 29 & 3).cast_signed())
}

fn takes(word: u32, at: u64, pages: &[Option<u64>; 32]) -> Option<Flow> {
    if is_adr(word) {
        return Some(Flow::Address(at.wrapping_add_signed(distance(word))));
    }
    let page = || pages[(word >> 5 & 31) as usize];
    let low = u64::from(word >> 10 & 0xfff);
    if is_add(word) {
        let low = if word & 0x0040_0000 != 0 {
            low << 12
        } else {
            low
        };
        return page().map(|page| Flow::Address(page.wrapping_add(low)));
    }
    if is_load(word) {
        return page().map(|page| Flow::LoadSlot(page.wrapping_add(low * 8)));
    }
    None
}

// The registers that an instruction changes or may change. Loads and stores (`x1x0` in bits 28 to
// 25) may have up to four, and only read some of them; all others have at most one.
fn writes(word: u32) -> u32 {
    let bit = |low: u32| 1u32 << (word >> low & 31);
    if word & 0x0a00_0000 == 0x0800_0000 && !is_load(word) {
        return bit(0) | bit(5) | bit(10) | bit(16);
    }
    if is_branch(word) && word & 0xff00_0000 != 0xd500_0000 {
        return 0;
    }
    bit(0)
}

fn forget(pages: &mut [Option<u64>; 32], writes: u32) {
    for (register, page) in pages.iter_mut().enumerate() {
        if writes >> register & 1 != 0 {
            *page = None;
        }
    }
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

    #[test]
    fn an_address_takes_two_instructions() {
        let steps = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut steps = Vec::new();
            walk(&bytes, 0x40_1000, &Wants::default(), &mut steps);
            steps
                .iter()
                .map(|step| (step.at, step.flow))
                .collect::<Vec<_>>()
        };
        let adrp = 0xb000_0008; // adrp x8, 0x402000
        let add = 0x9100_4100; // add x0, x8, #0x10
        let ldr = 0xf940_0900; // ldr x0, [x8, #0x10]
        let taken = [(0x40_1004, Flow::Address(0x40_2010))];
        let loaded = [(0x40_1004, Flow::LoadSlot(0x40_2010))];
        assert_eq!(steps(&[adrp, add]), taken);
        assert_eq!(steps(&[adrp, ldr]), loaded);
        assert_eq!(steps(&[add, ldr]), []);
        // mov x8, x1; ldp x1, x8, [sp]; ret
        for change in [0xaa01_03e8, 0xa940_23e1, 0xd65f_03c0] {
            assert_eq!(steps(&[adrp, change, add]), [], "{change:08x}");
        }
        // cbz x0
        assert_eq!(steps(&[adrp, 0xb400_0080, add]).len(), 2);
        // adr x0, 0x400ffc
        assert_eq!(
            steps(&[0x10ff_ffe0]),
            [(0x40_1000, Flow::Address(0x40_0ffc))]
        );
    }
}
