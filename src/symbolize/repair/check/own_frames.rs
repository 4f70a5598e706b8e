//! Whether the frame pointer was that of the function that ran, or of one further out.

use crate::base::{CodeAddress, Svma};
use crate::scan;
use crate::trace::{CallerBy, FrameId, ImageId};

use super::super::function_exits::FunctionStart;
use super::{Checks, Pair, Site, Verdict};

impl Checks<'_, '_> {
    /// Whether a frame pointer has led from the inner frame to the outer one.
    pub(super) fn is_led_by_pointer(&self, pair: Pair) -> bool {
        // It is followed also where rules are used, through code that has none.
        let frame = self.trace.frames[pair.inner];
        let at = self.before(frame);
        let has_rules = || at.is_some_and(|at| self.code.frames.state(frame.image, at).is_some());
        match frame.caller_by {
            CallerBy::FramePointer => true,
            CallerBy::Copy => !has_rules(),
            // A handler of signals returns to what has no return address, and branches are recorded
            // without any.
            CallerBy::Rules => {
                let outer = self.trace.frames[pair.outer].address;
                let has_called = matches!(outer, CodeAddress::Return(_));
                let is_code =
                    self.is_user_code(pair.inner) && self.code.binary(frame.image).is_some();
                has_called && is_code && at.is_some() && !has_rules()
            }
        }
    }

    /// Whether there may have been a frame between these: rules lead to each.
    pub(in crate::symbolize::repair) fn may_lack_a_frame(
        &self,
        outer: FrameId,
        inner: FrameId,
    ) -> bool {
        self.is_led_by_pointer(Pair { outer, inner })
    }

    /// Whether the frame pointer is that of the function of a frame itself; `None` if it is not
    /// known.
    pub(super) fn own_frame(&self, frame: FrameId) -> Option<bool> {
        let frame = self.trace.frames[frame];
        let (image, at) = (frame.image, self.before(frame)?);
        if let Some(state) = self.code.frames.state(image, at) {
            return state.is_set_up;
        }
        let here = self.here(frame)?;
        let binary = self.code.binary(image)?;
        let (from, to) = match self.code.function_start(image, at) {
            Some(function) => self.code.bounds(function)?,
            None => self.code.between_functions(image, at)?,
        };
        scan::has_no_frame(binary, Svma(from), Svma(to), Svma(here)).then_some(false)
    }

    /// Whether a frame pointer went past the function that called the inner one: that has no frame
    /// of its own there, so that its caller's was taken for it.
    pub(super) fn lost_its_caller(&self, pair: Pair) -> bool {
        self.is_led_by_pointer(pair)
            && self.own_frame(pair.inner) == Some(false)
            && !self.is_interrupted(pair.inner)
    }

    /// Whether the frame pointer, which was saved before this stated address, is about to be
    /// pointed at the new frame: until then it is the caller's.
    pub(super) fn is_setting_up(&self, image: ImageId, at: u64) -> bool {
        // Compilers put other instructions between the two.
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
            if !(self.code.frames).is(image, at, |state| state.is_overwritten) {
                return false;
            }
            let bytes: [u8; 3] = binary.bytes_at(Svma(at)).unwrap_or_default();
            let form = FORMS.iter().find(|form| bytes.starts_with(form));
            let behind = form.and_then(|form| at.checked_add(form.len() as u64));
            if behind.is_some_and(|behind| self.code.frames.has_frame(image, behind) == Some(true))
            {
                return true;
            }
        }
        false
    }

    fn function_before(&self, frame: FrameId) -> Option<FunctionStart> {
        let frame = self.trace.frames[frame];
        self.code.function_before(frame.image, self.before(frame)?)
    }

    /// Whether the unwind information says that nothing calls the function of a frame.
    pub(in super::super) fn is_outermost(&self, frame: FrameId) -> bool {
        *self.is_outermost[frame].get_or_init(|| {
            let place = self.place(frame);
            place.is_some_and(|(place, at)| {
                (self.code.frames).is(place.image, at, |state| state.is_outermost)
            })
        })
    }

    /// What the code says of an inner frame that is in no function.
    pub(super) fn without_function(&self, pair: Pair) -> Verdict {
        let Pair { outer, inner } = pair;
        let unknown = if self.calls_pointer(outer) {
            Verdict::ThroughPointer
        } else {
            Verdict::Unknown
        };
        if !self.is_led_by_pointer(pair) {
            return unknown;
        }
        let is_elsewhere = match self.site(outer) {
            Site::Call(called, name) => {
                let is_certain = |name| self.code.is_certain_import(name);
                // The end of a function may not be known well.
                let before = self.function_before(inner);
                let is_before = |called: &FunctionStart| Some(*called) == before;
                let is_other = !called.is_empty() && !called.iter().any(is_before);
                is_other && name.as_ref().is_none_or(is_certain)
            }
            Site::Main => {
                let image = self.trace.frames[inner].image;
                !self.code.is_program(image) || self.code.main_around(image).is_some()
            }
            Site::Pointer | Site::Unknown => false,
            Site::Interrupted | Site::None => return Verdict::Unknown,
        };
        if is_elsewhere || self.lost_its_caller(pair) {
            Verdict::AMBIGUOUS
        } else {
            unknown
        }
    }
}
