//! Calls and jumps of x86-64.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};

use super::flow::{Flow, Step};

/// Decodes `bytes`, which lie at address `start`, and hands on every step out of the straight
/// line. Returns the number of bytes that are no instructions; after one of those decoding goes
/// on at the next.
pub(super) fn walk(bytes: &[u8], start: u64, mut step: impl FnMut(Step)) -> u64 {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut undecoded = 0;
    while decoder.can_decode() {
        let position = decoder.position();
        decoder.decode_out(&mut instruction);
        if instruction.code() == Code::INVALID {
            undecoded += 1;
            let next = position + 1;
            decoder.set_ip(start.wrapping_add(next as u64));
            if decoder.set_position(next).is_err() {
                break;
            }
            continue;
        }
        if let Some(flow) = flow(&instruction) {
            step(Step {
                at: instruction.ip(),
                length: instruction.len() as u8,
                flow,
                field: instruction.next_ip().wrapping_sub(4),
            });
        }
    }
    undecoded
}

/// Where it leads. The decoder's own `FlowControl::Call` is no help: SYSCALL is in it.
fn flow(instruction: &Instruction) -> Option<Flow> {
    if instruction.is_call_near() {
        return Some(Flow::Call(instruction.near_branch_target()));
    }
    if instruction.is_jmp_short_or_near() || instruction.is_jcc_short_or_near() {
        return Some(Flow::Jump(instruction.near_branch_target()));
    }
    if instruction.is_call_near_indirect() {
        return Some(slot(instruction).map_or(Flow::CallUnknown, Flow::CallSlot));
    }
    if instruction.is_jmp_near_indirect() {
        return Some(slot(instruction).map_or(Flow::JumpUnknown, Flow::JumpSlot));
    }
    None
}

/// The address of the pointer, where it stands in the instruction: `*disp(%rip)`, `*disp`.
fn slot(instruction: &Instruction) -> Option<u64> {
    if instruction.op0_kind() != OpKind::Memory || instruction.segment_prefix() != Register::None {
        return None;
    }
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    let absolute =
        instruction.memory_base() == Register::None && instruction.memory_index() == Register::None;
    absolute.then(|| instruction.memory_displacement64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(bytes: &[u8]) -> Vec<(u64, u8, Flow)> {
        let mut found = Vec::new();
        walk(bytes, 0x1000, |s| found.push((s.at, s.length, s.flow)));
        found
    }

    #[test]
    fn calls_and_jumps_lead_forward_and_backward() {
        let cases: [(&[u8], Option<Flow>); 14] = [
            (b"\xe8\x0b\0\0\0", Some(Flow::Call(0x1010))),
            (b"\xe8\xeb\xff\xff\xff", Some(Flow::Call(0xff0))),
            (b"\x67\xe8\x0a\0\0\0", Some(Flow::Call(0x1010))),
            (b"\xe9\x0b\0\0\0", Some(Flow::Jump(0x1010))),
            (b"\xeb\xee", Some(Flow::Jump(0xff0))),
            (b"\x0f\x84\x0a\0\0\0", Some(Flow::Jump(0x1010))),
            (b"\xff\x15\x0a\0\0\0", Some(Flow::CallSlot(0x1010))),
            (b"\xf2\xff\x25\x09\0\0\0", Some(Flow::JumpSlot(0x1010))),
            (b"\xff\x14\x25\x10\x10\0\0", Some(Flow::CallSlot(0x1010))),
            (b"\x64\xff\x14\x25\x10\0\0\0", Some(Flow::CallUnknown)),
            (b"\xff\xd0", Some(Flow::CallUnknown)),
            (b"\x3e\xff\xe0", Some(Flow::JumpUnknown)),
            (b"\x0f\x05", None),
            (b"\xb8\xe8\x01\x02\x03", None),
        ];
        for (bytes, flow) in cases {
            let expected: Vec<_> = flow
                .map(|flow| (0x1000, bytes.len() as u8, flow))
                .into_iter()
                .collect();
            assert_eq!(flows(bytes), expected, "{bytes:02x?}");
        }
    }

    #[test]
    fn bytes_that_are_no_instructions_are_counted_and_passed() {
        let mut found = Vec::new();
        let undecoded = walk(b"\x06\xe8\0\0\0\0\xe8\x01", 0x1000, |s| found.push(s.at));
        assert_eq!((undecoded, found), (3, vec![0x1001]));
        walk(&[0xe8; 64], u64::MAX - 20, |_| {});
    }
}
