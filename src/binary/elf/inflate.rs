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

use flate2::{Decompress, FlushDecompress};
use object::elf;

use super::fields::Fields;
use super::source::PIECE_LIMIT;
use crate::binary::Error;

#[derive(Clone, Copy)]
enum Format {
    Zlib,
    Zstd,
}

// How many times larger than its compressed form a section may be. Deflate reaches 1032.
const RATIO_LIMIT: u64 = 1100;

// The longest header of a compressed section, in bytes.
pub(in crate::binary) const HEADER_SIZE: u64 = 24;

// The size after inflating that a compressed section states.
pub(in crate::binary) fn stated_size(f: Fields<'_>) -> Option<u64> {
    f.word(if f.wide { 8 } else { 4 })
}

// The inflated contents of a section that has the flag `SHF_COMPRESSED`.
pub(in crate::binary) fn section(what: &'static str, f: Fields<'_>) -> Result<Vec<u8>, Error> {
    let short = || Error::Malformed {
        problem: format!("{what}: compressed, but without a header"),
    };
    let kind = f.u32(0).ok_or_else(short)?;
    let size = stated_size(f).ok_or_else(short)?;
    let header = if f.wide { 24 } else { 12 };
    let data = f.bytes.get(header..).ok_or_else(short)?;
    let format = match kind {
        kind if kind == elf::ELFCOMPRESS_ZLIB.0 => Format::Zlib,
        kind if kind == elf::ELFCOMPRESS_ZSTD.0 => Format::Zstd,
        kind => {
            return Err(Error::Malformed {
                problem: format!("{what}: compression {kind} is unknown"),
            });
        }
    };
    inflated(what, format, size, data)
}

// The size after inflating that a section `.zdebug_*` states.
pub(in crate::binary) fn old_stated_size(bytes: &[u8]) -> Option<u64> {
    let size = bytes.strip_prefix(b"ZLIB")?.first_chunk()?;
    Some(u64::from_be_bytes(*size))
}

pub(in crate::binary) fn old_section(what: &'static str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let short = || Error::Malformed {
        problem: format!("{what}: compressed, but without a header"),
    };
    let size = old_stated_size(bytes).ok_or_else(short)?;
    let data = bytes.get(12..).ok_or_else(short)?;
    inflated(what, Format::Zlib, size, data)
}

fn inflated(what: &'static str, format: Format, size: u64, data: &[u8]) -> Result<Vec<u8>, Error> {
    let limit = PIECE_LIMIT.min((data.len() as u64).saturating_mul(RATIO_LIMIT));
    if size > limit {
        return Err(Error::TooLarge {
            what: format!("{what}, inflated,"),
            size,
            limit,
        });
    }
    let malformed = |problem: String| Error::Malformed {
        problem: format!("{what}: {problem}"),
    };
    let mut bytes = Vec::new();
    // The limit allows sizes that the system may refuse.
    let reserved = bytes.try_reserve_exact(size as usize);
    reserved.map_err(|_| malformed(format!("no memory for {size} bytes")))?;
    // Neither writes more bytes than stated.
    match format {
        Format::Zlib => {
            let mut stream = Decompress::new(true);
            let inflated = stream.decompress_vec(data, &mut bytes, FlushDecompress::Finish);
            inflated.map_err(|error| malformed(format!("zlib: {error}")))?;
        }
        Format::Zstd => {
            bytes.resize(size as usize, 0);
            let inflated = zstd_safe::decompress(&mut bytes[..], data);
            let written = inflated.map_err(|code| {
                let name = zstd_safe::get_error_name(code).to_lowercase();
                malformed(format!("zstd: {name}"))
            })?;
            bytes.truncate(written);
        }
    }
    if bytes.len() as u64 != size {
        return Err(malformed(format!(
            "{} bytes after inflating, the header states {size}",
            bytes.len()
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::ZlibEncoder;

    use super::*;

    fn packed(format: Format, bytes: &[u8]) -> Vec<u8> {
        match format {
            Format::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Default::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Format::Zstd => {
                let mut packed = vec![0; zstd_safe::compress_bound(bytes.len())];
                let size = zstd_safe::compress(&mut packed[..], bytes, 3).unwrap();
                packed.truncate(size);
                packed
            }
        }
    }

    #[test]
    fn a_section_has_exactly_the_stated_size() {
        let bytes: Vec<u8> = (0..9000u32).flat_map(|i| (i * i).to_le_bytes()).collect();
        let size = bytes.len() as u64;
        for format in [Format::Zlib, Format::Zstd] {
            let data = packed(format, &bytes);
            let of_size = |size| inflated(".debug_info", format, size, &data);
            assert_eq!(of_size(size).unwrap(), bytes);
            assert!(of_size(size + 1).is_err());
            assert!(inflated(".debug_info", format, size, &data[..data.len() / 2]).is_err());
            assert!(inflated(".debug_info", format, 100, b"neither of both").is_err());
        }
        // Two frames one after the other are one section.
        let (start, end) = bytes.split_at(1000);
        let frames = [packed(Format::Zstd, start), packed(Format::Zstd, end)].concat();
        let whole = inflated(".debug_info", Format::Zstd, size, &frames);
        assert_eq!(whole.unwrap(), bytes);
    }

    #[test]
    fn no_more_than_the_stated_size_is_written() {
        let bytes = vec![7; 5000];
        // zlib's stream may go on; what is behind the stated size is not looked at.
        let data = packed(Format::Zlib, &bytes);
        assert_eq!(
            inflated(".debug_info", Format::Zlib, 4000, &data).unwrap(),
            bytes[..4000]
        );
        let data = packed(Format::Zstd, &bytes);
        assert!(inflated(".debug_info", Format::Zstd, 4000, &data).is_err());
    }
}
