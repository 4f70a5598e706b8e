//! Any text as a linkage name: demangled in bounded time and space.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proftool::binary::demangle;

/// No readable name is longer.
const NAME_MAX: usize = 1 << 16;

fuzz_target!(|name: &str| {
    let readable = demangle(name);
    assert!(
        readable.len() <= NAME_MAX.max(name.len()),
        "{}",
        readable.len()
    );
});
