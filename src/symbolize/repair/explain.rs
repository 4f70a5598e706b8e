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

use super::case::Case;
use super::code::Code;
use super::control_flow::Finder;
use super::explanation::{Explanation, left_anywhere};
use super::function_exits::FunctionStart;
use super::memo::Memo;
use super::unknown_callers::{self, Entries};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) called: FunctionStart,
    pub(super) next: FunctionStart,
    /// Whether the frame of what called `next` is missing; `None` if that is not known.
    pub(super) is_caller_missing: Option<bool>,
}

/// Answers questions, each once. Those about unknown callers are of a function and whether the
/// frame of what called it is missing.
pub(super) struct Explanations<'c, 'h> {
    code: &'c Code<'h>,
    finder: Finder<'c, 'h>,
    known: Memo<Question, Explanation>,
    entries: Memo<(FunctionStart, bool), Entries>,
    of_unknown_calls: Memo<(FunctionStart, bool), Explanation>,
}

impl<'c, 'h> Explanations<'c, 'h> {
    pub(super) fn new(code: &'c Code<'h>) -> Explanations<'c, 'h> {
        Explanations {
            code,
            finder: Finder::new(code),
            known: Memo::default(),
            entries: Memo::default(),
            of_unknown_calls: Memo::default(),
        }
    }

    pub(super) fn of(&self, question: Question) -> Explanation {
        self.known.get(&question, || self.find(question))
    }

    pub(super) fn entries(&self, next: FunctionStart, is_caller_missing: bool) -> Entries {
        self.entries.get(&(next, is_caller_missing), || {
            unknown_callers::entries(next, is_caller_missing, self.code)
        })
    }

    /// What explains a stack on which something unknown was called, but not `next`: what every way
    /// into that function goes through.
    pub(super) fn of_unknown_call(
        &self,
        next: FunctionStart,
        is_caller_missing: bool,
    ) -> Explanation {
        self.of_unknown_calls.get(&(next, is_caller_missing), || {
            let entry = unknown_callers::only_entry(next, is_caller_missing, self.code);
            let Some(called) = entry else {
                // What was called and has made way for one of these by a jump through a pointer is
                // not counted.
                let leading = unknown_callers::leading_to(next, is_caller_missing, self.code);
                let possible = leading.and_then(|leading| {
                    left_anywhere(leading.into_iter(), is_caller_missing, self.code)
                });
                return Explanation::several(possible);
            };
            let is_caller_missing = Some(is_caller_missing);
            match self.of(Question {
                called,
                next,
                is_caller_missing,
            }) {
                Explanation::None => Explanation::ANYTHING,
                found => found,
            }
        })
    }

    fn find(&self, question: Question) -> Explanation {
        let missing = question.is_caller_missing;
        let by_jumps_only = missing == Some(false);
        let Some(ways) = self.finder.ways(question.called, by_jumps_only) else {
            return Explanation::ANYTHING;
        };
        let mut found = Explanation::None;
        for is_owner_missing in [false, true] {
            if missing.is_some_and(|missing| missing != is_owner_missing) {
                continue;
            }
            let case = Case {
                ways: &ways,
                next: question.next,
                is_owner_missing,
                stub: self.code.stub(question.next),
                may_link: self.code.may_run_while_linking(question.next),
                entries: &|| self.entries(question.next, is_owner_missing),
                code: self.code,
            };
            found = found.or(&case.explain());
        }
        found
    }
}
