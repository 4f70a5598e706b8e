//! What an instruction refers to: where it may lead other than to the next one, and which
//! addresses it takes.

use std::ops::RangeInclusive;

/// A reference from an instruction to code, or to the pointer of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flow {
    Call(u64),
    /// A jump to this address, with or without condition.
    Jump(u64),
    /// A call through the pointer at this address.
    CallSlot(u64),
    JumpSlot(u64),
    /// A call of what a register or computed memory holds.
    CallUnknown,
    JumpUnknown,
    /// This address is computed, not jumped to.
    Address(u64),
    /// The pointer at this address is loaded, not jumped through.
    LoadSlot(u64),
}

/// An instruction that refers to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: u64,
    pub(super) length: u8,
    pub(super) flow: Flow,
    /// The address of the bytes that a relocation of `flow`'s operand would change: the field of
    /// four bytes on x86, the instruction elsewhere. In an instruction that calls through a
    /// register it is that of the instruction which loaded the register.
    pub(super) field: u64,
}

/// What is asked about code besides its calls and jumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wants {
    /// [`Flow::Address`] only for addresses in this range: those of the file's code. What is
    /// not linked yet has none, and needs all.
    pub(super) addresses: RangeInclusive<u64>,
    /// Whether a constant in an instruction may be an address: only where the code is for one
    /// place in memory.
    pub(super) immediates: bool,
    /// Whether relocations still change what instructions refer to. Without them, a jump within
    /// a stretch of code that does not lead to its start leads to no function, and can be left out.
    pub(super) unlinked: bool,
}

impl Default for Wants {
    fn default() -> Wants {
        Wants {
            addresses: 0..=u64::MAX,
            immediates: false,
            unlinked: true,
        }
    }
}
