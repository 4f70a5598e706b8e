//! How long instructions of x86-64 are, by opcode.
//!
//! ```text
//!   prefixes    REX    opcode         ModRM          SIB             displacement  immediate
//!   66 F2 F3    4x     xx             mod reg rm     scale index b.  0, 1, 4       0, 1, 2, 4, 8
//!   2E 36 3E 26        0F xx          2   3   3      2     3     3
//!   64 65
//! ```
//!
//! A row says whether a ModRM byte follows, how large the immediate is, and where one can be sure
//! of both: for which of the prefixes none, 66, F3, F2, and whether with an operand in memory
//! (`mod` 0 to 2) or in a register (`mod` 3). Where one cannot, and where no row is, another
//! decoder has to look. The rows follow the opcode maps of the Intel 64 and IA-32 Architectures
//! Software Developer's Manual, volume 2, appendix A, tables A-2 and A-3, for 64-bit mode; the
//! sizes of ModRM, SIB and displacement are those of section 2.1, tables 2-2 and 2-3. Tests hold
//! every row with every ModRM byte against iced-x86.

#[derive(Clone, Copy)]
pub(super) struct Shape(u32);

// Bits of a row. The lowest three hexadecimal digits are the sizes of the immediate, with operands
// of 4, 2 and 8 bytes from the right.
const BYTE: u32 = 0x111;
const WORD: u32 = 0x222;
const FOUR: u32 = 0x444;
// As large as the operand, but not above 4: `z` of the manual.
const Z: u32 = 0x424;
// As large as the operand: `v` of the manual.
const V: u32 = 0x824;
const MODRM: u32 = 1 << 12;
// It leads somewhere, or depends on `reg` of the ModRM byte.
const LOOK: u32 = 1 << 13;
// A load if its operand is at `disp(%rip)`.
const LOAD: u32 = 1 << 14;
// Its immediate may be an address.
const TAKE: u32 = 1 << 15;
const PREFIX: u32 = 1 << 16;
// One is sure with operands in memory, or without any operand, with these prefixes.
const NONE: u32 = 1 << 24;
const P66: u32 = 1 << 25;
const PF3: u32 = 1 << 26;
const PF2: u32 = 1 << 27;
const ANY: u32 = NONE | P66 | PF3 | PF2;
// Moved by this, the bits above are for operands in registers.
const REGISTER: u32 = 4;
const EITHER: u32 = either(ANY);

const fn either(prefixes: u32) -> u32 {
    prefixes | registers(prefixes)
}

const fn registers(prefixes: u32) -> u32 {
    prefixes << REGISTER
}

static SHAPES: [Shape; 512] = {
    let mut shapes = [Shape(0); 512];
    let mut opcode = 0;
    while opcode < 256 {
        shapes[opcode] = Shape(one_byte(opcode as u8));
        shapes[256 + opcode] = Shape(two_bytes(opcode as u8));
        opcode += 1;
    }
    shapes
};

// Bytes from the ModRM byte up to the immediate, except for a displacement that the SIB byte asks
// for.
static OPERANDS: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut modrm = 0;
    while modrm < 256 {
        let (mode, rm) = (modrm >> 6, modrm & 7);
        let sib = (rm == 4 && mode != 3) as u8;
        let displacement = match (mode, rm) {
            (0, 5) | (2, _) => 4,
            (1, _) => 1,
            _ => 0,
        };
        sizes[modrm] = 1 + sib + displacement;
        modrm += 1;
    }
    sizes
};

// Table A-2.
const fn one_byte(opcode: u8) -> u32 {
    match opcode {
        // Segment overrides, operand size, repetition.
        0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x66 | 0xf2 | 0xf3 => PREFIX,
        // Arithmetic: add or adc sbb and sub xor cmp.
        0x39 | 0x3b => MODRM | LOAD | EITHER,
        0x00..=0x3f => match opcode & 7 {
            0..=3 => MODRM | EITHER,
            4 => BYTE | ANY,
            5 => Z | ANY,
            _ => 0,
        },
        0x50..=0x5f => ANY,                                 // push, pop
        0x63 => MODRM | EITHER,                             // movsxd
        0x68 => Z | TAKE | ANY,                             // push
        0x69 => MODRM | Z | EITHER,                         // imul
        0x6a => BYTE | ANY,                                 // push
        0x6b => MODRM | BYTE | EITHER,                      // imul
        0x70..=0x7f => BYTE | LOOK | ANY,                   // jcc
        0x80 | 0x83 => MODRM | BYTE | EITHER,               // arithmetic
        0x81 => MODRM | Z | EITHER,                         // arithmetic
        0x84 | 0x86..=0x8a => MODRM | EITHER,               // test, xchg, mov
        0x85 | 0x8b => MODRM | LOAD | EITHER,               // test, mov
        0x8d => MODRM | LOAD | ANY,                         // lea
        0x90..=0x99 => ANY,                                 // xchg, nop, pause, cbw, cwd
        0xa4..=0xa7 | 0xaa..=0xaf => ANY,                   // strings
        0xa8 => BYTE | ANY,                                 // test
        0xa9 => Z | ANY,                                    // test
        0xb0..=0xb7 => BYTE | ANY,                          // mov
        0xb8..=0xbf => V | TAKE | ANY,                      // mov
        0xc0 | 0xc1 => MODRM | BYTE | EITHER,               // shifts
        0xc2 => WORD | ANY,                                 // ret
        0xc3 | 0xc9 | 0xcc => ANY,                          // ret, leave, int3
        0xc6 => MODRM | BYTE | LOOK | EITHER,               // mov
        0xc7 => MODRM | Z | LOOK | EITHER,                  // mov
        0xd0..=0xd3 => MODRM | EITHER,                      // shifts
        0xe8 | 0xe9 => FOUR | LOOK | ANY,                   // call, jmp
        0xeb => BYTE | LOOK | ANY,                          // jmp
        0xf4 | 0xf5 | 0xf8..=0xfd => ANY,                   // hlt, flags
        0xf6 | 0xf7 | 0xfe | 0xff => MODRM | LOOK | EITHER, // groups 3, 4, 5
        _ => 0,
    }
}

// Table A-3.
const fn two_bytes(opcode: u8) -> u32 {
    // For all sizes of floating-point numbers: packed, or one.
    const FLOATS: u32 = MODRM | EITHER;
    const PACKED: u32 = MODRM | either(NONE | P66);
    const WITH_66: u32 = MODRM | either(P66);
    match opcode {
        0x05 | 0x0b => NONE,   // syscall, ud2
        0x0d => MODRM | NONE,  // prefetchw
        0x10 | 0x11 => FLOATS, // movups, movss
        0x12 => MODRM | NONE | PF3 | PF2 | registers(NONE | PF3 | PF2) | P66, // movlps, movhlps
        0x13 | 0x17 => MODRM | NONE | P66, // movlps, movhps to memory
        0x14 | 0x15 => PACKED, // unpck
        0x16 => MODRM | LOAD | NONE | P66 | PF3 | registers(NONE | PF3), // movhps, movlhps
        0x18 => MODRM | NONE,  // prefetch
        0x1e | 0x1f => MODRM | EITHER, // endbr, nop
        0x28 | 0x29 => PACKED, // movaps
        // Conversions, arithmetic.
        0x2a | 0x2c | 0x2d | 0x51 | 0x58 | 0x59 | 0x5a | 0x5c..=0x5f => FLOATS,
        0x2b => MODRM | NONE | P66,                      // movntps
        0x2e | 0x2f | 0x54..=0x57 => PACKED,             // comiss, logic
        0x40..=0x4f => MODRM | LOAD | EITHER,            // cmov
        0x52 | 0x53 => MODRM | either(NONE | PF3),       // rsqrt, rcp
        0x5b => MODRM | either(NONE | P66 | PF3),        // conversions
        0x60..=0x6b => PACKED,                           // unpack, compare, pack
        0x6c | 0x6d => WITH_66,                          // unpack
        0x6e => PACKED,                                  // movd
        0x6f => MODRM | either(NONE | P66 | PF3),        // movdqa, movdqu
        0x70 => MODRM | BYTE | EITHER,                   // pshuf
        0x74..=0x76 => PACKED,                           // compare
        0x77 => NONE,                                    // emms
        0x7c | 0x7d | 0xd0 => MODRM | either(P66 | PF2), // haddps
        0x7e => MODRM | LOAD | either(NONE | P66 | PF3), // movd, movq
        0x7f => MODRM | either(NONE | P66 | PF3),        // movdqa, movdqu
        0x80..=0x8f => FOUR | LOOK | ANY,                // jcc
        0x90..=0x9f => MODRM | EITHER,                   // set
        0xa2 => ANY,                                     // cpuid
        0xa3 | 0xab | 0xb3 | 0xbb => MODRM | EITHER,     // bit tests
        0xa4 | 0xac => MODRM | BYTE | EITHER,            // double shifts
        0xa5 | 0xad => MODRM | EITHER,                   // double shifts
        0xaf => MODRM | EITHER,                          // imul
        0xb0 | 0xb1 | 0xc0 | 0xc1 => MODRM | EITHER,     // cmpxchg, xadd
        0xb6 | 0xb7 | 0xbe | 0xbf => MODRM | EITHER,     // movzx, movsx
        0xb8 => MODRM | PF3 | registers(PF3),            // popcnt
        0xba => MODRM | BYTE | LOOK | EITHER,            // bit tests
        0xbc | 0xbd => MODRM | EITHER,                   // bit scans
        0xc2 => MODRM | BYTE | EITHER,                   // cmpps
        0xc3 => MODRM | NONE,                            // movnti
        0xc4 => MODRM | BYTE | either(NONE | P66),       // pinsrw
        0xc5 => MODRM | BYTE | registers(NONE | P66),    // pextrw
        0xc6 => MODRM | BYTE | either(NONE | P66),       // shufps
        0xc8..=0xcf => ANY,                              // bswap
        0xd1..=0xd5 | 0xd8..=0xe5 | 0xe8..=0xef | 0xf1..=0xf6 | 0xf8..=0xfe => PACKED, // integers
        0xd6 => MODRM | P66 | registers(P66 | PF3 | PF2), // movq
        0xd7 => MODRM | registers(NONE | P66),           // pmovmskb
        0xe6 => MODRM | either(P66 | PF3 | PF2),         // conversions
        0xe7 => MODRM | NONE | P66,                      // movntq
        0xf0 => MODRM | PF2,                             // lddqu
        0xff => MODRM | EITHER,                          // ud0
        _ => 0,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    None,
    Operand,
    Repeat,
    RepeatNot,
}

// Sizes of operands, as the sizes of immediates are ordered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Four,
    Two,
    Eight,
}

impl Shape {
    /// The row of an opcode: 0x100 above the byte behind a `0F`.
    #[inline(always)]
    pub(super) fn of(opcode: u32) -> Shape {
        SHAPES[(opcode & 0x1ff) as usize]
    }

    #[inline(always)]
    pub(super) fn is_prefix(self) -> bool {
        self.0 & PREFIX != 0
    }

    /// All bits if a ModRM byte follows, or none.
    #[inline(always)]
    pub(super) fn modrm_mask(self) -> u32 {
        ((self.0 / MODRM) & 1).wrapping_neg()
    }

    /// Whether its length and validity are known with this prefix and ModRM byte (0 without one).
    #[inline(always)]
    pub(super) fn is_sure(self, prefix: Prefix, modrm: u8) -> bool {
        let form = u32::from(modrm >= 0xc0) * REGISTER;
        self.0 >> form & NONE << prefix as u32 != 0
    }

    #[inline(always)]
    pub(super) fn immediate(self, operand: Operand) -> u32 {
        self.0 >> (operand as u32 * 4) & 15
    }

    #[inline(always)]
    pub(super) fn asks_to_look(self) -> bool {
        self.0 & LOOK != 0
    }

    #[inline(always)]
    pub(super) fn loads(self) -> bool {
        self.0 & LOAD != 0
    }

    #[inline(always)]
    pub(super) fn takes_immediate(self) -> bool {
        self.0 & TAKE != 0
    }
}

/// Bytes of ModRM, SIB and displacement together. `sib` is the byte behind the ModRM byte.
#[inline(always)]
pub(super) fn operand_size(modrm: u8, sib: u8) -> u32 {
    let size = u32::from(OPERANDS[usize::from(modrm)]);
    // No base, but a displacement: mod 0, rm 4, base 5.
    if modrm & 0xc7 == 4 && sib & 7 == 5 {
        return size.wrapping_add(4);
    }
    size
}
