//! What is no stack in copies of stacks, which is replaced by zeros: arguments and environment, and
//! what lies above a thread's stack.
//!
//! The copy of a main thread's stack may reach up to where the kernel has put what the program was
//! started with (`create_elf_tables` in the kernel's `fs/binfmt_elf.c`):
//!
//! ```text
//!  stack pointer
//!  ▼
//!  frames … main … │ argc │ argv[], 0 │ envp[], 0 │ auxv … AT_NULL │ strings … │ end of the stack
//!                     └── numbers and addresses ─────────────────┘ └─ zeros ─┘
//! ```
//!
//! The strings are 16 random bytes, the platform, the arguments, the environment, the path of the
//! program. No frame lies among them, so nothing that unwinds misses them. A copy begins below and
//! has no gap: one with any of the strings has all of the auxiliary vector, too. So the place is
//! known from the copy alone. No process has to be asked, which would take time in the recorder,
//! and may be too late: it may have ended, or be another program by now. A program that has its
//! range moved (`PR_SET_MM`) leaves the strings where they were.
//!
//! What a program itself copies from there to elsewhere, on its stack as well, is not known.
//!
//! The kernel knows only the stack pointer. Its copy of a thread's stack goes on above the stack,
//! through whatever is mapped there: other stacks, the heap. Glibc keeps what it knows of a thread
//! at the upper end of the thread's stack, in it the list of robust mutexes, which points at itself
//! where it is empty:
//!
//! ```text
//!  stack pointer
//!  ▼
//!  frames … clone3 │ thread's variables │ struct pthread { … A: │ A │ −32 │ 0 │ … } │ other memory
//!                                                              └─ zeros ─┘
//! ```
//!
//! Stacks of other libraries and runtimes have no such mark.

use crate::perfdata::sample::Registers;

/// Keys of the auxiliary vector, from `include/uapi/linux/auxvec.h`.
const AT_NULL: u64 = 0;
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_PLATFORM: u64 = 15;
const AT_RANDOM: u64 = 25;
const AT_EXECFN: u64 = 31;

/// The most entries that are read of a vector. Kernels write some twenty.
const MOST_ENTRIES: usize = 64;

/// The number of the stack pointer among perf's registers (`arch/*/include/uapi/asm/perf_regs.h`).
const STACK_POINTER: u32 = if cfg!(target_arch = "aarch64") {
    31
} else if cfg!(target_arch = "riscv64") {
    2
} else {
    7
};

/// The distance in glibc's mutexes from what the list of robust ones links back to the lock, for
/// words of 8 bytes (`struct robust_head` in `nptl/descr.h`).
const TO_THE_LOCK: u64 = -32_i64 as u64;

/// Replaces by zeros what is no stack in a copy of a stack that begins where these registers say.
pub(crate) fn clear(stack: &mut [u8], registers: &Registers<'_>) {
    let width = if registers.abi == 1 { 4 } else { 8 };
    let has_it = registers.mask >> STACK_POINTER & 1 != 0;
    let before = (registers.mask & ((1 << STACK_POINTER) - 1)).count_ones();
    let mut values = registers.values.iter();
    let start = values.nth(before as usize).filter(|_| has_it);
    if let Some(begin) = end(stack, start, width) {
        stack[begin..].fill(0);
    }
}

/// The place in a copy that begins at the address `start` behind which no frame can be.
fn end(stack: &[u8], start: Option<u64>, width: usize) -> Option<usize> {
    let descriptor = start.filter(|_| width == 8);
    let descriptor = descriptor.and_then(|start| descriptor_of_thread(stack, start));
    let ends = [strings(stack, start, width), descriptor];
    ends.into_iter().flatten().min()
}

/// The place of the first empty list of robust mutexes in a copy that begins at the address
/// `start`.
fn descriptor_of_thread(stack: &[u8], start: u64) -> Option<usize> {
    let word = |at: usize| {
        let bytes = stack.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_ne_bytes(bytes))
    };
    let first = (start as usize).wrapping_neg() % 8;
    // Each sample comes here: only the rare word in the middle of the list is looked for.
    let words = stack.get(first..)?.chunks_exact(8);
    let places = (first..).step_by(8).zip(words);
    let mut locks = places.filter(|(_, word)| **word == TO_THE_LOCK.to_ne_bytes());
    locks.find_map(|(at, _)| {
        let list = at.checked_sub(8)?;
        let is_empty = word(list)? == start.wrapping_add(list as u64) && word(at + 8)? == 0;
        is_empty.then_some(list)
    })
}

/// The place behind the auxiliary vector in a copy that begins at the address `start`, if that is
/// known; `None` where the copy ends before it.
///
/// A program may have a copy of its vector, on its stack or read from `/proc/self/auxv`. The vector
/// itself is the topmost, and what it points at follows it; where the copied stack ends before it,
/// what a program's copy points at is not in the copied stack.
fn strings(stack: &[u8], start: Option<u64>, width: usize) -> Option<usize> {
    let word = |at: usize| -> Option<u64> {
        let bytes = stack.get(at..at.checked_add(width)?)?;
        match width {
            4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
            _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        }
    };
    let entry = |at: usize| Some((word(at)?, word(at + width)?));
    let is_inside = |address: u64, from: usize| {
        let inside = from as u64..stack.len() as u64;
        start.is_none_or(|start| inside.contains(&address.wrapping_sub(start)))
    };
    // The vector is aligned in memory, which the stack pointer need not be.
    let first = (start.unwrap_or(0) as usize).wrapping_neg() % width;
    let places = (first..stack.len()).step_by(width).rev();
    // The kernel writes these three one after the other.
    let tables = places.filter(|&at| {
        word(at) == Some(AT_PHDR)
            && word(at + 2 * width) == Some(AT_PHENT)
            && word(at + 4 * width) == Some(AT_PHNUM)
    });
    for table in tables {
        let entries = (table..).step_by(2 * width).take(MOST_ENTRIES);
        let mut pointers = [0; 3];
        for at in entries {
            let Some((key, value)) = entry(at) else { break };
            match key {
                AT_RANDOM => pointers[0] = value,
                AT_PLATFORM => pointers[1] = value,
                AT_EXECFN => pointers[2] = value,
                AT_NULL => {
                    let behind = at + 2 * width;
                    if pointers.iter().any(|&it| is_inside(it, behind)) {
                        return Some(behind);
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    const START: u64 = 0x7ffd_1234_5670;

    /// What is on a main thread's stack from `frames` bytes below `argc` upwards, and where the
    /// strings begin in it.
    fn main_stack(frames: Vec<u8>, start: u64, width: usize) -> (Vec<u8>, usize) {
        let mut stack = frames;
        let strings = b"random bytes 16.x86_64\0./a\0--password=hunter2\0TOKEN=s3cret\0./a\0";
        let head = 1 + 2 + 1 + 1 + 1;
        let behind = stack.len() + (head + 2 * 8) * width;
        let at = |offset: usize| start + (behind + offset) as u64;
        let words = [
            [2, at(23), at(27), 0, at(46), 0],
            [33, 0x7fff_0000_0000, AT_PHDR, 0x40_0040, AT_PHENT, 56],
            [AT_PHNUM, 13, 7, 0x7f00_0000_0000, AT_RANDOM, at(0)],
            [AT_EXECFN, at(59), AT_NULL, 0, 0, 0],
        ];
        for word in &words.concat()[..head + 2 * 8] {
            stack.extend_from_slice(&word.to_ne_bytes()[..width]);
        }
        assert_eq!(stack.len(), behind);
        stack.extend_from_slice(strings);
        (stack, behind)
    }

    fn cleared(stack: &[u8], start: u64, width: usize) -> Vec<u8> {
        let mut stack = stack.to_vec();
        if let Some(begin) = end(&stack, Some(start), width) {
            stack[begin..].fill(0);
        }
        stack
    }

    proptest! {
        #[test]
        fn only_what_is_behind_the_vector_is_zero(
            frames in proptest::collection::vec(any::<u8>(), 0..400),
            width in proptest::sample::select(vec![4usize, 8]),
            cut in 0usize..300,
        ) {
            let mut frames = frames;
            frames.resize(frames.len().next_multiple_of(width), 0);
            // In the first 4 GiB, where programs of 32 bits are.
            let start = if width == 4 { START & 0xffff_fff8 } else { START };
            let (stack, behind) = main_stack(frames, start, width);
            let copied = &stack[..stack.len().saturating_sub(cut)];
            let after = cleared(copied, start, width);
            let kept = behind.min(copied.len());
            prop_assert_eq!(&after[..kept], &copied[..kept]);
            // The first string is the 16 random bytes, by which the vector is known.
            prop_assert_eq!(after[kept..].iter().find(|byte| **byte != 0), None);
        }

        #[test]
        fn any_bytes_are_a_stack(
            stack in proptest::collection::vec(0u8..34, 0..300),
            start in any::<u64>(),
        ) {
            for width in [4, 8] {
                let after = cleared(&stack, start, width);
                prop_assert_eq!(after.len(), stack.len());
            }
        }
    }

    #[test]
    fn a_copy_of_the_vector_that_a_program_has_hides_no_frame() {
        let (whole, behind) = main_stack(Vec::new(), START + 4096, 8);
        // A buffer with the vector, then frames, and the copied stack ends before the real one.
        let mut short = whole[..behind].to_vec();
        short.resize(4096, 7);
        assert_eq!(cleared(&short, START, 8), short);
        // The same, with the real one in the copied stack.
        let long = [short.clone(), whole.clone()].concat();
        let after = cleared(&long, START, 8);
        assert_eq!(after[..4096 + behind], long[..4096 + behind]);
        assert!(after[4096 + behind..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_lies_above_a_thread_s_stack_is_zero() {
        let list = |at: u64| [at, TO_THE_LOCK, 0].map(u64::to_ne_bytes).concat();
        let neighbour = [b"a secret of others".to_vec(), list(START + 512)].concat();
        for skipped in 0..8 {
            let start = START + skipped as u64;
            let frames = vec![7; 64 - skipped];
            let stack = [frames.clone(), list(START + 64), neighbour.clone()].concat();
            let found = end(&stack, Some(start), 8);
            assert_eq!(found, Some(frames.len()), "a stack pointer at {start:#x}");
        }
        // The same words elsewhere are a program's own.
        let elsewhere = [vec![7; 64], list(START + 72)].concat();
        assert_eq!(end(&elsewhere, Some(START), 8), None);
    }

    #[test]
    fn a_stack_pointer_that_is_not_aligned_makes_no_difference() {
        let (whole, behind) = main_stack(vec![1; 64], START, 8);
        for skipped in 1..8 {
            let start = START + skipped as u64;
            let after = cleared(&whole[skipped..], start, 8);
            assert_eq!(after[..behind - skipped], whole[skipped..behind]);
            assert!(after[behind - skipped..].iter().all(|byte| *byte == 0));
        }
    }
}
