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
//! it was saved: not always at the start, since compilers let an early return go first. It keeps
//! none if it calls others, or uses the register for something else, without having done that. What
//! does neither needs no frame: while it runs, the register is its caller's, whose caller is found.
//! (That its caller is then left out of the stack is another matter.)
//!
//! A function that begins by clearing the register is where a thread begins, and tells nothing.
//!
//! | machine | frame pointer | set up by |
//! |---|---|---|
//! | x86-64, x86 | `rbp`, `ebp` | `push %rbp`, then `mov %rsp,%rbp` with the stack as it was; `enter` |
//! | AArch64 | `x29` | `add x29,sp,#n`, of which `mov x29,sp` is one |
//! | RISC-V | `s0` | `addi s0,sp,n`, `c.addi4spn s0,n` |

use std::ops::Range;

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register,
};

use crate::base::Svma;
use crate::binary::{Binary, Machine};

/// How many functions of a file are looked at: enough for shares to be right within two percent.
const FUNCTIONS: usize = 2_000;
/// How many bytes of a function are looked at: nearly all of them are shorter.
const FUNCTION_BYTES: u64 = 16 << 10;

/// How many functions of a file keep frame pointers, of those that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FramePointers {
    /// Those that set one up.
    pub keeping: u64,
    /// Those that call others, or use the register otherwise, without one.
    pub not_keeping: u64,
    /// Those that tell nothing: they need none, begin threads or could not be read.
    pub undecided: u64,
}

impl FramePointers {
    /// How many functions tell something.
    pub fn decided(&self) -> u64 {
        self.keeping.saturating_add(self.not_keeping)
    }

    /// The share that keeps none among those that tell something; `None` if nothing does.
    pub fn lacking(&self) -> Option<f64> {
        let decided = self.decided();
        (decided > 0).then(|| self.not_keeping as f64 / decided as f64)
    }
}

/// Looks at some two thousand functions of a file, evenly spread over its code; at all of them, if
/// there are no more. Takes some milliseconds, also for libraries of a hundred megabytes.
///
/// ```
/// use proftool::{binary::Binary, scan::frame_pointers::frame_pointers};
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
            Frame::NotKept => found.not_keeping += 1,
            Frame::Undecided => found.undecided += 1,
        }
    }
    found
}

/// What the code of a function tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Kept,
    NotKept,
    Undecided,
}

fn x86(bits: u32, bytes: &[u8], info: &mut InstructionInfoFactory) -> Frame {
    let mut decoder = Decoder::with_ip(bits, bytes, 0, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    // Whether the top of the stack is the saved frame pointer.
    let mut saved = false;
    let mut lacks = false;
    let mut first = true;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let to = instruction.op0_register().full_register();
        let is_frame =
            to == Register::RBP && instruction.op0_register().size() * 8 == bits as usize;
        match instruction.mnemonic() {
            Mnemonic::Enter => return Frame::Kept,
            Mnemonic::Push => saved = is_frame,
            Mnemonic::Mov
                if is_frame
                    && saved
                    && instruction.op1_register().full_register() == Register::RSP =>
            {
                return Frame::Kept;
            }
            Mnemonic::Endbr64 | Mnemonic::Endbr32 | Mnemonic::Nop => continue,
            // Where a thread begins there is no frame to save.
            Mnemonic::Xor if first && to == Register::RBP => return Frame::Undecided,
            Mnemonic::Pop | Mnemonic::Leave => saved = false,
            Mnemonic::Call => lacks |= !is_thunk(&instruction),
            _ if to == Register::RSP => saved = false,
            _ if to == Register::RBP => {
                let access = info.info(&instruction).op0_access();
                lacks |= matches!(
                    access,
                    OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite
                );
            }
            _ => {}
        }
        first = false;
    }
    if lacks {
        Frame::NotKept
    } else {
        Frame::Undecided
    }
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
        Frame::NotKept
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
            // c.addi4spn s0,n, of which all zero is none.
            if half & 0xe01f == 0 && half != 0 {
                return Frame::Kept;
            }
            // c.jalr, of which x0 is c.ebreak.
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
        Frame::NotKept
    } else {
        Frame::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_address_of_a_local_is_no_frame() {
        // push rbp; sub rsp,32; mov rbp,rsp; call +0; ret
        let mut code = vec![0x55, 0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0xe5];
        code.extend([0xe8, 0, 0, 0, 0, 0xc3]);
        assert_eq!(judged(&code), Frame::NotKept);
    }

    #[test]
    fn leaves_tell_only_by_what_they_do_with_the_register() {
        // lea rax,[rdi+rsi]; ret
        assert_eq!(judged(&[0x48, 0x8d, 0x04, 0x37, 0xc3]), Frame::Undecided);
        // push rbp; mov ebp,edi; …; pop rbp; ret
        assert_eq!(judged(&[0x55, 0x89, 0xfd, 0x5d, 0xc3]), Frame::NotKept);
        // cmp rbp,rdi; ret
        assert_eq!(judged(&[0x48, 0x39, 0xfd, 0xc3]), Frame::Undecided);
        // xor ebp,ebp; call +0: where a program starts
        assert_eq!(judged(&[0x31, 0xed, 0xe8, 0, 0, 0, 0]), Frame::Undecided);
        assert_eq!(judged(&[]), Frame::Undecided);
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
        assert_eq!(aarch64(&code(&[0xf81f_0ffe, bl, ret])), Frame::NotKept);
        // blr x3; blraaz x3
        assert_eq!(aarch64(&code(&[0xd63f_0060])), Frame::NotKept);
        assert_eq!(aarch64(&code(&[0xd63f_087f])), Frame::NotKept);
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
        assert_eq!(riscv(&kept[8..]), Frame::NotKept);
        // addi s0,sp,48
        assert_eq!(riscv(&0x0301_0413_u32.to_le_bytes()), Frame::Kept);
        // c.jalr a5; c.ebreak; c.jr ra
        assert_eq!(riscv(&0x9782_u16.to_le_bytes()), Frame::NotKept);
        assert_eq!(riscv(&[0x02, 0x90, 0x82, 0x80]), Frame::Undecided);
        assert_eq!(riscv(&[0, 0, 0x13]), Frame::Undecided);
    }
}
