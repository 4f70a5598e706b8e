//! What is before return addresses: calls, by their bytes alone or by the code around them.

use std::rc::Rc;

use crate::base::{CodeAddress, Svma};
use crate::scan;
use crate::trace::{FrameId, ImageId};

use super::super::function_exits::{FunctionStart, To};
use super::Checks;

/// What a call is by its bytes alone.
pub(super) enum LikelyCall {
    /// It calls the function that is next on the stack. Its bytes are no coincidence.
    OfNext,
    /// It is one through a pointer.
    Pointer,
    /// None of these; it has to be looked for in the code of its function.
    Other,
}

/// What is before a return address.
#[derive(Clone, Debug)]
pub(super) enum Site {
    /// A call of one of these functions, by what name if by one.
    Call(Rc<[FunctionStart]>, Option<Rc<str>>),
    /// A call of a program's `main`, as far as the programs have one by name.
    Main,
    /// A call through a pointer.
    Pointer,
    /// A call, perhaps; the code around it is not known.
    Unknown,
    /// No call has to be there: a signal arrived, or a handler of one returns to it, or a thread or
    /// goroutine seems to return to where it would end.
    Interrupted,
    /// No call: nothing returns there.
    None,
}

impl Checks<'_, '_> {
    /// What the bytes before the return address of a frame call.
    pub(super) fn likely_call(&self, frame: FrameId, next: FunctionStart) -> LikelyCall {
        let frame = self.trace.frames[frame];
        let before = self.before(frame);
        let before = before.filter(|_| matches!(frame.address, CodeAddress::Return(_)));
        let likely = before.and_then(|before| {
            let behind = before.wrapping_add(1);
            Some((before, self.code.likely_call_before(frame.image, behind)?))
        });
        let Some((before, (to, name))) = likely else {
            return LikelyCall::Other;
        };
        match (to, name) {
            (To::Function(place), _) if place == next => LikelyCall::OfNext,
            (To::ChosenBy(chooser), _) if self.code.choices(chooser).contains(&next) => {
                LikelyCall::OfNext
            }
            (_, Some(name)) if self.code.is_exported_as(next, &name) => LikelyCall::OfNext,
            (To::Unknown, None) if !self.code.starts_programs(frame.image, before) => {
                LikelyCall::Pointer
            }
            _ => LikelyCall::Other,
        }
    }

    pub(super) fn site(&self, frame: FrameId) -> &Site {
        self.sites[frame].get_or_init(|| self.find_site(frame))
    }

    fn find_site(&self, frame: FrameId) -> Site {
        let frame = self.trace.frames[frame];
        let CodeAddress::Return(_) = frame.address else {
            return Site::Interrupted;
        };
        let Some(before) = self.before(frame) else {
            return Site::Unknown;
        };
        let end = before.wrapping_add(1);
        let Some(call) = self.code.call_before(frame.image, end) else {
            let function = self.code.function_around(frame.image, before);
            let is_complete = function.is_some_and(|function| function.is_complete);
            return self.without_call(frame.image, end, is_complete);
        };
        match call.to {
            To::Function(place) => Site::Call([place].into(), call.name),
            To::ChosenBy(chooser) => Site::Call(self.code.choices(chooser), call.name),
            To::Unknown if self.code.starts_programs(frame.image, before) => Site::Main,
            To::Unknown => Site::Pointer,
        }
    }

    /// What is before this stated address, if no call of the function around it is. `is_complete`:
    /// whether all calls of that function are known.
    fn without_call(&self, image: ImageId, at: u64, is_complete: bool) -> Site {
        let binary = self.code.binary(image);
        let may_return = binary.and_then(|binary| scan::may_return_to(binary, Svma(at)));
        let is_none = match may_return {
            Some(may_return) => !may_return || is_complete,
            None => is_complete,
        };
        let start = self.code.function_start(image, at);
        let is_start = start.is_some_and(|start| self.code.starts_in_go(start));
        let is_outermost = (self.code.frames).is(image, at, |state| state.is_outermost);
        if self.returns_from_signal(image, at) || is_start || is_outermost {
            Site::Interrupted
        } else if is_none && self.is_same_file(image) {
            Site::None
        } else {
            Site::Unknown
        }
    }
}
