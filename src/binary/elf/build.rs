//! Which build a file is: what tells it from another one in its place.
//!
//! The state of a file (device, inode, size, times) proves nothing where images are mounted in
//! turn, made reproducibly, or restored: two builds of a program may have the same. So what is kept
//! of a file is kept for its build:
//!
//! ```text
//!   1, build ID, sum of the headers
//!   0, sum of the headers, sum of the sections that are used    of a file without build ID
//! ```

use std::hash::Hasher;

use object::elf;
use rustc_hash::FxHasher;

use super::{Elf, Section};

// The most bytes of sections that are summed up. Of a larger file without build ID nothing is kept.
const SUM_LIMIT: u64 = 256 << 20;
// Bytes that are read at once.
const PIECE: u64 = 1 << 20;

// What something follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::binary) enum Used {
    DebugInformation,
    // All else: code, data and symbols.
    Code,
}

impl Elf {
    // `None` where it takes too long to find out.
    pub(in crate::binary) fn build(&self, used: Used) -> Option<&[u8]> {
        let place = match used {
            Used::DebugInformation => &self.builds[0],
            Used::Code => &self.builds[1],
        };
        place.get_or_init(|| self.find_build(used)).as_deref()
    }

    fn find_build(&self, used: Used) -> Option<Vec<u8>> {
        let headers = self.sum_of_headers().to_le_bytes();
        if let Some(id) = &self.build_id {
            return Some([&[1], id.bytes(), &headers].concat());
        }
        let sections = self.sum_of_sections(used)?.to_le_bytes();
        Some([&[0], &headers[..], &sections].concat())
    }

    fn sum_of_headers(&self) -> u64 {
        let mut sum = FxHasher::default();
        sum.write_u64(self.source.size());
        sum.write_u16(self.machine);
        sum.write_u64(self.entry);
        for segment in &self.segments {
            for number in [segment.offset, segment.address, segment.file_size] {
                sum.write_u64(number);
            }
        }
        for section in &self.sections {
            sum.write(&section.name);
            sum.write_u32(section.kind);
            for number in [section.flags, section.address, section.offset, section.size] {
                sum.write_u64(number);
            }
        }
        sum.finish()
    }

    fn sum_of_sections(&self, used: Used) -> Option<u64> {
        // Their bytes would count as if they had been asked for.
        if self.source.is_sparse() {
            return None;
        }
        let is_used = |section: &&Section| {
            let is_debug =
                section.name.starts_with(b".debug") || section.name.starts_with(b".gnu_debug");
            section.kind != elf::SHT_NOBITS.0 && is_debug == (used == Used::DebugInformation)
        };
        let sections = self.sections.iter().filter(is_used);
        let mut pieces: Vec<(u64, u64)> = sections.map(|it| (it.offset, it.size)).collect();
        if self.sections.is_empty() {
            pieces.extend(self.segments.iter().map(|it| (it.offset, it.file_size)));
        }
        let sizes = pieces.iter().map(|piece| piece.1);
        if sizes.fold(0, u64::saturating_add) > SUM_LIMIT {
            return None;
        }
        let mut sum = FxHasher::default();
        let mut buffer = Vec::new();
        for (offset, size) in pieces {
            // What the file does not have is not used either.
            let end = offset.saturating_add(size).min(self.source.size());
            let mut at = offset;
            while at < end {
                let length = PIECE.min(end - at);
                let bytes = self.source.read_into("a section", at, length, &mut buffer);
                sum.write(bytes.ok()?);
                at += length;
            }
        }
        Some(sum.finish())
    }
}
