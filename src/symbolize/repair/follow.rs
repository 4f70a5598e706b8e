//! Follows calls from the functions of samples through the code, as far as ranges of totals need
//! it.
//!
//! ```text
//!   sampled ─▶ sampled ─▶ a ─▶ b ─▶ sampled      calls that are known
//!      │          └──────────▶ c ─(*hook)(…)     c leads anywhere, and so do both of the sampled
//!      └─▶ d ─▶ e                                ones: what else they call adds nothing
//! ```
//!
//! A function that leads to a call through a pointer may reach anything. Nearly every function of a
//! large program does, after a few calls; so only functions that do not are followed to the end.
//! Then some more are read, from the outermost functions of stacks on, for their direct calls.

use rustc_hash::FxHashMap;

use crate::base::{FileOffset, IdVec};
use crate::scan::Callees;
use crate::trace::{FrameAddress, FrameId, ImageId};

use super::Checked;
use super::code::Code;
use super::function_exits::{FunctionStart, To};

// The number of functions that are read to find out which of them lead anywhere.
const MOST: usize = 1 << 16;

// The number of functions that are read for the calls that they make for certain.
const CERTAIN: usize = 1 << 8;

/// The code that samples lead to, as far as it was followed.
#[derive(Debug, Default)]
pub(in crate::symbolize) struct Followed {
    pub(in crate::symbolize) functions: Vec<FollowedFunction>,
    /// The calls that their code has, by places among the functions: callers and callees.
    pub(in crate::symbolize) calls: Vec<(u32, u32)>,
}

/// A function that was followed.
#[derive(Clone, Copy, Debug)]
pub(in crate::symbolize) struct FollowedFunction {
    pub(in crate::symbolize) image: ImageId,
    /// The stated address of its first byte.
    pub(in crate::symbolize) start: u64,
    /// Whether it calls something that only a run can tell.
    pub(in crate::symbolize) calls_unknown: bool,
    /// Whether there may be more to its code than was read.
    pub(in crate::symbolize) is_unread: bool,
}

/// How much of a function was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing.
    New,
    /// The calls that are visible at once.
    Begun,
    /// All, as far as that was possible.
    Read,
}

/// A function on the way.
struct Node {
    place: FunctionStart,
    stage: Stage,
    calls_unknown: bool,
    is_unread: bool,
    /// Whether it leads to a function that calls something unknown, or that cannot be read.
    leads_anywhere: bool,
    /// What it calls: first what samples show, up to `observed`, then what its code has.
    callees: Vec<u32>,
    observed: usize,
    callers: Vec<u32>,
}

pub(super) fn follow(checked: &Checked, code: &Code) -> Followed {
    let mut following = Following {
        code,
        numbers: FxHashMap::default(),
        nodes: Vec::new(),
        left: MOST,
    };
    following.observe(checked);
    let sampled = following.nodes.len();
    // The outermost functions were noted first. What the innermost ones lead to decides about them.
    for number in (0..sampled).rev() {
        following.decide(number as u32);
    }
    following.read_certain();
    following.finish()
}

struct Following<'c, 'h> {
    code: &'c Code<'h>,
    numbers: FxHashMap<FunctionStart, u32>,
    nodes: Vec<Node>,
    /// How many functions may still be read.
    left: usize,
}

impl Following<'_, '_> {
    /// Notes the functions on the stacks, and which of them called which.
    fn observe(&mut self, checked: &Checked) {
        let mut known: IdVec<FrameId, Option<Option<u32>>> =
            IdVec::filled(None, checked.frames.len());
        let mut calls = Vec::new();
        for (_, path) in checked.paths.enumerate() {
            let callee = match known[path.frame] {
                Some(number) => number,
                None => {
                    let number = self.number_at(checked.frames[path.frame]);
                    known[path.frame] = Some(number);
                    number
                }
            };
            let caller = path
                .caller
                .map(|caller| checked.paths[caller].frame)
                .and_then(|caller| known[caller].flatten());
            if let (Some(caller), Some(callee)) = (caller, callee) {
                calls.push((caller, callee));
            }
        }
        calls.sort_unstable();
        calls.dedup();
        for (caller, callee) in calls {
            self.connect(caller, callee);
        }
        for node in &mut self.nodes {
            node.observed = node.callees.len();
        }
    }

    fn number_at(&mut self, frame: FrameAddress) -> Option<u32> {
        let offset = FileOffset(frame.address.lookup());
        let at = self.code.binary(frame.image)?.svma(offset)?;
        let place = self.code.function_at(frame.image, at.0)?;
        Some(self.number(place))
    }

    fn number(&mut self, place: FunctionStart) -> u32 {
        let new = self.nodes.len() as u32;
        let number = *self.numbers.entry(place).or_insert(new);
        if number == new {
            self.nodes.push(Node {
                place,
                stage: Stage::New,
                calls_unknown: false,
                is_unread: false,
                leads_anywhere: false,
                callees: Vec::new(),
                observed: 0,
                callers: Vec::new(),
            });
        }
        number
    }

    fn connect(&mut self, caller: u32, callee: u32) {
        self.nodes[caller as usize].callees.push(callee);
        self.nodes[callee as usize].callers.push(caller);
    }

    /// Finds out whether a function leads anywhere.
    fn decide(&mut self, root: u32) {
        // Goes from callers to callees, each once, and leaves a function as soon as that is known.
        // All of its code is read only if what it calls for all to see does not tell.
        let mut open: Vec<(u32, usize)> = Vec::new();
        self.begin(root, &mut open);
        while let Some((number, next)) = open.pop() {
            let node = &self.nodes[number as usize];
            if node.leads_anywhere {
                continue;
            }
            match node.callees.get(next) {
                Some(&callee) => {
                    open.push((number, next + 1));
                    if self.nodes[callee as usize].leads_anywhere {
                        self.lead_anywhere(number);
                    } else {
                        self.begin(callee, &mut open);
                    }
                }
                None if node.stage != Stage::Read => {
                    self.read(number);
                    open.push((number, next));
                }
                None => {}
            }
        }
    }

    fn begin(&mut self, number: u32, open: &mut Vec<(u32, usize)>) {
        let node = &self.nodes[number as usize];
        if node.stage != Stage::New || node.leads_anywhere {
            return;
        }
        self.nodes[number as usize].stage = Stage::Begun;
        let place = self.nodes[number as usize].place;
        if self.left > 0 {
            let found = self.code.callees_in_sight(place);
            self.add(number, found.unwrap_or_default());
        }
        open.push((number, 0));
    }

    /// Reads all code of a function, if that may still be done.
    fn read(&mut self, number: u32) {
        let place = self.nodes[number as usize].place;
        let is_allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        let found = is_allowed.then(|| self.code.callees(place)).flatten();
        let is_complete = found.as_ref().is_some_and(|found| found.is_complete);
        self.add(number, found.unwrap_or_default());
        let node = &mut self.nodes[number as usize];
        node.stage = Stage::Read;
        node.is_unread |= !is_complete;
        if !is_complete {
            self.lead_anywhere(number);
        }
    }

    /// Notes what a function calls.
    fn add(&mut self, number: u32, callees: Callees) {
        let image = self.nodes[number as usize].place.image;
        let mut is_unread = false;
        for start in callees.functions {
            self.call(number, FunctionStart::of(image, start));
        }
        for name in callees.imports {
            match self.code.first_import(image, &name) {
                Some(To::Function(place)) => self.call(number, place),
                Some(To::ChosenBy(chooser)) => {
                    for &place in self.code.choices(chooser).iter() {
                        self.call(number, place);
                    }
                }
                Some(To::Unknown) | None => is_unread = true,
            }
        }
        let node = &mut self.nodes[number as usize];
        node.calls_unknown |= callees.are_more;
        node.is_unread |= is_unread;
        if callees.are_more || is_unread {
            self.lead_anywhere(number);
        }
    }

    fn call(&mut self, caller: u32, place: FunctionStart) {
        let callee = self.number(place);
        self.connect(caller, callee);
    }

    fn lead_anywhere(&mut self, number: u32) {
        let mut open = vec![number];
        while let Some(number) = open.pop() {
            let node = &mut self.nodes[number as usize];
            if !node.leads_anywhere {
                node.leads_anywhere = true;
                open.extend_from_slice(&node.callers);
            }
        }
    }

    /// Reads some more functions, those near the outermost functions of stacks first.
    fn read_certain(&mut self) {
        self.left = CERTAIN;
        let mut number = 0;
        // What is read adds functions behind the last.
        while number < self.nodes.len() && self.left > 0 {
            if self.nodes[number].stage != Stage::Read {
                self.read(number as u32);
            }
            number += 1;
        }
    }

    fn finish(self) -> Followed {
        let mut followed = Followed::default();
        for (number, node) in (0..).zip(self.nodes) {
            followed.functions.push(FollowedFunction {
                image: node.place.image,
                start: node.place.start,
                calls_unknown: node.calls_unknown,
                is_unread: node.is_unread || node.stage != Stage::Read,
            });
            let in_code = node.callees.get(node.observed..).unwrap_or_default();
            let calls = in_code.iter().map(|&callee| (number, callee));
            followed.calls.extend(calls);
        }
        followed
    }
}
