//! How samples get the stacks of user space.
//!
//! ```text
//!   frame pointers  the kernel walks the chain of frames:   IP … CALLCHAIN {kernel, user}
//!   joined          both, with a small copy: other          IP … CALLCHAIN {kernel, user}
//!                   tools read the chain                       RAW {registers, bytes from sp up}
//!   copies          a reader unwinds later, by the debug    IP … CALLCHAIN {kernel}
//!                   information of the code                    REGS_USER STACK_USER {bytes from
//!                                                              sp up}
//!   unwound         the last two as they are recorded:      IP … CALLCHAIN {kernel, user}
//!                   a stage puts the frames into the chain     REGS_USER {0} STACK_USER {0}
//! ```
//!
//! A record has 16 bits for its size, in steps of 8, and the copy has to fit into it together with
//! everything else:
//!
//! ```text
//!   header  fields of every sample  chain of the kernel   registers      size, copy, size used
//!   8       6 × 8                   8 + (127 + 9) × 8     8 + 33 × 8     8 + BYTES + 8
//! ```

use std::fmt;
use std::str::FromStr;

// The user registers that copies come with, as `perf record --call-graph dwarf` has them: on x86-64
// all but the segment registers `ds es fs gs`, which no unwinder needs and which the kernel
// refuses; elsewhere all. 0 where it is not known which there are.
pub(in crate::sampler) const USER_REGISTERS: u64 = if cfg!(target_arch = "x86_64") {
    0xff_0fff
} else if cfg!(target_arch = "aarch64") {
    // x0 to x30, sp, pc.
    0x1_ffff_ffff
} else if cfg!(any(target_arch = "riscv64", target_arch = "riscv32")) {
    // pc, x1 to x31.
    0xffff_ffff
} else {
    0
};

// Those of them that unwinding the innermost frames needs: what a function has to keep for its
// caller, the stack pointer and the program counter; on x86-64 also r10, by which GCC finds the
// frame of a function that aligns its stack.
pub(in crate::sampler) const KEPT_REGISTERS: u64 = if cfg!(target_arch = "x86_64") {
    // bx bp sp ip r10 r12 to r15.
    0xf4_01c2
} else if cfg!(target_arch = "aarch64") {
    // x19 to x30, sp, pc.
    0x1_fff8_0000
} else {
    USER_REGISTERS
};

// The size of the largest record: the largest multiple of 8 in 16 bits.
const RECORD_MAX: u32 = 65_528;
// What a sample needs apart from its copy, as drawn above, with the usual limit of frames.
const BESIDE: u32 = 8 + 6 * 8 + (8 + (127 + 9) * 8) + (8 + 33 * 8) + 8 + 8;

/// How the stack of each sample is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// Not at all: only the address of the sample is recorded.
    None,
    /// The kernel follows frame pointers.
    FramePointers,
    /// The kernel follows frame pointers; with the registers and this number of bytes from the top
    /// of the stack, a reader finds the callers that frame pointers skip: those of functions
    /// without a frame.
    Joined(CopySize),
    /// The registers and a copy of the top of the stack, which a reader unwinds by the call frame
    /// information of the code (DWARF).
    Copies(CopySize),
}

impl Stacks {
    /// The best stacks that frame pointers make: with the top of the stack where kernels copy it.
    pub fn frame_pointers() -> Stacks {
        if Stacks::can_copy() {
            Stacks::Joined(CopySize::TOP)
        } else {
            Stacks::FramePointers
        }
    }

    /// Whether there is a copy of the stack in each sample.
    pub fn are_copied(self) -> bool {
        matches!(self, Stacks::Joined(_) | Stacks::Copies(_))
    }

    /// Whether the kernel follows frame pointers.
    pub fn follow_pointers(self) -> bool {
        matches!(self, Stacks::FramePointers | Stacks::Joined(_))
    }

    /// Whether kernels copy stacks on machines of this kind.
    pub fn can_copy() -> bool {
        USER_REGISTERS != 0
    }
}

/// How much of the stack is copied into each sample at most; a sample in a file has what there was.
///
/// ```
/// use proftool::sampler::CopySize;
/// assert_eq!(CopySize::default().bytes(), 8192);
/// assert_eq!("1001".parse::<CopySize>().unwrap().bytes(), 1008);
/// assert!("0".parse::<CopySize>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopySize(u32);

impl CopySize {
    /// The most bytes that fit into a sample.
    pub const MAX: u32 = RECORD_MAX - BESIDE;

    /// The size in bytes, a multiple of 8.
    pub fn bytes(self) -> u32 {
        self.0
    }

    /// What is copied beside a chain of frame pointers unless another size is asked for: the frames
    /// of the innermost functions, up to one that keeps a frame pointer, are mostly smaller.
    pub const TOP: CopySize = CopySize(256);

    /// What is copied beside a chain where libraries keep no frame pointers and call back: of
    /// C++'s, several frames at a time lie between two functions that keep one.
    pub const TOP_WITH_LIBRARIES: CopySize = CopySize(4096);

    /// The largest copy where the size adapts to the stacks.
    pub const LARGEST: CopySize = CopySize::SIZES[0];

    // The sizes to choose from where it adapts, each about twice as large as the next.
    const SIZES: [CopySize; 4] = [
        CopySize(60 << 10),
        CopySize(32 << 10),
        CopySize(16 << 10),
        CopySize(8 << 10),
    ];

    /// The largest of these sizes that satisfies `fits`, or the smallest if none does.
    pub(in crate::sampler) fn largest(fits: impl Fn(CopySize) -> bool) -> CopySize {
        let [sizes @ .., smallest] = CopySize::SIZES;
        sizes
            .into_iter()
            .find(|&size| fits(size))
            .unwrap_or(smallest)
    }

    /// The next smaller of these sizes; the smallest if there is none.
    pub(in crate::sampler) fn smaller(self) -> CopySize {
        CopySize::largest(|size| size < self)
    }

    /// The next larger of these sizes; the largest if there is none.
    pub(in crate::sampler) fn larger(self) -> CopySize {
        let larger = CopySize::SIZES.into_iter().rev().find(|&size| size > self);
        larger.unwrap_or(CopySize::LARGEST)
    }

    pub(in crate::sampler) fn record_bytes(self) -> u64 {
        u64::from(self.0) + 400
    }
}

impl Default for CopySize {
    fn default() -> CopySize {
        CopySize(8192)
    }
}

impl fmt::Display for CopySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1024) {
            write!(f, "{} KiB", self.0 / 1024)
        } else {
            write!(f, "{} bytes", self.0)
        }
    }
}

/// A size that no copy can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given} is no size of stack copies: how many bytes from the top of the stack are copied into \
     each sample, 8 to {} (8192 is usual)",
    CopySize::MAX
)]
pub struct NoCopySize {
    given: String,
}

impl FromStr for CopySize {
    type Err = NoCopySize;

    /// Reads a number of bytes; it is rounded up to a multiple of 8.
    fn from_str(text: &str) -> Result<CopySize, NoCopySize> {
        let bytes = text
            .parse::<u32>()
            .ok()
            .filter(|bytes| (1..=CopySize::MAX).contains(bytes));
        let refuse = || NoCopySize {
            given: format!("{text:?}"),
        };
        bytes
            .map(|bytes| CopySize(bytes.next_multiple_of(8)))
            .ok_or_else(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_copy_fits_into_a_record() {
        assert_eq!(CopySize::MAX % 8, 0);
        assert_eq!(CopySize::MAX, 64_088);
        let largest = CopySize::MAX.to_string().parse::<CopySize>().unwrap();
        assert_eq!(largest.bytes(), CopySize::MAX);
    }

    #[test]
    fn other_sizes_are_refused_with_what_is_allowed() {
        for text in ["0", "", "-8", "8k", "64089", "99999999999", "1.5"] {
            let error = text.parse::<CopySize>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
            assert!(error.contains("8 to 64088 (8192 is usual)"), "{error}");
        }
    }
}
