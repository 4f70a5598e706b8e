//! Where control may go from a function that was called, as long as the stack stays as it was
//! recorded.
//!
//! ```text
//!   recorded      outside ─▶ next              the call in outside is one of work
//!
//!   (work, no owner) ─jump─▶ (f, no owner) ─call─▶ (leaf, behind f) ─jump─▶ (g, behind f) ─▶ …
//!                                   └ has its frame at the call: f owns what the frame pointer points to
//! ```
//!
//! A called function either leaves by a jump, which replaces it by another function, or it calls.
//! The first one that calls must have set up its frame: it is the owner of the frame with whose
//! return address the chain of frame pointers continues. (Without a frame of its own, the chain
//! would have shown its return address.) After the owner, functions call without a frame of their
//! own, or jump. (With one, the chain would have shown their return address.)

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::code::CodeReader;
use super::frames::Frames;
use super::function_exits::{FunctionStart, To};

/// A function, and whether it runs behind the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) function: FunctionStart,
    pub(super) is_behind: bool,
}

/// Where a step leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// To the node of this index.
    Node(usize),
    /// By this name to a function that is not followed: the stub of the name, this function if it
    /// is certain, or whatever it calls.
    Named {
        name: Rc<str>,
        to: Option<FunctionStart>,
        /// Whether it is followed by steps to nodes as well.
        is_followed: bool,
    },
    /// Anywhere.
    Unknown,
}

/// A call or jump, or all of one function's to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) to: End,
    /// Whether what it leads to runs behind the owner.
    pub(super) is_behind: bool,
    pub(super) is_call: bool,
    /// Whether a jump keeps the frame of the function for the next one, as only parts of one
    /// function do.
    pub(super) keeps_frame: bool,
    /// The stated addresses behind the calls or jumps.
    pub(super) sites: Rc<[u64]>,
}

/// All ways from a function that was called.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// The first is the function that was called.
    pub(super) nodes: Vec<Node>,
    /// The steps from each.
    pub(super) steps: Vec<Vec<Step>>,
}

/// More functions are not looked at.
const FUNCTIONS: usize = 256;
/// A function of another file is followed if it leads to no more functions of that file.
const SMALL: usize = 24;
/// More functions are not chosen from.
const CHOICES: usize = 32;

/// Finds ways, each once.
pub(super) struct Finder {
    known: FxHashMap<(FunctionStart, bool), Option<Rc<Ways>>>,
    small: FxHashMap<FunctionStart, bool>,
    /// How many calls and jumps may still be looked at.
    fuel: usize,
}

/// How many calls and jumps are looked at in all.
const FUEL: usize = 1 << 24;

impl Finder {
    pub(super) fn new() -> Finder {
        Finder {
            known: FxHashMap::default(),
            small: FxHashMap::default(),
            fuel: FUEL,
        }
    }

    /// The ways from a function; `by_jumps_only` those without calls. `None` if there are too many,
    /// or code cannot be read.
    pub(super) fn ways(
        &mut self,
        from: FunctionStart,
        by_jumps_only: bool,
        code: &mut CodeReader,
        frames: &mut Frames,
    ) -> Option<Rc<Ways>> {
        if let Some(known) = self.known.get(&(from, by_jumps_only)) {
            return known.clone();
        }
        let mut search = Search {
            ways: Ways::default(),
            ids: FxHashMap::default(),
            by_jumps_only,
        };
        let found = search
            .all(from, self, code, frames)
            .map(|()| Rc::new(search.ways));
        self.known.insert((from, by_jumps_only), found.clone());
        found
    }

    /// Whether a function leads to few functions of its file.
    fn is_small(&mut self, function: FunctionStart, code: &mut CodeReader) -> bool {
        if let Some(&known) = self.small.get(&function) {
            return known;
        }
        let mut seen = vec![function];
        let mut at = 0;
        while let Some(&place) = seen.get(at).filter(|_| seen.len() <= SMALL) {
            at += 1;
            let Some(code) = code.function(place).filter(|code| code.is_complete) else {
                seen.resize(SMALL + 1, function);
                break;
            };
            for out in &code.ways_out {
                self.fuel = self.fuel.saturating_sub(1);
                match out.to {
                    To::Function(to) if to.image == place.image && !seen.contains(&to) => {
                        seen.push(to);
                    }
                    _ => {}
                }
            }
        }
        let is_small = seen.len() <= SMALL;
        self.small.insert(function, is_small);
        is_small
    }
}

struct Search {
    ways: Ways,
    ids: FxHashMap<Node, usize>,
    by_jumps_only: bool,
}

impl Search {
    fn all(
        &mut self,
        from: FunctionStart,
        finder: &mut Finder,
        code: &mut CodeReader,
        frames: &mut Frames,
    ) -> Option<()> {
        self.id(Node {
            function: from,
            is_behind: false,
        });
        let mut at = 0;
        while let Some(&node) = self.ways.nodes.get(at) {
            let steps = self.steps_of(node, finder, code, frames)?;
            self.ways.steps.push(steps);
            if self.ways.nodes.len() > FUNCTIONS || finder.fuel == 0 {
                return None;
            }
            at += 1;
        }
        Some(())
    }

    fn id(&mut self, node: Node) -> usize {
        let nodes = &mut self.ways.nodes;
        *self.ids.entry(node).or_insert_with(|| {
            nodes.push(node);
            nodes.len() - 1
        })
    }

    fn steps_of(
        &mut self,
        node: Node,
        finder: &mut Finder,
        code: &mut CodeReader,
        frames: &mut Frames,
    ) -> Option<Vec<Step>> {
        let Node {
            function,
            is_behind,
        } = node;
        let read = code.function(function)?;
        if !read.is_complete {
            return None;
        }
        let mut steps = Vec::new();
        for out in &read.ways_out {
            if out.is_call && self.by_jumps_only {
                continue;
            }
            finder.fuel = finder.fuel.saturating_sub(out.sites.len());
            let mut sites = Vec::new();
            let mut keeps_frame = false;
            for site in &out.sites {
                let has_frame = frames.has_frame(function.image, site.at);
                // The owner calls with its frame, those behind it without.
                let is_possible = !out.is_call || has_frame != Some(is_behind);
                if is_possible {
                    sites.push(site.end);
                }
                keeps_frame |= !out.is_call && has_frame != Some(false);
            }
            if sites.is_empty() {
                continue;
            }
            let step = Step {
                to: End::Unknown,
                is_behind: is_behind || out.is_call,
                is_call: out.is_call,
                keeps_frame,
                sites: sites.into(),
            };
            self.add(
                &step,
                (out.to, out.name.as_ref()),
                function,
                finder,
                code,
                &mut steps,
            );
        }
        Some(steps)
    }

    /// Adds the steps to where a function is left for.
    fn add(
        &mut self,
        step: &Step,
        (to, name): (To, Option<&Rc<str>>),
        from: FunctionStart,
        finder: &mut Finder,
        code: &mut CodeReader,
        steps: &mut Vec<Step>,
    ) {
        let mut followed: Vec<FunctionStart> = Vec::new();
        let mut only = None;
        // A mapped file that could not be read, or a second one that defines the name, may be what
        // the dynamic linker chose. Then no definition is followed.
        let is_certain = name.is_none_or(|name| code.is_certain_import(name));
        match to {
            To::Function(place) if name.is_none() && place.image == from.image => {
                followed.push(place);
            }
            To::Function(place) if is_certain => {
                only = Some(place);
                if finder.is_small(place, code) {
                    followed.push(place);
                }
            }
            To::ChosenBy(chooser) if is_certain => {
                let choices = code.choices(chooser);
                if choices.len() <= CHOICES {
                    followed.extend(choices.iter());
                }
            }
            To::Function(_) | To::ChosenBy(_) | To::Unknown => {}
        }
        let is_followed = !followed.is_empty();
        for function in followed {
            let is_behind = step.is_behind;
            let to = self.id(Node {
                function,
                is_behind,
            });
            steps.push(Step {
                to: End::Node(to),
                ..step.clone()
            });
        }
        let named = name.map(|name| End::Named {
            name: name.clone(),
            to: only,
            is_followed,
        });
        let unknown = (!is_followed).then_some(End::Unknown);
        steps.extend(named.or(unknown).map(|to| Step { to, ..step.clone() }));
    }
}
