//! scan_speed FILE [WORKERS]: what finding calls costs beside decoding alone.
//!
//! Prints megabytes of code, and seconds of processor time for decoding every instruction of every
//! function with iced-x86 and nothing else, and for finding the calls on one processor; on WORKERS
//! processors, above 1, seconds that pass. Opening the file is in neither.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

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
    let mut stretches = Vec::new();
    for stretch in binary.stretches() {
        let mut bytes = Vec::new();
        if let Some(piece) = code.piece(stretch.start, stretch.end) {
            code.read(piece, &mut bytes)?;
        }
        stretches.push((stretch.start, bytes));
    }

    let began = processor_time()?;
    let (mut bytes, mut instructions) = (0, 0u64);
    let mut instruction = Instruction::default();
    for (start, code) in &stretches {
        let mut decoder = Decoder::with_ip(64, code, start.0, DecoderOptions::NONE);
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            instructions += 1;
        }
        black_box(&instruction);
        bytes += code.len();
    }
    let bare = processor_time()? - began;
    drop(stretches);

    let (began, clock) = (processor_time()?, Instant::now());
    let calls = scan::calls(&binary, Some(workers))?;
    let scan = if workers == NonZeroUsize::MIN {
        processor_time()? - began
    } else {
        clock.elapsed().as_secs_f64()
    };
    println!(
        "{:.6} {:.6} {:.6}  megabytes; seconds: iced-x86, scan; {instructions} instructions, {} calls",
        bytes as f64 / 1e6,
        bare,
        scan,
        calls.sites.len()
    );
    Ok(())
}

/// Seconds of processor time of this thread: `/proc/thread-self/schedstat` begins with nanoseconds.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = told.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}
