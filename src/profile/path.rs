//! The tree of call paths.

use crate::base::{IdVec, define_id};

use super::FunctionId;

define_id! {
    /// A row of [`Profile::paths`](super::Profile::paths).
    pub PathId
}

/// A function as it was reached by one chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallPath {
    /// The path of the caller; `None` for an outermost frame.
    pub caller: Option<PathId>,
    /// The function.
    pub function: FunctionId,
    /// Whether its code was inlined into the caller's.
    pub inlined: bool,
}

/// All call paths. The caller of a path always has the smaller id, so a loop from the last row
/// to the first sees every callee before its caller, without recursion.
#[derive(Clone, Debug, Default)]
pub struct CallPaths {
    rows: IdVec<PathId, CallPath>,
}

impl CallPaths {
    /// The number of paths.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The ids, callers before callees.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = PathId> + ExactSizeIterator + use<> {
        self.rows.ids()
    }

    /// Ids and paths, callers before callees.
    pub fn enumerate(
        &self,
    ) -> impl DoubleEndedIterator<Item = (PathId, &CallPath)> + ExactSizeIterator {
        self.rows.enumerate()
    }

    /// The frames of a path from the innermost outwards.
    pub fn outwards(&self, path: PathId) -> impl Iterator<Item = &CallPath> {
        std::iter::successors(Some(&self.rows[path]), |p| p.caller.map(|c| &self.rows[c]))
    }
}

/// A step of a [walk](CallPaths::walk) through the tree of call paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// From the caller to this path.
    Enter(PathId),
    /// From this path back to its caller.
    Leave(PathId),
}

impl CallPaths {
    /// Walks through the paths that `enters` lets pass, with all that is below them, each entered
    /// after its caller and left after its callees. A path whose caller is not entered is not
    /// entered either. Needs no stack: a path knows its caller.
    pub fn walk(&self, enters: impl Fn(PathId) -> bool, mut visit: impl FnMut(Step)) {
        let mut first_callee: IdVec<PathId, Option<PathId>> = IdVec::filled(None, self.len());
        let mut next: IdVec<PathId, Option<PathId>> = IdVec::filled(None, self.len());
        let mut first_root = None;
        for (id, path) in self.enumerate().rev() {
            if enters(id) {
                let first = match path.caller {
                    Some(caller) => &mut first_callee[caller],
                    None => &mut first_root,
                };
                next[id] = first.replace(id);
            }
        }
        let mut at = first_root;
        while let Some(mut path) = at {
            visit(Step::Enter(path));
            at = first_callee[path];
            while at.is_none() {
                visit(Step::Leave(path));
                at = next[path];
                match self.rows[path].caller {
                    Some(caller) if at.is_none() => path = caller,
                    _ => break,
                }
            }
        }
    }
}

impl std::ops::Index<PathId> for CallPaths {
    type Output = CallPath;
    fn index(&self, id: PathId) -> &CallPath {
        &self.rows[id]
    }
}

impl From<IdVec<PathId, CallPath>> for CallPaths {
    /// Paths in an order that has callers before callees.
    fn from(rows: IdVec<PathId, CallPath>) -> CallPaths {
        debug_assert!(
            rows.enumerate()
                .all(|(id, path)| path.caller.is_none_or(|caller| caller < id))
        );
        CallPaths { rows }
    }
}
