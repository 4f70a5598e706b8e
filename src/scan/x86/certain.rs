//! Whether it is worth following registers through a stretch: that takes as long as all the rest.
//!
//! ```text
//!   mov  slot(%rip),%rax     what a register is loaded with, some way before …
//!   …
//!   call f@plt
//!   mov  0x18(%rbx),%rax     … and what is in it when it is called
//!   test %rax,%rax
//!   call *%rax
//! ```
//!
//! Between a call and the step before it, the way is straight. Where something else is put into the
//! register there, nothing before matters, wherever one comes from.

use iced_x86::{Code, Instruction, OpKind};

use super::super::flow::{Flow, Step};
use super::careful::Careful;
use super::effects::{called_register, loaded_register, next, number};
use crate::scan::register_values::Next;

// The most bytes that are looked at before a call.
const BEFORE: u64 = 256;

/// Whether a call or a jump through one of the registers `followed` may lead to something that was
/// loaded into it. `steps` are those of the code in `bytes`, which lies at `start`; `tells` says
/// whether it makes a difference that a load is what is called.
pub(in super::super) fn may_be(
    bytes: &[u8],
    start: u64,
    steps: &[Step],
    followed: u32,
    tells: &dyn Fn(Flow) -> bool,
) -> bool {
    let rest = |at: u64| {
        let index = usize::try_from(at.wrapping_sub(start)).unwrap_or(usize::MAX);
        bytes.get(index..).unwrap_or_default()
    };
    let mut told = 0;
    for step in steps {
        if matches!(step.flow, Flow::LoadSlot(_) | Flow::Address(_)) {
            let register = loaded_register(rest(step.at)) & followed;
            if register & !told != 0 && tells(step.flow) {
                told |= register;
            }
        }
    }
    if told == 0 {
        return false;
    }
    let mut careful = Careful::new(64, bytes, start);
    let mut before = start;
    for step in steps {
        if matches!(step.flow, Flow::CallUnknown | Flow::JumpUnknown) {
            let register = called_register(rest(step.at)) & told;
            if register != 0 && !is_lost(&mut careful, start, before..step.at, register) {
                return true;
            }
        }
        before = step.at;
    }
    false
}

/// Whether something that is no load of an address is put into this register on the way from one
/// instruction to another, and nothing else behind that.
fn is_lost(careful: &mut Careful, start: u64, way: std::ops::Range<u64>, register: u32) -> bool {
    if way.end.wrapping_sub(way.start) > BEFORE {
        return false;
    }
    let mut lost = false;
    let mut at = way.start;
    while at < way.end {
        let Some(instruction) = careful.decode(at.wrapping_sub(start) as usize) else {
            return false;
        };
        match next(instruction) {
            Next::Jump(_) | Next::Unknown | Next::Stop => lost = false,
            Next::On | Next::Call | Next::Branch(_) => {
                lost = put(instruction, register).unwrap_or(lost);
            }
        }
        at = at.wrapping_add(instruction.len() as u64);
    }
    lost && at == way.end
}

/// Whether an instruction surely puts something into a register that is no address it states;
/// `None` where it may leave it as it is.
fn put(instruction: &Instruction, register: u32) -> Option<bool> {
    let first = instruction.op0_kind() == OpKind::Register;
    let number = number(instruction.op0_register()).filter(|_| first)?;
    if 1 << number != register {
        return None;
    }
    match instruction.code() {
        Code::Mov_r64_rm64 | Code::Lea_r64_m => Some(!instruction.is_ip_rel_memory_operand()),
        Code::Mov_rm64_r64
        | Code::Mov_r32_rm32
        | Code::Mov_rm32_r32
        | Code::Movsxd_r64_rm32
        | Code::Add_r64_rm64
        | Code::Add_rm64_r64 => Some(true),
        Code::Mov_r32_imm32 | Code::Mov_rm32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_r64_imm64 => {
            Some(false)
        }
        _ => None,
    }
}
