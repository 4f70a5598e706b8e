//! Places: call paths with the source lines from which the calls on them were made.

use crate::base::{IdVec, TreeRow, define_id};

use super::{LineId, PathId};

define_id! {
    /// A row of [`Places::addresses`].
    pub AddressId
}

define_id! {
    /// A row of [`Places::tree`].
    pub PlaceId
}

/// A call path as it was reached by calls from known lines. The path of its caller is the caller
/// of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The place of the caller; `None` for an outermost frame.
    pub caller: Option<PlaceId>,
    /// The call path.
    pub path: PathId,
    /// The line of the caller from which the call was made, where it is known; for inlined code,
    /// the line of the inlined call.
    pub line: Option<LineId>,
    /// The address at which the function was executing, where addresses were asked for: of the
    /// sample itself, or inside of the call instruction. Inlined calls share it with the function
    /// around them.
    pub address: Option<AddressId>,
}

impl TreeRow<PlaceId> for Place {
    fn parent(&self) -> Option<PlaceId> {
        self.caller
    }
}

/// The source lines of calls, in addition to the call paths, which do not distinguish them.
///
/// ```text
///   parse ◀─12─ lex ◀─40─ read        two places, one call path: parse ◀─ lex ◀─ read
///         ◀─19─ lex ◀─40─ read
/// ```
#[derive(Clone, Debug, Default)]
pub struct Places {
    tree: IdVec<PlaceId, Place>,
    of_samples: Vec<Option<PlaceId>>,
    addresses: IdVec<AddressId, u64>,
}

impl Places {
    /// `of_samples` has the place of each row of [`Profile::samples`](super::Profile::samples). In
    /// `tree` a caller comes before what it calls.
    pub(super) fn new(
        tree: IdVec<PlaceId, Place>,
        of_samples: Vec<Option<PlaceId>>,
        addresses: IdVec<AddressId, u64>,
    ) -> Places {
        Places {
            tree,
            of_samples,
            addresses,
        }
    }

    /// Returns the tree of places: the caller of a place always has the smaller id.
    pub fn tree(&self) -> &IdVec<PlaceId, Place> {
        &self.tree
    }

    /// Returns the stated addresses of machine code, each once; there are none where they were not
    /// asked for.
    pub fn addresses(&self) -> &IdVec<AddressId, u64> {
        &self.addresses
    }

    /// The place of a row of the profile's samples.
    pub fn of_sample(&self, row: usize) -> Option<PlaceId> {
        self.of_samples.get(row).copied().flatten()
    }
}
