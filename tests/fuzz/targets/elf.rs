//! Any bytes as a program file: its functions, their names, and lines, inlined calls and Go's growth
//! of the stack at their starts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proftool::base::Svma;
use proftool::binary::{Binary, demangle};

/// Functions whose names and lines are looked up: enough to find a fault, few enough to be quick.
const LOOKED_UP: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(binary) = Binary::from_bytes(bytes.to_vec()) else {
        return;
    };
    let functions = binary.functions();
    assert!(functions.is_sorted_by(|a, b| a.start < b.start));
    let lines = binary.lines();
    let go = binary.go_frames();
    let mut frames = Vec::new();
    for function in functions.iter().take(LOOKED_UP) {
        if let Some(name) = binary.function_name(function) {
            let _ = demangle(&name);
        }
        let _ = go.as_ref().and_then(|go| go.at(function.start));
        let found = binary.function_at(function.start);
        if function.size > 0 {
            assert_eq!(found.map(|found| found.start), Some(function.start));
        }
        lines.frames(function.start, &mut frames);
        lines.frames(
            Svma(function.start.0.wrapping_add(function.size / 2)),
            &mut frames,
        );
    }
    for address in [0, 1, u64::MAX] {
        let _ = binary.function_at(Svma(address));
        lines.frames(Svma(address), &mut frames);
    }
    let _ = binary.problems();
});
