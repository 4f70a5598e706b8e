//! Numbers in a slice of bytes, in the byte order and word size of an ELF file.

use gimli::{Endianity, RunTimeEndian};
use memchr::memchr;

// `None` where the bytes end.
#[derive(Clone, Copy, Debug)]
pub(in crate::binary) struct Fields<'a> {
    pub(in crate::binary) bytes: &'a [u8],
    pub(in crate::binary) endian: RunTimeEndian,
    // Whether words have 64 bits.
    pub(in crate::binary) wide: bool,
}

impl Fields<'_> {
    pub(in crate::binary) fn u8(self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    pub(in crate::binary) fn u16(self, at: usize) -> Option<u16> {
        let bytes = self.bytes.get(at..at.checked_add(2)?)?;
        Some(self.endian.read_u16(bytes))
    }

    pub(in crate::binary) fn u32(self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        Some(self.endian.read_u32(bytes))
    }

    pub(in crate::binary) fn u64(self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        Some(self.endian.read_u64(bytes))
    }

    // 8 or 4 bytes.
    pub(in crate::binary) fn word(self, at: usize) -> Option<u64> {
        if self.wide {
            self.u64(at)
        } else {
            self.u32(at).map(u64::from)
        }
    }
}

// The bytes from `at` up to the next zero byte; `None` when there is none.
pub(in crate::binary) fn c_string(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    rest.get(..memchr(0, rest)?)
}
