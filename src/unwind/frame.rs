//! What a row says about the function itself: whether it has a frame, and whether it has a caller.

use super::arch::Arch;
use super::row::{Cfa, Rule};
use super::rules::{Rules, Scratch};
use crate::base::Svma;

/// What is known of a function's frame at one of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameState {
    /// Whether the frame pointer points at the function's own frame, rather than at that of one
    /// further out; `None` where the rules do not tell.
    pub is_set_up: Option<bool>,
    /// Whether the frame pointer is known to hold something else than a frame: the function saved
    /// it and has not made it point at its own frame. This includes the moment between the two
    /// instructions that set up a frame.
    pub is_overwritten: bool,
    /// Whether nothing has called the function.
    pub is_outermost: bool,
    /// Whether it is the code that a signal handler returns to.
    pub is_signal_frame: bool,
    /// Whether it saves the registers in which handlers of exceptions get their data, as functions
    /// do that return to a handler (GCC's `__builtin_eh_return`).
    pub returns_to_handlers: bool,
}

impl Rules {
    /// The state of the frame before the instruction at this address; `None` where there are no
    /// rules for it.
    pub fn frame_at(&self, address: Svma, scratch: &mut Scratch) -> Option<FrameState> {
        let row = self.row_with(address, scratch)?;
        let frame_pointer = self.arch().frame_pointer();
        let is_known = !matches!(row.rule(frame_pointer), Some(Rule::SavedIfPointed(_)));
        let is_set_up = match (self.arch(), &row.cfa) {
            (_, Cfa::Register { register, .. }) if *register == frame_pointer => true,
            // The frame's address stays that of the stack pointer there; the frame pointer is saved
            // and set by two instructions, one after the other.
            (Arch::Aarch64, _) => matches!(row.rule(frame_pointer), Some(Rule::Saved(_))),
            // GCC computes the address like this in functions that align their stack.
            (_, Cfa::Expression(expression)) => expression.base() == Some(frame_pointer),
            _ => false,
        };
        let is_overwritten = is_known
            && !is_set_up
            && match (row.rule(frame_pointer), &row.cfa) {
                // GCC leaves the rule standing behind `pop %rbp`: what it names is below the stack
                // pointer then, and the register is restored.
                (Some(Rule::Saved(at)), Cfa::Register { offset, .. }) => {
                    offset.saturating_add(*at) >= 0
                }
                (rule, _) => rule.is_some(),
            };
        Some(FrameState {
            is_set_up: is_known.then_some(is_set_up),
            is_overwritten,
            is_outermost: matches!(row.rule(row.return_address), Some(Rule::Undefined)),
            is_signal_frame: row.is_signal_frame,
            returns_to_handlers: !row.is_signal_frame
                && self
                    .arch()
                    .handler_data()
                    .iter()
                    .all(|&register| matches!(row.rule(register), Some(Rule::Saved(_)))),
        })
    }
}
