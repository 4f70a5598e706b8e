//! The registers of one frame.

use super::arch::{Arch, SLOTS};
use crate::perfdata;

/// The numbers of a set of registers, which has a bit for each.
pub(super) fn bits(mut set: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let number = set.trailing_zeros();
        set &= set.checked_sub(1)?;
        Some(number as u8)
    })
}

/// The registers of a task at one frame, by DWARF's numbers, as far as they are known.
#[derive(Clone, Debug)]
pub struct Registers {
    arch: Arch,
    known: u64,
    values: [u64; SLOTS],
}

impl Registers {
    /// No register is known.
    pub fn unknown(arch: Arch) -> Registers {
        Registers {
            arch,
            known: 0,
            values: [0; SLOTS],
        }
    }

    /// Those of a sample, of a task of this architecture.
    pub fn of_sample(arch: Arch, sample: &perfdata::Registers<'_>) -> Registers {
        let mut registers = Registers::unknown(arch);
        for (number, value) in bits(sample.mask).zip(sample.values.iter()) {
            if let Some(slot) = arch.of_perf(number) {
                registers.set(slot, arch.wrap(value));
            }
        }
        registers
    }

    /// Sets DWARF's register `number`, where stacks need that one.
    #[must_use]
    pub fn with(mut self, number: u16, value: u64) -> Registers {
        if let Some(slot) = self.arch.of_dwarf(number) {
            self.set(slot, self.arch.wrap(value));
        }
        self
    }

    /// Sets the program counter.
    #[must_use]
    pub fn at(mut self, program_counter: u64) -> Registers {
        let value = self.arch.wrap(program_counter);
        self.set(self.arch.program_counter(), value);
        self
    }

    pub fn arch(&self) -> Arch {
        self.arch
    }

    pub fn stack_pointer(&self) -> Option<u64> {
        self.get(self.arch.stack_pointer())
    }

    pub fn program_counter(&self) -> Option<u64> {
        self.get(self.arch.program_counter())
    }

    pub(super) fn get(&self, slot: u8) -> Option<u64> {
        let value = self.values.get(usize::from(slot)).copied()?;
        (self.known >> slot & 1 != 0).then_some(value)
    }

    pub(super) fn set(&mut self, slot: u8, value: u64) {
        if let Some(place) = self.values.get_mut(usize::from(slot)) {
            *place = value;
            self.known |= 1 << slot;
        }
    }

    pub(super) fn forget(&mut self, slot: u8) {
        if usize::from(slot) < SLOTS {
            self.known &= !(1 << slot);
        }
    }
}
