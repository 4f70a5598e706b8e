//! Where control may go from a function that was called, as long as the stack stays as it was
//! recorded.
//!
//! ```text
//!   recorded      outside ─▶ next              the call in outside is one of work
//!
//!   (work, no owner) ─jump─▶ (f, no owner) ─call─▶ (leaf, behind f) ─jump─▶ (g, behind f) ─▶ …
//!                                   └ has its frame at the call: f is the owner
//! ```
//!
//! A called function either leaves by a jump, which replaces it by another function, or it calls.
//! The first one that calls must have set up its frame: it is the owner of the frame with whose
//! return address the chain of frame pointers continues. (Without a frame of its own, the chain
//! would have shown its return address.) After the owner, functions call without a frame of their
//! own, or jump. (With one, the chain would have shown their return address.)

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::code::Code;
use super::function_exits::{FunctionStart, To, WayOut};
use super::memo::Memo;

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
        is_followed: bool,
    },
    /// Anywhere.
    Unknown,
}

/// A call or jump, or all of one function's to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) to: End,
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
    pub(super) steps: Vec<Vec<Step>>,
}

// More functions are not looked at.
const FUNCTIONS: usize = 256;
// A function of another file is followed if it leads to no more functions of that file.
const SMALL: usize = 24;
// More functions are not chosen from.
const CHOICES: usize = 32;

/// Finds ways, each once.
pub(super) struct Finder<'c, 'h> {
    code: &'c Code<'h>,
    known: Memo<(FunctionStart, bool), Option<Rc<Ways>>>,
    small: Memo<FunctionStart, bool>,
    /// How many calls and jumps may still be looked at.
    fuel: Cell<usize>,
}

// How many calls and jumps are looked at in all.
const FUEL: usize = 1 << 24;

impl<'c, 'h> Finder<'c, 'h> {
    pub(super) fn new(code: &'c Code<'h>) -> Finder<'c, 'h> {
        Finder {
            code,
            known: Memo::default(),
            small: Memo::default(),
            fuel: Cell::new(FUEL),
        }
    }

    /// The ways from a function; `by_jumps_only` those without calls. `None` if there are too many,
    /// or code cannot be read.
    pub(super) fn ways(&self, from: FunctionStart, by_jumps_only: bool) -> Option<Rc<Ways>> {
        self.known.get(&(from, by_jumps_only), || {
            let mut search = Search {
                finder: self,
                ways: Ways::default(),
                ids: FxHashMap::default(),
                by_jumps_only,
            };
            search.all(from)?;
            Some(Rc::new(search.ways))
        })
    }

    fn burn(&self, fuel: usize) {
        self.fuel.set(self.fuel.get().saturating_sub(fuel));
    }

    fn is_small(&self, function: FunctionStart) -> bool {
        self.small.get(&function, || {
            let mut seen = vec![function];
            let mut at = 0;
            while let Some(&place) = seen.get(at) {
                at += 1;
                let Some(code) = self.code.function(place).filter(|code| code.is_complete) else {
                    return false;
                };
                self.burn(code.ways_out.len());
                for out in &code.ways_out {
                    match out.to {
                        To::Function(to) if to.image == place.image && !seen.contains(&to) => {
                            seen.push(to);
                        }
                        _ => {}
                    }
                }
                if seen.len() > SMALL {
                    return false;
                }
            }
            true
        })
    }
}

struct Search<'f, 'c, 'h> {
    finder: &'f Finder<'c, 'h>,
    ways: Ways,
    ids: FxHashMap<Node, usize>,
    by_jumps_only: bool,
}

impl Search<'_, '_, '_> {
    fn all(&mut self, from: FunctionStart) -> Option<()> {
        self.id(Node {
            function: from,
            is_behind: false,
        });
        let mut at = 0;
        while let Some(&node) = self.ways.nodes.get(at) {
            let steps = self.steps_of(node)?;
            self.ways.steps.push(steps);
            if self.ways.nodes.len() > FUNCTIONS || self.finder.fuel.get() == 0 {
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

    fn steps_of(&mut self, node: Node) -> Option<Vec<Step>> {
        let Node {
            function,
            is_behind,
        } = node;
        let code = self.finder.code;
        let read = code.function(function).filter(|read| read.is_complete)?;
        let mut steps = Vec::new();
        for out in &read.ways_out {
            if out.is_call && self.by_jumps_only {
                continue;
            }
            self.finder.burn(out.sites.len());
            let mut sites = Vec::new();
            let mut keeps_frame = false;
            for site in &out.sites {
                let has_frame = code.frames.has_frame(function.image, site.at);
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
            self.add(&step, out, function, &mut steps);
        }
        Some(steps)
    }

    fn add(&mut self, step: &Step, out: &WayOut, from: FunctionStart, steps: &mut Vec<Step>) {
        let Finder { code, .. } = self.finder;
        let name = out.name.as_ref();
        let mut followed: Vec<FunctionStart> = Vec::new();
        let mut only = None;
        // A mapped file that could not be read, or a second one that defines the name, may be what
        // the dynamic linker chose. Then no definition is followed.
        let is_certain = name.is_none_or(|name| code.is_certain_import(name));
        match out.to {
            To::Function(place) if name.is_none() && place.image == from.image => {
                followed.push(place);
            }
            To::Function(place) if is_certain => {
                only = Some(place);
                if self.finder.is_small(place) {
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
