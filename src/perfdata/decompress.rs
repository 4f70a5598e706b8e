//! `COMPRESSED` records: zstd blocks of one long frame, holding other records.
//!
//! A recorder keeps one compression stream for the whole file and flushes it at the end of each
//! record; the frame is never ended. A record inside may begin in one block and end in the next.

use zstd_safe::{DCtx, InBuffer, OutBuffer};

// No block grows beyond this, whatever the file says.
const MAX_BLOCK: usize = 64 << 20;

// So much of a block is in memory at once: a block can grow a thousandfold.
const PART: usize = 1 << 20;

pub(super) struct Block<'a> {
    bytes: &'a [u8],
    /// The number of bytes that were read, and that came of them.
    read: usize,
    grown: usize,
}

impl<'a> Block<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Block<'a> {
        Block {
            bytes,
            read: 0,
            grown: 0,
        }
    }
}

pub(super) struct Decompressor {
    stream: DCtx<'static>,
    limit: usize,
}

impl Decompressor {
    /// `block` is the size to which a block grows at most, where the file says it.
    pub(super) fn new(block: Option<u32>) -> Decompressor {
        let claimed = block
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(MAX_BLOCK);
        Decompressor {
            stream: DCtx::create(),
            limit: claimed.min(MAX_BLOCK),
        }
    }

    /// Appends the next part of what a block holds to `output`: some more than `PART` bytes at
    /// most, however much that is. Returns whether that was all of it. On an error, what came
    /// before it is there.
    pub(super) fn append(
        &mut self,
        block: &mut Block<'_>,
        output: &mut Vec<u8>,
    ) -> Result<bool, String> {
        let mut input = InBuffer::around(block.bytes);
        input.set_pos(block.read);
        let end = output.len() + PART;
        while output.len() < end {
            let start = output.len();
            let room = (block.bytes.len().saturating_mul(4))
                .clamp(1 << 16, PART)
                .min(self.limit - block.grown);
            if room == 0 {
                return Err(format!("its contents pass {} bytes", self.limit));
            }
            output.resize(start + room, 0);
            let mut out = OutBuffer::around(&mut output[start..]);
            let result = self.stream.decompress_stream(&mut out, &mut input);
            let written = out.pos();
            output.truncate(start + written);
            block.read = input.pos();
            block.grown += written;
            if let Err(code) = result {
                self.stream = DCtx::create();
                return Err(format!("zstd: {}", zstd_safe::get_error_name(code)).to_lowercase());
            }
            // All input taken and room left over: nothing more is to come from this block.
            if input.pos() == block.bytes.len() && written < room {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_grows_a_thousandfold_comes_in_parts() {
        let zeros = vec![0; 20 << 20];
        let mut packed = vec![0; zstd_safe::compress_bound(zeros.len())];
        let size = zstd_safe::compress(&mut packed[..], &zeros, 1).unwrap();
        assert!(size < zeros.len() / 1000);
        let mut stream = Decompressor::new(None);
        let mut block = Block::new(&packed[..size]);
        let (mut all, mut is_whole) = (0, false);
        while !is_whole {
            let mut part = Vec::new();
            is_whole = stream.append(&mut block, &mut part).unwrap();
            assert!(part.len() <= 2 * PART);
            all += part.len();
        }
        assert_eq!(all, zeros.len());
        // No further than the recording says that a block grows.
        let mut stream = Decompressor::new(Some(100));
        let mut part = Vec::new();
        let mut block = Block::new(&packed[..size]);
        assert!(stream.append(&mut block, &mut part).is_err());
        assert_eq!(part.len(), 100);
    }
}
