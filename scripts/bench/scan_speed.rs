//! scan_speed FILE [WORKERS]: what finding calls costs beside decoding alone.
//!
//! Prints megabytes of code, and seconds for: decoding every instruction of every function with
//! iced-x86 on one processor, and nothing else; finding the calls, on WORKERS processors (1).
//! Opening the file is in neither.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use iced_x86::{Decoder, DecoderOptions, Instruction};
use proftool::binary::Binary;
use proftool::scan;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let path = args.next().ok_or("usage: scan_speed FILE [WORKERS]")?;
    let workers = match args.next() {
        Some(workers) => workers.to_string_lossy().parse()?,
        None => NonZeroUsize::MIN,
    };
    let binary = Binary::open(Path::new(&path))?;
    let code = binary.code()?;
    let stretches = binary.stretches();

    let ((bytes, instructions), bare) = timed(|| {
        let (mut bytes, mut instructions) = (0, 0u64);
        let mut instruction = Instruction::default();
        for stretch in &stretches {
            let code = code.bytes(stretch.start, stretch.end);
            let mut decoder = Decoder::with_ip(64, code, stretch.start.0, DecoderOptions::NONE);
            while decoder.can_decode() {
                decoder.decode_out(&mut instruction);
                instructions += 1;
            }
            black_box(&instruction);
            bytes += code.len();
        }
        (bytes, instructions)
    });
    let (calls, scan) = timed(|| scan::calls(&binary, Some(workers)));
    println!(
        "{:.1} MB, {instructions} instructions; iced-x86 {:.3} s, scan {:.3} s for {} calls",
        bytes as f64 / 1e6,
        bare.as_secs_f64(),
        scan.as_secs_f64(),
        calls?.sites.len()
    );
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}
