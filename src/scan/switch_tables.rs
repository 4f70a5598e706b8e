//! Which jumps through registers and memory are those of a switch.
//!
//! ```text
//!   lea    table(%rip),%rdx
//!   movslq (%rdx,%rax,4),%rax       jmp *table(,%rax,8)       lea table(%rip),%rdx
//!   add    %rdx,%rax                                          jmp *(%rdx,%rax,8)
//!   jmp    *%rax
//! ```
//!
//! A table holds distances, to which the table's own address is added, or addresses. The shape of
//! the instructions decides nothing: a tail call through a table of functions, or through a virtual
//! table of distances, looks the same. So the table is read: its first entry has to lead into the
//! middle of the function itself.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};
use rustc_hash::FxHashSet;

use super::x86::effects::{named, names_all};
use crate::base::Svma;
use crate::binary::{Binary, Machine, SlotTarget, Slots};

pub(super) struct MappedCode<'a> {
    pub(super) binary: &'a Binary,
    pub(super) slots: &'a Slots,
    pub(super) machine: Machine,
    pub(super) bytes: &'a [u8],
    pub(super) start: u64,
}

pub(super) struct SwitchJumps<'a> {
    found: FxHashSet<u64>,
    /// What is still to be read, on a machine whose registers have to be followed.
    rest: Option<Rest<'a>>,
}

impl<'a> SwitchJumps<'a> {
    pub(super) fn of(place: MappedCode<'a>) -> SwitchJumps<'a> {
        let (found, rest) = match place.machine {
            Machine::X86_64 => (FxHashSet::default(), Some(Rest::new(place))),
            Machine::Aarch64 => (aarch64(&place), None),
            Machine::X86 | Machine::Riscv64 | Machine::Riscv32 => (FxHashSet::default(), None),
        };
        SwitchJumps { found, rest }
    }

    /// Whether the jump at this address is one. `is_inside` says whether an address lies in the
    /// function, behind its first byte; it is the same at all times.
    pub(super) fn has(&mut self, at: u64, is_inside: &dyn Fn(u64) -> bool) -> bool {
        // No further than the jump: most switches stand near the start of long functions.
        if let Some(rest) = &mut self.rest {
            rest.read_through(at, is_inside, &mut self.found);
        }
        self.found.contains(&at)
    }
}

// Jumps behind an ADD (extended register) of 64 bits: tables of bytes and halves.
fn aarch64(place: &MappedCode) -> FxHashSet<u64> {
    let words = place.bytes.chunks_exact(4).zip((place.start..).step_by(4));
    let mut before = 0;
    let mut found = FxHashSet::default();
    for (word, at) in words {
        let word = word
            .first_chunk()
            .map_or(0, |word| u32::from_le_bytes(*word));
        // BR of any register.
        if word & 0xffff_fc1f == 0xd61f_0000 && before & 0xffe0_0000 == 0x8b20_0000 {
            found.insert(at);
        }
        before = word;
    }
    found
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Value {
    #[default]
    Unknown,
    Address(u64),
    /// The distance at this address, the first of a table.
    Distance(u64),
    /// The pointer at this address, the first of a table.
    Pointer(u64),
    /// An address of code that a table leads to.
    Target(u64),
}

// The values of registers where code is read from its start to its end, whatever jumps there are:
// what is found is checked against the table.
struct Registers<'a> {
    place: MappedCode<'a>,
    values: [Value; 16],
    info: InstructionInfoFactory,
}

/// Code of x86-64 behind what was read, and the values of registers there.
struct Rest<'a> {
    decoder: Decoder<'a>,
    instruction: Instruction,
    registers: Registers<'a>,
}

impl<'a> Rest<'a> {
    fn new(place: MappedCode<'a>) -> Rest<'a> {
        Rest {
            decoder: Decoder::with_ip(64, place.bytes, place.start, DecoderOptions::NONE),
            instruction: Instruction::default(),
            registers: Registers {
                place,
                values: [Value::Unknown; 16],
                info: InstructionInfoFactory::new(),
            },
        }
    }

    fn read_through(
        &mut self,
        at: u64,
        is_inside: &dyn Fn(u64) -> bool,
        found: &mut FxHashSet<u64>,
    ) {
        let Rest {
            decoder,
            instruction,
            registers,
        } = self;
        while decoder.can_decode() && decoder.ip() <= at {
            decoder.decode_out(instruction);
            if instruction.is_jmp_near_indirect() {
                let value = match instruction.op0_kind() {
                    OpKind::Register => registers.of(instruction.op0_register()),
                    _ => registers
                        .loaded(instruction, 8)
                        .map_or(Value::Unknown, Value::Pointer),
                };
                if registers.target(value).is_some_and(is_inside) {
                    found.insert(instruction.ip());
                }
                continue;
            }
            registers.step(instruction);
        }
    }
}

impl Registers<'_> {
    fn of(&self, register: Register) -> Value {
        let number = register.full_register().number();
        let known = register
            .is_gpr64()
            .then(|| self.values.get(number))
            .flatten();
        known.copied().unwrap_or_default()
    }

    /// The address of the first entry of the table that a memory operand picks an entry of this
    /// size from.
    fn loaded(&self, instruction: &Instruction, size: u32) -> Option<u64> {
        let is_picked = instruction.memory_index() != Register::None
            && instruction.memory_index_scale() == size;
        let displacement = instruction.memory_displacement64();
        match instruction.memory_base() {
            Register::None => is_picked.then_some(displacement),
            base => match self.of(base) {
                Value::Address(table) if is_picked => Some(table.wrapping_add(displacement)),
                _ => None,
            },
        }
    }

    fn target(&self, value: Value) -> Option<u64> {
        match value {
            Value::Target(to) => Some(to),
            Value::Pointer(at) => match self.place.slots.target(Svma(at)) {
                Some(SlotTarget::Address(to)) => Some(to.0),
                Some(_) => None,
                None => self.place.binary.bytes_at(Svma(at)).map(u64::from_le_bytes),
            },
            Value::Unknown | Value::Address(_) | Value::Distance(_) => None,
        }
    }

    fn step(&mut self, instruction: &Instruction) {
        // Before one of several ends of a function. The code behind it is reached otherwise, and
        // still has its values.
        if instruction.mnemonic() == Mnemonic::Pop {
            return;
        }
        let to = instruction.op0_register();
        let value = match instruction.mnemonic() {
            Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
                Value::Address(instruction.ip_rel_memory_address())
            }
            Mnemonic::Movsxd if instruction.op1_kind() == OpKind::Memory => {
                let at = self.loaded(instruction, 4);
                at.map_or(Value::Unknown, Value::Distance)
            }
            Mnemonic::Mov if instruction.op1_kind() == OpKind::Memory => {
                let at = self.loaded(instruction, 8);
                at.map_or(Value::Unknown, Value::Pointer)
            }
            Mnemonic::Mov if instruction.op1_kind() == OpKind::Register => {
                self.of(instruction.op1_register())
            }
            Mnemonic::Add if instruction.op1_kind() == OpKind::Register => {
                match (self.of(to), self.of(instruction.op1_register())) {
                    (Value::Distance(at), Value::Address(base))
                    | (Value::Address(base), Value::Distance(at)) => {
                        let distance = self
                            .place
                            .binary
                            .bytes_at(Svma(at))
                            .map(|bytes| i64::from(i32::from_le_bytes(bytes)));
                        distance.map_or(Value::Unknown, |distance| {
                            Value::Target(base.wrapping_add_signed(distance))
                        })
                    }
                    _ => Value::Unknown,
                }
            }
            _ => Value::Unknown,
        };
        // Finding the registers that an instruction writes costs more than decoding it, and mostly
        // it uses none that holds anything of interest.
        let held: u32 = (0..)
            .zip(&self.values)
            .filter(|(_, known)| **known != Value::Unknown)
            .map(|(number, _)| 1 << number)
            .sum();
        let writes = if held == 0 || (names_all(instruction) && named(instruction) & held == 0) {
            &[]
        } else {
            self.info.info(instruction).used_registers()
        };
        for used in writes {
            let writes = matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::ReadWrite
                    | OpAccess::CondWrite
                    | OpAccess::ReadCondWrite
            );
            let register = used.register();
            if writes
                && register.is_gpr()
                && let Some(known) = self.values.get_mut(register.full_register().number())
            {
                *known = Value::Unknown;
            }
        }
        if instruction.op0_kind() == OpKind::Register
            && to.is_gpr64()
            && let Some(known) = self.values.get_mut(to.number())
        {
            *known = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Code at this address, in a file that has no table there.
    fn found(bytes: &[u8]) -> usize {
        let binary = Binary::open(Path::new("/proc/self/exe")).unwrap();
        let place = MappedCode {
            binary: &binary,
            slots: &binary.slots(),
            machine: Machine::X86_64,
            bytes,
            start: 0x10,
        };
        let end = place.start + bytes.len() as u64;
        let mut jumps = SwitchJumps::of(place);
        (0..end).filter(|&at| jumps.has(at, &|_| true)).count()
    }

    #[test]
    fn a_jump_like_a_switch_is_not_one_without_a_table() {
        // mov (%rdi),%rax; jmp *%rax
        assert_eq!(found(&[0x48, 0x8b, 0x07, 0xff, 0xe0]), 0);
        // jmp *0x10(%rax)
        assert_eq!(found(&[0xff, 0x60, 0x10]), 0);
        // notrack jmp *%rax
        assert_eq!(found(&[0x90, 0x3e, 0xff, 0xe0]), 0);
        // movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax: nothing says what rdx is
        let by_distance = [0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0];
        assert_eq!(found(&by_distance), 0);
        assert_eq!(found(&[]), 0);
    }

    #[test]
    fn jumps_may_be_asked_for_in_any_order() {
        let binary = Binary::open(Path::new("/proc/self/exe")).unwrap();
        let start = binary.functions()[0].start.0;
        // lea table(%rip),%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax; jmp *%rcx,
        // with the table at the start of some code: any bytes are a distance.
        let mut bytes = vec![0x48, 0x8d, 0x15];
        bytes.extend((-7i32).to_le_bytes());
        bytes.extend([
            0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0, 0xff, 0xe1,
        ]);
        let slots = binary.slots();
        let jumps = || {
            SwitchJumps::of(MappedCode {
                binary: &binary,
                slots: &slots,
                machine: Machine::X86_64,
                bytes: &bytes,
                start,
            })
        };
        let (first, second) = (start + 14, start + 16);
        let has = |order: [u64; 2]| {
            let mut jumps = jumps();
            order.map(|at| jumps.has(at, &|_| true))
        };
        assert_eq!(has([first, second]), [true, false]);
        assert_eq!(has([second, first]), [false, true]);
    }
}
