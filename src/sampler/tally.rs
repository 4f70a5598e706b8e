//! What passes from the kernel to the file, counted by headers.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::counts::Sums;
use super::elsewhere::Elsewhere;
use crate::base::BuildId;

const LOST: u32 = 2;
const THROTTLE: u32 = 5;
pub(super) const SAMPLE: u32 = 9;
pub(super) const MMAP2: u32 = 10;
pub(super) const READ: u32 = 8;
const LOST_SAMPLES: u32 = 13;
/// The first type of records that recorders make themselves.
const USER_TYPES: u32 = 64;
const MISC_BUILD_ID: u16 = 1 << 14;
/// A mapping that is not to be executed.
const MISC_MMAP_DATA: u16 = 1 << 13;

/// Where a sample's time is: after the header, IDENTIFIER, IP and TID, a word each.
const SAMPLE_TIME_AT: usize = 32;
/// Where the count is in LOST (after the header and an id) and in LOST_SAMPLES.
const LOST_AT: usize = 16;
const LOST_SAMPLES_AT: usize = 8;
/// Where the number of the process is in MMAP2, in the lower half of a word.
const PID_AT: usize = 8;
/// Where the build id is in MMAP2, its size four bytes before; and where the path is.
const BUILD_ID_AT: usize = 44;
const BUILD_ID_SIZE_AT: usize = 40;
const PATH_AT: usize = 72;
/// The longest build id that a mapping has room for.
const MAX_BUILD_ID: usize = 20;

/// Counts of what was recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) samples: u64,
    /// Records that LOST records tell of.
    pub(super) lost_records: u64,
    /// Samples that LOST_SAMPLES records tell of.
    pub(super) lost_samples: u64,
    pub(super) throttled: u64,
    /// What the samples of each event add up to.
    pub(super) sums: Sums,
    /// Nanoseconds of the first and the last sample.
    pub(super) times: Option<(u64, u64)>,
    /// The files that were mapped to be executed, with their build ids where the kernel told.
    pub(super) images: HashMap<Vec<u8>, Option<BuildId>, FxBuildHasher>,
    /// Those that were mapped below other roots, as in containers.
    pub(super) elsewhere: Elsewhere,
}

impl Tally {
    /// Records that the kernel could not deliver: LOST_SAMPLES tells of all, LOST of most.
    pub(super) fn lost(&self) -> u64 {
        self.lost_records.max(self.lost_samples)
    }

    /// Whether nothing was recorded or lost, and no file was mapped.
    pub(super) fn is_empty(&self) -> bool {
        self.samples == 0 && self.lost() == 0 && self.images.is_empty()
    }

    /// Counts whole records.
    pub(super) fn count(&mut self, mut records: &[u8]) {
        while let Some((header, _)) = records.split_first_chunk::<8>() {
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            let Some((record, rest)) = records.split_at_checked(size.max(8)) else {
                return;
            };
            match kind {
                SAMPLE => self.sample(record),
                LOST => self.lost_records += word(record, LOST_AT).unwrap_or(0),
                LOST_SAMPLES => self.lost_samples += word(record, LOST_SAMPLES_AT).unwrap_or(0),
                THROTTLE => self.throttled += 1,
                MMAP2 if misc & MISC_MMAP_DATA == 0 => self.image(record, misc),
                _ => {}
            }
            records = rest;
        }
    }

    fn sample(&mut self, record: &[u8]) {
        self.samples += 1;
        self.sums.add(record);
        if let Some(time) = word(record, SAMPLE_TIME_AT) {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
    }

    /// ```c
    /// struct { struct perf_event_header; u32 pid, tid; u64 addr, len, pgoff;
    ///          union { struct { u32 maj, min; u64 ino, ino_generation; };
    ///                  struct { u8 build_id_size, reserved[3]; u8 build_id[20]; }; };
    ///          u32 prot, flags; char filename[]; struct sample_id; };
    /// ```
    fn image(&mut self, record: &[u8], misc: u16) {
        let Some(path) = record.get(PATH_AT..) else {
            return;
        };
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        // Not a file: anonymous memory, the heap, the kernel's vsyscall page.
        let is_file = path.starts_with(b"/") && !path.starts_with(b"//");
        if !(is_file || path == b"[vdso]") {
            return;
        }
        let size = usize::from(record[BUILD_ID_SIZE_AT]);
        let build_id = (misc & MISC_BUILD_ID != 0 && size <= MAX_BUILD_ID)
            .then(|| BuildId::new(&record[BUILD_ID_AT..BUILD_ID_AT + size]))
            .flatten();
        let told = is_file.then(|| {
            let pid = word(record, PID_AT).unwrap_or(0) as i32;
            self.elsewhere.mapped(pid, path, build_id.as_ref())
        });
        if !self.images.contains_key(path) {
            self.images
                .insert(path.to_vec(), build_id.or(told.flatten()));
        }
    }
}

/// The time of a record of the kernel's.
pub(super) fn time(record: &[u8]) -> Option<u64> {
    match u32::from_ne_bytes(*record.first_chunk::<4>()?) {
        SAMPLE => word(record, SAMPLE_TIME_AT),
        // Other records end with time, processor and id.
        kind if kind < USER_TYPES => word(record, record.len().checked_sub(24)?),
        _ => None,
    }
}

/// The word at this place of a record.
pub(super) fn word(record: &[u8], at: usize) -> Option<u64> {
    let bytes = record.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(misc.to_ne_bytes());
        record.extend((8 + body.len() as u16).to_ne_bytes());
        record.extend(body);
        record
    }

    #[test]
    fn samples_losses_and_times_are_counted() {
        let sample = |time: u64| {
            let words = [1, 2, 3, time, 0, 5].map(u64::to_ne_bytes);
            record(SAMPLE, 1, &words.concat())
        };
        let mut tally = Tally::default();
        tally.count(&[sample(70), sample(50), sample(90)].concat());
        tally.count(&record(LOST, 0, &[1, 12].map(u64::to_ne_bytes).concat()));
        tally.count(&record(LOST_SAMPLES, 0, &4u64.to_ne_bytes()));
        assert_eq!((tally.samples, tally.times), (3, Some((50, 90))));
        assert_eq!((tally.lost_records, tally.lost_samples), (12, 4));
    }

    #[test]
    fn an_image_is_kept_once_with_its_build_id() {
        let mut body = vec![0u8; 64];
        body[32] = 20;
        body[36..56].fill(0xab);
        body.extend(b"/bin/true\0\0\0\0\0\0\0");
        let mut tally = Tally::default();
        tally.count(&record(MMAP2, MISC_BUILD_ID, &body));
        tally.count(&record(MMAP2, 0, &body));
        body[64..].copy_from_slice(b"/data\0\0\0\0\0\0\0\0\0\0\0");
        tally.count(&record(MMAP2, MISC_MMAP_DATA, &body));
        body[64..].copy_from_slice(b"//anon\0\0\0\0\0\0\0\0\0\0");
        tally.count(&record(MMAP2, 0, &body));
        let images: Vec<_> = tally.images.into_iter().collect();
        let expected = BuildId::new(&[0xab; 20]);
        assert_eq!(images, [(b"/bin/true".to_vec(), expected)]);
    }

    #[test]
    fn what_is_too_long_for_a_build_id_is_none() {
        let mut body = vec![0u8; 64];
        // A device and an inode, in a mapping whose flag says otherwise.
        body[32] = 0xfe;
        body.extend(b"/bin/true\0\0\0\0\0\0\0");
        let mut tally = Tally::default();
        tally.count(&record(MMAP2, MISC_BUILD_ID, &body));
        let images: Vec<_> = tally.images.into_iter().collect();
        assert_eq!(images, [(b"/bin/true".to_vec(), None)]);
    }

    #[test]
    fn broken_records_do_not_hang_it() {
        let mut tally = Tally::default();
        tally.count(&[0; 64]);
        tally.count(&[9, 0, 0, 0, 0, 0, 255, 255, 1]);
        tally.count(&record(MMAP2, MISC_BUILD_ID, &[0; 8]));
        assert_eq!(tally.samples, 0);
    }
}
