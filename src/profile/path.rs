//! The tree of call paths.

use std::hash::{Hash, Hasher};

use crate::base::{IdVec, TreeRow, define_id};

use super::FunctionId;

define_id! {
    /// A row of [`Profile::paths`](super::Profile::paths).
    pub PathId
}

define_id! {
    /// A row of [`Profile::function_sets`](super::Profile::function_sets).
    pub FunctionSetId
}

/// A function as it was reached by one chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// The path of the caller; `None` for an outermost frame.
    pub caller: Option<PathId>,
    /// The function.
    pub function: FunctionId,
    /// Whether its code was inlined into the caller's.
    pub inlined: bool,
    /// Whether it was not recorded but restored from the code.
    pub inferred: bool,
    /// Whether frames are missing between it and its caller: both were on the stack, or at least a
    /// chain of frames leads from one to the other, but the caller called something else.
    pub across_gap: bool,
    /// Whether the caller calls through a pointer there: the function that this led to may have
    /// jumped on to this one.
    pub through_pointer: bool,
    /// Whether functions inlined into the caller may be missing between it and its caller, which
    /// was restored: it is not known which of several calls there was active.
    pub may_lack_inlined: bool,
    /// The functions of which some are missing there, if it is known that no others are.
    pub candidates: Option<FunctionSetId>,
}

impl CallPath {
    /// A function as it was recorded, called by this caller.
    pub fn of(caller: Option<PathId>, function: FunctionId) -> CallPath {
        CallPath {
            caller,
            function,
            inlined: false,
            inferred: false,
            across_gap: false,
            through_pointer: false,
            may_lack_inlined: false,
            candidates: None,
        }
    }
}

/// In two steps: field by field it is a tenth of the time to read a file.
impl Hash for CallPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let number = |index: Option<usize>| index.map_or(0, |index| index as u64 + 1);
        let caller = number(self.caller.map(PathId::index));
        state.write_u64(caller << 32 | self.function.index() as u64);
        let flags = [
            self.inlined,
            self.inferred,
            self.across_gap,
            self.through_pointer,
            self.may_lack_inlined,
        ];
        let flags = flags
            .into_iter()
            .fold(0, |all, flag| all << 1 | u64::from(flag));
        let candidates = number(self.candidates.map(FunctionSetId::index));
        state.write_u64(candidates << 32 | flags);
    }
}

impl TreeRow<PathId> for CallPath {
    fn parent(&self) -> Option<PathId> {
        self.caller
    }
}

/// All call paths. The caller of a path always has the smaller id, so a loop from the last row
/// to the first sees every callee before its caller, without recursion.
#[derive(Clone, Debug, Default)]
pub struct CallPaths {
    rows: IdVec<PathId, CallPath>,
    has_inferred: bool,
    has_gaps: bool,
    has_pointers: bool,
    may_lack_inlined: bool,
}

impl CallPaths {
    /// The number of paths.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether some were not recorded.
    pub fn has_inferred(&self) -> bool {
        self.has_inferred
    }

    /// Whether some have missing frames between them and their callers.
    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// Whether some were called through pointers.
    pub fn has_pointers(&self) -> bool {
        self.has_pointers
    }

    /// Whether some may have missing inlined functions between them and their callers.
    pub fn may_lack_inlined(&self) -> bool {
        self.may_lack_inlined
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
        let has_inferred = rows.iter().any(|path| path.inferred);
        let has_gaps = rows.iter().any(|path| path.across_gap);
        let has_pointers = rows.iter().any(|path| path.through_pointer);
        let may_lack_inlined = rows.iter().any(|path| path.may_lack_inlined);
        CallPaths {
            rows,
            has_inferred,
            has_gaps,
            has_pointers,
            may_lack_inlined,
        }
    }
}
