//! Which jumps through registers and memory are those of a switch.
//!
//! ```text
//!   movslq (%rdx,%rax,4),%rax       jmp *table(,%rax,8)        notrack jmp *%rax
//!   add    %rdx,%rax
//!   jmp    *%rax
//! ```
//!
//! A table holds distances, to which the table's own address is added just before the jump, or
//! addresses, which the jump picks by an index. Nobody adds to a pointer that he then calls. Where
//! jumps to pointers are guarded (Intel's CET), those of switches are marked as not to be.

use crate::binary::Machine;

/// Whether the jump at this index of the bytes goes through the table of a switch for certain.
pub(super) fn is_jump(machine: Machine, bytes: &[u8], index: u64) -> bool {
    let Ok(index) = usize::try_from(index) else {
        return false;
    };
    let Some((before, from)) = bytes.split_at_checked(index) else {
        return false;
    };
    match machine {
        Machine::X86_64 | Machine::X86 => x86(before, from),
        Machine::Aarch64 => match before.last_chunk::<4>() {
            // ADD (extended register), 64 bits.
            Some(word) => u32::from_le_bytes(*word) & 0xffe0_0000 == 0x8b20_0000,
            None => false,
        },
        Machine::Riscv64 | Machine::Riscv32 => false,
    }
}

fn x86(before: &[u8], from: &[u8]) -> bool {
    let (is_unguarded, jump) = match from {
        [0x3e, rest @ ..] => (true, rest),
        _ => (false, from),
    };
    let jump = match jump {
        [0x40..=0x4f, rest @ ..] => rest,
        _ => jump,
    };
    match jump {
        // jmp *table(,%index,8): no base, an index.
        [0xff, modrm, sib, ..] if modrm & 0xf8 == 0x20 && modrm & 0x07 == 4 => {
            sib & 0x07 == 5 && sib & 0x38 != 0x20
        }
        // jmp *%register
        [0xff, modrm, ..] if modrm & 0xf8 == 0xe0 => {
            let is_sum = match before {
                [.., rex, 0x01 | 0x03, modrm] => rex & 0xf8 == 0x48 && modrm & 0xc0 == 0xc0,
                _ => false,
            };
            is_unguarded || is_sum
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_jump;
    use crate::binary::Machine;

    #[test]
    fn a_switch_is_told_from_a_pointer() {
        let cases: [(&[u8], u64, bool); 6] = [
            // movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax
            (
                &[0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0],
                7,
                true,
            ),
            // notrack jmp *%rax
            (&[0x90, 0x3e, 0xff, 0xe0], 1, true),
            // jmp *0x402000(,%rax,8)
            (&[0xff, 0x24, 0xc5, 0x00, 0x20, 0x40, 0x00], 0, true),
            // mov (%rdi),%rax; jmp *%rax
            (&[0x48, 0x8b, 0x07, 0xff, 0xe0], 3, false),
            // jmp *0x10(%rax)
            (&[0xff, 0x60, 0x10], 0, false),
            // jmp *(%rax)
            (&[0xff, 0x20], 0, false),
        ];
        for (bytes, index, is_table) in cases {
            assert_eq!(
                is_jump(Machine::X86_64, bytes, index),
                is_table,
                "{bytes:x?}"
            );
        }
        assert!(!is_jump(Machine::X86_64, &[], 7));
    }
}
