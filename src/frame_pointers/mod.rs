//! Frame pointers: which functions keep one, and whether that is enough to record call stacks.
//!
//! ```text
//!   Binary ─▶ functions: how many keep one, do not keep one, do not need one
//!                 │  of the program and each of its libraries
//!                 ▼
//!              verdict: can the kernel find the callers of this program?
//! ```
//!
//! It decodes instructions as [`scan`](crate::scan) does, but for another question. It needs the
//! calls only to see which libraries a small program calls, since those do its work.

mod functions;
pub mod verdict;

pub use functions::{FramePointers, frame_pointers};
