//! Whether a frame is called by the one outside of it.

mod own_frames;
mod pointers;
mod sites;
mod starts;
mod unknown_callees;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::base::{FileOffset, IdVec};
use crate::profile::CheckedCalls;
use crate::trace::{CallerBy, FrameAddress, FrameId, ImageId, ImageKind, Trace};

use super::code::Code;
use super::explain::{Explanations, Question};
use super::explanation::{Explanation, Missing};
use super::function_exits::FunctionStart;
use super::memo::Memo;
use crate::symbolize::name_source::NameSource;

use self::sites::{LikelyCall, Site};

/// What the code says of a frame and the one outside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Frames of this kind are not checked: the kernel's, and marks.
    Outside,
    /// The caller calls this function there.
    Verified,
    /// The caller calls through a pointer there: this function, or one that jumped on to it.
    ThroughPointer,
    /// What the caller calls there is not known, or nothing has to be called.
    Unknown,
    /// The caller calls another function there, and these were between the two.
    Lacks(Explanation),
    /// The caller calls another function there, or nothing at all.
    Contradicted,
    /// A frame pointer led to an address to which no call returns: the frame outside is none,
    /// unless others show that it is.
    Astray,
}

impl Verdict {
    const AMBIGUOUS: Verdict = Verdict::Lacks(Explanation::ANYTHING);

    /// Whether certain functions are known to lead from the outer one to the inner one. Where the
    /// outer one has called the inner one, nothing is between, and nothing is explained.
    fn explains(&self) -> bool {
        matches!(self, Verdict::Lacks(explanation) if !explanation.certain().is_empty())
    }
}

/// A frame, and the one that is next on the stack.
#[derive(Clone, Copy)]
struct Pair {
    outer: FrameId,
    inner: FrameId,
}

/// Checks pairs of frames, each once.
pub(super) struct Checks<'c, 'h> {
    trace: &'h Trace,
    name_sources: &'h IdVec<ImageId, NameSource>,
    code: &'c Code<'h>,
    explanations: Explanations<'c, 'h>,
    sites: IdVec<FrameId, OnceCell<Site>>,
    /// What several questions about a frame begin with, each found once.
    places: IdVec<FrameId, OnceCell<Option<(FunctionStart, u64)>>>,
    is_outermost: IdVec<FrameId, OnceCell<bool>>,
    is_a_start: IdVec<FrameId, OnceCell<bool>>,
    is_same_file: IdVec<ImageId, OnceCell<bool>>,
    verdicts: Memo<(FrameId, FrameId), Rc<Verdict>>,
    /// Pairs of which the outer one is behind no call, and is on some stacks all the same.
    kept: RefCell<FxHashSet<(FrameId, FrameId)>>,
    callers_of_main: OnceCell<FxHashSet<FunctionStart>>,
}

impl<'c, 'h> Checks<'c, 'h> {
    // Reasons to decide about two frames without the call in the outer one. The first that applies
    // decides.
    const RULES: [fn(&Self, Pair) -> Option<Verdict>; 5] = [
        Self::outside_is_no_code,
        Self::pointer_led_astray,
        Self::outside_was_set_up,
        Self::inside_is_no_code,
        Self::pointer_led_past_a_signal,
    ];

    pub(super) fn new(
        trace: &'h Trace,
        name_sources: &'h IdVec<ImageId, NameSource>,
        code: &'c Code<'h>,
    ) -> Checks<'c, 'h> {
        Checks {
            trace,
            name_sources,
            code,
            explanations: Explanations::new(code),
            sites: IdVec::filled(OnceCell::new(), trace.frames.len()),
            places: IdVec::filled(OnceCell::new(), trace.frames.len()),
            is_outermost: IdVec::filled(OnceCell::new(), trace.frames.len()),
            is_a_start: IdVec::filled(OnceCell::new(), trace.frames.len()),
            is_same_file: IdVec::filled(OnceCell::new(), trace.images.len()),
            verdicts: Memo::default(),
            kept: RefCell::default(),
            callers_of_main: OnceCell::new(),
        }
    }

    pub(super) fn verdict(&self, outer: FrameId, inner: FrameId) -> Rc<Verdict> {
        self.verdicts.get(&(outer, inner), || {
            let pair = Pair { outer, inner };
            let ruled = Self::RULES.iter().find_map(|rule| rule(self, pair));
            let verdict = match ruled.unwrap_or_else(|| self.by_call(pair)) {
                Verdict::Contradicted if self.is_left_for_a_handler(inner) => Verdict::Astray,
                verdict => verdict,
            };
            Rc::new(verdict)
        })
    }

    fn outside_is_no_code(&self, pair: Pair) -> Option<Verdict> {
        (!self.is_user_code(pair.outer)).then_some(Verdict::Outside)
    }

    /// Something else than a frame was where a frame pointer pointed:
    ///
    /// ```text
    ///   rbp ─▶ [saved][address]     no call before the address: it is none of a return
    /// ```
    ///
    /// What unwinding rules lead to is not judged: they may state that a function was entered
    /// otherwise.
    fn pointer_led_astray(&self, pair: Pair) -> Option<Verdict> {
        let Pair { outer, inner } = pair;
        if !self.is_led_by_pointer(pair) {
            return None;
        }
        let is_astray = if self.is_set_up(outer) {
            // Pointers to functions are in much that a register may point to.
            !self.may_begin_a_stack(inner)
                || self.lost_its_caller(pair) && !self.is_outermost(outer)
        } else {
            matches!(self.site(outer), Site::None) && !self.is_inserted_call(inner)
        };
        is_astray.then_some(Verdict::Astray)
    }

    /// The function of the outer frame has called nothing yet; it is only returned to.
    fn outside_was_set_up(&self, pair: Pair) -> Option<Verdict> {
        self.is_set_up(pair.outer).then(|| {
            if self.is_user_code(pair.inner) && self.lost_its_caller(pair) {
                Verdict::AMBIGUOUS
            } else {
                Verdict::Unknown
            }
        })
    }

    fn inside_is_no_code(&self, pair: Pair) -> Option<Verdict> {
        (!self.is_user_code(pair.inner)).then_some(Verdict::Outside)
    }

    /// What a signal has interrupted is never in a chain of frame pointers, as it has not called.
    fn pointer_led_past_a_signal(&self, pair: Pair) -> Option<Verdict> {
        let is_led = self.trace.frames[pair.inner].caller_by == CallerBy::FramePointer;
        (is_led && self.is_interrupted(pair.inner)).then_some(Verdict::AMBIGUOUS)
    }

    /// What the code says by what is called before the return address of the outer frame.
    fn by_call(&self, pair: Pair) -> Verdict {
        let Pair { outer, inner } = pair;
        let Some((next, at)) = self.place(inner) else {
            return self.without_function(pair);
        };
        // Most calls show by their bytes alone what they call, and their functions need not be
        // read. Rules lead to return addresses only; frame pointers lead anywhere, where bytes may
        // look like a call by chance.
        if self.trace.frames[inner].caller_by == CallerBy::Rules {
            match self.likely_call(outer, next) {
                LikelyCall::OfNext => return Verdict::Verified,
                LikelyCall::Pointer if self.is_led_by_pointer(pair) => {}
                LikelyCall::Pointer if self.is_only_jumped_to(next) => {
                    return self.called_unknown(next, at, Some(true));
                }
                LikelyCall::Pointer => return Verdict::ThroughPointer,
                LikelyCall::Other => {}
            }
        }
        let has_frame = if self.is_led_by_pointer(pair) {
            self.own_frame(inner)
        } else {
            Some(true)
        };
        let is_lost = has_frame == Some(false) && !self.is_interrupted(inner);
        let place = (next, at, has_frame);
        match self.site(outer) {
            Site::Call(called, name) => self.by_called(inner, place, called, name.as_ref(), false),
            Site::Main => match self.code.main_around(next.image) {
                Some(main) => self.by_called(inner, place, &[main], None, true),
                // The program has it, and the file of the next function is a library.
                None if !self.code.is_program(next.image)
                    && !self.code.is_exported_as(next, "main") =>
                {
                    self.called_a_main(next, at, has_frame)
                }
                None => Verdict::Unknown,
            },
            // Whatever was called there keeps the frame that the chain went through, and the next
            // function has none: it is not what was called.
            Site::Interrupted if is_lost => Verdict::AMBIGUOUS,
            Site::Pointer | Site::Unknown if is_lost || self.is_only_jumped_to(next) => {
                self.called_unknown(next, at, has_frame)
            }
            Site::Pointer => Verdict::ThroughPointer,
            Site::Unknown | Site::Interrupted => Verdict::Unknown,
            // Another unwinder may show the runtime's call, too.
            Site::None if self.is_inserted_call(inner) => Verdict::Unknown,
            Site::None => Verdict::Contradicted,
        }
    }

    fn by_called(
        &self,
        inner: FrameId,
        (next, at, has_frame): (FunctionStart, u64, Option<bool>),
        called: &[FunctionStart],
        name: Option<&Rc<str>>,
        is_main: bool,
    ) -> Verdict {
        let is_named = |name: &Rc<str>| {
            self.code.is_exported_as(next, name)
                || self.code.stub(next).is_some_and(|stub| *stub == **name)
        };
        let is_next = called.contains(&next)
            || called.iter().any(|&called| self.code.is_part(next, called))
            || name.is_some_and(is_named);
        if is_next && has_frame != Some(false) {
            return Verdict::Verified;
        }
        let found = called.iter().fold(Explanation::None, |found, &called| {
            found.or(&self.explanations.of(Question {
                called,
                next,
                is_caller_missing: has_frame.map(|has| !has),
            }))
        });
        // Where the frame pointer holds something else, or other files may define what is called by
        // the name, the two frames need not belong together.
        let is_doubtful = || {
            !name.is_none_or(|name| self.code.is_certain_import(name))
                || self.is_overwritten(next.image, at, has_frame)
        };
        let found = match found {
            Explanation::None => Explanation::None,
            _ if is_doubtful() => Explanation::ANYTHING,
            found => found,
        };
        match &found {
            Explanation::One(_) => Verdict::Lacks(found),
            Explanation::None if is_next => Verdict::Verified,
            // The frames between are those of what was interrupted. Rules lead to the innermost of
            // these.
            _ if self.is_interrupted(inner) && is_next => Verdict::Verified,
            _ if self.is_interrupted(inner) => Verdict::Unknown,
            // What was called through a table the dynamic linker is still to fill in.
            Explanation::None if name.is_some() && self.code.links_lazily(next) => Verdict::Unknown,
            Explanation::None if !is_main => Verdict::Contradicted,
            // Also the function that was called may have called itself: it has no frame there, so
            // that its caller is not the one whose frame the pointer went through.
            Explanation::Several { certain, .. } if !is_main || !certain.is_empty() => {
                Verdict::Lacks(found)
            }
            // Whatever else was: nothing runs there but main and what that calls.
            _ => {
                let main = called.iter().map(|&function| Missing {
                    function,
                    left_at: [].into(),
                });
                Verdict::Lacks(Explanation::Several {
                    certain: main.collect(),
                    possible: None,
                })
            }
        }
    }

    /// Whether the frame pointer holds something else than a frame at this stated address, in a
    /// function without one of its own.
    fn is_overwritten(&self, image: ImageId, at: u64, has_frame: Option<bool>) -> bool {
        has_frame == Some(false)
            && (self.code.frames).is(image, at, |state| state.is_overwritten)
            && !self.is_setting_up(image, at)
    }

    pub(super) fn switches_stacks(&self, frame: FrameId) -> bool {
        let place = self.place(frame);
        place.is_some_and(|(place, _)| self.code.switches_stacks_in_go(place))
    }

    /// Whether a frame `outer`, to which no call returns, is one nevertheless: the frame `beyond`
    /// calls its function.
    pub(super) fn was_called(
        &self,
        beyond: Option<FrameId>,
        outer: FrameId,
        inner: FrameId,
    ) -> bool {
        // That was entered, then, and it was left for `inner` in an unknown way.
        let was_called =
            beyond.is_some_and(|beyond| *self.verdict(beyond, outer) == Verdict::Verified);
        if was_called {
            self.kept.borrow_mut().insert((outer, inner));
        }
        was_called
    }

    /// Whether a frame is of a function that replaces its return address by that of a handler of
    /// exceptions, just before it returns: then it lies on the stack where its caller is expected.
    fn is_left_for_a_handler(&self, frame: FrameId) -> bool {
        let place = self.place(frame);
        place.is_some_and(|(place, at)| {
            (self.code.frames).is(place.image, at, |state| state.returns_to_handlers)
        })
    }

    /// Whether a frame is of a function that runtimes enter by changing the registers of what they
    /// interrupt, as if a call stood there.
    fn is_inserted_call(&self, frame: FrameId) -> bool {
        let place = self.place(frame);
        place.is_some_and(|(place, _)| self.code.is_inserted_in_go(place))
    }

    /// Whether a handler of signals returns to this stated address, by unwind information or, where
    /// there is none, by the code.
    fn returns_from_signal(&self, image: ImageId, at: u64) -> bool {
        (self.code.frames).is(image, at, |state| state.is_signal_frame)
            || self.code.returns_from_signal(image, at)
    }

    /// Whether the code of an image is certain to be what ran: nothing casts doubt on the file, and
    /// it calls something.
    fn is_same_file(&self, image: ImageId) -> bool {
        // Code without any call has no place to return to: it was put there to fill the file.
        *self.is_same_file[image].get_or_init(|| {
            self.name_sources[image].doubt().is_none() && self.code.has_calls(image)
        })
    }

    fn is_interrupted(&self, frame: FrameId) -> bool {
        let frame = self.trace.frames[frame];
        let here = self.here(frame);
        here.is_some_and(|here| self.returns_from_signal(frame.image, here))
    }

    pub(super) fn is_user_code(&self, frame: FrameId) -> bool {
        let image = self.trace.frames[frame].image;
        matches!(
            self.trace.images[image].kind,
            ImageKind::File | ImageKind::Vdso
        )
    }

    /// Whether a frame is in code that a process made at run time.
    pub(super) fn is_generated(&self, frame: FrameId) -> bool {
        let image = self.trace.frames[frame].image;
        self.trace.images[image].kind.generated_by().is_some()
    }

    fn place(&self, frame: FrameId) -> Option<(FunctionStart, u64)> {
        *self.places[frame].get_or_init(|| {
            let frame = self.trace.frames[frame];
            let at = self.before(frame)?;
            Some((self.code.function_at(frame.image, at)?, at))
        })
    }

    /// The stated address at which a frame is looked up: in its call, if it has called.
    fn before(&self, frame: FrameAddress) -> Option<u64> {
        let at = self.name_sources[frame.image].svma(frame.address.lookup())?;
        Some(at.0)
    }

    fn here(&self, frame: FrameAddress) -> Option<u64> {
        let at = self.name_sources[frame.image].svma(frame.address.recorded())?;
        Some(at.0)
    }

    pub(super) fn calls(&self) -> CheckedCalls {
        let mut calls = CheckedCalls {
            contradicted: self.kept.borrow().len() as u64,
            ..CheckedCalls::default()
        };
        for verdict in self.verdicts.known().values() {
            match &**verdict {
                Verdict::Outside | Verdict::Astray => {}
                Verdict::Verified => calls.verified += 1,
                Verdict::ThroughPointer | Verdict::Unknown => calls.unchecked += 1,
                Verdict::Lacks(Explanation::One(_)) => calls.lacking += 1,
                Verdict::Lacks(_) => calls.ambiguous += 1,
                Verdict::Contradicted => calls.contradicted += 1,
            }
        }
        calls
    }

    pub(super) fn offset(&self, image: ImageId, at: u64) -> Option<FileOffset> {
        self.code.offset(image, at)
    }
}
