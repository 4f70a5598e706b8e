//! Compressed sections, inflated within limits.
//!
//! ```text
//!   Elf64_Chdr   ch_type 4 (1 zlib, 2 zstd), reserved 4, ch_size 8, ch_addralign 8
//!   Elf32_Chdr   ch_type 4, ch_size 4, ch_addralign 4
//! ```
//!
//! Before there was a flag, sections were called `.zdebug_*` (GNU tools up to 2.25, Go up to 1.18):
//!
//! ```text
//!   "ZLIB", size 8 (big-endian), the zlib stream
//! ```
//!
//! The size after inflating is stated, so it is checked before a byte is inflated; inflating stops
//! at that size whatever the stream holds.

use object::elf;
use object::read::{CompressedData, CompressionFormat};

use super::fields::Fields;
use super::source::PIECE_LIMIT;
use crate::binary::Error;

/// How many times larger than its compressed form a section may be. Deflate reaches 1032.
const RATIO_LIMIT: u64 = 1100;

/// The longest header of a compressed section, in bytes.
pub(in crate::binary) const HEADER_SIZE: u64 = 24;

/// The size after inflating that a compressed section states.
pub(in crate::binary) fn stated_size(f: Fields<'_>) -> Option<u64> {
    f.word(if f.wide { 8 } else { 4 })
}

/// The inflated contents of a section that has the flag `SHF_COMPRESSED`.
pub(in crate::binary) fn section(what: &'static str, f: Fields<'_>) -> Result<Vec<u8>, Error> {
    let short = || Error::Malformed {
        problem: format!("{what}: compressed, but without a header"),
    };
    let kind = f.u32(0).ok_or_else(short)?;
    let size = stated_size(f).ok_or_else(short)?;
    let header = if f.wide { 24 } else { 12 };
    let data = f.bytes.get(header..).ok_or_else(short)?;
    let format = match kind {
        kind if kind == elf::ELFCOMPRESS_ZLIB.0 => CompressionFormat::Zlib,
        kind if kind == elf::ELFCOMPRESS_ZSTD.0 => CompressionFormat::Zstandard,
        kind => {
            return Err(Error::Malformed {
                problem: format!("{what}: compression {kind} is unknown"),
            });
        }
    };
    inflated(what, format, size, data)
}

/// The size after inflating that a section `.zdebug_*` states.
pub(in crate::binary) fn old_stated_size(bytes: &[u8]) -> Option<u64> {
    let size = bytes.strip_prefix(b"ZLIB")?.first_chunk()?;
    Some(u64::from_be_bytes(*size))
}

/// The inflated contents of a section `.zdebug_*`.
pub(in crate::binary) fn old_section(what: &'static str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let short = || Error::Malformed {
        problem: format!("{what}: compressed, but without a header"),
    };
    let size = old_stated_size(bytes).ok_or_else(short)?;
    let data = bytes.get(12..).ok_or_else(short)?;
    inflated(what, CompressionFormat::Zlib, size, data)
}

fn inflated(
    what: &'static str,
    format: CompressionFormat,
    size: u64,
    data: &[u8],
) -> Result<Vec<u8>, Error> {
    let limit = PIECE_LIMIT.min((data.len() as u64).saturating_mul(RATIO_LIMIT));
    if size > limit {
        return Err(Error::TooLarge {
            what: format!("{what}, inflated,"),
            size,
            limit,
        });
    }
    let compressed = CompressedData {
        format,
        data,
        uncompressed_size: size,
    };
    match compressed.decompress() {
        Ok(bytes) => Ok(bytes.into_owned()),
        Err(error) => Err(Error::Malformed {
            problem: format!("{what}: {error}"),
        }),
    }
}
