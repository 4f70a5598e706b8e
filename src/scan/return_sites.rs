//! Whether an address can be one that a call returns to, from the bytes before it alone.
//!
//! Instructions of x86 cannot be decoded backwards, so every length is tried: if no bytes that end
//! at the address are a call, none returns there, wherever functions begin. The reverse does not
//! hold: the bytes of another instruction may look like a call.

use super::flow::{Flow, Step, Wants};
use super::workers::walk;
use crate::base::Svma;
use crate::binary::{Binary, Machine};

// The longest instruction of x86, in bytes.
const LONGEST: usize = 15;

/// Whether a call may return to this address; `None` where the code before it cannot be read.
pub fn may_return_to(binary: &Binary, at: Svma) -> Option<bool> {
    let machine = binary.machine()?;
    let start = at.0.checked_sub(LONGEST as u64)?;
    let bytes: [u8; LONGEST] = binary.bytes_at(Svma(start))?;
    Some(ends_with_call(machine, &bytes))
}

/// The length of the system call that ends at this address, if the code before it is one.
pub fn system_call_before(binary: &Binary, at: Svma) -> Option<u64> {
    let machine = binary.machine()?;
    let start = at.0.checked_sub(4)?;
    system_call_length(machine, binary.bytes_at(Svma(start))?)
}

fn system_call_length(machine: Machine, before: [u8; 4]) -> Option<u64> {
    match (machine, before) {
        // syscall, sysenter, int $0x80
        (Machine::X86_64 | Machine::X86, [_, _, 0x0f, 0x05 | 0x34] | [_, _, 0xcd, 0x80]) => Some(2),
        // svc with any number
        (Machine::Aarch64, word) if u32::from_le_bytes(word) & 0xffe0_001f == 0xd400_0001 => {
            Some(4)
        }
        // ecall
        (Machine::Riscv32 | Machine::Riscv64, [0x73, 0, 0, 0]) => Some(4),
        _ => None,
    }
}

fn ends_with_call(machine: Machine, bytes: &[u8]) -> bool {
    let lengths: &[usize] = match machine {
        Machine::X86_64 | Machine::X86 => &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        Machine::Aarch64 => &[4],
        Machine::Riscv32 | Machine::Riscv64 => &[2, 4],
    };
    let wants = Wants::default();
    let mut steps: Vec<Step> = Vec::new();
    lengths.iter().any(|&length| {
        let from = bytes.len().checked_sub(length);
        let Some(last) = from.and_then(|from| bytes.get(from..)) else {
            return false;
        };
        steps.clear();
        walk(machine, last, 0, &wants, &mut steps);
        let is_call = |step: &Step| {
            let calls = matches!(
                step.flow,
                Flow::Call(_) | Flow::CallSlot(_) | Flow::CallUnknown
            );
            calls && step.at == 0 && usize::from(step.length) == length
        };
        steps.first().is_some_and(is_call)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_call_is_known_by_the_bytes_before_its_end() {
        let cases = [
            (Machine::X86_64, [0x89, 0xc8, 0x0f, 0x05], Some(2)),
            (Machine::X86, [0x89, 0xc8, 0xcd, 0x80], Some(2)),
            (Machine::X86, [0x89, 0xc8, 0x0f, 0x34], Some(2)),
            (Machine::X86_64, [0x0f, 0x05, 0x89, 0xc8], None),
            (Machine::Aarch64, 0xd400_0001_u32.to_le_bytes(), Some(4)),
            (Machine::Aarch64, 0xd400_0021_u32.to_le_bytes(), Some(4)),
            // brk
            (Machine::Aarch64, 0xd420_0000_u32.to_le_bytes(), None),
            (Machine::Riscv64, 0x0000_0073_u32.to_le_bytes(), Some(4)),
            // ebreak
            (Machine::Riscv64, 0x0010_0073_u32.to_le_bytes(), None),
        ];
        for (machine, bytes, length) in cases {
            assert_eq!(system_call_length(machine, bytes), length, "{bytes:x?}");
        }
    }

    #[test]
    fn every_form_of_call_is_seen_at_the_end_of_code() {
        let x86: [&[u8]; 8] = [
            &[0xe8, 0, 0, 0, 0],
            // call *%rax, call *%r11, call *8(%rax), call *slot(%rip), call *(%rsp,%rax,8)
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd3],
            &[0xff, 0x50, 8],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x14, 0xc4],
            // notrack call *%rax, and call *%fs:0x10 with a displacement
            &[0x3e, 0xff, 0xd0],
            &[0x64, 0xff, 0x14, 0x25, 0x10, 0, 0, 0],
        ];
        for call in x86 {
            let code = [&[0x90; 15], call].concat();
            assert!(ends_with_call(Machine::X86_64, &code), "{call:x?}");
        }
        assert!(ends_with_call(Machine::X86, &[0xff, 0xd0]));
        // bl, blr; jal ra, jalr ra and c.jalr
        for call in [0x9400_0001u32, 0xd63f_0100] {
            assert!(ends_with_call(Machine::Aarch64, &call.to_le_bytes()));
        }
        for call in [0x0000_00efu32, 0x0005_00e7] {
            assert!(ends_with_call(Machine::Riscv64, &call.to_le_bytes()));
        }
        assert!(ends_with_call(Machine::Riscv64, &0x9502u16.to_le_bytes()));
    }

    #[test]
    fn code_that_ends_otherwise_is_no_place_to_return_to() {
        let x86: [&[u8]; 5] = [
            // ret; nop; mov %rsp,%rbp; jmp; jmp *%rax
            &[0xc3],
            &[0x0f, 0x1f, 0x44, 0, 0],
            &[0x55, 0x48, 0x89, 0xe5],
            &[0xe9, 0, 0, 0, 0],
            &[0xff, 0xe0],
        ];
        for end in x86 {
            let code = [&[0x90; 15], end].concat();
            assert!(!ends_with_call(Machine::X86_64, &code), "{end:x?}");
        }
        assert!(!ends_with_call(Machine::X86_64, &[]));
        // b, br and ret; j and ret
        for end in [0x1400_0001u32, 0xd61f_0100, 0xd65f_03c0] {
            assert!(!ends_with_call(Machine::Aarch64, &end.to_le_bytes()));
        }
        for end in [0x0000_006fu32, 0x0000_8067] {
            assert!(!ends_with_call(Machine::Riscv64, &end.to_le_bytes()));
        }
    }
}
