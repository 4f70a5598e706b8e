//! The optional header sections: who recorded what, where and when.
//!
//! Each is read by itself: one that is damaged is reported and left out, and the others stay.

use std::sync::Arc;

use linux_perf_event_reader::{Endianness, constants};

use crate::base::BuildId;

mod call_counts;
mod jit_dump;
mod job;
mod mapped_file;
mod perf_map;

pub use self::call_counts::{CallCounts, CountedAgent, CountedCallee, CountedImage, CountedSite};
pub use self::jit_dump::KeptJitDump;
pub use self::job::Job;
pub use self::mapped_file::MappedFile;
pub use self::perf_map::KeptPerfMap;

use super::attr::{MAX_ATTR_SIZE, MIN_ATTR_SIZE};
use super::cursor::Cursor;
use super::error::Flaw;
use super::{Attr, Feature};

/// The contents of the header's sections.
#[derive(Clone, Debug, Default)]
pub struct Features {
    /// The sections that the file claims to have, in order of number.
    pub present: Vec<Feature>,
    pub hostname: Option<String>,
    pub os_release: Option<String>,
    pub version: Option<String>,
    /// The machine's architecture, as `uname -m` prints it.
    pub arch: Option<String>,
    pub cpu_description: Option<String>,
    /// Processors online and available.
    pub cpus: Option<(u32, u32)>,
    pub command_line: Vec<String>,
    /// Files and their build ids.
    pub build_ids: Vec<FileBuildId>,
    /// Times of the first and the last sample, in nanoseconds.
    pub sample_time: Option<(u64, u64)>,
    /// What the clock of the samples showed at a known time.
    pub clock: Option<ClockReference>,
    /// The size to which a compressed block grows at most, in bytes.
    pub compressed_block: Option<u32>,
    /// Counted calls, if the recorder counted them.
    pub call_counts: Option<Arc<CallCounts>>,
    /// What compilers and linkers were started for, if the recorder looked.
    pub jobs: Vec<Job>,
    /// Lists of generated code that cannot be found where they were, if the recorder kept some.
    pub perf_maps: Vec<Arc<KeptPerfMap>>,
    /// Jitdump files that cannot be found where they were, if the recorder kept some.
    pub jit_dumps: Arc<[KeptJitDump]>,
    /// Mapped files without a build ID, if the recorder looked.
    pub files: Vec<MappedFile>,
    /// How often the threads that were recorded switched to others, if the recorder looked.
    pub switches: Option<u64>,
    pub(super) events: Vec<DescribedEvent>,
}

/// A time by two clocks: that of the samples and that of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReference {
    /// Nanoseconds since 1970 (UTC).
    pub wall: u64,
    /// That moment by the clock of the samples, in nanoseconds.
    pub samples: u64,
}

impl ClockReference {
    /// Returns the time of day of a sample, in nanoseconds since 1970; `None` if it does not fit 64
    /// bits.
    ///
    /// ```
    /// use proftool::perfdata::ClockReference;
    /// let clock = ClockReference { wall: 1_000, samples: 30 };
    /// assert_eq!(clock.wall_time(25), Some(995));
    /// ```
    pub fn wall_time(self, sample: u64) -> Option<u64> {
        match sample.checked_sub(self.samples) {
            Some(later) => self.wall.checked_add(later),
            None => self.wall.checked_sub(self.samples - sample),
        }
    }
}

/// A file and the build that was mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBuildId {
    /// The path, or a name in brackets.
    pub path: String,
    pub build_id: BuildId,
}

#[derive(Clone, Debug)]
pub(super) struct DescribedEvent {
    pub(super) name: String,
    pub(super) ids: Vec<u64>,
}

impl Features {
    pub(super) fn read(
        &mut self,
        feature: Feature,
        bytes: &[u8],
        endian: Endianness,
    ) -> Result<(), Flaw> {
        let mut c = Cursor::new(bytes, endian);
        let text = |c: &mut Cursor<'_>| c.header_string("its text").map(Some);
        match feature {
            Feature::HOSTNAME => self.hostname = text(&mut c)?,
            Feature::OSRELEASE => self.os_release = text(&mut c)?,
            Feature::VERSION => self.version = text(&mut c)?,
            Feature::ARCH => self.arch = text(&mut c)?,
            Feature::CPUDESC => self.cpu_description = text(&mut c)?,
            Feature::NRCPUS => {
                let available = c.u32("the number of processors")?;
                let online = c.u32("the number of processors")?;
                self.cpus = Some((online, available));
            }
            Feature::CMDLINE => {
                let count = c.u32("the number of arguments")?;
                // Each takes at least its length: a count beyond that ends in an error below.
                for _ in 0..count {
                    self.command_line.push(c.header_string("an argument")?);
                }
            }
            Feature::BUILD_ID => self.read_build_ids(c)?,
            Feature::EVENT_DESC => self.events = described_events(c, endian)?,
            Feature::SAMPLE_TIME => {
                let first = c.u64("the first time")?;
                let last = c.u64("the last time")?;
                // perf looks at no sample where it does not look for build IDs (`-B`), and writes
                // zeros.
                self.sample_time = (last > 0).then_some((first, last));
            }
            Feature::CLOCK_DATA => {
                let _version = c.u32("the clock")?;
                let _clock = c.u32("the clock")?;
                let wall = c.u64("the time of day")?;
                let samples = c.u64("the time by the clock")?;
                self.clock = Some(ClockReference { wall, samples });
            }
            Feature::COMPRESSED => {
                let _version = c.u32("compression")?;
                let kind = c.u32("compression")?;
                let _level = c.u32("compression")?;
                let _ratio = c.u32("compression")?;
                self.compressed_block = Some(c.u32("compression")?);
                const ZSTD: u32 = 1;
                if kind != ZSTD {
                    return Err(Flaw::Value {
                        what: "the kind of compression",
                        value: u64::from(kind),
                    });
                }
            }
            Feature::CPU_TOPOLOGY => {
                let count = c.u32("the number of cores")?;
                for _ in 0..count {
                    c.header_string("a list of cores")?;
                }
            }
            Feature::CALL_COUNTS => {
                self.call_counts = Some(Arc::new(CallCounts::read(c.rest())?));
            }
            Feature::JOBS => self.jobs = Job::read(c)?,
            Feature::PERF_MAPS => {
                let maps = KeptPerfMap::read(c)?;
                self.perf_maps = maps.into_iter().map(Arc::new).collect();
            }
            Feature::JIT_DUMPS => self.jit_dumps = KeptJitDump::read(c)?.into(),
            Feature::FILES => self.files = MappedFile::read(c)?,
            Feature::SWITCHES => self.switches = Some(c.u64("the number of switches")?),
            _ => {}
        }
        Ok(())
    }

    /// ```text
    /// { struct perf_event_header header; u32 pid; u8 build_id[20]; u8 size; u8 pad[3];
    ///   char filename[]; }
    /// ```
    fn read_build_ids(&mut self, mut c: Cursor<'_>) -> Result<(), Flaw> {
        while c.left() > 0 {
            let _kind = c.u32("a build id")?;
            let misc = c.u16("a build id")?;
            let size = c.u16("a build id")?;
            if size < 8 + 28 {
                return Err(Flaw::Value {
                    what: "the size of a build id's entry",
                    value: u64::from(size),
                });
            }
            let body = c.take(u64::from(size) - 8, "a build id")?;
            let mut body = Cursor::new(body, Endianness::LittleEndian);
            self.read_build_id(misc, &mut body)?;
        }
        Ok(())
    }

    pub(super) fn read_build_id(&mut self, misc: u16, body: &mut Cursor<'_>) -> Result<(), Flaw> {
        let _pid = body.take(4, "a build id")?;
        let id = body.take(20, "a build id")?;
        let tail = body.take(4, "a build id")?;
        let size = if misc & constants::PERF_RECORD_MISC_BUILD_ID_SIZE != 0 {
            usize::from(tail[0]).min(20)
        } else {
            20
        };
        if let Some(build_id) = BuildId::new(&id[..size]) {
            self.build_ids.push(FileBuildId {
                path: crate::base::utf8(body.text()).into_owned(),
                build_id,
            });
        }
        Ok(())
    }
}

/// ```text
/// u32 nr; u32 attr_size;
/// { struct perf_event_attr attr; u32 nr_ids; string name; u64 ids[nr_ids] }[nr]
/// ```
fn described_events(mut c: Cursor<'_>, endian: Endianness) -> Result<Vec<DescribedEvent>, Flaw> {
    let count = c.u32("the number of events")?;
    let attr_size = u64::from(c.u32("the size of an attr")?);
    if !(MIN_ATTR_SIZE..=MAX_ATTR_SIZE).contains(&attr_size) {
        return Err(Flaw::Value {
            what: "the size of an attr",
            value: attr_size,
        });
    }
    let mut events = Vec::new();
    for _ in 0..count {
        let attr = c.take(attr_size, "an attr")?;
        Attr::parse(attr, endian)?;
        let id_count = c.u32("the number of ids")?;
        let name = c.header_string("an event's name")?;
        let ids = c.words(u64::from(id_count), "an event's ids")?;
        events.push(DescribedEvent {
            name,
            ids: ids.iter().collect(),
        });
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_sample_at_zero_is_not_known() {
        let times = |first: u64, last: u64| {
            let bytes = [first, last].map(u64::to_le_bytes).concat();
            let mut features = Features::default();
            let read = features.read(Feature::SAMPLE_TIME, &bytes, Endianness::LittleEndian);
            read.unwrap();
            features.sample_time
        };
        assert_eq!(times(0, 0), None);
        assert_eq!(times(0, 5), Some((0, 5)));
    }

    #[test]
    fn available_processors_come_before_those_online() {
        let bytes = [8u32, 6].map(u32::to_le_bytes).concat();
        let mut features = Features::default();
        let read = features.read(Feature::NRCPUS, &bytes, Endianness::LittleEndian);
        read.unwrap();
        assert_eq!(features.cpus, Some((6, 8)));
    }
}
