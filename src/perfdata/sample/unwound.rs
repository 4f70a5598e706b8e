//! Call chains whose frames of user space the recorder has found, by unwinding a copy of the stack
//! that it then dropped.
//!
//! The kernel puts one marker before the frames of user space. Such a chain has more of them, which
//! every reader of chains passes over. How many stand in a row says something of the frame behind:
//!
//! ```text
//!   1        it was interrupted: its address is an instruction pointer, not a return address
//!   2        from it on outwards, callers were found in a copy of the stack
//!   3        from it on outwards, callers were found by frame pointers
//!   4, 5     2 and 1, 3 and 1
//!   in the end, n    why there are no more frames: entry n - 1 of ENDS
//!
//!   KERNEL ip ret  USER ip ret ret  USER USER USER ret ret
//!                       └ by rules ┘               └ by frame pointers: a chain and a small copy
//!   USER ip ret  USER ip ret  USER USER
//!        handler      └ was interrupted by it, and the copy was too small
//! ```
//!
//! Samples of such events ask for registers and a copy, and have neither: `abi` and `size` are 0. A
//! sample whose copy was kept has them, and the kernel's chain.

use linux_perf_event_reader::constants::PERF_CONTEXT_USER;

use crate::base::{CallerBy, CaveatKind, CodeAddress};
use crate::perfdata::cursor::Words;

// Why a stack has no more frames than were found. The order is part of the format.
pub(crate) const ENDS: [CaveatKind; 8] = [
    CaveatKind::ShortCopy,
    CaveatKind::NoUnwindRules,
    CaveatKind::CutStack,
    CaveatKind::BrokenCopy,
    CaveatKind::ShortTop,
    CaveatKind::BrokenStack,
    CaveatKind::SignalStack,
    CaveatKind::EmptyCopy,
];

/// Takes the frames of user space out of a chain that was unwound: `frame` is called for each,
/// innermost first, with how its caller was found. Returns why there are no more, unless the last
/// one is the outermost.
pub(crate) fn frames(
    chain: Words<'_>,
    mut frame: impl FnMut(CodeAddress, CallerBy),
) -> Option<CaveatKind> {
    let mut words = chain.iter().skip_while(|&word| word != PERF_CONTEXT_USER);
    let (mut marks, mut is_first, mut caller_by) = (0, true, CallerBy::Rules);
    for word in &mut words {
        if word == PERF_CONTEXT_USER {
            marks += 1;
            continue;
        }
        match marks {
            2 | 4 => caller_by = CallerBy::Copy,
            3 | 5 => caller_by = CallerBy::FramePointer,
            _ => {}
        }
        let address = match marks {
            1 | 4 | 5 => CodeAddress::Instruction(word),
            _ if is_first => CodeAddress::Instruction(word),
            _ => CodeAddress::Return(word),
        };
        frame(address, caller_by);
        (marks, is_first) = (0, false);
    }
    ENDS.get(usize::checked_sub(marks, 1).filter(|_| !is_first)?)
        .copied()
}
