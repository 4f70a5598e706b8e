//! Events: their names as a person writes them, and the attrs that the kernel gets.
//!
//! ```text
//!   "cycles:u", "{cs,faults}:S" ─▶ event_list ─▶ event ─▶ EventSpec ─▶ attr ─▶ perf_event_attr
//!                                                 │ modifiers             ▲
//!                                                 └ pmu, tracepoint       └ stacks, rate
//! ```
//!
//! Nothing here opens an event. That takes a target and ring buffers, which an event knows nothing
//! about.

pub(super) mod attr;
pub(super) mod error;
pub(super) mod event;
pub(super) mod event_list;
pub(super) mod modifiers;
mod pmu;
pub(super) mod rate;
pub(super) mod stacks;
pub(super) mod tracepoint;
