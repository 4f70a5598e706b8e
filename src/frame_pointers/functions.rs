//! Whether functions keep frame pointers, so that the kernel can find who called them.
//!
//! ```text
//!   keeps one                     keeps none                      needs none
//!   push %rbp                     push %rbx                       lea (%rdi,%rsi),%rax
//!   mov  %rsp,%rbp                mov  %edi,%ebx                  ret
//!   …                             call g
//!   call g                        …
//! ```
//!
//! A function keeps a frame pointer if somewhere in it the register is saved and then set to where
//! it was saved: not always at the start, since compilers may place an early return before it. It
//! keeps none if it calls others, or uses the register for something else, without having done
//! that. A function that does neither needs no frame: while it runs, the register is its caller's,
//! so the caller's caller is found. (The caller itself is then missing from the stack.)
//!
//! Of those that keep none, a function that only calls leaves the register alone: a stack that is
//! followed through it lacks its caller, and goes on. One that uses the register for something else
//! cuts the stack.
//!
//! Code that never returns, such as a part that a compiler split off to throw an exception, does
//! not count either way.
//!
//! A function that begins by clearing the register is where a thread begins; it does not count.
//!
//! Nearly all functions of a small program may come from libraries that are linked into it and were
//! compiled with other options. So its `main`, which is its own code, is judged separately.
//!
//! | machine | frame pointer | set up by |
//! |---|---|---|
//! | x86-64, x86 | `rbp`, `ebp` | `push %rbp`, then `mov %rsp,%rbp` with the stack as it was |
//! | | | `enter` |
//! | | | Go: `sub $N,%rsp`, `mov %rbp,M(%rsp)`, `lea M(%rsp),%rbp`, M below the return address |
//! | AArch64 | `x29` | `add x29,sp,#n`, including `mov x29,sp` |
//! | RISC-V | `s0` | `addi s0,sp,n`, `c.addi4spn s0,n` |

use std::ops::Range;

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use crate::base::Svma;
use crate::binary::{self, Binary, Machine};

// How many functions of a file are looked at: enough for shares to be right within two percent.
const FUNCTIONS: usize = 2_000;
// How many bytes of a function are looked at: nearly all of them are shorter.
const FUNCTION_BYTES: u64 = 16 << 10;
// The bytes of code of a program whose `main` is looked for. In a larger one its own functions
// count, and it takes long to read where all of them are.
const SMALL: u64 = 4 << 20;
// How many instructions of a program's first are looked at.
const START: usize = 32;

/// How many functions of a file keep frame pointers, of those that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FramePointers {
    /// Those that set one up.
    pub keeping: u64,
    /// Those that call others, or use the register otherwise, without one.
    pub not_keeping: u64,
    /// Those of [`not_keeping`](Self::not_keeping) that use the register otherwise, which cuts the
    /// stacks of all that they call. They are distinguished on x86 only; elsewhere this is the
    /// number of all.
    pub cutting: u64,
    /// Those that show nothing: they need no frame pointer, begin threads, or could not be read.
    pub undecided: u64,
    /// Whether it is a small program whose `main` calls others and keeps none. Looked for on x86-64
    /// only.
    pub main_keeps_none: bool,
}

impl FramePointers {
    /// The number of functions that keep one or do not.
    pub fn decided(&self) -> u64 {
        self.keeping.saturating_add(self.not_keeping)
    }

    /// The share of [`decided`](Self::decided) functions that keeps none; `None` if there are no
    /// such functions.
    pub fn lacking(&self) -> Option<f64> {
        self.share(self.not_keeping)
    }

    /// The share of [`decided`](Self::decided) functions that cuts stacks; `None` if there are no
    /// such functions.
    pub fn cutting(&self) -> Option<f64> {
        self.share(self.cutting)
    }

    fn share(&self, functions: u64) -> Option<f64> {
        let decided = self.decided();
        (decided > 0).then(|| functions as f64 / decided as f64)
    }
}

/// Looks at some two thousand functions of a file, evenly spread over its code; at all of them, if
/// there are no more. Takes some milliseconds, also for libraries of a hundred megabytes.
///
/// ```
/// use proftool::{binary::Binary, frame_pointers::frame_pointers};
/// let own = Binary::open(&std::env::current_exe().unwrap()).unwrap();
/// assert!(frame_pointers(&own).decided() > 100);
/// ```
pub fn frame_pointers(binary: &Binary) -> FramePointers {
    let mut found = FramePointers::default();
    let Ok(code) = binary.code() else {
        return found;
    };
    let mut buffer = Vec::new();
    let mut info = InstructionInfoFactory::new();
    for Range { start, end } in binary.some_functions(FUNCTIONS) {
        let end = Svma(end.0.min(start.0.saturating_add(FUNCTION_BYTES)));
        let bytes = code
            .piece(start, end)
            .and_then(|piece| code.read(piece, &mut buffer).ok());
        let frame = bytes.map_or(Frame::Undecided, |bytes| match code.machine {
            Machine::X86_64 => x86(64, bytes, &mut info),
            Machine::X86 => x86(32, bytes, &mut info),
            Machine::Aarch64 => aarch64(bytes),
            Machine::Riscv64 | Machine::Riscv32 => riscv(bytes),
        });
        match frame {
            Frame::Kept => found.keeping += 1,
            Frame::NotKept { cuts } => {
                found.not_keeping += 1;
                found.cutting += u64::from(cuts);
            }
            Frame::Undecided => found.undecided += 1,
        }
    }
    if code.machine == Machine::X86_64 && code.size() <= SMALL {
        let main = main_of(binary, &code).and_then(|main| binary.function_at(main));
        let piece = main.and_then(|main| code.piece(main.start, main.end()));
        let bytes = piece.and_then(|piece| code.read(piece, &mut buffer).ok());
        let frame = bytes.map(|bytes| x86(64, bytes, &mut info));
        found.main_keeps_none = matches!(frame, Some(Frame::NotKept { .. }));
    }
    found
}

/// Where `main` is: what a program hands to the C library first, as the first argument of a call.
fn main_of(binary: &Binary, code: &binary::Code<'_>) -> Option<Svma> {
    let entry = binary.entry()?;
    let piece = code.piece(entry, Svma(entry.0.checked_add(256)?))?;
    let mut buffer = Vec::new();
    let bytes = code.read(piece, &mut buffer).ok()?;
    let mut main = None;
    let decoder = Decoder::with_ip(64, bytes, entry.0, DecoderOptions::NONE);
    for instruction in decoder.into_iter().take(START) {
        let is_first_argument = instruction.op_count() == 2
            && instruction.op0_register().full_register() == Register::RDI;
        match instruction.mnemonic() {
            Mnemonic::Call => return main,
            // lea main(%rip),%rdi
            Mnemonic::Lea if is_first_argument && instruction.is_ip_rel_memory_operand() => {
                main = Some(Svma(instruction.ip_rel_memory_address()));
            }
            // mov $main,%rdi, where the program has a fixed address
            Mnemonic::Mov if is_first_argument && is_immediate(instruction.op1_kind()) => {
                main = Some(Svma(instruction.immediate(1)));
            }
            Mnemonic::Ret | Mnemonic::Jmp => return None,
            _ if is_first_argument => main = None,
            _ => {}
        }
    }
    None
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Kept,
    NotKept { cuts: bool },
    Undecided,
}

fn x86(bits: u32, bytes: &[u8], info: &mut InstructionInfoFactory) -> Frame {
    let mut decoder = Decoder::with_ip(bits, bytes, 0, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let word = i64::from(bits / 8);
    // Whether the top of the stack is the saved frame pointer.
    let mut saved = false;
    // How far the stack was just lowered at once, and where above it the frame pointer was saved.
    let mut room = 0;
    let mut saved_at = None;
    let (mut calls, mut cuts) = (false, false);
    // What is longer than the bytes that are looked at returns somewhere.
    let mut returns = bytes.len() as u64 >= FUNCTION_BYTES;
    let mut first = true;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let to = instruction.op0_register().full_register();
        let is_frame =
            to == Register::RBP && instruction.op0_register().size() * 8 == bits as usize;
        match instruction.mnemonic() {
            Mnemonic::Enter => return Frame::Kept,
            Mnemonic::Push => {
                saved = is_frame;
                (room, saved_at) = (0, None);
            }
            Mnemonic::Mov
                if is_frame
                    && saved
                    && instruction.op1_register().full_register() == Register::RSP =>
            {
                return Frame::Kept;
            }
            Mnemonic::Sub | Mnemonic::Add
                if to == Register::RSP && is_immediate(instruction.op1_kind()) =>
            {
                let change = instruction.immediate(1) as i64;
                room = match instruction.mnemonic() {
                    Mnemonic::Sub => change,
                    _ => change.wrapping_neg(),
                };
                (saved, saved_at) = (false, None);
            }
            // The walk takes the word above the saved frame pointer for the return address.
            Mnemonic::Mov if saves_frame(&instruction) => {
                let offset = instruction.memory_displacement64() as i64;
                if offset.checked_add(word) == Some(room) {
                    saved_at = Some(offset);
                }
            }
            Mnemonic::Lea
                if is_frame
                    && is_on_stack(&instruction)
                    && saved_at == Some(instruction.memory_displacement64() as i64) =>
            {
                return Frame::Kept;
            }
            Mnemonic::Endbr64 | Mnemonic::Endbr32 | Mnemonic::Nop => continue,
            // Where a thread begins there is no frame to save.
            Mnemonic::Xor if first && to == Register::RBP => return Frame::Undecided,
            Mnemonic::Pop | Mnemonic::Leave => {
                saved = false;
                (room, saved_at) = (0, None);
            }
            Mnemonic::Call => calls |= !is_thunk(&instruction),
            Mnemonic::Ret | Mnemonic::Jmp => returns = true,
            _ if to == Register::RSP => {
                saved = false;
                (room, saved_at) = (0, None);
            }
            _ if to == Register::RBP => {
                let access = info.info(&instruction).op0_access();
                cuts |= matches!(
                    access,
                    OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite
                );
            }
            _ => {}
        }
        first = false;
    }
    if (calls || cuts) && returns {
        Frame::NotKept { cuts }
    } else {
        Frame::Undecided
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32
            | OpKind::Immediate32to64
    )
}

/// Whether its memory operand is at a fixed distance from the top of the stack.
fn is_on_stack(instruction: &Instruction) -> bool {
    instruction.memory_base().full_register() == Register::RSP
        && instruction.memory_index() == Register::None
}

/// Whether it stores the frame pointer on the stack.
fn saves_frame(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Memory
        && instruction.op1_register().full_register() == Register::RBP
        && is_on_stack(instruction)
}

/// Whether it is a call of the instruction behind it, by which 32-bit code learns where it is.
fn is_thunk(call: &Instruction) -> bool {
    call.code() == Code::Call_rel32_32 && call.near_branch_target() == call.next_ip()
}

fn aarch64(bytes: &[u8]) -> Frame {
    let mut calls = false;
    for word in bytes.chunks_exact(4) {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        // add x29,sp,#imm12
        if word & 0xffc0_03ff == 0x9100_03fd {
            return Frame::Kept;
        }
        // bl; blr, also with authentication of the pointer.
        calls |= word & 0xfc00_0000 == 0x9400_0000 || word & 0xfeff_f000 == 0xd63f_0000;
    }
    if calls {
        Frame::NotKept { cuts: true }
    } else {
        Frame::Undecided
    }
}

fn riscv(bytes: &[u8]) -> Frame {
    let mut calls = false;
    let mut rest = bytes;
    while let [low, high, after @ ..] = rest {
        let half = u16::from_le_bytes([*low, *high]);
        if half & 3 != 3 {
            // c.addi4spn s0,n; the encoding of all zeros is illegal.
            if half & 0xe01f == 0 && half != 0 {
                return Frame::Kept;
            }
            // c.jalr; with register x0 the encoding is c.ebreak.
            calls |= half & 0xf07f == 0x9002 && half & 0x0f80 != 0;
            rest = after;
            continue;
        }
        let [third, fourth, after @ ..] = after else {
            break;
        };
        let word = u32::from_le_bytes([*low, *high, *third, *fourth]);
        // addi s0,sp,n
        if word & 0x000f_ffff == 0x0001_0413 {
            return Frame::Kept;
        }
        // jal ra; jalr ra.
        calls |= word & 0x0fff == 0x00ef || word & 0x7fff == 0x00e7;
        rest = after;
    }
    if calls {
        Frame::NotKept { cuts: true }
    } else {
        Frame::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUTS: Frame = Frame::NotKept { cuts: true };

    fn judged(bytes: &[u8]) -> Frame {
        x86(64, bytes, &mut InstructionInfoFactory::new())
    }

    #[test]
    fn a_frame_may_be_set_up_late_and_between_other_instructions() {
        // endbr64; push rbp; xor eax,eax; mov rbp,rsp; call +0; pop rbp; ret
        let mut code = vec![0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5];
        code.extend([0xe8, 0, 0, 0, 0, 0x5d, 0xc3]);
        assert_eq!(judged(&code), Frame::Kept);
        // test rdi,rdi; je; push rbp; mov rbp,rsp (the other encoding)
        let late = [0x48, 0x85, 0xff, 0x74, 0x10, 0x55, 0x48, 0x8b, 0xec];
        assert_eq!(judged(&late), Frame::Kept);
        // enter 16,0
        assert_eq!(judged(&[0xc8, 16, 0, 0]), Frame::Kept);
    }

    #[test]
    fn a_frame_pointer_saved_by_offset_below_the_return_address_is_a_frame() {
        // sub rsp,40; mov [rsp+32],rbp; lea rbp,[rsp+32]; call +0
        let mut go = vec![0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x20];
        go.extend([0x48, 0x8d, 0x6c, 0x24, 0x20, 0xe8, 0, 0, 0, 0, 0xc3]);
        assert_eq!(judged(&go), Frame::Kept);
        // Saved elsewhere, and the word above it is no return address.
        let mut elsewhere = go.clone();
        (elsewhere[8], elsewhere[13]) = (0x18, 0x18);
        assert_eq!(judged(&elsewhere), CUTS);
        // Set to another place than where it was saved.
        let mut other = go.clone();
        other[13] = 0x10;
        assert_eq!(judged(&other), CUTS);
        // add rsp,-128; mov [rsp+120],rbp; lea rbp,[rsp+120]; call +0
        let mut large = vec![0x48, 0x83, 0xc4, 0x80, 0x48, 0x89, 0x6c, 0x24, 0x78];
        large.extend([0x48, 0x8d, 0x6c, 0x24, 0x78, 0xe8, 0, 0, 0, 0]);
        assert_eq!(judged(&large), Frame::Kept);
    }

    #[test]
    fn the_address_of_a_local_variable_is_not_a_frame() {
        // push rbp; sub rsp,32; mov rbp,rsp; call +0; ret
        let mut code = vec![0x55, 0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0xe5];
        code.extend([0xe8, 0, 0, 0, 0, 0xc3]);
        assert_eq!(judged(&code), CUTS);
    }

    #[test]
    fn leaf_functions_are_judged_only_by_their_use_of_the_register() {
        // lea rax,[rdi+rsi]; ret
        assert_eq!(judged(&[0x48, 0x8d, 0x04, 0x37, 0xc3]), Frame::Undecided);
        // push rbp; mov ebp,edi; …; pop rbp; ret
        assert_eq!(judged(&[0x55, 0x89, 0xfd, 0x5d, 0xc3]), CUTS);
        // cmp rbp,rdi; ret
        assert_eq!(judged(&[0x48, 0x39, 0xfd, 0xc3]), Frame::Undecided);
        // xor ebp,ebp; call +0: where a program starts
        assert_eq!(judged(&[0x31, 0xed, 0xe8, 0, 0, 0, 0]), Frame::Undecided);
        assert_eq!(judged(&[]), Frame::Undecided);
    }

    #[test]
    fn code_that_never_returns_shows_nothing() {
        // call +0: a part that was split off to throw
        assert_eq!(judged(&[0xe8, 0, 0, 0, 0]), Frame::Undecided);
        // call +0; jmp: a part that goes on in its function, or a tail call
        let calls = Frame::NotKept { cuts: false };
        assert_eq!(judged(&[0xe8, 0, 0, 0, 0, 0xeb, 0x10]), calls);
    }

    #[test]
    fn frames_of_aarch64() {
        let code = |words: &[u32]| {
            words
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let (bl, ret) = (0x9400_0000, 0xd65f_03c0);
        // stp x29,x30,[sp,#-16]!; mov x29,sp; bl; ret
        let kept = code(&[0xa9bf_7bfd, 0x9100_03fd, bl, ret]);
        assert_eq!(aarch64(&kept), Frame::Kept);
        // str x30,[sp,#-16]!; bl; ret
        assert_eq!(aarch64(&code(&[0xf81f_0ffe, bl, ret])), CUTS);
        // blr x3; blraaz x3
        assert_eq!(aarch64(&code(&[0xd63f_0060])), CUTS);
        assert_eq!(aarch64(&code(&[0xd63f_087f])), CUTS);
        // br x3 is no call
        assert_eq!(aarch64(&code(&[0xd61f_0060, ret])), Frame::Undecided);
    }

    #[test]
    fn frames_of_riscv() {
        // c.addi sp,-16; c.sdsp ra,8(sp); c.sdsp s0,0(sp); c.addi4spn s0,16; jalr ra,0(t1)
        let kept = [
            0x41, 0x11, 0x06, 0xe4, 0x22, 0xe0, 0x00, 0x08, 0xe7, 0x00, 0x03, 0x00,
        ];
        assert_eq!(riscv(&kept), Frame::Kept);
        assert_eq!(riscv(&kept[8..]), CUTS);
        // addi s0,sp,48
        assert_eq!(riscv(&0x0301_0413_u32.to_le_bytes()), Frame::Kept);
        // c.jalr a5; c.ebreak; c.jr ra
        assert_eq!(riscv(&0x9782_u16.to_le_bytes()), CUTS);
        assert_eq!(riscv(&[0x02, 0x90, 0x82, 0x80]), Frame::Undecided);
        assert_eq!(riscv(&[0, 0, 0x13]), Frame::Undecided);
    }
}
