//! What must have been between two frames, where the code tells it.
//!
//! ```text
//!   recorded      main ─────────────────▶ leaf     but the call in main is one of work
//!   in the code   main ─call─▶ work ─call─▶ leaf   work's frame is missing: leaf keeps none
//!                 main ─call─▶ work ─jump─▶ leaf   work has made way for leaf
//! ```
//!
//! A frame is missing from a chain of frame pointers where the function behind it has none of its
//! own at the moment: the chain then goes through the frame of the function that called it, whose
//! return address nobody reads. So of a way from the function that was called to the one that is
//! next on the stack, the first function that calls keeps a frame (else the chain had gone through
//! another), and those that call behind it keep none.

use rustc_hash::FxHashMap;

use super::code::{Code, Exit, Place, To};
use super::frames::Frames;

/// A function that is missing, and how it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) function: Place,
    /// The stated address behind the call or jump, if there is one only.
    pub(super) left_at: Option<u64>,
}

/// What explains a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Explanation {
    /// These functions are missing, outermost first, and nothing else can be.
    One(Vec<Missing>),
    /// There are several possibilities, or too many to look at.
    Several,
    /// Nothing in the code does.
    None,
}

impl Explanation {
    /// What explains a stack if either does.
    pub(super) fn or(self, other: &Explanation) -> Explanation {
        match (self, other) {
            (Explanation::None, other) => other.clone(),
            (this, Explanation::None) => this,
            _ => Explanation::Several,
        }
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    /// The function that was called.
    pub(super) called: Place,
    /// The next function on the stack.
    pub(super) next: Place,
    /// Whether the frame of what called `next` is missing; `None` if that is not known.
    pub(super) is_caller_missing: Option<bool>,
}

/// More functions than these are not looked at for one question.
const FUNCTIONS: usize = 256;
/// More functions than these are not missing from one place.
const MISSING: usize = 8;

/// Answers questions, each once.
#[derive(Default)]
pub(super) struct Explanations {
    known: FxHashMap<Question, Explanation>,
}

impl Explanations {
    pub(super) fn of<'h>(
        &mut self,
        question: Question,
        code: &mut Code<'h>,
        frames: &mut Frames<'h>,
    ) -> &Explanation {
        self.known.entry(question).or_insert_with(|| {
            let mut search = Search {
                question,
                stub: code.stub(question.next),
                code,
                frames,
                way: Vec::new(),
                room: FUNCTIONS,
                certain: Vec::new(),
                by_pointer: Vec::new(),
                by_jump: Vec::new(),
                by_library: Vec::new(),
            };
            search.follow(question.called, false);
            search.result()
        })
    }
}

/// The ways from one function to another.
struct Search<'s, 'h> {
    question: Question,
    /// The name that `question.next` stands for, if it is a stub.
    stub: Option<String>,
    code: &'s mut Code<'h>,
    frames: &'s mut Frames<'h>,
    way: Vec<Missing>,
    /// How many functions may still be looked at.
    room: usize,
    /// The ways by calls and jumps that are known.
    certain: Vec<Vec<Missing>>,
    /// The ways that end with a call that only a run can tell.
    by_pointer: Vec<Vec<Missing>>,
    /// The same for jumps, of which most are the tables of switches.
    by_jump: Vec<Vec<Missing>>,
    /// The ways that end in a library.
    by_library: Vec<Vec<Missing>>,
}

impl Search<'_, '_> {
    /// Looks at all ways on from a function; `has_called` is whether the way to it has a call.
    fn follow(&mut self, function: Place, has_called: bool) {
        let seen = self.way.iter().any(|missing| missing.function == function);
        if seen || self.way.len() >= MISSING || self.room == 0 {
            return;
        }
        self.room -= 1;
        let Some(exits) = self.code.exits(function) else {
            return;
        };
        let missing = self.question.is_caller_missing;
        for (index, exit) in exits.iter().enumerate() {
            if exit.is_call
                && (missing == Some(false) || !self.may_call(function, exit, has_called))
            {
                continue;
            }
            let calls = has_called || exit.is_call;
            let same = |other: &Exit| {
                other.is_call == exit.is_call && other.to == exit.to && other.name == exit.name
            };
            if exits[..index].iter().any(same) {
                continue;
            }
            let is_only = !exits[index + 1..].iter().any(same);
            self.way.push(Missing {
                function,
                left_at: is_only.then_some(exit.end),
            });
            let arrives = calls || missing != Some(true);
            match exit.to {
                _ if arrives && self.arrives(exit) => self.certain.push(self.way.clone()),
                To::Function(next) if self.is_near(function, next) => self.follow(next, calls),
                // A library may call back whomever it was told to.
                To::Function(_) if arrives => self.by_library.push(self.way.clone()),
                To::Unknown if !arrives || exit.name.is_some() => {}
                To::Unknown if exit.is_call => self.by_pointer.push(self.way.clone()),
                To::Unknown if !calls => self.by_jump.push(self.way.clone()),
                // What is chosen is as a rule one of several that do the same and call nothing.
                To::Function(_) | To::ChosenBy(_) | To::Unknown => {}
            }
            self.way.pop();
        }
    }

    /// Whether a call there leaves the stack as it is.
    fn may_call(&mut self, function: Place, exit: &Exit, has_called: bool) -> bool {
        let has_frame = self.frames.has_frame(function.image, exit.at);
        match has_called {
            false => has_frame != Some(false),
            true => has_frame == Some(false),
        }
    }

    fn arrives(&mut self, exit: &Exit) -> bool {
        let next = self.question.next;
        let is_next = match exit.to {
            To::Function(to) => to == next,
            To::ChosenBy(chooser) => self.code.choices(chooser).contains(&next),
            To::Unknown => false,
        };
        is_next || self.stub.is_some() && self.stub == exit.name
    }

    /// Whether a function that is called is looked at: it is in the file of who calls it, or in
    /// that of who is to be reached.
    fn is_near(&self, function: Place, next: Place) -> bool {
        next.image == function.image || next.image == self.question.next.image
    }

    fn result(mut self) -> Explanation {
        if self.room == 0 {
            return Explanation::Several;
        }
        let certain = distinct(self.certain);
        match &certain[..] {
            [] => {}
            [way] => {
                let other = |pointer: &Vec<Missing>| functions(pointer) != functions(way);
                let is_sure = !self.by_pointer.iter().any(other)
                    || !self.code.may_be_pointed_to(self.question.next);
                return match is_sure {
                    true => Explanation::One(way.clone()),
                    false => Explanation::Several,
                };
            }
            _ => return Explanation::Several,
        }
        for (ways, explains) in [
            (std::mem::take(&mut self.by_pointer), true),
            (self.by_library, false),
            (self.by_jump, true),
        ] {
            match &distinct(ways)[..] {
                [] => {}
                [way] if explains => return Explanation::One(way.clone()),
                _ => return Explanation::Several,
            }
        }
        Explanation::None
    }
}

fn functions(way: &[Missing]) -> Vec<Place> {
    way.iter().map(|missing| missing.function).collect()
}

/// The ways through different functions. Of several through the same, where these were left is
/// known only as far as all agree.
fn distinct(ways: Vec<Vec<Missing>>) -> Vec<Vec<Missing>> {
    let mut distinct: Vec<Vec<Missing>> = Vec::new();
    for way in ways {
        let wanted = functions(&way);
        match distinct.iter_mut().find(|known| functions(known) == wanted) {
            None => distinct.push(way),
            Some(known) => {
                for (known, new) in known.iter_mut().zip(way) {
                    if known.left_at != new.left_at {
                        known.left_at = None;
                    }
                }
            }
        }
    }
    distinct
}
