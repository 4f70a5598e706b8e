//! Any bytes as a program file, registers and stack: unwinding ends, at the same frames each time.
//!
//! ```text
//!   u16 which function, u8 how far in it, u8 flags, u16 size of the stack
//!   u64 registers[32]
//!   the stack, the program file
//! ```

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use proftool::base::{CodeAddress, Svma};
use proftool::binary::Binary;
use proftool::unwind::{ProcessCode, Joined, CodeAt, Registers, Rules, StackCopy, Unwinder};

const REGISTERS: usize = 32;
/// Functions whose rows are asked for: enough to find a fault, few enough to be quick.
const LOOKED_UP: usize = 64;

/// The program where its file says, in the lower half of memory; above it code without rules.
struct Program(Rules);

impl ProcessCode for Program {
    fn number(&self) -> u32 {
        1
    }

    fn place(&self, address: u64) -> CodeAt<'_> {
        match address >> 46 {
            0 => CodeAt::Ruled {
                file: 0,
                rules: &self.0,
                address: Svma(address),
            },
            1 => CodeAt::Unruled,
            _ => CodeAt::Unmapped,
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_at_checked(6 + 8 * REGISTERS) else {
        return;
    };
    let (head, registers) = head.split_at(6);
    let size = usize::from(u16::from_le_bytes([head[4], head[5]]));
    let Some((stack, file)) = rest.split_at_checked(size) else {
        return;
    };
    let Ok(binary) = Binary::from_bytes(file.to_vec()) else {
        return;
    };
    let binary = Arc::new(binary);
    let Some(rules) = Rules::new(binary.clone()) else {
        return;
    };
    for function in binary.functions().iter().take(LOOKED_UP) {
        let _ = rules.row(function.start);
        let _ = rules.row(Svma(function.start.0.wrapping_add(function.size / 2)));
    }
    let mut from = Registers::unknown(rules.arch());
    for (number, value) in (0..).zip(registers.as_chunks().0) {
        from = from.with(number, u64::from_le_bytes(*value));
    }
    let which = usize::from(u16::from_le_bytes([head[0], head[1]]));
    let starts = binary.functions();
    if let Some(function) = which.checked_rem(starts.len()).map(|at| &starts[at]) {
        from = from.at(function.start.0.wrapping_add(u64::from(head[2])));
    }
    let stack = StackCopy {
        thread: 1,
        start: from.stack_pointer().unwrap_or(0),
        bytes: stack,
        is_full: head[3] & 1 != 0,
    };
    // The kernel's chain, of words that are on the stack as well, and so may agree with the rules.
    let words = stack.bytes.as_chunks().0.iter().copied();
    let chain: Vec<u64> = words
        .map(u64::from_le_bytes)
        .take(usize::from(head[3] >> 1))
        .collect();
    let code = Program(rules);
    let mut unwinder = Unwinder::new();
    let walk = |unwinder: &mut Unwinder| -> (Vec<CodeAddress>, Joined) {
        let mut frames = Vec::new();
        let joined = unwinder.join(&code, from.clone(), stack, &chain, &mut frames);
        assert!(frames.len() <= stack.bytes.len() / 4 + chain.len() + 512);
        assert!(joined.by_rules <= joined.by_copy && joined.by_copy <= frames.len());
        (frames, joined)
    };
    let first = walk(&mut unwinder);
    assert_eq!(walk(&mut unwinder), first);
    assert_eq!(walk(&mut Unwinder::new()), first);
    // Nor does it matter what the thread did before: the same with a word changed.
    let mut other = stack.bytes.to_vec();
    if let Some(byte) = other.len().checked_sub(1).map(|last| &mut other[which % (last + 1)]) {
        *byte ^= 8;
    }
    let mut unwinder = Unwinder::new();
    let other = StackCopy { bytes: &other, ..stack };
    unwinder.unwind(&code, from.clone(), other, &mut Vec::new());
    assert_eq!(walk(&mut unwinder), first);
});
