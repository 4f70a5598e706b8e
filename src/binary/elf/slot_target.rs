//! What pointers in memory point to.

use crate::base::Svma;

/// What a slot points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotTarget {
    /// This entry of the dynamic symbols, in relocatable files of all symbols: see
    /// [`Slots::name`](crate::binary::Slots::name) and
    /// [`Slots::definition`](crate::binary::Slots::definition).
    Symbol(u32),
    /// This address of the same file.
    Address(Svma),
    /// What the function at this address chooses when the program starts.
    ChosenBy(Svma),
}
