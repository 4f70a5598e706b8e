//! Where stacks begin: in functions that nothing calls, or for which a stack was set up.

use rustc_hash::FxHashSet;

use crate::base::{CodeAddress, Svma};
use crate::scan;
use crate::trace::{CallerBy, FrameAddress, FrameId};

use super::{Checks, FunctionStart, Pair};

impl Checks<'_, '_> {
    /// The frame as it is to be looked up.
    pub(in super::super) fn corrected(&self, frame: FrameAddress) -> FrameAddress {
        // A signal handler returns to the first byte of a function that nobody called, and so does
        // the first function of a stack that makecontext sets up: the address of the frame is that,
        // and not one before it.
        let CodeAddress::Return(address) = frame.address else {
            return frame;
        };
        if self.is_entered_by_return(frame) {
            FrameAddress {
                address: CodeAddress::Instruction(address),
                ..frame
            }
        } else {
            frame
        }
    }

    /// Whether a frame is of a function that begins at the return address: it is returned to
    /// without having called anything.
    fn is_entered_by_return(&self, frame: FrameAddress) -> bool {
        let (image, has_called) = (frame.image, matches!(frame.address, CodeAddress::Return(_)));
        let at = self.here(frame).filter(|_| has_called);
        let Some(at) = at.filter(|&at| self.code.starts_at(image, at)) else {
            return false;
        };
        let binary = self.code.binary(image);
        let may_return = binary.and_then(|binary| scan::may_return_to(binary, Svma(at)));
        self.returns_from_signal(image, at) || may_return == Some(false) && self.is_same_file(image)
    }

    /// Whether a frame is of a function whose address was put on a new stack for the first function
    /// there to return to, as makecontext does. Nothing is outside of it.
    pub(in super::super) fn is_set_up(&self, frame: FrameId) -> bool {
        self.is_entered_by_return(self.trace.frames[frame]) && !self.is_interrupted(frame)
    }

    /// Whether nothing calls the function of an outermost frame.
    pub(in super::super) fn is_a_start(&self, frame: FrameId) -> bool {
        *self.is_a_start[frame].get_or_init(|| self.find_start(frame))
    }

    fn find_start(&self, frame: FrameId) -> bool {
        if !self.is_user_code(frame) {
            return false;
        }
        if self.is_set_up(frame) || self.ends_a_task(frame) {
            return true;
        }
        let place = self.place(frame);
        self.is_outermost(frame) || place.is_some_and(|(place, _)| self.code.starts_tasks(place))
    }

    /// Whether what a frame has called through a pointer was `main` or the first function of a
    /// thread: the C library ends the program or the thread with what that returns.
    fn ends_a_task(&self, frame: FrameId) -> bool {
        let frame = self.trace.frames[frame];
        let before = self.before(frame);
        matches!(frame.address, CodeAddress::Return(_))
            && before.is_some_and(|at| self.code.ends_a_task(frame.image, at.wrapping_add(1)))
    }

    pub(in super::super) fn starts_task(&self, frame: FrameId) -> Option<FunctionStart> {
        if !self.is_user_code(frame) {
            return None;
        }
        let (place, _) = self.place(frame)?;
        self.code.starts_tasks(place).then_some(place)
    }

    /// Whether the caller of the function of an outermost frame is missing: a chain of frame
    /// pointers has ended there, and nothing proves that a program or a thread starts with that
    /// function.
    pub(in super::super) fn lacks_callers(&self, frame: FrameId) -> bool {
        let caller_by = self.trace.frames[frame].caller_by;
        // No program and no thread starts in code that a process has made.
        if caller_by != CallerBy::Rules && self.is_generated(frame) {
            return true;
        }
        if caller_by != CallerBy::FramePointer
            || !self.is_user_code(frame)
            || self.is_a_start(frame)
        {
            return false;
        }
        // Outside of a signal handler is what it interrupted. Only the file tells that: it is asked
        // last.
        self.has_lost_callers(frame) || self.is_interrupted(frame)
    }

    /// Whether the caller of a frame in code is missing that nothing has interrupted, and with
    /// whose function no program or thread starts for certain.
    fn has_lost_callers(&self, frame: FrameId) -> bool {
        let has_called = matches!(self.trace.frames[frame].address, CodeAddress::Return(_));
        let Some((place, _)) = self.place(frame) else {
            let caller = self.caller_of_main(frame);
            return caller.is_none_or(|caller| !self.callers_of_main().contains(&caller));
        };
        if self.begins_program(place) {
            return false;
        }
        match self.own_frame(frame) {
            // There is no return address in it.
            Some(true) => !self.may_begin_a_stack(frame),
            // The chain goes on from a frame to what is behind its return address.
            Some(false) | None => !has_called || !self.code.may_start_tasks(place),
        }
    }

    /// Whether a chain that went past a caller has ended with a function that has a frame, and of
    /// which only its address says that a stack may begin with it:
    ///
    /// ```text
    ///   rbp of one further out ─▶ [data][in f behind a call] ─▶ [0][0]
    /// ```
    ///
    /// What is left of old frames looks so, too, and leads to the inner frame in no known way.
    pub(in super::super) fn ends_by_chance(&self, outer: FrameId, inner: FrameId) -> bool {
        let place = self.place(outer);
        self.trace.frames[outer].caller_by == CallerBy::FramePointer
            && self.is_user_code(outer)
            && self.lost_its_caller(Pair { outer, inner })
            && self.own_frame(outer) == Some(true)
            && !self.is_a_start(outer)
            && place.is_some_and(|(place, _)| !self.begins_program(place))
            && !self.verdict(outer, inner).explains()
    }

    /// Whether a function is main or calls it. Only start-up code does; other recorders may leave
    /// that out.
    fn begins_program(&self, function: FunctionStart) -> bool {
        self.code.is_main(function) || self.callers_of_main().contains(&function)
    }

    fn callers_of_main(&self) -> &FxHashSet<FunctionStart> {
        self.callers_of_main.get_or_init(|| {
            let paths = self.trace.paths.enumerate();
            let callers = paths.filter_map(|(_, path)| {
                let outer = self.trace.paths[path.caller?];
                let is_outermost = outer.caller.is_none();
                let (inner, _) = self.place(path.frame).filter(|_| is_outermost)?;
                let is_main = self.code.main_around(inner.image) == Some(inner);
                self.caller_of_main(outer.frame).filter(|_| is_main)
            });
            callers.collect()
        })
    }

    fn caller_of_main(&self, frame: FrameId) -> Option<FunctionStart> {
        if let Some((place, _)) = self.place(frame) {
            return Some(place);
        }
        let frame = self.trace.frames[frame];
        let (image, start) = (frame.image, self.before(frame)?);
        Some(FunctionStart { image, start })
    }

    /// Whether something has the address of the function of a frame, so that a stack may have been
    /// set up for it.
    pub(super) fn may_begin_a_stack(&self, frame: FrameId) -> bool {
        // Arrays of functions, such as those that run at a program's end, look like stacks that
        // were set up, to a frame pointer that holds something else.
        let Some((place, _)) = self.place(frame) else {
            return true;
        };
        let entries = self.explanations.entries(place, false);
        entries.itself || entries.owner
    }
}
