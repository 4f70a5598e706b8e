//! A command that works for about a second.

/// Works for a second or so.
pub const WORK: &str = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done";
