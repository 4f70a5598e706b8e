//! Whether a frame is called by the one outside of it.

mod own_frames;
mod starts;
mod unknown_callees;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::base::{CodeAddress, FileOffset, IdVec, Svma};
use crate::profile::CheckedCalls;
use crate::scan;
use crate::trace::{CallerBy, FrameId, ImageId, ImageKind, Trace};

use super::super::library::Library;
use super::super::names::Names;
use super::code::{AllTables, CodeReader};
use super::explain::{Explanations, Question};
use super::explanation::{Explanation, Missing};
use super::frames::Frames;
use super::function_exits::{FunctionStart, To, WayOut};
use crate::symbolize::name_source::NameSource;

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
    /// The caller calls another function there, and these were certainly between the two.
    Missing(Vec<Missing>),
    /// The caller calls another function there, and there are several possibilities for what was
    /// between.
    Ambiguous {
        /// These functions for certain, outermost first.
        certain: Vec<Missing>,
        /// Inside of them some of these; `None` if there may be others.
        possible: Option<Rc<[Missing]>>,
    },
    /// The caller calls another function there, or nothing at all.
    Contradicted,
    /// A frame pointer led to an address to which no call returns: the frame outside is none, unless
    /// others show that it is.
    Astray,
}

impl Verdict {
    /// Anything may have been between.
    const AMBIGUOUS: Verdict = Verdict::Ambiguous {
        certain: Vec::new(),
        possible: None,
    };
}

/// What a call is by its bytes alone.
enum LikelyCall {
    /// It calls the function that is next on the stack. Its bytes are no coincidence.
    OfNext,
    /// It is one through a pointer.
    Pointer,
    /// None of these; it has to be looked for in the code of its function.
    Other,
}

/// What is before a return address.
#[derive(Clone, Debug)]
enum Site {
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

/// Checks pairs of frames, each once.
pub(super) struct Checks<'h> {
    trace: &'h Trace,
    name_sources: &'h IdVec<ImageId, NameSource>,
    code: CodeReader<'h>,
    frames: Frames<'h>,
    explanations: Explanations,
    sites: IdVec<FrameId, Option<Site>>,
    /// For each image whether its file is known to be the one that ran, as far as that was asked.
    is_same_file: IdVec<ImageId, Option<bool>>,
    verdicts: Vec<Verdict>,
    /// For each pair of frames its place among the verdicts.
    places: FxHashMap<(FrameId, FrameId), usize>,
    /// Pairs of which the outer one is behind no call, and is on some stacks all the same.
    kept: FxHashSet<(FrameId, FrameId)>,
    /// Functions in which stacks begin that call `main`.
    callers_of_main: FxHashSet<FunctionStart>,
}

impl<'h> Checks<'h> {
    pub(super) fn new(
        trace: &'h Trace,
        name_sources: &'h IdVec<ImageId, NameSource>,
        names: &'h Names<'h>,
        tables: &'h AllTables<'h>,
        library: &'h Library,
    ) -> Checks<'h> {
        Checks {
            trace,
            name_sources,
            code: CodeReader::new(trace, name_sources, names, tables, library),
            frames: Frames::new(trace, library),
            explanations: Explanations::new(),
            sites: IdVec::filled(None, trace.frames.len()),
            is_same_file: IdVec::filled(None, trace.images.len()),
            verdicts: Vec::new(),
            places: FxHashMap::default(),
            kept: FxHashSet::default(),
            callers_of_main: FxHashSet::default(),
        }
    }

    /// What reads the code.
    pub(super) fn code(&mut self) -> &mut CodeReader<'h> {
        &mut self.code
    }

    /// What the code says of `inner` being called by `outer`.
    pub(super) fn verdict(&mut self, outer: FrameId, inner: FrameId) -> &Verdict {
        let known = self.places.get(&(outer, inner)).copied();
        let place = known.unwrap_or_else(|| {
            let verdict = match self.find(outer, inner) {
                Verdict::Contradicted if self.is_left_for_a_handler(inner) => Verdict::Astray,
                verdict => verdict,
            };
            let place = self.verdicts.len();
            self.verdicts.push(verdict);
            self.places.insert((outer, inner), place);
            place
        });
        &self.verdicts[place]
    }

    fn find(&mut self, outer: FrameId, inner: FrameId) -> Verdict {
        if !self.is_user_code(outer) {
            return Verdict::Outside;
        }
        if self.leads_astray(outer, inner) {
            return Verdict::Astray;
        }
        // The function of the frame has called nothing yet; it is only returned to.
        if self.is_set_up(outer) {
            let is_lost = self.is_user_code(inner) && self.lost_its_caller(outer, inner);
            return if is_lost {
                Verdict::AMBIGUOUS
            } else {
                Verdict::Unknown
            };
        }
        if !self.is_user_code(inner) {
            return Verdict::Outside;
        }
        // What a signal has interrupted is never in a chain of frame pointers, as it has not called.
        if self.trace.frames[inner].caller_by == CallerBy::FramePointer
            && self.is_interrupted(inner)
        {
            return Verdict::AMBIGUOUS;
        }
        let Some((next, at)) = self.place(inner) else {
            return self.without_function(outer, inner);
        };
        // Most calls show by their bytes alone what they call, and their functions need not be read.
        // Rules lead to return addresses only; frame pointers lead anywhere, where bytes may look like
        // a call by chance.
        if self.trace.frames[inner].caller_by == CallerBy::Rules {
            match self.likely_call(outer, next) {
                LikelyCall::OfNext => return Verdict::Verified,
                LikelyCall::Pointer if self.is_led_by_pointer(outer, inner) => {}
                LikelyCall::Pointer if self.is_only_jumped_to(next) => {
                    return self.called_unknown(next, at, Some(true));
                }
                LikelyCall::Pointer => return Verdict::ThroughPointer,
                LikelyCall::Other => {}
            }
        }
        let has_frame = if self.is_led_by_pointer(outer, inner) {
            self.own_frame(inner)
        } else {
            Some(true)
        };
        let is_lost = has_frame == Some(false) && !self.is_interrupted(inner);
        let (called, name) = match self.site(outer).clone() {
            Site::Call(called, name) => (called, name),
            Site::Main => match self.code.main_around(next.image) {
                Some(main) => ([main].into(), None),
                // The program has it, and the file of the next function is a library.
                None if !self.code.is_program(next.image)
                    && !self.code.is_exported_as(next, "main") =>
                {
                    return self.called_a_main(next, at, has_frame);
                }
                None => return Verdict::Unknown,
            },
            // Whatever was called there keeps the frame that the chain went through, and the next
            // function has none: it is not what was called.
            Site::Interrupted if is_lost => return Verdict::AMBIGUOUS,
            Site::Pointer | Site::Unknown if is_lost || self.is_only_jumped_to(next) => {
                return self.called_unknown(next, at, has_frame);
            }
            Site::Pointer => return Verdict::ThroughPointer,
            Site::Unknown | Site::Interrupted => return Verdict::Unknown,
            // Another unwinder may show the runtime's call, too.
            Site::None if self.is_inserted_call(inner) => return Verdict::Unknown,
            Site::None => return Verdict::Contradicted,
        };
        let is_main = matches!(self.site(outer), Site::Main);
        let by_name = name.is_some();
        let is_named = |name: &str| {
            let stub = self.code.stub(next);
            self.code.is_exported_as(next, name) || stub.is_some_and(|stub| stub == name)
        };
        let is_next = called.contains(&next)
            || called.iter().any(|&called| self.code.is_part(next, called))
            || name.as_deref().is_some_and(is_named);
        if is_next && has_frame != Some(false) {
            return Verdict::Verified;
        }
        let mut found = Explanation::None;
        for &called in called.iter() {
            let question = Question {
                called,
                next,
                is_caller_missing: has_frame.map(|has| !has),
            };
            let answer = self
                .explanations
                .of(question, &mut self.code, &mut self.frames);
            found = found.or(&answer);
        }
        if found != Explanation::None {
            // Where the frame pointer holds something else, or other files may define what is called
            // by the name, the two frames need not belong together.
            let is_certain = name.is_none_or(|name| self.code.is_certain_import(&name));
            if self.is_overwritten(next.image, at, has_frame) || !is_certain {
                found = Explanation::several(None);
            }
        }
        match found {
            Explanation::One(missing) => Verdict::Missing(missing),
            Explanation::None if is_next => Verdict::Verified,
            _ if is_next && self.is_interrupted(inner) => Verdict::Verified,
            // The frames between are those of what was interrupted. Rules lead to the innermost of these.
            _ if self.is_interrupted(inner) => Verdict::Unknown,
            // Also the function that was called may have called itself: it has no frame there, so that its
            // caller is not the one whose frame the pointer went through.
            Explanation::Several { certain, possible } if !is_main || !certain.is_empty() => {
                Verdict::Ambiguous { certain, possible }
            }
            // Whatever else was: nothing runs there but main and what that calls.
            _ if is_main => {
                let main = called.iter().map(|&function| Missing {
                    function,
                    left_at: [].into(),
                });
                Verdict::Ambiguous {
                    certain: main.collect(),
                    possible: None,
                }
            }
            Explanation::Several { certain, possible } => Verdict::Ambiguous { certain, possible },
            // What was called through a table the dynamic linker is still to fill in.
            Explanation::None if by_name && self.code.links_lazily(next) => Verdict::Unknown,
            Explanation::None => Verdict::Contradicted,
        }
    }

    /// Whether the frame pointer holds something else than a frame at this stated address, in a
    /// function without one of its own.
    fn is_overwritten(&mut self, image: ImageId, at: u64, has_frame: Option<bool>) -> bool {
        has_frame == Some(false)
            && self.frames.is_overwritten(image, at)
            && !self.is_setting_up(image, at)
    }

    /// Whether the function of a frame goes on to run on another stack than that of its caller.
    pub(super) fn switches_stacks(&mut self, frame: FrameId) -> bool {
        let place = self.place(frame);
        place.is_some_and(|(place, _)| self.code.switches_stacks_in_go(place))
    }

    /// Whether a frame `outer`, to which no call returns, is one nevertheless: the frame `beyond` calls
    /// its function. That was entered, then, and it was left for `inner` in an unknown way.
    pub(super) fn was_called(
        &mut self,
        beyond: Option<FrameId>,
        outer: FrameId,
        inner: FrameId,
    ) -> bool {
        let was_called =
            beyond.is_some_and(|beyond| *self.verdict(beyond, outer) == Verdict::Verified);
        if was_called {
            self.kept.insert((outer, inner));
        }
        was_called
    }

    /// Whether a frame pointer has led from `inner` to an address to which no call returns: something
    /// else than a frame was where it pointed. What unwinding rules lead to is not judged: they may
    /// state that a function was entered otherwise.
    fn leads_astray(&mut self, outer: FrameId, inner: FrameId) -> bool {
        if !self.is_led_by_pointer(outer, inner) {
            return false;
        }
        if self.is_set_up(outer) {
            // Pointers to functions are in much that a register may point to.
            return !self.may_begin_a_stack(inner)
                || self.lost_its_caller(outer, inner) && !self.is_outermost(outer);
        }
        matches!(self.site(outer), Site::None) && !self.is_inserted_call(inner)
    }

    /// Whether a frame is of a function that replaces its return address by that of a handler of
    /// exceptions, just before it returns: then it lies on the stack where its caller is expected.
    fn is_left_for_a_handler(&mut self, frame: FrameId) -> bool {
        let place = self.place(frame);
        place.is_some_and(|(place, at)| self.frames.returns_to_handlers(place.image, at))
    }

    /// Whether a frame is of a function that runtimes enter by changing the registers of what they
    /// interrupt, as if a call stood there.
    fn is_inserted_call(&mut self, frame: FrameId) -> bool {
        let place = self.place(frame);
        place.is_some_and(|(place, _)| self.code.is_inserted_in_go(place))
    }

    /// Whether a handler of signals returns to this stated address, by unwind information or, where
    /// there is none, by the code.
    fn returns_from_signal(&mut self, image: ImageId, at: u64) -> bool {
        self.frames.is_signal_frame(image, at) || self.code.returns_from_signal(image, at)
    }

    /// Whether the code of an image is certain to be what ran: nothing casts doubt on the file,
    /// and it calls something. Code without any call has no place to return to: it was put there
    /// to fill the file.
    fn is_same_file(&mut self, image: ImageId) -> bool {
        if let Some(known) = self.is_same_file[image] {
            return known;
        }
        let is_known = self.name_sources[image].doubt().is_none();
        let is_same = is_known && self.code.has_calls(image);
        self.is_same_file[image] = Some(is_same);
        is_same
    }

    /// Whether no pointer leads to a function, but one leads to functions that jump to it: called
    /// through a pointer, one of these made way for it.
    fn is_only_jumped_to(&mut self, place: FunctionStart) -> bool {
        let entries = self
            .explanations
            .entries(place, &mut self.code, &mut self.frames);
        entries.owner && !entries.itself
    }

    /// Whether a frame is that to which a signal handler returns.
    fn is_interrupted(&mut self, frame: FrameId) -> bool {
        let frame = self.trace.frames[frame];
        let here = self.name_sources[frame.image].svma(frame.address.recorded());
        here.is_some_and(|here| self.returns_from_signal(frame.image, here.0))
    }

    /// Whether a frame is in code that can be read.
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

    /// The function that a frame is in, and the stated address where.
    fn place(&mut self, frame: FrameId) -> Option<(FunctionStart, u64)> {
        let frame = self.trace.frames[frame];
        let at = self.name_sources[frame.image].svma(frame.address.lookup())?;
        Some((self.code.function_at(frame.image, at.0)?, at.0))
    }

    /// What the bytes before the return address of a frame call.
    fn likely_call(&mut self, frame: FrameId, next: FunctionStart) -> LikelyCall {
        let frame = self.trace.frames[frame];
        let CodeAddress::Return(_) = frame.address else {
            return LikelyCall::Other;
        };
        let Some(before) = self.name_sources[frame.image].svma(frame.address.lookup()) else {
            return LikelyCall::Other;
        };
        let behind = before.0.wrapping_add(1);
        let Some((to, name)) = self.code.likely_call_before(frame.image, behind) else {
            return LikelyCall::Other;
        };
        let is_next = match (to, name) {
            (To::Function(place), _) if place == next => true,
            (To::ChosenBy(chooser), _) if self.code.choices(chooser).contains(&next) => true,
            (_, Some(name)) => self.code.is_exported_as(next, &name),
            (To::Unknown, None) if !self.code.starts_programs(frame.image, before.0) => {
                return LikelyCall::Pointer;
            }
            _ => false,
        };
        if is_next {
            LikelyCall::OfNext
        } else {
            LikelyCall::Other
        }
    }

    /// What calls before the return address of a frame.
    fn site(&mut self, frame: FrameId) -> &Site {
        if self.sites[frame].is_none() {
            self.sites[frame] = Some(self.find_site(frame));
        }
        self.sites[frame].as_ref().unwrap_or(&Site::Unknown)
    }

    fn find_site(&mut self, frame: FrameId) -> Site {
        let frame = self.trace.frames[frame];
        let CodeAddress::Return(_) = frame.address else {
            return Site::Interrupted;
        };
        let Some(before) = self.name_sources[frame.image].svma(frame.address.lookup()) else {
            return Site::Unknown;
        };
        let end = before.0.wrapping_add(1);
        let Some(call) = self.code.call_before(frame.image, end) else {
            let function = self.code.function_around(frame.image, before.0);
            let is_complete = function.is_some_and(|function| function.is_complete);
            return self.without_call(frame.image, end, is_complete);
        };
        match call.to {
            To::Function(place) => Site::Call([place].into(), call.name),
            To::ChosenBy(chooser) => Site::Call(self.code.choices(chooser), call.name),
            To::Unknown if self.code.starts_programs(frame.image, before.0) => Site::Main,
            To::Unknown => Site::Pointer,
        }
    }

    /// What is before this stated address, if no call of the function around it is. `is_complete`:
    /// whether all calls of that function are known.
    fn without_call(&mut self, image: ImageId, at: u64, is_complete: bool) -> Site {
        let binary = self.code.binary(image);
        let may_return = binary.and_then(|binary| scan::may_return_to(binary, Svma(at)));
        let is_none = match may_return {
            Some(may_return) => !may_return || is_complete,
            None => is_complete,
        };
        let start = self.code.function_start(image, at);
        let is_start = start.is_some_and(|start| self.code.starts_in_go(start));
        let is_outermost = self.frames.is_outermost(image, at);
        if self.returns_from_signal(image, at) || is_start || is_outermost {
            Site::Interrupted
        } else if is_none && self.is_same_file(image) {
            Site::None
        } else {
            Site::Unknown
        }
    }

    /// How many different calls were checked, by what was found.
    pub(super) fn calls(&self) -> CheckedCalls {
        let mut calls = CheckedCalls {
            contradicted: self.kept.len() as u64,
            ..CheckedCalls::default()
        };
        for verdict in &self.verdicts {
            match verdict {
                Verdict::Outside | Verdict::Astray => {}
                Verdict::Verified => calls.verified += 1,
                Verdict::ThroughPointer | Verdict::Unknown => calls.unchecked += 1,
                Verdict::Missing(_) => calls.lacking += 1,
                Verdict::Ambiguous { .. } => calls.ambiguous += 1,
                Verdict::Contradicted => calls.contradicted += 1,
            }
        }
        calls
    }

    /// Whether a frame calls through a pointer.
    pub(super) fn calls_pointer(&mut self, frame: FrameId) -> bool {
        matches!(self.site(frame), Site::Pointer)
    }

    /// Whether a missing function may have been left by a call or jump through a pointer.
    pub(super) fn may_leave_through_pointer(&mut self, missing: &Missing) -> bool {
        let function = self.code.function(missing.function);
        let leads_anywhere = |out: &&WayOut| matches!(out.to, To::Unknown) && out.name.is_none();
        let ways_out = function.iter().flat_map(|it| &it.ways_out);
        let mut sites = ways_out.filter(leads_anywhere).flat_map(|out| &out.sites);
        sites.any(|site| missing.left_at.contains(&site.end))
    }

    /// The address in its image of a place in code.
    pub(super) fn offset(&mut self, image: ImageId, at: u64) -> Option<FileOffset> {
        self.code.offset(image, at)
    }
}
