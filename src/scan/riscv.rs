//! Calls, jumps and taken addresses of RISC-V, compressed instructions included.
//!
//! ```text
//!   JAL      imm20 rd 1101111            ± 1 MiB, imm20 = 20|10:1|11|19:12
//!   JALR     imm12 rs1 000 rd 1100111
//!   Bxx      imm7 rs2 rs1 xxx imm5 1100011   ± 4 KiB, imm7 imm5 = 12|10:5 4:1|11
//!   AUIPC    imm20 rd 0010111
//!   C.J      101 imm11 01                ± 2 KiB, imm11 = 11|4|9:8|10|6|7|3:1|5
//!   C.JAL    001 imm11 01                the same, only with 32-bit addresses
//!   C.BEQZ…  11x imm3 rs1 imm5 01        ± 256 B, imm3 imm5 = 8|4:3 7:6|2:1|5
//!   C.JR     1000 rs1 00000 10
//!   C.JALR   1001 rs1 00000 10
//! ```
//!
//! The RISC-V Instruction Set Manual, volume I, chapters 2 and 16. An instruction is of two bytes
//! unless its lowest two bits are set. What links `ra` (x1) or `t0` (x5) calls; those two are
//! also what a return jumps to (table 2.1 there).
//!
//! An address of 32 bits distance takes two instructions: `auipc` sets a register to the upper
//! part, and the next one that uses the register has the lower part.
//!
//! ```text
//!   auipc ra,hi ; jalr ra,lo(ra)    a call       auipc a0,hi ; addi a0,a0,lo   an address
//!   auipc t1,hi ; jalr x0,lo(t1)    a jump       auipc a0,hi ; ld a0,lo(a0)    a pointer is loaded
//! ```
//!
//! The upper part is known from its instruction up to the first that may change the register,
//! calls or jumps.

use super::flow::{Flow, Step, Wants};
use super::register_values::{Effect, Next};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Bits32,
    Bits64,
}

/// What an instruction does, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Sets a register to this value.
    Set(u8, u64),
    /// `rd = rs + distance`.
    Add(u8, u8, i64),
    /// `rd = *(rs + distance)`, as wide as an address.
    Load(u8, u8, i64),
    /// `goto distance(rs)`, with a link in `rd`.
    Through(u8, u8, i64),
    /// `goto address`, with a link in `rd`.
    Jump(u8, u64),
    Branch(u64),
    Other,
}

#[derive(Clone, Copy)]
struct Read {
    length: u8,
    kind: Kind,
    writes: u32,
}

/// Decodes code that lies at address `start`, and puts everything that it refers to behind
/// `steps`. Returns the number of bytes that are no instructions.
pub(super) fn walk(
    width: Width,
    bytes: &[u8],
    start: u64,
    wants: &Wants,
    steps: &mut Vec<Step>,
) -> u64 {
    // What registers are set to, and where.
    let mut known: [Option<(u64, u64)>; 32] = [None; 32];
    let (mut index, mut undecoded) = (0, 0);
    while let Some(rest) = bytes.get(index..).filter(|rest| rest.len() >= 2) {
        let at = start.wrapping_add(index as u64);
        let Some(read) = read(width, rest, at) else {
            // Instructions begin at even addresses.
            undecoded += 2;
            index += 2;
            known = [None; 32];
            continue;
        };
        let value = |register: u8| known.get(usize::from(register)).copied().flatten();
        let sum = |(value, set): (u64, u64), distance: i64| {
            (width.wrap(value.wrapping_add_signed(distance)), set)
        };
        let mut new = None;
        let refers = match read.kind {
            Kind::Set(register, address) => {
                new = Some((register, (address, at)));
                None
            }
            Kind::Add(_, from, distance) => value(from).map(|value| {
                let (address, set) = sum(value, distance);
                (Flow::Address(address), set)
            }),
            Kind::Load(_, from, distance) => value(from).map(|value| {
                let (slot, set) = sum(value, distance);
                (Flow::LoadSlot(slot), set)
            }),
            // The two are one instruction to the assembler: nothing comes between.
            Kind::Through(link, from, distance) => {
                let pair = value(from).filter(|&(_, set)| set.wrapping_add(4) == at);
                match (is_link(link), pair.map(|value| sum(value, distance))) {
                    (true, Some((address, set))) => Some((Flow::Call(address), set)),
                    (false, Some((address, set))) => Some((Flow::Jump(address), set)),
                    (true, None) => Some((Flow::CallUnknown, at)),
                    (false, None) if is_link(from) => None,
                    (false, None) => Some((Flow::JumpUnknown, at)),
                }
            }
            Kind::Jump(link, to) if is_link(link) => Some((Flow::Call(to), at)),
            Kind::Jump(_, to) | Kind::Branch(to) => Some((Flow::Jump(to), at)),
            Kind::Other => None,
        };
        match read.kind {
            Kind::Through(..) | Kind::Jump(..) => known = [None; 32],
            _ => {
                for register in (0..32).filter(|register| read.writes >> register & 1 != 0) {
                    known[register] = None;
                }
            }
        }
        if let Some((register, set)) = new.filter(|&(register, _)| register != 0)
            && (wants.immediates || is_relative(rest))
        {
            known[usize::from(register & 31)] = Some(set);
        }
        index += usize::from(read.length);
        if let Some((flow, field)) = refers {
            let elsewhere = matches!(flow, Flow::Address(to) if !wants.addresses.contains(&to));
            if !elsewhere {
                steps.push(Step {
                    at,
                    length: read.length,
                    flow,
                    field,
                });
            }
        }
    }
    undecoded + bytes.len().saturating_sub(index) as u64
}

/// Returns all instructions and what they do with registers; `None` if some bytes are not an
/// instruction.
pub(super) fn effects(width: Width, bytes: &[u8], start: u64) -> Option<Vec<Effect>> {
    let mut effects = Vec::with_capacity(bytes.len() / 3);
    let mut index = 0;
    while let Some(rest) = bytes.get(index..).filter(|rest| !rest.is_empty()) {
        let at = start.wrapping_add(index as u64);
        let read = read(width, rest, at)?;
        let mut effect = Effect {
            at,
            reads: u32::MAX,
            writes: read.writes,
            ..Effect::default()
        };
        match read.kind {
            Kind::Load(to, _, _) | Kind::Add(to, _, _) => effect.loads = Some(to),
            Kind::Through(link, from, distance) => {
                effect.reads = 1 << (from & 31);
                effect.through = (distance == 0).then_some(from);
                effect.next = match (is_link(link), is_link(from)) {
                    (true, _) => Next::Call,
                    (false, true) => Next::Stop,
                    (false, false) => Next::Unknown,
                };
            }
            Kind::Jump(link, _) if is_link(link) => effect.next = Next::Call,
            Kind::Jump(_, to) => effect.next = Next::Jump(to),
            Kind::Branch(to) => effect.next = Next::Branch(to),
            Kind::Set(..) | Kind::Other => {}
        }
        effects.push(effect);
        index += usize::from(read.length);
    }
    Some(effects)
}

impl Width {
    fn wrap(self, address: u64) -> u64 {
        match self {
            Width::Bits32 => address & u64::from(u32::MAX),
            Width::Bits64 => address,
        }
    }
}

fn is_link(register: u8) -> bool {
    matches!(register, 1 | 5)
}

// Whether this is `auipc`: what `lui` sets is an address only in code with one place.
fn is_relative(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|low| low & 0x7f == 0x17)
}

fn read(width: Width, bytes: &[u8], at: u64) -> Option<Read> {
    let half = u16::from_le_bytes(*bytes.first_chunk::<2>()?);
    if half & 3 != 3 {
        // All zeros are no instruction, on purpose.
        return (half != 0).then(|| compressed(width, half, at));
    }
    // The encoding allows longer ones, but none are defined.
    if half & 0x1f == 0x1f {
        return None;
    }
    Some(whole(
        width,
        u32::from_le_bytes(*bytes.first_chunk::<4>()?),
        at,
    ))
}

fn whole(width: Width, word: u32, at: u64) -> Read {
    let register = |low: u32| (word >> low & 31) as u8;
    let (rd, rs) = (register(7), register(15));
    let signed = i64::from(word.cast_signed() >> 20);
    let upper = i64::from((word & 0xffff_f000).cast_signed());
    let to = |distance: i64| width.wrap(at.wrapping_add_signed(distance));
    let function = word >> 12 & 7;
    let kind = match word & 0x7f {
        0x37 => Kind::Set(rd, width.wrap(upper.cast_unsigned())),
        0x17 => Kind::Set(rd, to(upper)),
        0x6f => {
            let low = (word >> 20 & 0x7fe) | (word >> 9 & 0x800) | (word & 0xf_f000);
            let sign = i64::from(word.cast_signed() >> 31) << 20;
            Kind::Jump(rd, to(sign | i64::from(low)))
        }
        0x67 if function == 0 => Kind::Through(rd, rs, signed),
        0x63 => {
            let low = (word >> 7 & 0x1e) | (word >> 20 & 0x7e0) | (word << 4 & 0x800);
            let sign = i64::from(word.cast_signed() >> 31) << 12;
            Kind::Branch(to(sign | i64::from(low)))
        }
        0x13 if function == 0 => Kind::Add(rd, rs, signed),
        0x03 if function == 3 && width == Width::Bits64 => Kind::Load(rd, rs, signed),
        0x03 if function == 2 && width == Width::Bits32 => Kind::Load(rd, rs, signed),
        _ => Kind::Other,
    };
    // Stores and branches have a part of their distance there.
    let writes = match word & 0x7f {
        0x23 | 0x27 | 0x63 => 0,
        _ => 1 << rd,
    };
    Read {
        length: 4,
        kind,
        writes,
    }
}

fn compressed(width: Width, half: u16, at: u64) -> Read {
    let word = u32::from(half);
    let rd = (word >> 7 & 31) as u8;
    // Bits of the distance: from where to where.
    let bits = |moves: &[(u32, u32)]| {
        let bit = |&(from, to): &(u32, u32)| i64::from(word >> from & 1) << to;
        moves.iter().map(bit).sum::<i64>()
    };
    let jump = || {
        let moves = [
            (11, 4),
            (9, 8),
            (10, 9),
            (8, 10),
            (7, 6),
            (6, 7),
            (3, 1),
            (4, 2),
            (5, 3),
            (2, 5),
        ];
        let distance = bits(&moves) - (i64::from(word >> 12 & 1) << 11);
        width.wrap(at.wrapping_add_signed(distance))
    };
    let branch = || {
        let moves = [(10, 3), (11, 4), (5, 6), (6, 7), (3, 1), (4, 2), (2, 5)];
        let distance = bits(&moves) - (i64::from(word >> 12 & 1) << 8);
        width.wrap(at.wrapping_add_signed(distance))
    };
    let kind = match (word & 3, word >> 13) {
        (1, 5) => Kind::Jump(0, jump()),
        (1, 1) if width == Width::Bits32 => Kind::Jump(1, jump()),
        (1, 6 | 7) => Kind::Branch(branch()),
        // C.JR and C.JALR; with a second register it is C.MV or C.ADD, without any C.EBREAK.
        (2, 4) if word >> 2 & 31 == 0 && rd != 0 => Kind::Through((word >> 12 & 1) as u8, rd, 0),
        _ => Kind::Other,
    };
    // The register of the result is in one of three places, and some have none.
    let writes = match kind {
        Kind::Through(..) | Kind::Jump(..) | Kind::Branch(_) => 0,
        _ => 1 << rd | 0x100 << (word >> 7 & 7) | 0x100 << (word >> 2 & 7),
    };
    Read {
        length: 2,
        kind,
        writes,
    }
}

#[cfg(test)]
mod tests {
    use super::{Flow, Step, Wants, Width, walk};

    fn flows(width: Width, bytes: &[u8]) -> Vec<(u64, u8, Flow, u64)> {
        let mut steps = Vec::new();
        walk(width, bytes, 0x1000, &Wants::default(), &mut steps);
        let parts = |step: &Step| (step.at, step.length, step.flow, step.field);
        steps.iter().map(parts).collect()
    }

    #[test]
    fn calls_and_jumps_lead_forward_and_backward() {
        let both = [Width::Bits64, Width::Bits32];
        let cases: [(&[u8], Option<Flow>); 18] = [
            (&[0xef, 0x00, 0x00, 0x01], Some(Flow::Call(0x1010))), // jal ra
            (&[0xef, 0xf0, 0x1f, 0xff], Some(Flow::Call(0xff0))),  // jal ra
            (&[0xef, 0x02, 0x00, 0x01], Some(Flow::Call(0x1010))), // jal t0
            (&[0x6f, 0x00, 0x00, 0x01], Some(Flow::Jump(0x1010))), // j
            (&[0x63, 0x08, 0xb5, 0x00], Some(Flow::Jump(0x1010))), // beq a0,a1
            (&[0xe3, 0x18, 0xb5, 0xfe], Some(Flow::Jump(0xff0))),  // bne a0,a1
            (&[0x01, 0xa8], Some(Flow::Jump(0x1010))),             // c.j
            (&[0xc5, 0xbf], Some(Flow::Jump(0xff0))),              // c.j
            (&[0x01, 0xc9], Some(Flow::Jump(0x1010))),             // c.beqz a0
            (&[0x65, 0xf9], Some(Flow::Jump(0xff0))),              // c.bnez a0
            (&[0x82, 0x97], Some(Flow::CallUnknown)),              // c.jalr a5
            (&[0x82, 0x87], Some(Flow::JumpUnknown)),              // c.jr a5
            (&[0xe7, 0x80, 0x07, 0x00], Some(Flow::CallUnknown)),  // jalr a5
            (&[0x67, 0x80, 0x07, 0x00], Some(Flow::JumpUnknown)),  // jr a5
            (&[0x82, 0x80], None),                                 // ret
            (&[0x67, 0x80, 0x00, 0x00], None),                     // ret
            (&[0x02, 0x90], None),                                 // c.ebreak
            (&[0x73, 0x00, 0x00, 0x00], None),                     // ecall
        ];
        for (bytes, flow) in cases {
            let expected: Vec<_> = flow
                .map(|flow| (0x1000, bytes.len() as u8, flow, 0x1000))
                .into_iter()
                .collect();
            for width in both {
                assert_eq!(flows(width, bytes), expected, "{bytes:02x?}");
            }
        }
        // The same bits are c.jal, and c.addiw.
        let call = [(0x1000, 2, Flow::Call(0x1010), 0x1000)];
        assert_eq!(flows(Width::Bits32, &[0x01, 0x28]), call);
        assert_eq!(flows(Width::Bits64, &[0x01, 0x28]), []);
    }

    #[test]
    fn two_instructions_are_one_reference() {
        let auipc = |register: u32| (0x0001_2017 | register << 7).to_le_bytes();
        let second = |word: u32| word.to_le_bytes();
        let lower = 0xff0 << 20;
        let cases = [
            (1, lower | 0x80e7, Flow::Call(0x12ff0)), // jalr ra,-16(ra)
            (6, lower | 6 << 15 | 0x67, Flow::Jump(0x12ff0)), // jr -16(t1)
            (10, lower | 0x5_0513, Flow::Address(0x12ff0)), // addi a0,a0,-16
            (10, lower | 0x5_3583, Flow::LoadSlot(0x12ff0)), // ld a1,-16(a0)
        ];
        for (register, word, flow) in cases {
            let bytes = [auipc(register), second(word)].concat();
            let expected = [(0x1004, 4, flow, 0x1000)];
            assert_eq!(flows(Width::Bits64, &bytes), expected, "{word:08x}");
            // What changes the register in between ends it.
            let change = (0x0000_0033 | register << 7).to_le_bytes();
            let bytes = [auipc(register), change, second(word)].concat();
            let found = flows(Width::Bits64, &bytes);
            assert!(found.iter().all(|found| found.2 != flow), "{word:08x}");
        }
    }

    #[test]
    fn bytes_that_are_no_instructions_are_counted() {
        let mut steps = Vec::new();
        let count = |bytes: &[u8], steps: &mut Vec<Step>| {
            walk(Width::Bits64, bytes, u64::MAX - 3, &Wants::default(), steps)
        };
        assert_eq!(count(&[0, 0, 0x82, 0x97], &mut steps), 2);
        assert_eq!(count(&[0x82, 0x97, 0xef, 0x00], &mut steps), 2);
        assert_eq!(count(&[0xff; 5], &mut steps), 5);
        assert_eq!(count(&[0x17], &mut steps), 1);
        assert_eq!(steps.len(), 2);
    }
}
