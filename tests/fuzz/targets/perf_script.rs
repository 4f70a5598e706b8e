//! Any bytes as the text of perf script: read in bounded time and memory, and with the same total after each way out
//! and in again.

#![no_main]

mod readers;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| readers::check(bytes));
