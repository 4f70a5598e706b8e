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
//!
//! A call or jump through a pointer on one of the ways may lead anywhere, and a library may call
//! back. They explain nothing where no pointer leads to what is next, nor to a function that leads
//! there without a trace: see [`back`].

use rustc_hash::FxHashMap;

use super::back::{self, Reached};
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
    /// What pointers lead to, also for jumps alone.
    reached: FxHashMap<(Place, bool), Reached>,
}

impl Explanations {
    pub(super) fn new() -> Explanations {
        Explanations {
            known: FxHashMap::default(),
            fuel: WAYS_OUT,
            reached: FxHashMap::default(),
        }
    }

    pub(super) fn of<'h>(
        &mut self,
        question: Question,
        code: &mut Code<'h>,
        frames: &mut Frames<'h>,
    ) -> &Explanation {
        let (fuel, reached) = (&mut self.fuel, &mut self.reached);
        self.known.entry(question).or_insert_with(|| {
            let mut search = Search {
                question,
                stub: code.stub(question.next),
                code,
                frames,
                fuel,
                reached,
                way: Vec::new(),
                open: Vec::new(),
                room: FUNCTIONS,
                certain: Ways::default(),
                by_pointer: Ways::default(),
                may_go_anywhere: false,
                may_call_back: false,
                is_unclear: false,
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

    /// The only way, if there is one only.
    fn only(self) -> Explanation {
        match self.first {
            None => Explanation::None,
            Some(_) if self.are_several => Explanation::Several,
            Some(way) => Explanation::One(way),
        }
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
    reached: &'s mut FxHashMap<(Place, bool), Reached>,
    way: Vec<Missing>,
    /// The functions on the way, each with whether the way to it has a call.
    open: Vec<(Place, bool)>,
    /// How many functions may still be looked at.
    room: usize,
    /// The ways by calls and jumps that are known.
    certain: Ways,
    /// The ways that end with a call or jump that only a run can tell, if it can be to what is next.
    by_pointer: Ways,
    /// Whether there is such a call or jump at all, on any way.
    may_go_anywhere: bool,
    /// Whether a way leads into a library, which may call back whomever it was told to.
    may_call_back: bool,
    /// Whether there are ways that were not followed to their ends: round a loop, or too long.
    is_unclear: bool,
}

impl Search<'_, '_> {
    /// Looks at all ways on from a function; `has_called` is whether the way to it has a call.
    fn follow(&mut self, function: Place, has_called: bool) {
        if self.is_unclear || self.certain.are_several {
            return;
        }
        let is_loop = self.open.contains(&(function, has_called));
        let code = self
            .code
            .function(function)
            .filter(|_| !is_loop && self.way.len() < MISSING && self.room > 0);
        let Some(code) = code else {
            self.is_unclear = true;
            return;
        };
        self.room -= 1;
        self.open.push((function, has_called));
        let missing = self.question.is_caller_missing;
        for out in &code.ways_out {
            *self.fuel = self.fuel.saturating_sub(out.sites.len());
            self.is_unclear |= *self.fuel == 0;
            let Some(left_at) = self.left_at(function, out, has_called) else {
                continue;
            };
            self.way.push(Missing { function, left_at });
            let calls = has_called || out.is_call;
            let arrives = calls || missing != Some(true);
            match out.to {
                _ if arrives && self.arrives(out) => self.certain.add(&self.way),
                To::Function(next) if self.is_near(function, next) => self.follow(next, calls),
                // The frame of a library is missing only where those of others are.
                To::Function(_) => self.may_call_back |= missing != Some(false),
                To::Unknown if out.name.is_some() => {
                    self.may_call_back |= missing != Some(false);
                }
                To::Unknown => {
                    self.may_go_anywhere = true;
                    if arrives {
                        self.by_pointer.add(&self.way);
                    }
                }
                // What is chosen is as a rule one of several that do the same and call nothing.
                To::ChosenBy(_) => {}
            }
            self.way.pop();
        }
        self.open.pop();
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

    fn result(mut self) -> Explanation {
        if self.is_unclear || self.certain.are_several {
            return Explanation::Several;
        }
        if !self.may_go_anywhere && !self.may_call_back {
            return self.certain.only();
        }
        let by_jumps_only = self.question.is_caller_missing == Some(false);
        let next = self.question.next;
        let known = self.reached.get(&(next, by_jumps_only)).copied();
        let reached = known.unwrap_or_else(|| {
            let reached = back::by_pointer(next, by_jumps_only, self.code, self.frames);
            self.reached.insert((next, by_jumps_only), reached);
            reached
        });
        match reached {
            Reached::Never => self.certain.only(),
            Reached::Itself if !self.may_call_back => {
                if let Some(way) = &self.by_pointer.first {
                    self.certain.add(way);
                }
                self.certain.are_several |= self.by_pointer.are_several;
                self.certain.only()
            }
            Reached::Itself | Reached::Through => Explanation::Several,
        }
    }
}
