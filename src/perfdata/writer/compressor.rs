//! Records within COMPRESSED records: one zstd stream for the whole file.
//!
//! ```c
//! struct { struct perf_event_header; char zstd[]; };
//! ```
//!
//! The stream is flushed after each portion of records, so that a reader has all that was written
//! so far; its frame is never ended. A record of the kernel may begin in one COMPRESSED record and
//! end in the next.

use std::fmt;
use std::io;

use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

const COMPRESSED: u32 = 81;
const HEADER_SIZE: usize = 8;
// A record tells its size in 16 bits.
const RECORD_MAX: usize = u16::MAX as usize;

pub(super) struct Compressor {
    stream: CCtx<'static>,
    level: u8,
    record: Vec<u8>,
    taken: u64,
    given: u64,
}

impl Compressor {
    // The most bytes that become of one COMPRESSED record again. The file tells it, since some
    // readers reserve as much for each.
    pub(super) const BLOCK: usize = 1 << 20;
    // After how many bytes the stream is flushed at the latest. It is less than a block: a reader
    // that has just filled what it has reserved cannot tell whether there is more.
    const PORTION: usize = Compressor::BLOCK / 2;

    pub(super) fn new(level: u8) -> io::Result<Compressor> {
        let mut stream = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        stream
            .set_parameter(CParameter::CompressionLevel(i32::from(level)))
            .map_err(refused)?;
        Ok(Compressor {
            stream,
            level,
            record: vec![0; RECORD_MAX],
            taken: 0,
            given: 0,
        })
    }

    pub(super) fn level(&self) -> u8 {
        self.level
    }

    pub(super) fn sizes(&self) -> (u64, u64) {
        (self.taken, self.given)
    }

    /// The most bytes of COMPRESSED records that become of this many, headers included.
    pub(super) fn most_written(bytes: u64) -> u64 {
        // zstd adds a 256th to what it cannot compress and three bytes to each block; each flush
        // ends a block, and each portion ends a COMPRESSED record.
        bytes + bytes / 128 + 64 * (1 + bytes / (RECORD_MAX - HEADER_SIZE) as u64)
    }

    pub(super) fn compress(
        &mut self,
        records: &[u8],
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        for portion in records.chunks(Compressor::PORTION) {
            let mut input = InBuffer::around(portion);
            loop {
                let mut output = OutBuffer::around(&mut self.record[HEADER_SIZE..]);
                let flush = ZSTD_EndDirective::ZSTD_e_flush;
                let left = self
                    .stream
                    .compress_stream2(&mut output, &mut input, flush)
                    .map_err(refused)?;
                let size = HEADER_SIZE + output.pos();
                if size > HEADER_SIZE {
                    self.record[..4].copy_from_slice(&COMPRESSED.to_ne_bytes());
                    self.record[4..6].copy_from_slice(&0u16.to_ne_bytes());
                    self.record[6..8].copy_from_slice(&(size as u16).to_ne_bytes());
                    write(&self.record[..size])?;
                    self.given += size as u64;
                }
                if left == 0 {
                    break;
                }
            }
            self.taken += portion.len() as u64;
        }
        Ok(())
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

fn refused(code: usize) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfdata::decompress::{Block, Decompressor};

    /// What takes no room, and what takes all that it has.
    fn records() -> Vec<u8> {
        let mut bytes = vec![0; 3 << 20];
        let mut state = 7u64;
        bytes.extend((0..700_000).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u8
        }));
        bytes
    }

    #[test]
    fn each_portion_can_be_read_when_it_is_written() {
        let records = records();
        for level in [1, 19] {
            let mut compressor = Compressor::new(level).unwrap();
            let mut reader = Decompressor::new(Some(Compressor::BLOCK as u32));
            let mut read = Vec::new();
            let (mut appended, mut written) = (0, 0);
            for portion in records.chunks(1_300_001) {
                let mut take = |record: &[u8]| {
                    assert_eq!(record[..4], 81u32.to_ne_bytes());
                    assert_eq!(record[6..8], (record.len() as u16).to_ne_bytes());
                    written += record.len() as u64;
                    let mut block = Block::new(&record[8..]);
                    while !reader.append(&mut block, &mut read).unwrap() {}
                    Ok(())
                };
                compressor.compress(portion, &mut take).unwrap();
                appended += portion.len();
                assert!(read == records[..appended]);
            }
            assert!(read == records);
            assert!(written <= Compressor::most_written(records.len() as u64));
            assert_eq!(compressor.sizes(), (records.len() as u64, written));
            assert!(written < 800_000, "{written}");
        }
    }

    #[test]
    fn an_error_of_the_device_is_returned() {
        let mut compressor = Compressor::new(1).unwrap();
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = compressor.compress(&records(), &mut |_| Err(full()));
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        compressor.compress(&[], &mut |_| Err(full())).unwrap();
    }
}
