//! The bodies of the feature sections that a recorder writes.

use std::collections::BTreeMap;

use linux_perf_event_reader::constants as c;

use super::{ATTR_SIZE, SECTION_SIZE, WriterEvent};
use crate::base::BuildId;
use crate::perfdata::{
    CallCounts, ClockReference, Feature, Job, KeptJitDump, KeptPerfMap, MappedFile,
};

// Strings are padded with zeros to a multiple of this.
const NAME_ALIGN: usize = 64;
// The process to which images of this machine belong, as opposed to those of a guest.
const HOST: i32 = -1;
// The bytes of a record of BUILD_ID before the path, and the most of a path.
const BUILD_ID_SIZE: u64 = 36;
const PATH_MAX: usize = 4095;

/// A file that was mapped, with the build that it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIdEntry {
    /// The path as the MMAP record has it.
    pub path: Vec<u8>,
    pub build_id: BuildId,
    /// Whether it is the kernel's image or a module.
    pub kernel: bool,
}

impl BuildIdEntry {
    /// The size of the entry of a file whose path has this number of bytes.
    pub fn size(path: usize) -> u64 {
        let padded = (path.min(PATH_MAX) + 1).next_multiple_of(NAME_ALIGN);
        BUILD_ID_SIZE + padded as u64
    }
}

/// The formats of tracepoints from tracefs, which readers need to show their fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracepointFormats {
    /// `events/header_page`.
    pub header_page: Vec<u8>,
    /// `events/header_event`.
    pub header_event: Vec<u8>,
    /// For each system its tracepoints' `format` files.
    pub systems: BTreeMap<String, Vec<Vec<u8>>>,
}

/// The features of a file, each with the bytes of its section.
///
/// ```
/// use proftool::perfdata::{Feature, writer::FeatureSections};
/// let mut features = FeatureSections::default();
/// features.text(Feature::ARCH, "x86_64");
/// assert_eq!(features.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct FeatureSections(BTreeMap<Feature, Vec<u8>>);

impl FeatureSections {
    /// A feature that is one string: `u32` length with padding, then the bytes.
    pub fn text(&mut self, feature: Feature, text: &str) {
        let mut body = Vec::new();
        put_string(&mut body, text.as_bytes());
        self.0.insert(feature, body);
    }

    /// NRCPUS: processors that can be there, and those online.
    pub fn processors(&mut self, available: u32, online: u32) {
        let body = [available.to_ne_bytes(), online.to_ne_bytes()].concat();
        self.0.insert(Feature::NRCPUS, body);
    }

    /// TOTAL_MEM, in KiB.
    pub fn total_memory(&mut self, kib: u64) {
        self.0
            .insert(Feature::TOTAL_MEM, kib.to_ne_bytes().to_vec());
    }

    /// CMDLINE: `u32` count, then a string for each word.
    pub fn command_line(&mut self, words: &[impl AsRef<[u8]>]) {
        let mut body = count(words.len()).to_vec();
        for word in words {
            put_string(&mut body, word.as_ref());
        }
        self.0.insert(Feature::CMDLINE, body);
    }

    /// EVENT_DESC: `u32` count, `u32` attr size, then for each event its attr, `u32` number of
    /// ids, its name, its ids.
    pub fn events(&mut self, events: &[WriterEvent]) {
        let mut body = count(events.len()).to_vec();
        body.extend(count(ATTR_SIZE));
        for event in events {
            body.extend(event.attr);
            body.extend(count(event.ids.len()));
            put_string(&mut body, event.name.as_bytes());
            body.extend(event.ids.iter().flat_map(|id| id.to_ne_bytes()));
        }
        self.0.insert(Feature::EVENT_DESC, body);
    }

    /// COMPRESSED: `u32` each: version, kind (1: zstd), level, ratio, size of a block.
    pub(super) fn compressed(&mut self, level: u8, (before, after): (u64, u64), block: usize) {
        let ratio = before.checked_div(after).unwrap_or(0) as usize;
        let body = [1, 1, usize::from(level), ratio, block].map(count);
        self.0.insert(Feature::COMPRESSED, body.concat());
    }

    pub fn call_counts(&mut self, counts: &CallCounts) {
        self.0.insert(Feature::CALL_COUNTS, counts.section());
    }

    /// JOBS: `u32` count, then for each its `u64` time, `i32` process, and name.
    pub fn jobs(&mut self, jobs: &[Job]) {
        let mut body = count(jobs.len()).to_vec();
        for job in jobs {
            body.extend(job.time.to_ne_bytes());
            body.extend(job.pid.to_ne_bytes());
            put_string(&mut body, job.name.as_bytes());
        }
        self.0.insert(Feature::JOBS, body);
    }

    /// PERF_MAPS: `u32` count, then for each its `i32` process, `u64` size, and lines; then for
    /// each the `u64` bytes that were left out.
    pub fn perf_maps(&mut self, maps: &[KeptPerfMap]) {
        let mut body = count(maps.len()).to_vec();
        for map in maps {
            body.extend(map.pid.to_ne_bytes());
            body.extend((map.lines.len() as u64).to_ne_bytes());
            body.extend(&map.lines);
        }
        body.extend(maps.iter().flat_map(|map| map.left_out.to_ne_bytes()));
        self.0.insert(Feature::PERF_MAPS, body);
    }

    /// JIT_DUMPS: `u32` count, then for each its `i32` process, path, `u64` bytes that were left
    /// out, `u64` size, and bytes.
    pub fn jit_dumps(&mut self, dumps: &[KeptJitDump]) {
        let mut body = count(dumps.len()).to_vec();
        for dump in dumps {
            body.extend(dump.pid.to_ne_bytes());
            put_string(&mut body, dump.path.as_bytes());
            body.extend(dump.left_out.to_ne_bytes());
            body.extend((dump.bytes.len() as u64).to_ne_bytes());
            body.extend(&*dump.bytes);
        }
        self.0.insert(Feature::JIT_DUMPS, body);
    }

    pub fn files(&mut self, files: &[MappedFile]) {
        self.0.insert(Feature::FILES, MappedFile::section(files));
    }

    pub fn switches(&mut self, switches: u64) {
        self.0
            .insert(Feature::SWITCHES, switches.to_ne_bytes().to_vec());
    }

    /// GROUP_DESC: `u32` count, then for each group its name, `u32` index of its leader, `u32`
    /// number of events. Each of `groups` is the index of its leader and the number.
    pub fn groups(&mut self, groups: &[(usize, usize)]) {
        let mut body = count(groups.len()).to_vec();
        for (leader, events) in groups {
            // As perf calls a group to which nobody gave a name.
            put_string(&mut body, b"{anon_group}");
            body.extend(count(*leader));
            body.extend(count(*events));
        }
        self.0.insert(Feature::GROUP_DESC, body);
    }

    /// SAMPLE_TIME: nanoseconds of the first and the last sample.
    pub fn sample_time(&mut self, first: u64, last: u64) {
        let body = [first.to_ne_bytes(), last.to_ne_bytes()].concat();
        self.0.insert(Feature::SAMPLE_TIME, body);
    }

    /// CLOCK_DATA: `u32` version, `u32` clock, and the same moment twice in nanoseconds: `u64`
    /// since 1970, `u64` by the clock of the samples, `CLOCK_MONOTONIC`.
    pub fn clock(&mut self, reference: ClockReference) {
        const MONOTONIC: u32 = 1;
        let head = [1u32, MONOTONIC].map(u32::to_ne_bytes).concat();
        let times = [reference.wall, reference.samples].map(u64::to_ne_bytes);
        self.0
            .insert(Feature::CLOCK_DATA, [head, times.concat()].concat());
    }

    /// PMU_MAPPINGS: `u32` count, then for each its `u32` type number and its name.
    pub fn pmu_mappings(&mut self, pmus: &[(u32, String)]) {
        let mut body = count(pmus.len()).to_vec();
        for (number, name) in pmus {
            body.extend(number.to_ne_bytes());
            put_string(&mut body, name.as_bytes());
        }
        self.0.insert(Feature::PMU_MAPPINGS, body);
    }

    /// TRACING_DATA: the formats of tracepoints, as trace-cmd's files have them.
    ///
    /// ```text
    /// 17 08 44 "tracing" "0.6\0"  u8 big endian  u8 size of long  u32 page size
    /// "header_page\0" u64 size, bytes    "header_event\0" u64 size, bytes
    /// u32 formats of ftrace's own events (none)
    /// u32 systems; of each: name "\0", u32 formats, of each: u64 size, bytes
    /// u32 size of kallsyms (none)   u32 size of printk formats (none)   u64 size of comms (none)
    /// ```
    pub fn tracepoints(&mut self, formats: &TracepointFormats, page_size: u32) {
        let mut body = b"\x17\x08\x44tracing0.6\0".to_vec();
        body.push(u8::from(cfg!(target_endian = "big")));
        body.push(size_of::<usize>() as u8);
        body.extend(page_size.to_ne_bytes());
        let sized = |body: &mut Vec<u8>, text: &[u8]| {
            body.extend((text.len() as u64).to_ne_bytes());
            body.extend(text);
        };
        body.extend(b"header_page\0");
        sized(&mut body, &formats.header_page);
        body.extend(b"header_event\0");
        sized(&mut body, &formats.header_event);
        body.extend(count(0));
        body.extend(count(formats.systems.len()));
        for (system, texts) in &formats.systems {
            body.extend(system.as_bytes());
            body.push(0);
            body.extend(count(texts.len()));
            for text in texts {
                sized(&mut body, text);
            }
        }
        body.extend([0; 4 + 4 + 8]);
        self.0.insert(Feature::TRACING_DATA, body);
    }

    /// BUILD_ID: a record for each file.
    ///
    /// ```c
    /// struct { u32 type; u16 misc; u16 size; s32 pid;
    ///          u8 build_id[20]; u8 build_id_size; u8 reserved[3]; char filename[]; };
    /// ```
    pub fn build_ids<'a>(&mut self, entries: impl IntoIterator<Item = &'a BuildIdEntry>) {
        let mut body = Vec::new();
        for entry in entries {
            // The format has 20 bytes, so a longer ID is cut to them. A `BuildId` does not
            // keep trailing zeros, so its length is the next one that linkers make.
            let id = &entry.build_id.bytes()[..entry.build_id.bytes().len().min(20)];
            let mut field = [0; 24];
            field[..id.len()].copy_from_slice(id);
            field[20] = match id.len() {
                ..=8 => 8,
                9..=16 => 16,
                _ => 20,
            };
            let name: Vec<u8> = entry.path.iter().copied().take(PATH_MAX).collect();
            let padded = (name.len() + 1).next_multiple_of(NAME_ALIGN);
            let cpu_mode = if entry.kernel {
                c::PERF_RECORD_MISC_KERNEL
            } else {
                c::PERF_RECORD_MISC_USER
            };
            body.extend(0u32.to_ne_bytes());
            body.extend((cpu_mode | c::PERF_RECORD_MISC_BUILD_ID_SIZE).to_ne_bytes());
            body.extend((BUILD_ID_SIZE as u16 + padded as u16).to_ne_bytes());
            body.extend(HOST.to_ne_bytes());
            body.extend(field);
            body.extend(&name);
            body.resize(body.len() + padded - name.len(), 0);
        }
        self.0.insert(Feature::BUILD_ID, body);
    }

    /// The bytes that the features take in a file, their table included.
    pub fn size(&self) -> u64 {
        let bodies = self.0.values().map(|body| SECTION_SIZE + body.len() as u64);
        bodies.sum()
    }

    /// How many features there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The features in order of number.
    pub fn iter(&self) -> impl Iterator<Item = (Feature, &[u8])> {
        self.0
            .iter()
            .map(|(feature, body)| (*feature, body.as_slice()))
    }
}

fn count(n: usize) -> [u8; 4] {
    (n as u32).to_ne_bytes()
}

fn put_string(body: &mut Vec<u8>, text: &[u8]) {
    let padded = (text.len() + 1).next_multiple_of(NAME_ALIGN);
    body.extend(count(padded));
    body.extend(text);
    body.resize(body.len() + padded - text.len(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_of_a_full_block_still_ends_with_a_zero() {
        let mut features = FeatureSections::default();
        features.text(Feature::HOSTNAME, &"x".repeat(64));
        let (_, body) = features.iter().next().unwrap();
        assert_eq!(body.len(), 4 + 128);
        assert_eq!(u32::from_ne_bytes(body[..4].try_into().unwrap()), 128);
    }

    #[test]
    fn a_build_id_record_has_its_size_and_mode() {
        let mut features = FeatureSections::default();
        features.build_ids(&[BuildIdEntry {
            path: b"/bin/true".to_vec(),
            build_id: BuildId::new(&[0xaa; 8]).unwrap(),
            kernel: false,
        }]);
        let (_, body) = features.iter().next().unwrap();
        assert_eq!(body.len(), 36 + 64);
        assert_eq!(BuildIdEntry::size("/bin/true".len()), 36 + 64);
        assert_eq!(features.size(), 16 + 36 + 64);
        assert_eq!(u16::from_ne_bytes([body[6], body[7]]), 100);
        assert_eq!(u16::from_ne_bytes([body[4], body[5]]), 0x8002);
        assert_eq!((body[12], body[19], body[20], body[32]), (0xaa, 0xaa, 0, 8));
        assert_eq!(&body[36..46], b"/bin/true\0");
    }
}
