//! Architectures: how perf numbers the registers of a sample, and how DWARF numbers them.
//!
//! ```text
//!            perf (asm/perf_regs.h)                     DWARF
//!  x86-64    ax bx cx dx si di bp sp ip … r8=16 … r15   rax rdx rcx rbx rsi rdi rbp rsp r8 … ra=16
//!  i686      the same, with r8 to r15 of no meaning     eax ecx edx ebx esp ebp esi edi eip=8
//!  AArch64   x0 … x30 sp=31 pc=32                       the same
//!  RISC-V    pc=0 x1=ra x2=sp … x31                     x0 … x31; pc has none
//! ```

use crate::binary::Machine;

/// An architecture whose stacks are unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    X86_64,
    X86,
    Aarch64,
    Riscv64,
    Riscv32,
}

/// How many registers are kept: those that stacks need, and the program counter.
pub(super) const SLOTS: usize = 33;

// The place of the program counter where DWARF has no number for it.
const LAST: u8 = SLOTS as u8 - 1;

// DWARF's numbers of perf's first nine registers; the last is the instruction pointer.
const X86_64: [u8; 9] = [0, 3, 2, 1, 4, 5, 6, 7, 16];
const X86: [u8; 9] = [0, 3, 1, 2, 6, 7, 5, 4, 8];

impl Arch {
    /// The architecture of a task, from what a recording says: the machine as `uname -m` prints
    /// it, the ABI of the sample's registers (1: 32 bits, 2: 64), and which registers there are.
    ///
    /// A recording that was not finished does not name the machine; then the set of registers
    /// tells, where it is one that only one machine has. `None`: not one of these.
    pub fn of_task(machine: Option<&str>, abi: u64, mask: u64) -> Option<Arch> {
        /// What the name of a machine, or its registers, stand for.
        #[derive(PartialEq)]
        enum Family {
            X86,
            Arm,
            Riscv,
        }
        let family = match machine {
            Some("x86_64" | "i386" | "i486" | "i586" | "i686") => Family::X86,
            Some("aarch64" | "arm64") => Family::Arm,
            Some(name) if name.starts_with("riscv") => Family::Riscv,
            Some(_) => return None,
            // x0 to x30, sp and pc; x86 has no ds to gs in user space, but r8 to r15.
            None if mask & 0x1_ffff_ffff == 0x1_ffff_ffff => Family::Arm,
            None if mask & 0xff_f000 == 0xff_0000 => Family::X86,
            // Those of them that unwinding needs: bx bp sp ip r10 r12 to r15; x19 to x30, sp, pc.
            None if mask == 0xf4_01c2 => Family::X86,
            None if mask == 0x1_fff8_0000 => Family::Arm,
            None => return None,
        };
        Some(match (family, abi) {
            (Family::X86, 1) => Arch::X86,
            (Family::X86, 2) => Arch::X86_64,
            (Family::Arm, 2) => Arch::Aarch64,
            (Family::Riscv, 1) => Arch::Riscv32,
            (Family::Riscv, 2) => Arch::Riscv64,
            _ => return None,
        })
    }

    /// The architecture of a file.
    pub(super) fn of_machine(machine: Machine) -> Arch {
        match machine {
            Machine::X86_64 => Arch::X86_64,
            Machine::X86 => Arch::X86,
            Machine::Aarch64 => Arch::Aarch64,
            Machine::Riscv64 => Arch::Riscv64,
            Machine::Riscv32 => Arch::Riscv32,
        }
    }

    /// The place of perf's register `number`; `None` for one that stacks do not need.
    pub(super) fn of_perf(self, number: u8) -> Option<u8> {
        match (self, number) {
            (Arch::X86_64, 16..24) => Some(number - 8),
            (Arch::X86_64, _) => X86_64.get(usize::from(number)).copied(),
            (Arch::X86, _) => X86.get(usize::from(number)).copied(),
            (Arch::Aarch64, 0..=LAST) => Some(number),
            (Arch::Riscv64 | Arch::Riscv32, 0) => Some(LAST),
            (Arch::Riscv64 | Arch::Riscv32, 1..32) => Some(number),
            _ => None,
        }
    }

    /// The place of DWARF's register `number`; `None` for one that stacks do not need.
    pub(super) fn of_dwarf(self, number: u16) -> Option<u8> {
        let limit = match self {
            Arch::X86_64 => 17,
            Arch::X86 => 9,
            Arch::Aarch64 | Arch::Riscv64 | Arch::Riscv32 => 32,
        };
        u8::try_from(number).ok().filter(|&number| number < limit)
    }

    pub(super) fn program_counter(self) -> u8 {
        match self {
            Arch::X86_64 => 16,
            Arch::X86 => 8,
            Arch::Aarch64 | Arch::Riscv64 | Arch::Riscv32 => LAST,
        }
    }

    pub(super) fn stack_pointer(self) -> u8 {
        match self {
            Arch::X86_64 => 7,
            Arch::X86 => 4,
            Arch::Aarch64 => 31,
            Arch::Riscv64 | Arch::Riscv32 => 2,
        }
    }

    /// The place of what a system call returns.
    pub(super) fn result(self) -> u8 {
        match self {
            Arch::X86_64 | Arch::X86 | Arch::Aarch64 => 0,
            Arch::Riscv64 | Arch::Riscv32 => 10,
        }
    }

    /// The places in which a handler of exceptions gets its data: calls do not keep them, so that
    /// no other function saves them.
    pub(super) fn handler_data(self) -> [u8; 2] {
        match self {
            Arch::X86_64 | Arch::Aarch64 => [0, 1],
            Arch::X86 => [0, 2],
            Arch::Riscv64 | Arch::Riscv32 => [10, 11],
        }
    }

    pub(super) fn frame_pointer(self) -> u8 {
        match self {
            Arch::X86_64 => 6,
            Arch::X86 => 5,
            Arch::Aarch64 => 29,
            Arch::Riscv64 | Arch::Riscv32 => 8,
        }
    }

    /// Where the caller's frame pointer and the return address are, counted from where the frame
    /// pointer of a function that keeps one points to.
    pub(super) fn frame_record(self) -> (i64, i64) {
        // RISC-V's points behind the two words.
        let word = i64::from(self.word());
        match self {
            Arch::Riscv64 | Arch::Riscv32 => (-2 * word, -word),
            Arch::X86_64 | Arch::X86 | Arch::Aarch64 => (0, word),
        }
    }

    /// Bytes of an address.
    pub(super) fn word(self) -> u8 {
        match self {
            Arch::X86_64 | Arch::Aarch64 | Arch::Riscv64 => 8,
            Arch::X86 | Arch::Riscv32 => 4,
        }
    }

    /// A sum in the width of the architecture's addresses.
    pub(super) fn wrap(self, value: u64) -> u64 {
        match self.word() {
            8 => value,
            _ => value & 0xffff_ffff,
        }
    }

    /// Whether a call leaves the return address on the stack, not in a register.
    pub(super) fn pushes_return_address(self) -> bool {
        matches!(self, Arch::X86_64 | Arch::X86)
    }

    /// A return address as the processor jumps to it: on AArch64 the bits above those of user
    /// space may hold the signature of pointer authentication.
    pub(super) fn plain_return_address(self, address: u64) -> u64 {
        match self {
            Arch::Aarch64 => address & 0x0000_ffff_ffff_ffff,
            _ => address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfs_register_numbers_map_to_those_of_dwarf() {
        // PERF_REG_X86_BX, _SP, _IP, _FLAGS, _R8, _R15
        let x86_64 = [1, 7, 8, 9, 16, 23].map(|number| Arch::X86_64.of_perf(number));
        let expected = [Some(3), Some(7), Some(16), None, Some(8), Some(15)];
        assert_eq!(x86_64, expected);
        let x86 = [1, 4, 6, 7, 8, 9, 16].map(|number| Arch::X86.of_perf(number));
        let expected = [Some(3), Some(6), Some(5), Some(4), Some(8), None, None];
        assert_eq!(x86, expected);
        // x29, x30, sp, pc, vg
        let aarch64 = [29, 30, 31, 32, 46].map(|number| Arch::Aarch64.of_perf(number));
        assert_eq!(aarch64, [Some(29), Some(30), Some(31), Some(32), None]);
        // pc, ra, sp, t6
        let riscv = [0, 1, 2, 31, 32].map(|number| Arch::Riscv64.of_perf(number));
        assert_eq!(riscv, [Some(32), Some(1), Some(2), Some(31), None]);
    }

    #[test]
    fn a_tasks_architecture_is_recorded_or_follows_from_its_registers() {
        let x86 = 0xff_0fff;
        let arm64 = 0x1_ffff_ffff;
        assert_eq!(Arch::of_task(Some("x86_64"), 2, x86), Some(Arch::X86_64));
        assert_eq!(Arch::of_task(Some("x86_64"), 1, x86), Some(Arch::X86));
        assert_eq!(Arch::of_task(None, 2, x86), Some(Arch::X86_64));
        assert_eq!(Arch::of_task(None, 2, arm64), Some(Arch::Aarch64));
        assert_eq!(Arch::of_task(Some("aarch64"), 1, 0xffff), None);
        assert_eq!(Arch::of_task(Some("armv7l"), 1, 0xffff), None);
        assert_eq!(Arch::of_task(None, 1, 0xffff), None);
    }
}
