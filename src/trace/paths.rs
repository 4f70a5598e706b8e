//! The tree of distinct stacks.

use crate::base::{DistinctTree, IdVec, TreeRow, define_id};

use super::FrameId;

define_id! {
    /// A row of [`Trace::paths`](super::Trace::paths).
    pub AddressPathId
}

/// A frame under the frames that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressPath {
    /// The path of the caller, which always has the smaller id; `None` for an outermost frame.
    pub caller: Option<AddressPathId>,
    pub frame: FrameId,
}

impl TreeRow<AddressPathId> for AddressPath {
    fn parent(&self) -> Option<AddressPathId> {
        self.caller
    }
}

/// All distinct stacks, callers before callees.
pub type AddressPaths = IdVec<AddressPathId, AddressPath>;

/// Distinct stacks while they are collected.
pub(super) type DistinctPaths = DistinctTree<AddressPathId, AddressPath>;
