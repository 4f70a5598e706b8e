//! Whether the frame pointer was that of the function that ran, or of one further out.

use crate::base::{CodeAddress, Svma};
use crate::scan;
use crate::trace::{CallerBy, FrameId, ImageId};

use super::super::frames::Frames;
use super::super::function_exits::FunctionStart;
use super::{Checks, Site, Verdict};

impl Checks<'_> {
    /// Whether a frame pointer has led from `inner` to `outer`. It is followed also where rules are used,
    /// through code that has none.
    pub(super) fn is_led_by_pointer(&mut self, outer: FrameId, inner: FrameId) -> bool {
        let frame = self.trace.frames[inner];
        let at = self.name_sources[frame.image].svma(frame.address.lookup());
        let has_rules =
            |frames: &mut Frames| at.is_some_and(|at| frames.has_rules(frame.image, at.0));
        match frame.caller_by {
            CallerBy::FramePointer => true,
            CallerBy::Copy => !has_rules(&mut self.frames),
            // A handler of signals returns to what has no return address, and branches are recorded
            // without any.
            CallerBy::Rules => {
                let has_called = matches!(self.trace.frames[outer].address, CodeAddress::Return(_));
                let is_code = self.is_user_code(inner) && self.code.binary(frame.image).is_some();
                has_called && is_code && at.is_some() && !has_rules(&mut self.frames)
            }
        }
    }

    /// Whether the frame pointer is that of the function of a frame itself; `None` if it is not known.
    pub(super) fn own_frame(&mut self, frame: FrameId) -> Option<bool> {
        let frame = self.trace.frames[frame];
        let image = frame.image;
        let at = self.name_sources[image].svma(frame.address.lookup())?;
        if self.frames.has_rules(image, at.0) {
            return self.frames.has_frame(image, at.0);
        }
        let here = self.name_sources[image].svma(frame.address.recorded())?;
        let binary = self.code.binary(image)?;
        let (from, to) = match self.code.function_start(image, at.0) {
            Some(function) => self.code.bounds(function)?,
            None => self.code.between_functions(image, at.0)?,
        };
        scan::has_no_frame(binary, Svma(from), Svma(to), here).then_some(false)
    }

    /// Whether a frame pointer went past the function that called the one of `inner`: that has no frame of
    /// its own there, so that its caller's was taken for it.
    pub(super) fn lost_its_caller(&mut self, outer: FrameId, inner: FrameId) -> bool {
        self.is_led_by_pointer(outer, inner)
            && self.own_frame(inner) == Some(false)
            && !self.is_interrupted(inner)
    }

    /// Whether the frame pointer, which was saved before this stated address, is about to be pointed at the
    /// new frame: until then it is the caller's. Compilers put other instructions between the two.
    pub(super) fn is_setting_up(&mut self, image: ImageId, at: u64) -> bool {
        // mov %rsp,%rbp in its two forms, and mov %esp,%ebp.
        const FORMS: [&[u8]; 4] = [
            &[0x48, 0x89, 0xe5],
            &[0x48, 0x8b, 0xec],
            &[0x89, 0xe5],
            &[0x8b, 0xec],
        ];
        const BETWEEN: u64 = 32;
        let Some(binary) = self.code.binary(image) else {
            return false;
        };
        for at in at..at.saturating_add(BETWEEN) {
            if !self.frames.is_overwritten(image, at) {
                return false;
            }
            let bytes: [u8; 3] = binary.bytes_at(Svma(at)).unwrap_or_default();
            let form = FORMS.iter().find(|form| bytes.starts_with(form));
            let behind = form.and_then(|form| at.checked_add(form.len() as u64));
            if behind.is_some_and(|behind| self.frames.has_frame(image, behind) == Some(true)) {
                return true;
            }
        }
        false
    }

    /// The function before a frame that is in none.
    fn function_before(&self, frame: FrameId) -> Option<FunctionStart> {
        let frame = self.trace.frames[frame];
        let at = self.name_sources[frame.image].svma(frame.address.lookup())?;
        self.code.function_before(frame.image, at.0)
    }

    /// Whether the unwind information says that nothing calls the function of a frame.
    pub(in crate::symbolize::repair) fn is_outermost(&mut self, frame: FrameId) -> bool {
        let place = self.place(frame);
        place.is_some_and(|(place, at)| self.frames.is_outermost(place.image, at))
    }

    /// What the code says of `inner`, which is in no function, being called by `outer`.
    pub(super) fn without_function(&mut self, outer: FrameId, inner: FrameId) -> Verdict {
        let unknown = if self.calls_pointer(outer) {
            Verdict::ThroughPointer
        } else {
            Verdict::Unknown
        };
        if !self.is_led_by_pointer(outer, inner) {
            return unknown;
        }
        let is_elsewhere = match self.site(outer).clone() {
            Site::Call(called, name) => {
                let is_certain = name.is_none_or(|name| self.code.is_certain_import(&name));
                // The end of a function may not be known well.
                let before = self.function_before(inner);
                let is_before = |called: &FunctionStart| Some(*called) == before;
                is_certain && !called.is_empty() && !called.iter().any(is_before)
            }
            Site::Main => {
                let image = self.trace.frames[inner].image;
                !self.code.is_program(image) || self.code.main_around(image).is_some()
            }
            Site::Pointer | Site::Unknown => false,
            Site::Interrupted | Site::None => return Verdict::Unknown,
        };
        if is_elsewhere || self.lost_its_caller(outer, inner) {
            Verdict::AMBIGUOUS
        } else {
            unknown
        }
    }
}
