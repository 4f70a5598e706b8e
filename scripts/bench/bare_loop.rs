//! bare_loop FILE: the least work that reading a recording can be, to measure readers against.
//!
//! Reads a perf.data file of the usual kind (not piped, not compressed, this machine's byte order)
//! in one pass, walks the headers of its records, and hashes the bytes of every sample. Prints the
//! numbers of records and samples, and the hash.
//!
//! ```text
//! file header, in 64-bit words          record header
//!   0 magic "PERFILE2"                    u32 type    9: a sample
//!   1 size of this header                 u16 misc
//!   2 size of an attr                     u16 size    with this header
//!   3, 4 attrs: offset, size
//!   5, 6 data: offset, size
//! ```

#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Seek, SeekFrom};

const SAMPLE: u32 = 9;

fn main() -> Result<(), Error> {
    let path = std::env::args_os().nth(1);
    let path = path.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "usage: bare_loop FILE"))?;
    let mut file = File::open(path)?;

    let mut header = [0u8; 56];
    file.read_exact(&mut header)?;
    let word = |at: usize| {
        let bytes = header.iter().skip(at * 8).take(8);
        bytes
            .rev()
            .fold(0u64, |word, byte| word << 8 | u64::from(*byte))
    };
    if !header.starts_with(b"PERFILE2") {
        return Err(Error::new(ErrorKind::InvalidData, "no perf.data file"));
    }
    file.seek(SeekFrom::Start(word(5)))?;
    let mut data = BufReader::with_capacity(1 << 20, file.take(word(6)));

    let (mut records, mut samples, mut hash) = (0u64, 0u64, 0u64);
    let mut record_header = [0u8; 8];
    let mut body = vec![0u8; 1 << 16];
    while data.read_exact(&mut record_header).is_ok() {
        let [t0, t1, t2, t3, _, _, s0, s1] = record_header;
        let size = usize::from(u16::from_le_bytes([s0, s1]));
        let body = &mut body[..size.saturating_sub(8)];
        data.read_exact(body)?;
        records += 1;
        if u32::from_le_bytes([t0, t1, t2, t3]) == SAMPLE {
            samples += 1;
            for chunk in body.chunks_exact(8) {
                let word = chunk
                    .iter()
                    .rev()
                    .fold(0u64, |word, byte| word << 8 | u64::from(*byte));
                hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
            }
        }
    }
    println!("{records} records, {samples} samples, {hash:016x}");
    Ok(())
}
