//! A checked walk over bytes of either byte order: the one door through which fields are read.

use linux_perf_event_reader::Endianness;

use super::error::Flaw;

/// A position in bytes that are not trusted. Every read is compared with what is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    endian: Endianness,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], endian: Endianness) -> Self {
        Cursor { bytes, endian }
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn take(&mut self, n: u64, what: &'static str) -> Result<&'a [u8], Flaw> {
        let split = usize::try_from(n)
            .ok()
            .and_then(|n| self.bytes.split_at_checked(n));
        let Some((head, tail)) = split else {
            return Err(Flaw::Short {
                what,
                needed: n,
                left: self.bytes.len() as u64,
            });
        };
        self.bytes = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Flaw> {
        let Some((head, tail)) = self.bytes.split_first_chunk::<N>() else {
            return Err(Flaw::Short {
                what,
                needed: N as u64,
                left: self.bytes.len() as u64,
            });
        };
        self.bytes = tail;
        Ok(*head)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, Flaw> {
        let bytes = self.array(what)?;
        Ok(word(bytes, self.endian))
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, Flaw> {
        let bytes = self.array(what)?;
        Ok(match self.endian {
            Endianness::LittleEndian => u32::from_le_bytes(bytes),
            Endianness::BigEndian => u32::from_be_bytes(bytes),
        })
    }

    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32, Flaw> {
        self.u32(what).map(u32::cast_signed)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, Flaw> {
        let bytes = self.array(what)?;
        Ok(match self.endian {
            Endianness::LittleEndian => u16::from_le_bytes(bytes),
            Endianness::BigEndian => u16::from_be_bytes(bytes),
        })
    }

    pub(super) fn words(&mut self, count: u64, what: &'static str) -> Result<Words<'a>, Flaw> {
        let bytes = self.take(count.saturating_mul(8), what)?;
        Ok(Words {
            bytes,
            endian: self.endian,
        })
    }

    /// The bytes up to the next zero (or the end), which is passed over.
    pub(super) fn text(&mut self) -> &'a [u8] {
        let end = self.bytes.iter().position(|&b| b == 0);
        let (text, tail) = match end {
            Some(end) => (&self.bytes[..end], &self.bytes[end + 1..]),
            None => (self.bytes, &[][..]),
        };
        self.bytes = tail;
        text
    }

    /// A string of the file's header: `u32 len; char string[len]`, padded with zeros.
    pub(super) fn header_string(&mut self, what: &'static str) -> Result<String, Flaw> {
        let len = self.u32(what)?;
        let bytes = self.take(u64::from(len), what)?;
        let text = Cursor::new(bytes, self.endian).text();
        Ok(crate::base::utf8(text).into_owned())
    }
}

fn word(bytes: [u8; 8], endian: Endianness) -> u64 {
    match endian {
        Endianness::LittleEndian => u64::from_le_bytes(bytes),
        Endianness::BigEndian => u64::from_be_bytes(bytes),
    }
}

/// 64-bit words inside a record, in the record's byte order.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    bytes: &'a [u8],
    endian: Endianness,
}

impl<'a> Words<'a> {
    /// No words.
    pub const EMPTY: Words<'static> = Words {
        bytes: &[],
        endian: Endianness::LittleEndian,
    };

    pub fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The first `count` words, or all where there are fewer.
    pub fn first(&self, count: usize) -> Words<'a> {
        let end = count.saturating_mul(8).min(self.bytes.len());
        Words {
            bytes: &self.bytes[..end],
            endian: self.endian,
        }
    }

    /// The words as they stand in the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The words in order.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + Clone + use<'a> {
        let endian = self.endian;
        let (chunks, _) = self.bytes.as_chunks::<8>();
        chunks.iter().map(move |chunk| word(*chunk, endian))
    }
}
