//! What instructions of x86-64 do with registers. Numbers of registers are those of instructions:
//! rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.

use iced_x86::{
    Code, ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

use super::super::flow::{Flow, Step};
use super::careful::Careful;
use crate::scan::register_values::{Effect, Next};

// rbx, rbp, r12 to r15: what callees keep (System V ABI, AMD64 supplement, figure 3.4).
pub(in super::super) const KEPT: u32 = 1 << 3 | 1 << 5 | 0xf << 12;

/// The registers that it is worth following, as bits: those of calls and jumps that stand behind a
/// load of the register, without a call in between that changes it. If tables may lead anywhere,
/// only those that calls keep.
pub(in super::super) fn candidates(bytes: &[u8], start: u64, steps: &[Step]) -> u32 {
    let (mut loaded, mut candidates) = (0, 0);
    let mut followed = u32::MAX;
    for step in steps {
        let bytes = || {
            let index = usize::try_from(step.at.wrapping_sub(start)).unwrap_or(usize::MAX);
            bytes.get(index..).unwrap_or_default()
        };
        match step.flow {
            Flow::CallUnknown => {
                candidates |= loaded & called_register(bytes());
                loaded &= KEPT;
            }
            Flow::JumpUnknown => match loaded & called_register(bytes()) {
                0 => followed = KEPT,
                register => candidates |= register,
            },
            Flow::LoadSlot(_) | Flow::Address(_) => loaded |= loaded_register(bytes()),
            Flow::Call(_) | Flow::CallSlot(_) => loaded &= KEPT,
            Flow::Jump(_) | Flow::JumpSlot(_) => {}
        }
    }
    candidates & followed
}

pub(super) fn called_register(bytes: &[u8]) -> u32 {
    let prefixes = [0x3e, 0xf2, 0x66];
    let skipped = bytes.iter().take_while(|byte| prefixes.contains(byte));
    match *bytes.get(skipped.count()..).unwrap_or_default() {
        [rex @ 0x40..=0x4f, 0xff, modrm @ 0xc0..=0xff, ..] => 1 << ((rex & 1) << 3 | modrm & 7),
        [0xff, modrm @ 0xc0..=0xff, ..] => 1 << (modrm & 7),
        _ => 0,
    }
}

pub(super) fn loaded_register(bytes: &[u8]) -> u32 {
    match *bytes {
        [rex @ 0x48..=0x4f, 0x8b | 0x8d, modrm, ..] => 1 << ((rex & 4) << 1 | (modrm >> 3 & 7)),
        [rex @ 0x40..=0x4f, 0xc7, modrm @ 0xc0..=0xff, ..] => 1 << ((rex & 1) << 3 | modrm & 7),
        [rex @ 0x40..=0x4f, opcode @ 0xb8..=0xbf, ..] => 1 << ((rex & 1) << 3 | opcode & 7),
        [0xc7, modrm @ 0xc0..=0xff, ..] => 1 << (modrm & 7),
        [opcode @ 0xb8..=0xbf, ..] => 1 << (opcode & 7),
        _ => 0,
    }
}

/// All instructions, in order, and what they do with the registers `followed`; `None` if some bytes
/// are none.
pub(in super::super) fn read(bytes: &[u8], start: u64, followed: u32) -> Option<Vec<Effect>> {
    let mut careful = Careful::new(64, bytes, start);
    let mut factory = InstructionInfoFactory::new();
    let mut effects = Vec::with_capacity(bytes.len() / 4);
    let mut index = 0;
    while index < bytes.len() {
        let instruction = careful.decode(index)?;
        effects.push(effect(instruction, followed, &mut factory));
        index += instruction.len();
    }
    Some(effects)
}

fn effect(
    instruction: &Instruction,
    followed: u32,
    factory: &mut InstructionInfoFactory,
) -> Effect {
    let mut effect = Effect {
        at: instruction.ip(),
        next: next(instruction),
        ..Effect::default()
    };
    // The register information below is the slow part. Most instructions use none of the followed
    // registers, which their operands alone show.
    if names_all(instruction) && named(instruction) & followed == 0 {
        return effect;
    }
    for used in factory.info(instruction).used_registers() {
        let bit = number(used.register()).map_or(0, |number| 1 << number);
        let access = used.access();
        if !matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess
        ) {
            effect.reads |= bit;
        }
        if !matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        ) {
            effect.writes |= bit;
        }
    }
    let first = (instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register)
        .then(|| number(instruction.op0_register()))
        .flatten();
    let bit = first.map_or(0, |number| 1 << number);
    match instruction.code() {
        Code::Push_r64 => effect.saves = bit,
        Code::Pop_r64 => effect.restores = bit,
        Code::Mov_r64_rm64 | Code::Lea_r64_m if instruction.is_ip_rel_memory_operand() => {
            effect.loads = first;
        }
        Code::Mov_r32_imm32 | Code::Mov_rm32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_r64_imm64 => {
            effect.loads = first;
        }
        Code::Call_rm64 | Code::Jmp_rm64 => effect.through = first,
        _ => {}
    }
    effect
}

// Whether an instruction uses no other general registers than its operands and the stack pointer.
// That is not asked of all instructions, only of those that compilers write most.
pub(in super::super) fn names_all(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Imul => instruction.op_count() > 1,
        Mnemonic::Mov
        | Mnemonic::Lea
        | Mnemonic::Movzx
        | Mnemonic::Movsx
        | Mnemonic::Movsxd
        | Mnemonic::Add
        | Mnemonic::Sub
        | Mnemonic::And
        | Mnemonic::Or
        | Mnemonic::Xor
        | Mnemonic::Cmp
        | Mnemonic::Test
        | Mnemonic::Inc
        | Mnemonic::Dec
        | Mnemonic::Neg
        | Mnemonic::Not
        | Mnemonic::Shl
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Nop
        | Mnemonic::Call
        | Mnemonic::Jmp
        | Mnemonic::Push
        | Mnemonic::Pop
        | Mnemonic::Ret
        | Mnemonic::Movups
        | Mnemonic::Movaps
        | Mnemonic::Movdqu
        | Mnemonic::Movdqa
        | Mnemonic::Movq
        | Mnemonic::Movss
        | Mnemonic::Xorps => true,
        // Jumps, sets and moves on a condition.
        _ => {
            let counts =
                instruction.is_loop() || instruction.is_loopcc() || instruction.is_jcx_short();
            instruction.condition_code() != ConditionCode::None && !counts
        }
    }
}

pub(in super::super) fn named(instruction: &Instruction) -> u32 {
    let bit = |register: Register| number(register).map_or(0, |number| 1 << number);
    let operands = (0..instruction.op_count()).map(|operand| match instruction.op_kind(operand) {
        OpKind::Register => bit(instruction.op_register(operand)),
        OpKind::Memory => bit(instruction.memory_base()) | bit(instruction.memory_index()),
        _ => 0,
    });
    operands.fold(1 << 4, |bits, operand| bits | operand)
}

pub(super) fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number() as u8)
}

pub(super) fn next(instruction: &Instruction) -> Next {
    match instruction.flow_control() {
        FlowControl::Next => match instruction.code() {
            Code::Hlt => Next::Stop,
            _ => Next::On,
        },
        FlowControl::ConditionalBranch => Next::Branch(instruction.near_branch_target()),
        FlowControl::UnconditionalBranch => Next::Jump(instruction.near_branch_target()),
        FlowControl::IndirectBranch => Next::Unknown,
        FlowControl::Return | FlowControl::Exception => Next::Stop,
        FlowControl::Interrupt if instruction.code() == Code::Int3 => Next::Stop,
        FlowControl::Interrupt | FlowControl::Call | FlowControl::IndirectCall => Next::Call,
        FlowControl::XbeginXabortXend => match instruction.near_branch_target() {
            0 => Next::On,
            target => Next::Branch(target),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr)]

    use std::path::Path;

    use super::*;
    use crate::binary::Binary;

    #[test]
    fn instructions_that_name_their_registers_use_no_others() {
        let path = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
        let Ok(binary) = Binary::open(path) else {
            eprintln!("skipped: no C library for x86-64");
            return;
        };
        let (code, mut buffer) = (binary.code().unwrap(), Vec::new());
        let mut factory = InstructionInfoFactory::new();
        let (mut all, mut naming) = (0, 0);
        for stretch in binary.stretches() {
            let Some(piece) = code.piece(stretch.start, stretch.end) else {
                continue;
            };
            let bytes = code.read(piece, &mut buffer).unwrap();
            let mut careful = Careful::new(64, bytes, stretch.start.0);
            let mut index = 0;
            while let Some(instruction) = careful.decode(index) {
                index += instruction.len();
                all += 1;
                if !names_all(instruction) {
                    continue;
                }
                naming += 1;
                let named = named(instruction);
                for used in factory.info(instruction).used_registers() {
                    let bit = number(used.register()).map_or(0, |number| 1 << number);
                    assert_eq!(
                        bit & !named,
                        0,
                        "{instruction:?} uses {:?}",
                        used.register()
                    );
                }
            }
        }
        eprintln!("{naming} of {all} instructions name their registers");
        assert!(naming > all / 2);
    }
}
