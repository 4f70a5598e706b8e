//! The functions that must have been between two frames, where the code leaves one possibility.
//!
//! ```text
//!   recorded      main ─────────────────▶ leaf     but the call in main is one of work
//!   in the code   main ─call─▶ work ─call─▶ leaf   work's frame is missing: leaf keeps none
//!                 main ─call─▶ work ─jump─▶ leaf   work has made way for leaf
//! ```
//!
//! A frame is missing from a chain of frame pointers where the function behind it has none of its
//! own at the moment: the chain then goes through the frame of the function that called it, its
//! owner, whose return address is skipped.
//!
//! Of all [ways](super::control_flow) from the function that was called to the one that is next on
//! the stack, functions are restored only if every way goes through them. Unknown code is part of
//! these ways: a call or jump through a pointer, a library that calls back, and a signal, which may
//! arrive anywhere. It leads on wherever something [may be entered](super::unknown_callers) from
//! which the next function is reached. Calls through pointers never change who the owner is.
//!
//! If there are several ways, the functions that all of them share are still restored: the called
//! function has jumped away, wherever to. The others on the ways are noted as the only ones that
//! may be missing. If the callee is unknown, functions are restored from the [only
//! entry](unknown_callers::only_entry) on, through which every way to the next function leads.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::case::Case;
use super::code::CodeReader;
use super::control_flow::Finder;
use super::explanation::{Explanation, Missing, left_anywhere};
use super::frames::Frames;
use super::function_exits::FunctionStart;
use super::unknown_callers::{self, Entries};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    /// The function that was called.
    pub(super) called: FunctionStart,
    /// The next function on the stack.
    pub(super) next: FunctionStart,
    /// Whether the frame of what called `next` is missing; `None` if that is not known.
    pub(super) is_caller_missing: Option<bool>,
}

/// Answers questions, each once.
pub(super) struct Explanations {
    known: FxHashMap<Question, Explanation>,
    finder: Finder,
    /// What leads to functions from somewhere unknown, by whether the owner is missing.
    entries: FxHashMap<(FunctionStart, bool), Entries>,
    only_entries: FxHashMap<(FunctionStart, bool), Option<FunctionStart>>,
    candidates: FxHashMap<(FunctionStart, bool), Option<Rc<[Missing]>>>,
}

impl Explanations {
    pub(super) fn new() -> Explanations {
        Explanations {
            known: FxHashMap::default(),
            finder: Finder::new(),
            entries: FxHashMap::default(),
            only_entries: FxHashMap::default(),
            candidates: FxHashMap::default(),
        }
    }

    pub(super) fn of<'h>(
        &mut self,
        question: Question,
        code: &mut CodeReader<'h>,
        frames: &mut Frames<'h>,
    ) -> Explanation {
        if let Some(known) = self.known.get(&question) {
            return known.clone();
        }
        let found = self.find(question, code, frames);
        self.known.insert(question, found.clone());
        found
    }

    /// What leads to a function from somewhere unknown, by jumps alone.
    pub(super) fn entries(
        &mut self,
        next: FunctionStart,
        code: &mut CodeReader,
        frames: &mut Frames,
    ) -> Entries {
        let entries = self.entries.entry((next, false));
        *entries.or_insert_with(|| unknown_callers::entries(next, false, code, frames))
    }

    /// What explains a stack on which something unknown was called, but not `next`: what every way into
    /// that function goes through.
    pub(super) fn of_unknown_call<'h>(
        &mut self,
        next: FunctionStart,
        is_caller_missing: bool,
        code: &mut CodeReader<'h>,
        frames: &mut Frames<'h>,
    ) -> Explanation {
        let entry = self.only_entries.entry((next, is_caller_missing));
        let entry = *entry
            .or_insert_with(|| unknown_callers::only_entry(next, is_caller_missing, code, frames));
        let Some(called) = entry else {
            let possible = self.candidates(next, is_caller_missing, code, frames);
            return Explanation::several(possible);
        };
        let question = Question {
            called,
            next,
            is_caller_missing: Some(is_caller_missing),
        };
        match self.of(question, code, frames) {
            Explanation::None => Explanation::several(None),
            found => found,
        }
    }

    /// The functions that may have been between something unknown that was called and `next`; `None` if
    /// there may be others. What was called and has made way for one of these by a jump through a
    /// pointer is not counted.
    fn candidates<'h>(
        &mut self,
        next: FunctionStart,
        is_caller_missing: bool,
        code: &mut CodeReader<'h>,
        frames: &mut Frames<'h>,
    ) -> Option<Rc<[Missing]>> {
        let known = self.candidates.get(&(next, is_caller_missing));
        if let Some(known) = known {
            return known.clone();
        }
        let leading = unknown_callers::leading_to(next, is_caller_missing, code, frames);
        let found =
            leading.and_then(|leading| left_anywhere(leading.into_iter(), is_caller_missing, code));
        self.candidates
            .insert((next, is_caller_missing), found.clone());
        found
    }

    fn find<'h>(
        &mut self,
        question: Question,
        code: &mut CodeReader<'h>,
        frames: &mut Frames<'h>,
    ) -> Explanation {
        let missing = question.is_caller_missing;
        let by_jumps_only = missing == Some(false);
        let ways = self
            .finder
            .ways(question.called, by_jumps_only, code, frames);
        let Some(ways) = ways else {
            return Explanation::several(None);
        };
        let cases = [false, true]
            .into_iter()
            .filter(|case| missing.is_none_or(|missing| missing == *case));
        let mut found = Explanation::None;
        for is_owner_missing in cases {
            let mut case = Case {
                ways: &ways,
                next: question.next,
                is_owner_missing,
                stub: code.stub(question.next),
                may_link: code.may_run_while_linking(question.next),
                entries: &mut self.entries,
                code,
                frames,
            };
            found = found.or(&case.explain());
        }
        found
    }
}
