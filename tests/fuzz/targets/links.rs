//! Any bytes as a program, its debug file and the supplement of that: found by what they name each
//! other, read together.
//!
//! ```text
//!   u32 bytes of the program
//!   u32 bytes of the debug file       `d.debug` beside the program
//!   the program, the debug file, and the rest: `d.alt`
//! ```

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use proftool::base::Svma;
use proftool::binary::Finder;

/// Functions whose names and lines are looked up.
const LOOKED_UP: usize = 64;

/// What stands for `/`. Left behind at the end, as libFuzzer ends without an unwind.
static ROOT: LazyLock<std::path::PathBuf> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("links-{}", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    root
});

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    let length = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap()) as usize;
    let (program, rest) = rest.split_at(length(0).min(rest.len()));
    let (debug, supplement) = rest.split_at(length(4).min(rest.len()));
    for (name, bytes) in [("p", program), ("d.debug", debug), ("d.alt", supplement)] {
        fs::write(ROOT.join(name), bytes).unwrap();
    }
    // A finder for each, as it remembers files.
    let finder = Finder::new(Some(&ROOT));
    let Ok(binary) = finder.find(Path::new("/p"), None) else {
        return;
    };
    let lines = binary.lines();
    let mut frames = Vec::new();
    for function in binary.functions().iter().take(LOOKED_UP) {
        let _ = binary.function_name(function);
        lines.frames(function.start, &mut frames);
        lines.frames(
            Svma(function.start.0.wrapping_add(function.size / 2)),
            &mut frames,
        );
    }
    let _ = binary.diagnosis();
    let _ = binary.problems();
});
