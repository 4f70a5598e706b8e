//! The call paths that samples reached, linked from callers to callees.
//!
//! A profile's paths know their callers; walking inwards needs the other direction.
//! Two links per path are enough, and no walk needs a stack:
//!
//! ```text
//!   main ─first▶ a ─next▶ b        outermost: main
//!                └first▶ c         Enter main, Enter a, Enter c, Leave c, Leave a, Enter b, …
//! ```

use super::{CallPaths, FunctionId, PathId, PathWeights, Profile};
use crate::base::IdVec;

/// The paths with samples, whole or from some function inwards.
#[derive(Clone, Debug)]
pub struct Links {
    first_callee: IdVec<PathId, Option<PathId>>,
    next: IdVec<PathId, Option<PathId>>,
    outermost: Option<PathId>,
    /// Where only a part is looked at: whether a path belongs to it.
    inside: Option<IdVec<PathId, bool>>,
}

/// A step of a walk.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// From the caller to this path.
    Enter(PathId),
    /// From this path back to its caller.
    Leave(PathId),
}

impl Links {
    /// Links all paths with samples.
    pub fn new(profile: &Profile, weights: &PathWeights) -> Links {
        Links::through(&profile.paths, |path| weights.is_taken(path))
    }

    /// Links the paths that pass; the callers of a path that passes have to pass, too.
    pub fn through(paths: &CallPaths, passes: impl Fn(PathId) -> bool) -> Links {
        Links::link(paths, passes, None)
    }

    /// Links those that begin where `function` stands outermost.
    pub fn within(profile: &Profile, weights: &PathWeights, function: FunctionId) -> Links {
        let mut inside = IdVec::filled(false, profile.paths.len());
        for (id, path) in profile.paths.enumerate() {
            inside[id] = path.function == function || path.caller.is_some_and(|c| inside[c]);
        }
        let taken = |path| weights.is_taken(path);
        Links::link(&profile.paths, taken, Some(inside))
    }

    fn link(
        paths: &CallPaths,
        passes: impl Fn(PathId) -> bool,
        inside: Option<IdVec<PathId, bool>>,
    ) -> Links {
        let mut links = Links {
            first_callee: IdVec::filled(None, paths.len()),
            next: IdVec::filled(None, paths.len()),
            outermost: None,
            inside,
        };
        for id in paths.ids().rev() {
            if links.holds(id) && passes(id) {
                let first = match links.caller(paths, id) {
                    Some(caller) => &mut links.first_callee[caller],
                    None => &mut links.outermost,
                };
                links.next[id] = first.replace(id);
            }
        }
        links
    }

    /// Whether a path belongs to what is looked at.
    pub fn holds(&self, path: PathId) -> bool {
        self.inside.as_ref().is_none_or(|inside| inside[path])
    }

    /// The caller of a path, as far as it belongs to what is looked at.
    pub fn caller(&self, paths: &CallPaths, path: PathId) -> Option<PathId> {
        paths[path].caller.filter(|&caller| self.holds(caller))
    }

    /// The paths without a caller.
    pub fn outermost(&self) -> impl Iterator<Item = PathId> {
        std::iter::successors(self.outermost, |&path| self.next[path])
    }

    /// The paths that are called from this one.
    pub fn callees(&self, path: PathId) -> impl Iterator<Item = PathId> {
        std::iter::successors(self.first_callee[path], |&path| self.next[path])
    }

    /// Enters each path after its caller and leaves it after its callees.
    pub fn walk(&self, paths: &CallPaths, mut visit: impl FnMut(Step)) {
        let mut at = self.outermost;
        while let Some(mut path) = at {
            visit(Step::Enter(path));
            at = self.first_callee[path];
            while at.is_none() {
                visit(Step::Leave(path));
                at = self.next[path];
                match self.caller(paths, path) {
                    Some(caller) if at.is_none() => path = caller,
                    _ => break,
                }
            }
        }
    }
}
