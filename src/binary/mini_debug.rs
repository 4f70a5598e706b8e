//! `.gnu_debugdata`: the symbols of a stripped program as a small ELF file, packed with xz.

use std::io::Read;

use lzma_rust2::XzReader;

use super::Error;
use super::elf::Elf;
use super::source::Source;

/// The most bytes that it may have after unpacking.
const SIZE_LIMIT: u64 = 64 << 20;
/// The most memory that unpacking may take, in KiB.
const MEMORY_LIMIT: u32 = 128 << 10;

/// The packed ELF file, if `elf` has one.
pub(super) fn unpack(elf: &Elf) -> Option<Result<Elf, Error>> {
    let section = elf.section(b".gnu_debugdata")?;
    Some((|| {
        let packed = elf.contents(".gnu_debugdata", section)?;
        let mut unpacked = Vec::new();
        let reader = XzReader::new_mem_limit(packed.as_slice(), false, MEMORY_LIMIT);
        let read = reader
            .take(SIZE_LIMIT.saturating_add(1))
            .read_to_end(&mut unpacked);
        if let Err(error) = read {
            return Err(Error::Malformed(format!(".gnu_debugdata: {error}")));
        }
        if unpacked.len() as u64 > SIZE_LIMIT {
            return Err(Error::TooLarge {
                what: ".gnu_debugdata, unpacked,".to_owned(),
                size: unpacked.len() as u64,
                limit: SIZE_LIMIT,
            });
        }
        Elf::read(Source::Memory(unpacked))
    })())
}
