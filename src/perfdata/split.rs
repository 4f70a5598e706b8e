//! Splits bytes into records, and finds the next record after a damaged size.

use linux_perf_event_reader::{Endianness, PerfEventHeader, constants};

use super::cursor::Cursor;
use super::record::{least_size, type_name};

pub(super) const HEADER_SIZE: usize = PerfEventHeader::STRUCT_SIZE;
pub(super) const NATIVE: Endianness = if cfg!(target_endian = "little") {
    Endianness::LittleEndian
} else {
    Endianness::BigEndian
};
// How many records in a row must look like records before they are believed to be some.
const CONVINCING: usize = 3;

pub(super) enum Split<'a> {
    Record(PerfEventHeader, &'a [u8]),
    /// The beginning of a record that goes on behind these bytes.
    Incomplete,
    BadSize(u16),
}

pub(super) fn header(bytes: &[u8], endian: Endianness) -> Option<PerfEventHeader> {
    let mut c = Cursor::new(bytes, endian);
    Some(PerfEventHeader {
        type_: c.u32("").ok()?,
        misc: c.u16("").ok()?,
        size: c.u16("").ok()?,
    })
}

pub(super) fn first(bytes: &[u8], endian: Endianness) -> Split<'_> {
    let Some(header) = header(bytes, endian) else {
        return Split::Incomplete;
    };
    let size = usize::from(header.size);
    if size < HEADER_SIZE {
        return Split::BadSize(header.size);
    }
    match bytes.get(HEADER_SIZE..size) {
        Some(body) => Split::Record(header, body),
        None => Split::Incomplete,
    }
}

pub(super) fn record_size(bytes: &[u8], endian: Endianness) -> Option<usize> {
    match first(bytes, endian) {
        Split::Record(_, body) => Some(HEADER_SIZE + body.len()),
        _ => None,
    }
}

/// How many bytes to pass over until what follows looks like records again; all of them when
/// nothing does. At least one.
pub(super) fn resynchronize(bytes: &[u8], endian: Endianness) -> usize {
    (1..bytes.len())
        .find(|&skip| looks_like_records(&bytes[skip..], endian))
        .unwrap_or(bytes.len())
}

/// Whether some records in a row (fewer at the end of the bytes) have known types and sizes that
/// fit them.
fn looks_like_records(mut bytes: &[u8], endian: Endianness) -> bool {
    for seen in 0..CONVINCING {
        match first(bytes, endian) {
            Split::Record(header, body) if is_plausible(&header) => {
                bytes = &bytes[HEADER_SIZE + body.len()..];
            }
            Split::Incomplete => return seen > 0 && bytes.is_empty(),
            _ => return false,
        }
    }
    true
}

fn is_plausible(header: &PerfEventHeader) -> bool {
    const COMPRESSED: u32 = constants::PERF_RECORD_USER_TYPE_START + 17;
    let kind = linux_perf_event_reader::RecordType(header.type_);
    type_name(header.type_).is_some()
        && (header.size.is_multiple_of(8) || header.type_ == COMPRESSED)
        && usize::from(header.size) >= HEADER_SIZE + least_size(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(size)];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[6..8].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    #[test]
    fn damage_is_passed_over_up_to_the_next_records() {
        let mut bytes = vec![0xff; 13];
        for _ in 0..4 {
            bytes.extend(record(3, 32));
        }
        assert_eq!(resynchronize(&bytes, Endianness::LittleEndian), 13);
    }

    #[test]
    fn bytes_without_a_record_are_skipped_to_the_end() {
        let bytes = vec![0x41; 100];
        assert_eq!(resynchronize(&bytes, Endianness::LittleEndian), 100);
    }
}
