//! `COMPRESSED` records: zstd blocks of one long frame, holding other records.
//!
//! A recorder keeps one compression stream for the whole file and flushes it at the end of each
//! record; the frame is never ended. A record inside may begin in one block and end in the next.

use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// No block grows beyond this, whatever the file says.
const MAX_BLOCK: usize = 64 << 20;

/// The decompression stream of one file.
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

    /// Appends the contents of one block to `output`. On an error, what came before it is there.
    pub(super) fn append(&mut self, block: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        let end = output.len() + self.limit;
        let mut input = InBuffer::around(block);
        loop {
            let start = output.len();
            let room = (block.len().saturating_mul(4))
                .clamp(1 << 16, 1 << 20)
                .min(end - start);
            if room == 0 {
                return Err(format!("its contents pass {} bytes", self.limit));
            }
            output.resize(start + room, 0);
            let mut out = OutBuffer::around(&mut output[start..]);
            let result = self.stream.decompress_stream(&mut out, &mut input);
            let written = out.pos();
            output.truncate(start + written);
            if let Err(code) = result {
                self.stream = DCtx::create();
                return Err(format!("zstd: {}", zstd_safe::get_error_name(code)).to_lowercase());
            }
            // All input taken and room left over: nothing more is to come from this block.
            if input.pos() == block.len() && written < room {
                return Ok(());
            }
        }
    }
}
