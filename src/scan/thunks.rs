//! Functions that stand for instructions that processors must not foresee: a call of one is a call
//! through a pointer, or a return.
//!
//! ```text
//!   call 1f                  what is foreseen: the next line
//!   0: pause; lfence; jmp 0b
//!   1: mov %rax,(%rsp)       of a branch; of a return: lea 8(%rsp),%rsp
//!   ret
//! ```
//!
//! Compilers and the kernel have names for them; without symbols the code shows it.

use crate::base::Svma;
use crate::binary::{Binary, FunctionSymbol, Machine};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thunk {
    /// A jump to what a register or the stack holds.
    Branch,
    Return,
}

// How their names begin: those of GCC, of LLVM, and of the kernel.
const NAMES: [(&str, Thunk); 9] = [
    ("__x86_indirect_", Thunk::Branch),
    ("__llvm_retpoline_", Thunk::Branch),
    ("__llvm_external_retpoline_", Thunk::Branch),
    ("__llvm_lvi_thunk_", Thunk::Branch),
    ("__x86_return_thunk", Thunk::Return),
    ("its_return_thunk", Thunk::Return),
    ("retbleed_return_thunk", Thunk::Return),
    ("srso_alias_return_thunk", Thunk::Return),
    ("srso_return_thunk", Thunk::Return),
];

// Longer functions are not looked at.
const LONGEST: u64 = 64;

impl Thunk {
    pub(super) fn of_name(name: &str) -> Option<Thunk> {
        let known = NAMES.iter().find(|(start, _)| name.starts_with(start));
        known.map(|&(_, thunk)| thunk)
    }

    pub(super) fn of(binary: &Binary, function: &FunctionSymbol) -> Option<Thunk> {
        let is_x86 = matches!(binary.machine()?, Machine::X86_64 | Machine::X86);
        if !is_x86 || function.size > LONGEST {
            return None;
        }
        let name = binary.function_name(function);
        let by_name = name.and_then(|name| Thunk::of_name(&name));
        by_name.or_else(|| {
            let call: [u8; 5] = binary.bytes_at(function.start)?;
            let [0xe8, offset @ ..] = call else {
                return None;
            };
            let inside = u64::from(u32::from_le_bytes(offset)).saturating_add(5);
            if inside >= LONGEST {
                return None;
            }
            let at = Svma(function.start.0.wrapping_add(inside));
            let long: Option<[u8; 6]> = binary.bytes_at(at);
            let end = long.or_else(|| {
                let [a, b, c, d, e]: [u8; 5] = binary.bytes_at(at)?;
                Some([a, b, c, d, e, 0])
            });
            Thunk::of_end(end?)
        })
    }

    /// By what follows the call, with or without a prefix for registers of 64 bits.
    fn of_end(code: [u8; 6]) -> Option<Thunk> {
        match code {
            [0x48 | 0x4c, 0x89, to, 0x24, 0xc3, _] | [0x89, to, 0x24, 0xc3, ..]
                if to & 0xc7 == 4 =>
            {
                Some(Thunk::Branch)
            }
            [0x48, 0x8d, 0x64, 0x24, 8, 0xc3]
            | [0x8d, 0x64, 0x24, 4, 0xc3, _]
            | [0x48, 0x83, 0xc4, 8, 0xc3, _]
            | [0x83, 0xc4, 4, 0xc3, ..] => Some(Thunk::Return),
            _ => None,
        }
    }
}

/// Whether a function of this name stands for a jump through a pointer, or for a return.
pub fn is_thunk(name: &str) -> bool {
    Thunk::of_name(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_thunk_shows_what_it_stands_for() {
        let cases = [
            // mov %rax,(%rsp); mov %r11,(%rsp); mov %eax,(%esp)
            ([0x48, 0x89, 0x04, 0x24, 0xc3, 0xcc], Some(Thunk::Branch)),
            ([0x4c, 0x89, 0x1c, 0x24, 0xc3, 0xcc], Some(Thunk::Branch)),
            ([0x89, 0x04, 0x24, 0xc3, 0xcc, 0xcc], Some(Thunk::Branch)),
            // lea 8(%rsp),%rsp; add $8,%rsp
            ([0x48, 0x8d, 0x64, 0x24, 0x08, 0xc3], Some(Thunk::Return)),
            ([0x48, 0x83, 0xc4, 0x08, 0xc3, 0xcc], Some(Thunk::Return)),
            // add $16,%rsp; mov %rax,(%rcx)
            ([0x48, 0x83, 0xc4, 0x10, 0xc3, 0xcc], None),
            ([0x48, 0x89, 0x01, 0xc3, 0xcc, 0xcc], None),
        ];
        for (code, thunk) in cases {
            assert_eq!(Thunk::of_end(code), thunk, "{code:x?}");
        }
    }
}
