//! Unwinds a copy of a user stack to return addresses, from the registers at that moment and the
//! call frame information of the mapped files.
//!
//! ```text
//!   registers, stack copy ─▶ walk ─▶ frames, innermost first, and how they end
//!                             ▲
//!              address ─▶ cache ─▶ row: where the caller's registers are
//!                             ▲
//!   .eh_frame, .gopclntab, .debug_frame ─▶ rules: the entry of an address, found by index
//!
//!   last: what a thread's last stack led to, where this one goes on in the same way
//! ```
//!
//! Rules are those of DWARF 5, section 6.4, with the extensions of GCC: each row of a function's
//! table says how the canonical frame address (CFA, the stack pointer before the call) is found,
//! and where the caller's registers lie. Rows are computed by gimli, once for each address, and
//! reduced to the registers that stacks need.
//!
//! Go has a table of its own instead: how far the stack has grown at each address.
//!
//! Registers, stacks and rules are not trusted: whatever they hold, the number of frames, the
//! steps of expressions and the work on one file are bounded.

mod arch;
mod cache;
mod code;
mod expression;
mod frame;
mod index;
mod last;
mod registers;
mod row;
mod rules;
mod stack;
mod walk;

pub use arch::Arch;
pub use code::{CodeAt, ProcessCode};
pub use expression::Expression;
pub use frame::FrameState;
pub use registers::Registers;
pub use row::{Cfa, Rule, UnwindRow};
pub use rules::{Rules, Scratch};
pub use stack::StackCopy;
pub use walk::{End, Joined, Unwinder};
