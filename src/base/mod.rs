//! The types that several rooms share: addresses, ids, names, events and caveats; and threads,
//! with maps over items by several of them.
//!
//! `base` imports no other room, and knows neither Linux formats nor call graphs. A type is here if
//! rooms of both wings need it.

mod address;
mod build_id;
mod caveat;
mod counted;
mod distinct;
mod distinct_tree;
mod event;
mod file_identity;
mod generated;
mod id;
mod interner;
mod language;
mod lists;
mod marks;
pub(crate) mod parallel;
mod periods;
mod runtime;
mod slice_sums;
mod text;
mod weight_sum;
pub mod workers;

pub use address::{Avma, CallerBy, CodeAddress, FileOffset, Svma};
pub use build_id::BuildId;
pub use caveat::{About, Caveat, CaveatKind, Caveats, Detail, Remedy};
pub use counted::{Counted, Counting};
pub use distinct::Distinct;
pub use distinct_tree::{DistinctTree, TreeRow};
pub use event::{Event, Sampling, Unit};
pub use file_identity::{FileContent, FileId, FileStatus};
pub use generated::GeneratedCode;
pub use id::{Id, IdVec, define_id};
pub use interner::{Interner, NameId};
pub use language::Language;
pub use lists::Lists;
pub use marks::{
    BLOCKED_BEFORE, BROKEN, FRAMES_MISSING, KERNEL, NO_ADDRESS, NO_SWITCH_STACK, OUTSIDE, SELDOM,
    Standing, TRUNCATED, UNKNOWN, is_mark, placeholder,
};
pub use periods::{OutlyingPeriods, Periods};
pub use runtime::Runtime;
pub use slice_sums::{SliceSum, SliceSums, SmallSum};
pub use text::{grouped, is_unsafe_char, printable, shell_quoted, system_reason, utf8};
pub use weight_sum::WeightSum;
