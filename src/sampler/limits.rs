//! The kernel's settings that limit recording.

use std::fs;
use std::str::FromStr;

/// `kernel.perf_event_paranoid`: what those without privilege may do; 2 user space, 1 the kernel
/// too, 0 whole processors, -1 everything; some distributions have 3 and 4: nothing.
pub(super) fn paranoid() -> Option<i32> {
    setting("/proc/sys/kernel/perf_event_paranoid")
}

/// `kernel.perf_event_max_stack`: how many frames of a call chain the kernel keeps at most.
pub(super) fn max_stack() -> Option<u16> {
    setting("/proc/sys/kernel/perf_event_max_stack")
}

pub(super) fn setting<T: FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
