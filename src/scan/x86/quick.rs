//! The usual instructions of x86-64, by tables.

use std::hint::select_unpredictable;

use super::super::flow::{Flow, Wants};
use super::careful::Read;
use super::shape::{Operand, Prefix, Shape, operand_size};

// The longest instruction, in bytes.
const LONGEST: u32 = 15;

/// Reads the instruction at the start of `window`, which lies at address `at`; `None` if that is
/// not for the tables.
#[inline(always)]
pub(super) fn read(window: &[u8; 16], at: u64, wants: &Wants) -> Option<Read> {
    if Shape::of(u32::from(window[0])).is_prefix() {
        return behind_prefixes(window, at, wants);
    }
    behind(Prefixes::default(), window, at, wants)
}

#[inline(never)]
fn behind_prefixes(window: &[u8; 16], at: u64, wants: &Wants) -> Option<Read> {
    behind(Prefixes::read(window)?, window, at, wants)
}

// What stands behind the prefixes. The next instruction is found only when the length of this one
// is known, so what counts is how many steps that takes one after the other. Whether there is a REX
// prefix is hard to foretell: the opcode is looked up with and without one at the same time, and no
// branch waits for it.
#[inline(always)]
fn behind(prefixes: Prefixes, window: &[u8; 16], at: u64, wants: &Wants) -> Option<Read> {
    // Prefixes are at most eight, and what follows up to the SIB byte at most five bytes.
    let word = *window.get(prefixes.length as usize..)?.first_chunk::<8>()?;
    let word = u64::from_le_bytes(word);
    let rex = word as u8;
    let has_rex = rex & 0xf0 == 0x40;
    let operand = match (rex & 0xf8 == 0x48, prefixes.kind) {
        (true, _) => Operand::Eight,
        (false, Prefix::Operand) => Operand::Two,
        (false, _) => Operand::Four,
    };
    let (without, with) = (Opcode::read(word, 0), Opcode::read(word >> 8, 0));
    let head = prefixes.length.wrapping_add(u32::from(has_rex));
    let opcode = Opcode {
        number: select_unpredictable(has_rex, with.number, without.number),
        shape: select_unpredictable(has_rex, with.shape, without.shape),
        modrm: select_unpredictable(has_rex, with.modrm, without.modrm),
        size: select_unpredictable(has_rex, with.size, without.size),
    };
    if opcode.number == 0x0f {
        let word = word >> (8 + u32::from(has_rex) * 8);
        let opcode = Opcode::read(word, 0x100);
        return opcode.finish(head.wrapping_add(2), operand, prefixes, window, at, wants);
    }
    opcode.finish(head.wrapping_add(1), operand, prefixes, window, at, wants)
}

#[derive(Clone, Copy)]
struct Opcode {
    number: u32,
    shape: Shape,
    /// What stands where a ModRM byte would be.
    modrm: u8,
    /// Bytes from there up to the immediate, if it is one.
    size: u32,
}

impl Opcode {
    #[inline(always)]
    fn read(word: u64, map: u32) -> Opcode {
        let number = map | u32::from(word as u8);
        let modrm = (word >> 8) as u8;
        Opcode {
            number,
            shape: Shape::of(number),
            modrm,
            size: operand_size(modrm, (word >> 16) as u8),
        }
    }

    /// Reads the instruction, which has this number of bytes before its ModRM byte.
    #[inline(always)]
    fn finish(
        self,
        head: u32,
        operand: Operand,
        prefixes: Prefixes,
        window: &[u8; 16],
        at: u64,
        wants: &Wants,
    ) -> Option<Read> {
        let shape = self.shape;
        let immediate = shape.immediate(operand);
        let next = head.wrapping_add(self.size & shape.modrm_mask());
        let modrm = self.modrm & shape.modrm_mask() as u8;
        if !shape.is_sure(prefixes.kind, modrm) {
            return None;
        }
        let relative = modrm & 0xc7 == 5;
        let wanted = shape.asks_to_look()
            || (shape.loads() && relative)
            || (shape.takes_immediate() && wants.immediates);
        if wanted {
            let seen = Seen {
                window,
                at,
                wants,
                prefixes,
                operand,
                opcode: self.number,
                modrm,
                relative,
                next,
                immediate,
            };
            return seen.look();
        }
        end(next.wrapping_add(immediate), None)
    }
}

/// What was read, if it is not too long to be an instruction.
#[inline(always)]
fn end(length: u32, refers: Option<(Flow, u8)>) -> Option<Read> {
    (length <= LONGEST).then_some(Read {
        length: length as u8,
        refers,
    })
}

#[derive(Clone, Copy)]
struct Prefixes {
    length: u32,
    kind: Prefix,
    segment: bool,
}

impl Default for Prefixes {
    fn default() -> Prefixes {
        Prefixes {
            length: 0,
            kind: Prefix::None,
            segment: false,
        }
    }
}

impl Prefixes {
    /// `None` where they do not go together, or are more than compilers write.
    fn read(window: &[u8; 16]) -> Option<Prefixes> {
        let mut prefixes = Prefixes::default();
        for byte in &window[..9] {
            let kind = match byte {
                0x66 => Prefix::Operand,
                0xf3 => Prefix::Repeat,
                0xf2 => Prefix::RepeatNot,
                0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => {
                    prefixes.segment = true;
                    prefixes.kind
                }
                _ => return Some(prefixes),
            };
            if prefixes.kind != Prefix::None && kind != prefixes.kind {
                return None;
            }
            prefixes.kind = kind;
            prefixes.length += 1;
        }
        None
    }
}

struct Seen<'a> {
    window: &'a [u8; 16],
    at: u64,
    wants: &'a Wants,
    prefixes: Prefixes,
    operand: Operand,
    opcode: u32,
    modrm: u8,
    relative: bool,
    next: u32,
    immediate: u32,
}

impl Seen<'_> {
    #[inline(never)]
    fn look(&self) -> Option<Read> {
        let wide = self.operand == Operand::Eight;
        // `reg` of the ModRM byte tells the instructions of a group apart.
        let group = self.modrm >> 3 & 7;
        match self.opcode {
            // Of two ways to read a branch with the prefix 66, processors choose differently.
            0x70..=0x7f | 0xe8 | 0xe9 | 0xeb | 0x180..=0x18f if self.has_66() => None,
            0xe8 => self.end(Some((Flow::Call(self.target(self.number(self.next))), 4))),
            0x180..=0x18f | 0xe9 => self.jump(self.number(self.next), 4),
            0x70..=0x7f | 0xeb => {
                let distance = self.window[self.next as usize & 15].cast_signed();
                self.jump(i32::from(distance), 1)
            }
            0x8d if wide && self.prefixes.segment => None,
            0x8d if wide => {
                let target = self.target(self.number(self.next.wrapping_sub(4)));
                self.address(target, 4)
            }
            0x39 | 0x3b | 0x85 | 0x8b | 0x140..=0x14f if wide => self.load(),
            0x116 if self.prefixes.kind == Prefix::None => self.load(),
            0x17e if self.prefixes.kind == Prefix::Repeat => self.load(),
            0xf6 | 0xf7 => {
                // TEST alone of the group has an immediate.
                let immediate = match (group, self.opcode, self.operand) {
                    (2.., _, _) => 0,
                    (_, 0xf6, _) => 1,
                    (_, _, Operand::Two) => 2,
                    _ => 4,
                };
                end(self.next.wrapping_add(immediate), None)
            }
            0xff => match group {
                0 | 1 => self.end(None),
                2 | 4 => self.indirect(group == 2),
                6 if self.relative && !self.has_66() => self.load(),
                6 if !self.has_66() => self.end(None),
                _ => None,
            },
            0xfe if group > 1 => None,
            0x1ba if group < 4 => None,
            0xc6 | 0xc7 if group > 0 => None,
            0x68 | 0xb8..=0xbf | 0xc7 if self.wants.immediates => self.constant(),
            _ => self.end(None),
        }
    }

    fn has_66(&self) -> bool {
        self.prefixes.kind == Prefix::Operand
    }

    #[inline(always)]
    fn end(&self, refers: Option<(Flow, u8)>) -> Option<Read> {
        end(self.next.wrapping_add(self.immediate), refers)
    }

    #[inline(always)]
    fn number(&self, index: u32) -> i32 {
        let window = u128::from_le_bytes(*self.window);
        (window >> ((index & 15) * 8)) as i32
    }

    #[inline(always)]
    fn target(&self, distance: i32) -> u64 {
        let end = self
            .at
            .wrapping_add(u64::from(self.next.wrapping_add(self.immediate)));
        end.wrapping_add_signed(i64::from(distance))
    }

    #[inline(always)]
    fn jump(&self, distance: i32, back: u8) -> Option<Read> {
        self.end(Some((Flow::Jump(self.target(distance)), back)))
    }

    #[inline(always)]
    fn load(&self) -> Option<Read> {
        let slot = self.target(self.number(self.next.wrapping_sub(4)));
        let load = (!self.prefixes.segment).then_some((Flow::LoadSlot(slot), 4));
        self.end(load)
    }

    #[inline(always)]
    fn address(&self, address: u64, back: u8) -> Option<Read> {
        let wanted = self.wants.addresses.contains(&address);
        self.end(wanted.then_some((Flow::Address(address), back)))
    }

    #[inline(always)]
    fn indirect(&self, call: bool) -> Option<Read> {
        // Without a base in the SIB byte the address may stand in the instruction.
        let may_be_absolute =
            self.modrm & 0xc7 == 4 && self.window[self.next.wrapping_sub(5) as usize & 15] & 7 == 5;
        if self.has_66() || self.prefixes.segment || may_be_absolute {
            return None;
        }
        let flow = match (call, self.relative) {
            (true, true) => Flow::CallSlot(self.target(self.number(self.next.wrapping_sub(4)))),
            (true, false) => Flow::CallUnknown,
            (false, true) => Flow::JumpSlot(self.target(self.number(self.next.wrapping_sub(4)))),
            (false, false) => Flow::JumpUnknown,
        };
        self.end(Some((flow, 4)))
    }

    #[inline(always)]
    fn constant(&self) -> Option<Read> {
        let low = self.number(self.next);
        match (self.opcode, self.operand) {
            (_, Operand::Two) => self.end(None),
            (0xb8..=0xbf, Operand::Eight) => {
                let high = self.number(self.next.wrapping_add(4));
                let address =
                    u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned());
                self.address(address, 8)
            }
            (0xc7, Operand::Eight) | (0x68, _) => self.address(i64::from(low).cast_unsigned(), 4),
            _ => self.address(u64::from(low.cast_unsigned()), 4),
        }
    }
}
