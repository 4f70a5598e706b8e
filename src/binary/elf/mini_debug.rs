//! `.gnu_debugdata`: the symbols of a stripped program as a small ELF file, packed with xz.

use std::io::Read;

use lzma_rust2::XzReader;

use super::Elf;
use super::source::Source;
use crate::binary::Error;

// The most bytes that it may have after unpacking.
const SIZE_LIMIT: u64 = 64 << 20;
// Bytes that are unpacked at a time.
const PIECE: u64 = 1 << 20;
// The most memory that unpacking may take, in KiB.
const MEMORY_LIMIT: u32 = 128 << 10;

// The packed ELF file, if `elf` has one.
pub(in crate::binary) fn unpack(elf: &Elf) -> Option<Result<Elf, Error>> {
    let section = elf.section(b".gnu_debugdata")?;
    Some((|| {
        let packed = elf.contents(".gnu_debugdata", section)?;
        let mut unpacked = Vec::new();
        let mut reader = XzReader::new_mem_limit(packed.as_slice(), false, MEMORY_LIMIT);
        loop {
            let before = unpacked.len();
            // Its size is not stated before it is unpacked: the share is asked for piece by piece.
            if !elf.budget.take_for_table(PIECE) {
                return Err(Error::BeyondShare {
                    what: ".gnu_debugdata, unpacked,".to_owned(),
                    size: before as u64,
                });
            }
            let read = reader.by_ref().take(PIECE).read_to_end(&mut unpacked);
            if let Err(error) = read {
                return Err(Error::Malformed {
                    problem: format!(".gnu_debugdata: {error}"),
                });
            }
            if unpacked.len() == before || unpacked.len() as u64 > SIZE_LIMIT {
                break;
            }
        }
        if unpacked.len() as u64 > SIZE_LIMIT {
            return Err(Error::TooLarge {
                what: ".gnu_debugdata, unpacked,".to_owned(),
                size: unpacked.len() as u64,
                limit: SIZE_LIMIT,
            });
        }
        Elf::read(Source::Memory(unpacked), elf.budget.clone())
    })())
}
