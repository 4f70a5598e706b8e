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

use super::code::{Code, Place, To, WayOut};
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
/// How many ways out of functions are looked at for all questions together.
const WAYS_OUT: usize = 1 << 24;

/// Answers questions, each once.
pub(super) struct Explanations {
    known: FxHashMap<Question, Explanation>,
    /// How many ways out may still be looked at.
    fuel: usize,
}

impl Explanations {
    pub(super) fn new() -> Explanations {
        Explanations {
            known: FxHashMap::default(),
            fuel: WAYS_OUT,
        }
    }

    pub(super) fn of<'h>(
        &mut self,
        question: Question,
        code: &mut Code<'h>,
        frames: &mut Frames<'h>,
    ) -> &Explanation {
        let fuel = &mut self.fuel;
        self.known.entry(question).or_insert_with(|| {
            let mut search = Search {
                question,
                stub: code.stub(question.next),
                code,
                frames,
                fuel,
                way: Vec::new(),
                room: FUNCTIONS,
                certain: Ways::default(),
                by_pointer: Ways::default(),
                by_library: Ways::default(),
                by_jump: Ways::default(),
            };
            search.follow(question.called, false);
            search.result()
        })
    }
}

/// Ways of one kind.
#[derive(Default)]
struct Ways {
    /// The first; where it was left is known only as far as it is of all through the same functions.
    first: Option<Vec<Missing>>,
    /// Whether there is another one, through other functions.
    are_several: bool,
}

impl Ways {
    fn add(&mut self, way: &[Missing]) {
        let Some(first) = &mut self.first else {
            self.first = Some(way.to_vec());
            return;
        };
        if !passes_the_same(first, way) {
            self.are_several = true;
            return;
        }
        for (known, new) in first.iter_mut().zip(way) {
            if known.left_at != new.left_at {
                known.left_at = None;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The only way, if there is one only.
    fn only(self) -> Explanation {
        match self.first {
            None => Explanation::None,
            Some(_) if self.are_several => Explanation::Several,
            Some(way) => Explanation::One(way),
        }
    }

    /// Whether there is a way through other functions than these.
    fn has_another(&self, than: &[Missing]) -> bool {
        let first = self.first.as_ref();
        self.are_several || first.is_some_and(|first| !passes_the_same(first, than))
    }
}

fn passes_the_same(a: &[Missing], b: &[Missing]) -> bool {
    let functions = |way: &[Missing], at: usize| way[at].function;
    a.len() == b.len() && (0..a.len()).all(|at| functions(a, at) == functions(b, at))
}

/// The ways from one function to another.
struct Search<'s, 'h> {
    question: Question,
    /// The name that `question.next` stands for, if it is a stub.
    stub: Option<String>,
    code: &'s mut Code<'h>,
    frames: &'s mut Frames<'h>,
    fuel: &'s mut usize,
    way: Vec<Missing>,
    /// How many functions may still be looked at.
    room: usize,
    /// The ways by calls and jumps that are known.
    certain: Ways,
    /// The ways that end with a call that only a run can tell.
    by_pointer: Ways,
    /// The ways that end in a library.
    by_library: Ways,
    /// The ways that end with a jump that only a run can tell, of which most are the tables of
    /// switches.
    by_jump: Ways,
}

impl Search<'_, '_> {
    /// Looks at all ways on from a function; `has_called` is whether the way to it has a call.
    fn follow(&mut self, function: Place, has_called: bool) {
        let seen = self.way.iter().any(|missing| missing.function == function);
        if seen || self.way.len() >= MISSING || self.room == 0 || self.certain.are_several {
            return;
        }
        self.room -= 1;
        let Some(code) = self.code.function(function) else {
            return;
        };
        let missing = self.question.is_caller_missing;
        for out in &code.ways_out {
            *self.fuel = self.fuel.saturating_sub(out.sites.len());
            if *self.fuel == 0 {
                self.room = 0;
                return;
            }
            let Some(left_at) = self.left_at(function, out, has_called) else {
                continue;
            };
            self.way.push(Missing { function, left_at });
            let calls = has_called || out.is_call;
            let arrives = calls || missing != Some(true);
            match out.to {
                _ if arrives && self.arrives(out) => self.certain.add(&self.way),
                To::Function(next) if self.is_near(function, next) => self.follow(next, calls),
                // A library may call back whomever it was told to.
                To::Function(_) if arrives => self.by_library.add(&self.way),
                To::Unknown if !arrives || out.name.is_some() => {}
                To::Unknown if out.is_call => self.by_pointer.add(&self.way),
                To::Unknown if !calls => self.by_jump.add(&self.way),
                // What is chosen is as a rule one of several that do the same and call nothing.
                To::Function(_) | To::ChosenBy(_) | To::Unknown => {}
            }
            self.way.pop();
        }
    }

    /// Behind which call or jump a function is left this way, if there is one only; `None` if no
    /// call leaves the stack as it is.
    fn left_at(&mut self, function: Place, out: &WayOut, has_called: bool) -> Option<Option<u64>> {
        if !out.is_call {
            return Some(
                out.sites
                    .first()
                    .filter(|_| out.sites.len() == 1)
                    .map(|site| site.end),
            );
        }
        if self.question.is_caller_missing == Some(false) {
            return None;
        }
        let mut left_at = None;
        for site in &out.sites {
            let has_frame = self.frames.has_frame(function.image, site.at);
            let fits = match has_called {
                false => has_frame != Some(false),
                true => has_frame == Some(false),
            };
            if fits {
                left_at = Some(left_at.map_or(Some(site.end), |_: Option<u64>| None));
            }
        }
        left_at
    }

    fn arrives(&mut self, out: &WayOut) -> bool {
        let next = self.question.next;
        let is_next = match out.to {
            To::Function(to) => to == next,
            To::ChosenBy(chooser) => self.code.choices(chooser).binary_search(&next).is_ok(),
            To::Unknown => false,
        };
        is_next || self.stub.is_some() && self.stub == out.name
    }

    /// Whether a function that is called is looked at: it is in the file of who calls it, or in
    /// that of who is to be reached.
    fn is_near(&self, function: Place, next: Place) -> bool {
        next.image == function.image || next.image == self.question.next.image
    }

    fn result(self) -> Explanation {
        if self.room == 0 {
            return Explanation::Several;
        }
        match self.certain.only() {
            Explanation::None => {}
            Explanation::One(way) => {
                let is_sure = !self.by_pointer.has_another(&way)
                    || !self.code.may_be_pointed_to(self.question.next);
                return match is_sure {
                    true => Explanation::One(way),
                    false => Explanation::Several,
                };
            }
            Explanation::Several => return Explanation::Several,
        }
        if !self.by_pointer.is_empty() {
            return self.by_pointer.only();
        }
        if !self.by_library.is_empty() {
            return Explanation::Several;
        }
        self.by_jump.only()
    }
}
