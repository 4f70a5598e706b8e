//! How code of x86 ends and leaves in ways that are neither calls nor jumps.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use memchr::memchr2_iter;

/// Whether the last instruction goes on to what lies behind the code. `last` is the index of the
/// last call or jump that was found to end the bytes, if one does.
pub(in crate::scan) fn falls_through(bytes: &[u8], last: Option<usize>) -> bool {
    // Behind the end of a function there may be padding.
    let padding = |byte: &u8| *byte == 0x90;
    let length = bytes.len() - bytes.iter().rev().take_while(|byte| padding(byte)).count();
    let Some(code) = bytes.get(..length).filter(|code| !code.is_empty()) else {
        return !bytes.is_empty();
    };
    if let Some(from) = last.and_then(|last| bytes.get(last..)) {
        let is_conditional =
            matches!(from, [0x70..=0x7f | 0xe0..=0xe3, _] | [0x0f, 0x80..=0x8f, ..]);
        return is_conditional;
    }
    !matches!(
        code,
        // ret, iret, ud2, hlt, int3
        [.., 0xc3 | 0xcb | 0xcf | 0xf4 | 0xcc] | [.., 0xc2 | 0xca, _, _] | [.., 0x0f, 0x0b]
        // jmp to within the function
        | [.., 0xeb, _] | [.., 0xe9, _, _, _, _]
        // A call of what does not return, followed by padding.
        | [.., 0xe8, _, _, _, _]
        // jmp *%register
        | [.., 0xff, 0xe0..=0xe7]
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scan) enum After {
    /// At the next one, perhaps among others, or when what it calls returns.
    Next,
    Jump,
    Return,
    Nothing,
}

pub(in crate::scan) fn after(instruction: &[u8]) -> After {
    let is_prefix = |byte: &&u8| {
        matches!(
            byte,
            0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
        )
    };
    let is_repeat = |byte: &u8| matches!(byte, 0xf2 | 0xf3);
    let prefixes = instruction.iter().take_while(is_prefix).count();
    match *instruction.get(prefixes..).unwrap_or_default() {
        [0xe9 | 0xeb, ..] => After::Jump,
        // jmp *r/m, ljmp *m
        [0xff, modrm, ..] if matches!(modrm >> 3 & 7, 4 | 5) => After::Jump,
        [0xc2 | 0xc3 | 0xca | 0xcb | 0xcf, ..] => After::Return,
        // sysret, sysexit, rsm
        [0x0f, 0x07 | 0x35 | 0xaa, ..] => After::Return,
        // skinit; eretu, erets and uiret, which have prefixes
        [0x0f, 0x01, 0xde] => After::Return,
        [0x0f, 0x01, 0xca | 0xec] if instruction[..prefixes].iter().any(is_repeat) => After::Return,
        // int3, hlt, ud2, ud1, ud0
        [0xcc | 0xf4, ..] | [0x0f, 0x0b | 0xb9 | 0xff, ..] => After::Nothing,
        _ => After::Next,
    }
}

/// The addresses and lengths of returns to what was put on the stack just before: jumps in disguise
/// (retpolines, and code written by hand).
pub(in crate::scan) fn disguised_jumps(bytes: &[u8], start: u64) -> Vec<(u64, u8)> {
    // A search for bytes that may be those of a return is far quicker than decoding.
    let mut returns = memchr2_iter(0xc3, 0xc2, bytes);
    if !returns.any(|at| may_put(bytes.get(..at).unwrap_or_default())) {
        return Vec::new();
    }
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut found = Vec::new();
    let mut is_put = false;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        match instruction.mnemonic() {
            Mnemonic::Ret if is_put => found.push((instruction.ip(), instruction.len() as u8)),
            Mnemonic::Push => is_put = true,
            Mnemonic::Mov | Mnemonic::Xchg
                if instruction.op0_kind() == OpKind::Memory
                    && instruction.memory_base() == Register::RSP
                    && instruction.memory_displacement64() == 0
                    && instruction.memory_index() == Register::None =>
            {
                is_put = true;
            }
            Mnemonic::Nop | Mnemonic::Pause | Mnemonic::Lfence => {}
            _ => is_put = false,
        }
    }
    found
}

/// Whether the bytes before a return may end in an instruction that puts an address on top of the
/// stack, followed at most by instructions without effect.
fn may_put(mut before: &[u8]) -> bool {
    loop {
        let puts = matches!(
            before,
            // push of a register, an immediate, %fs and %gs
            [.., 0x50..=0x57] | [.., 0x6a, _] | [.., 0x68, _, _, _, _] | [.., 0x0f, 0xa0 | 0xa8]
            // mov and xchg of a register and mov of an immediate with (%rsp)
            | [.., 0x89 | 0x87, _, 0x24] | [.., 0x89 | 0x87, _, 0x24, 0]
            | [.., 0xc7, _, 0x24, _, _, _, _]
        );
        let last = before.get(before.len().saturating_sub(8)..);
        let mut pairs = last.unwrap_or_default().windows(2);
        let pushes_memory = pairs.any(|pair| pair[0] == 0xff && pair[1] & 0x38 == 0x30);
        if puts || pushes_memory {
            return true;
        }
        before = match before {
            // nop, the prefixes of rep ret and bnd ret, lfence
            [before @ .., 0x90 | 0xf3 | 0xf2] | [before @ .., 0x0f, 0xae, 0xe8] => before,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

    use super::{After, after, disguised_jumps, falls_through};

    #[test]
    fn where_an_instruction_goes_on_is_what_a_decoder_says() {
        let prefixes: [&[u8]; 6] = [&[], &[0x48], &[0xf2], &[0xf3], &[0x3e], &[0x66]];
        let opcodes = (0..=255)
            .map(|opcode| vec![opcode])
            .chain((0..=255).map(|opcode| vec![0x0f, opcode]));
        for opcode in opcodes {
            for (prefix, modrm) in prefixes
                .iter()
                .flat_map(|prefix| (0..=255).map(move |m| (prefix, m)))
            {
                let mut bytes = [prefix, &opcode[..], &[modrm, 0x05]].concat();
                bytes.resize(24, 0);
                let decoded = Decoder::with_ip(64, &bytes, 0x1000, DecoderOptions::NONE).decode();
                if decoded.is_invalid() {
                    continue;
                }
                let expected = match decoded.flow_control() {
                    FlowControl::Return => After::Return,
                    FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => After::Jump,
                    FlowControl::Exception => After::Nothing,
                    FlowControl::Interrupt if decoded.mnemonic() == Mnemonic::Int3 => {
                        After::Nothing
                    }
                    _ if decoded.mnemonic() == Mnemonic::Hlt => After::Nothing,
                    _ => After::Next,
                };
                let found = after(&bytes[..decoded.len()]);
                assert_eq!(found, expected, "{:x?}", &bytes[..decoded.len()]);
            }
        }
    }

    #[test]
    fn code_without_an_end_falls_through() {
        // add %rax,%rax
        assert!(falls_through(&[0x48, 0x01, 0xc0], None));
        // jb +2
        assert!(falls_through(&[0x72, 0x02], Some(0)));
        // ret; ret and padding; ud2; jmp *%rax
        for code in [
            &[0xc3][..],
            &[0xc3, 0x90, 0x90],
            &[0x0f, 0x0b],
            &[0xff, 0xe0],
        ] {
            assert!(!falls_through(code, None), "{code:x?}");
        }
        // jmp to another function
        assert!(!falls_through(&[0x90, 0xe9, 1, 2, 3, 4], Some(1)));
        assert!(!falls_through(&[], None));
    }

    #[test]
    fn a_return_to_an_address_that_was_just_pushed_is_a_jump() {
        // mov %rax,(%rsp); ret
        let retpoline = [0x48, 0x89, 0x04, 0x24, 0xc3];
        assert_eq!(disguised_jumps(&retpoline, 0x100), [(0x104, 1)]);
        // push %rax; ret
        assert_eq!(disguised_jumps(&[0x50, 0xc3], 0x100), [(0x101, 1)]);
        // push $0x1234; ret
        assert_eq!(
            disguised_jumps(&[0x68, 0x34, 0x12, 0, 0, 0xc3], 0),
            [(5, 1)]
        );
        // pushq 0x8(%rax); pause; ret
        let by_memory = [0xff, 0x70, 0x08, 0xf3, 0x90, 0xc3];
        assert_eq!(disguised_jumps(&by_memory, 0), [(5, 1)]);
        // movq $0x1234,(%rsp); nop; rep ret
        let by_value = [0x48, 0xc7, 0x04, 0x24, 0x34, 0x12, 0, 0, 0x90, 0xf3, 0xc3];
        assert_eq!(disguised_jumps(&by_value, 0), [(9, 2)]);
        // lea 0x50(%rdi),%rax; ret
        let plain = [0x48, 0x8d, 0x47, 0x50, 0xc3];
        assert!(disguised_jumps(&plain, 0x100).is_empty());
    }
}
