//! What instructions of x86 refer to, by a decoder that knows all instructions.

use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, Instruction, OpKind, Register};

use super::super::flow::{Flow, Wants};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Read {
    pub(in super::super) length: u8,
    /// What it refers to, and how many bytes before its end the field with the reference is.
    pub(in super::super) refers: Option<(Flow, u8)>,
}

pub(super) struct Careful<'a> {
    decoder: Decoder<'a>,
    instruction: Instruction,
    start: u64,
}

impl<'a> Careful<'a> {
    pub(super) fn new(bits: u32, bytes: &'a [u8], start: u64) -> Careful<'a> {
        Careful {
            decoder: Decoder::with_ip(bits, bytes, start, DecoderOptions::NONE),
            instruction: Instruction::default(),
            start,
        }
    }

    /// The instruction at this index of the bytes; `None` if no valid one begins there.
    pub(super) fn read(&mut self, index: usize, wants: &Wants) -> Option<Read> {
        let instruction = self.decode(index)?;
        Some(Read {
            length: instruction.len() as u8,
            refers: refers(instruction, wants),
        })
    }

    /// The instruction at this index, decoded in full; `None` if no valid one begins there.
    pub(super) fn decode(&mut self, index: usize) -> Option<&Instruction> {
        self.decoder.set_position(index).ok()?;
        self.decoder.set_ip(self.start.wrapping_add(index as u64));
        if !self.decoder.can_decode() {
            return None;
        }
        self.decoder.decode_out(&mut self.instruction);
        (self.instruction.code() != Code::INVALID).then_some(&self.instruction)
    }
}

// What it refers to, and how many bytes before its end the field with the reference is. The
// decoder's own `FlowControl::Call` is no help: SYSCALL is in it.
fn refers(instruction: &Instruction, wants: &Wants) -> Option<(Flow, u8)> {
    if instruction.is_call_near() {
        return Some((Flow::Call(instruction.near_branch_target()), 4));
    }
    if let Some(back) = jump_field(instruction) {
        return Some((Flow::Jump(instruction.near_branch_target()), back));
    }
    if instruction.is_call_near_indirect() {
        return Some((
            slot(instruction).map_or(Flow::CallUnknown, Flow::CallSlot),
            4,
        ));
    }
    if instruction.is_jmp_near_indirect() {
        return Some((
            slot(instruction).map_or(Flow::JumpUnknown, Flow::JumpSlot),
            4,
        ));
    }
    takes(instruction, wants)
}

/// How many bytes say where a jump leads; `None` for what is no direct jump.
fn jump_field(instruction: &Instruction) -> Option<u8> {
    let short = instruction.is_jmp_short()
        || instruction.is_jcc_short()
        || instruction.is_jcx_short()
        || instruction.is_loop()
        || instruction.is_loopcc();
    if short {
        return Some(1);
    }
    let xbegin = matches!(instruction.code(), Code::Xbegin_rel16 | Code::Xbegin_rel32);
    (instruction.is_jmp_near() || instruction.is_jcc_near() || xbegin).then_some(4)
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

fn takes(instruction: &Instruction, wants: &Wants) -> Option<(Flow, u8)> {
    let code = instruction.code();
    let immediate = match code {
        Code::Mov_r32_imm32 | Code::Mov_rm32_imm32 | Code::Pushd_imm32 => {
            Some((u64::from(instruction.immediate32()), 4))
        }
        Code::Pushq_imm32 | Code::Mov_rm64_imm32 => {
            Some((instruction.immediate32to64().cast_unsigned(), 4))
        }
        Code::Mov_r64_imm64 => Some((instruction.immediate64(), 8)),
        _ => None,
    };
    if let Some((address, back)) = immediate {
        let wanted = wants.immediates && wants.addresses.contains(&address);
        return wanted.then_some((Flow::Address(address), back));
    }
    if !instruction.is_ip_rel_memory_operand() || instruction.segment_prefix() != Register::None {
        return None;
    }
    let target = instruction.ip_rel_memory_address();
    if code == Code::Lea_r64_m {
        return (wants.addresses.contains(&target)).then_some((Flow::Address(target), 4));
    }
    let loads = matches!(
        code,
        Code::Mov_r64_rm64
            | Code::Cmp_r64_rm64
            | Code::Cmp_rm64_r64
            | Code::Test_rm64_r64
            | Code::Push_rm64
            | Code::Movq_xmm_xmmm64
            | Code::Movhps_xmm_m64
    );
    let moves = instruction.condition_code() != ConditionCode::None && instruction.op_count() == 2;
    let wide = moves && instruction.op0_register().is_gpr64();
    (loads || wide).then_some((Flow::LoadSlot(target), 4))
}
