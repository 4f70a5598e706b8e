//! The tree of distinct stacks.

use rustc_hash::FxHashMap;

use crate::base::{Id, IdVec, define_id};

use super::FrameId;

define_id! {
    /// A row of [`Trace::paths`](super::Trace::paths).
    pub AddressPathId
}

/// A frame under the frames that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPath {
    /// The path of the caller; `None` for an outermost frame.
    pub caller: Option<AddressPathId>,
    /// The frame.
    pub frame: FrameId,
}

/// All distinct stacks; the caller of a path always has the smaller id.
#[derive(Clone, Debug, Default)]
pub struct AddressPaths {
    rows: IdVec<AddressPathId, AddressPath>,
    /// (caller + 1, frame) in one word.
    ids: FxHashMap<u64, AddressPathId>,
}

impl AddressPaths {
    /// The path on which `caller` calls `frame`.
    pub(super) fn child(&mut self, caller: Option<AddressPathId>, frame: FrameId) -> AddressPathId {
        let above = caller.map_or(0, |c| c.index() as u64 + 1);
        let key = above << 32 | frame.index() as u64;
        *self
            .ids
            .entry(key)
            .or_insert_with(|| self.rows.push(AddressPath { caller, frame }))
    }

    /// Gives back the memory that only adding needs.
    pub(super) fn finish(&mut self) {
        self.ids = FxHashMap::default();
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Ids and paths, callers before callees.
    pub fn enumerate(
        &self,
    ) -> impl DoubleEndedIterator<Item = (AddressPathId, &AddressPath)> + ExactSizeIterator {
        self.rows.enumerate()
    }
}

impl std::ops::Index<AddressPathId> for AddressPaths {
    type Output = AddressPath;
    fn index(&self, id: AddressPathId) -> &AddressPath {
        &self.rows[id]
    }
}
