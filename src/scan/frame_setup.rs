//! Whether code has set up a frame at an address, and whether it returns, from its bytes alone.

use super::flow::{Flow, Wants};
use super::x86::Instructions;
use super::x86::ends::{After, after};
use crate::base::Svma;
use crate::binary::{Binary, Machine};

// More code is not searched, in bytes.
const SEARCHED: u64 = 1 << 16;

// The ways to make the frame pointer point into the stack frame: `mov %rsp,%rbp` in its two forms,
// and `lea` with a short or a long offset. The prefix is left out.
const SETTING: [&[u8]; 4] = [
    &[0x89, 0xe5],
    &[0x8b, 0xec],
    &[0x8d, 0x6c, 0x24],
    &[0x8d, 0xac, 0x24],
];

/// Whether the frame pointer is certain not to be that of the code between two addresses, before
/// the instruction at `at` in it: it sets none up anywhere, or has not done so yet, or is about to
/// return. Known on x86-64 only.
pub fn has_no_frame(binary: &Binary, from: Svma, to: Svma, at: Svma) -> bool {
    let index = at.0.checked_sub(from.0);
    let index = index.and_then(|index| usize::try_from(index).ok());
    index.is_some_and(|at| {
        is_true_of(binary, from, to, |bytes| {
            at <= bytes.len() && is_without_frame(bytes, at)
        })
    })
}

/// Whether the function between two addresses is certain never to return, nor to leave by a jump:
/// the first function of a thread does not, nor what calls `main`. Known on x86-64 only.
pub fn never_returns(binary: &Binary, from: Svma, to: Svma) -> bool {
    is_true_of(binary, from, to, |bytes| stays(bytes, from.0))
}

/// Whether something is true of the bytes between two addresses, if they are code that can be read.
fn is_true_of(binary: &Binary, from: Svma, to: Svma, of: impl FnOnce(&[u8]) -> bool) -> bool {
    let length = to.0.saturating_sub(from.0);
    if binary.machine() != Some(Machine::X86_64) || length > SEARCHED {
        return false;
    }
    let read = || {
        let code = binary.code().ok()?;
        let mut buffer = Vec::new();
        let bytes = code.read(code.piece(from, to)?, &mut buffer).ok()?;
        Some(of(bytes))
    };
    read().unwrap_or(false)
}

/// Whether no instruction of this code at `start` returns, or jumps out of it or to an unknown
/// place.
fn stays(bytes: &[u8], start: u64) -> bool {
    let mut instructions = Instructions::new(bytes, start);
    let wants = Wants::default();
    let mut index = 0;
    while index < bytes.len() {
        let Some(read) = instructions.read(index, &wants) else {
            return false;
        };
        let next = index.saturating_add(usize::from(read.length));
        let inside = match read.refers {
            Some((Flow::Jump(to), _)) => to.wrapping_sub(start) < bytes.len() as u64,
            Some((Flow::JumpSlot(_) | Flow::JumpUnknown, _)) => false,
            _ => true,
        };
        let after = after(bytes.get(index..next).unwrap_or_default());
        if !inside || after == After::Return {
            return false;
        }
        index = next;
    }
    !bytes.is_empty()
}

fn is_without_frame(bytes: &[u8], at: usize) -> bool {
    let is_setting = |bytes: &[u8]| {
        // enter
        matches!(bytes, [0xc8, _, _, 0, ..]) || SETTING.iter().any(|form| bytes.starts_with(form))
    };
    let mut rest = (0..bytes.len()).filter_map(|from| bytes.get(from..));
    if !rest.any(is_setting) {
        return true;
    }
    // endbr64; push %rbp; and one byte more, the prefix of what sets it.
    let begins = bytes
        .strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa])
        .unwrap_or(bytes);
    let is_set_first = matches!(begins, [0x55, 0x48, setting @ ..] if is_setting(setting));
    let before = bytes.len() - begins.len() + 1;
    // ret, also behind a prefix.
    let is_return = matches!(bytes.get(at..), Some([0xc3, ..] | [0xf2 | 0xf3, 0xc3, ..]));
    is_set_first && at <= before || is_return
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_sets_no_frame_up_has_none_anywhere() {
        // mov 0x38(%rdi),%rax; pop %rcx; jmp *%rcx
        let code = [0x48, 0x8b, 0x47, 0x38, 0x59, 0xff, 0xe1];
        assert!((0..code.len()).all(|at| is_without_frame(&code, at)));
    }

    #[test]
    fn a_frame_is_there_from_where_it_is_set_up_to_the_return() {
        // endbr64; push %rbp; mov %rsp,%rbp; pop %rbp; ret
        let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3];
        let without: Vec<usize> = (0..code.len())
            .filter(|&at| is_without_frame(&code, at))
            .collect();
        assert_eq!(without, [0, 1, 2, 3, 4, 5, 9]);
    }

    #[test]
    fn what_loops_or_ends_without_a_return_never_returns() {
        // call *%rax; ud2, and a jump to the call instead of the trap
        assert!(stays(&[0xff, 0xd0, 0x0f, 0x0b], 0x1000));
        assert!(stays(&[0xff, 0xd0, 0xeb, 0xfc], 0x1000));
        // A return, a jump out of the function, and one to where a register says.
        assert!(!stays(&[0xff, 0xd0, 0xc3], 0x1000));
        assert!(!stays(&[0xff, 0xd0, 0xeb, 0x10], 0x1000));
        assert!(!stays(&[0xff, 0xd0, 0xff, 0xe0], 0x1000));
    }

    #[test]
    fn where_a_frame_is_set_up_later_nothing_is_certain_before() {
        // test %edi,%edi; je; push %rbp; mov %rsp,%rbp; pop %rbp; nop
        let code = [0x85, 0xff, 0x74, 0x05, 0x55, 0x48, 0x89, 0xe5, 0x5d, 0x90];
        assert!((0..code.len()).all(|at| !is_without_frame(&code, at)));
    }
}
