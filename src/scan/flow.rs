//! Where an instruction may lead, other than to the next one.

/// A step out of the straight line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// A call of this address.
    Call(u64),
    /// A jump to this address, with or without condition.
    Jump(u64),
    /// A call through the pointer at this address.
    CallSlot(u64),
    /// A jump through the pointer at this address.
    JumpSlot(u64),
    /// A call of what a register or computed memory holds.
    CallUnknown,
    /// A jump to what a register or computed memory holds.
    JumpUnknown,
}

/// An instruction that leads elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Its address.
    pub(super) at: u64,
    /// Its length in bytes.
    pub(super) length: u8,
    /// Where it leads.
    pub(super) flow: Flow,
}
