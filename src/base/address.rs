//! The kinds of address, each with a type of its own so that they cannot be confused.
//!
//! ```text
//!   Avma        where an instruction was in the memory of the process that ran
//!     │  minus the start of the mapping, plus its page offset
//!     ▼
//!   FileOffset  where the same byte stands in the file that was mapped
//!     │  by the program headers of the ELF file (p_offset -> p_vaddr)
//!     ▼
//!   Svma        the address that symbols and debug information speak of
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        pub struct $name(pub u64);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:#x})", stringify!($name), self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

address! {
    /// An actual virtual memory address: in the process (or kernel) that was sampled.
    Avma
}
address! {
    /// A stated virtual memory address: as symbols and debug information of an ELF file have it.
    Svma
}
address! {
    /// A position in a file, in bytes from its start.
    FileOffset
}

/// An address of code and how it was obtained, which decides where it is looked up.
///
/// The program counter of a sample points at the instruction that was about to run. Every other
/// frame of a stack holds a *return address*: the instruction after the call, which may belong to
/// another line, another inlined body or, when the call never returns, another function. So it is
/// looked up one byte earlier.
///
/// ```
/// use proftool::base::CodeAddress;
/// assert_eq!(CodeAddress::Instruction(0x1000).lookup(), 0x1000);
/// assert_eq!(CodeAddress::Return(0x1000).lookup(), 0xfff);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeAddress {
    /// The instruction pointer itself.
    Instruction(u64),
    /// The address to which a call returns.
    Return(u64),
    /// The instruction pointer of user code while the kernel works for it, where user code goes on:
    /// if a system call has entered the kernel, the instruction after that.
    InKernel {
        /// The address.
        address: u64,
        /// The low half of the address in the kernel's outermost frame, which shows how the kernel
        /// was entered; 0 where it was not recorded.
        entry: u32,
    },
}

impl CodeAddress {
    /// The address inside the instruction that was executing.
    pub fn lookup(self) -> u64 {
        match self {
            CodeAddress::Instruction(address) | CodeAddress::InKernel { address, .. } => address,
            CodeAddress::Return(address) => address.saturating_sub(1),
        }
    }

    /// The address as it was recorded.
    pub fn recorded(self) -> u64 {
        match self {
            CodeAddress::Instruction(address)
            | CodeAddress::Return(address)
            | CodeAddress::InKernel { address, .. } => address,
        }
    }
}

/// How the caller of a frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallerBy {
    /// By unwinding rules, or by the processor: it is the caller.
    Rules,
    /// In a copy of the stack, by rules or else by a frame pointer, after a frame pointer has led
    /// through code without rules: it is the caller if that frame pointer was right.
    Copy,
    /// By a frame pointer, which skips the caller of a function that keeps no frame.
    FramePointer,
}
