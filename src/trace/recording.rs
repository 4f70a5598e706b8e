//! The circumstances of a recording, which decide what may be concluded from it.

use std::time::{Duration, SystemTime};

use linux_perf_event_reader::AttrFlags;
use rustc_hash::FxHashMap;

use super::Image;
use crate::base::{FileContent, FileId, FileStatus, utf8};
use crate::perfdata::{MappedFile, Reader, RecordedStacks};

/// The circumstances of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    pub command_line: Vec<String>,
    pub arch: Option<String>,
    pub os_release: Option<String>,
    /// Whether stacks were copied, and the kernel followed no frame pointers.
    pub copies_alone: bool,
    /// How many samples have a copy of the stack, or registers.
    pub copies: u64,
    /// How many have what the recorder found in a copy.
    pub unwound: u64,
    /// When the recording was written, where it is a file.
    pub written: Option<SystemTime>,
    /// When the last sample was taken, where that is known.
    pub ended: Option<SampleTime>,
    /// Nanoseconds from the first sample to the last.
    pub duration: Option<u64>,
    pub host: Option<String>,
    /// The model of its processor.
    pub processor: Option<String>,
    /// The time of the first sample in nanoseconds since 1970, where the recorder's clock is known.
    pub started: Option<u64>,
    /// When each file was mapped first, where the kernel recorded that.
    pub mapped: FxHashMap<FileId, SampleTime>,
    /// Mapped files without a build ID, as the recorder saw them.
    pub files: Vec<MappedFile>,
}

/// The time of a sample in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleTime {
    /// Since 1970.
    Wall(u64),
    /// By the clock that the kernel uses for samples unless another one is asked for: since the
    /// machine was started.
    Kernel(u64),
}

impl SampleTime {
    /// How long after another one by the same clock it was.
    pub fn since(self, earlier: SampleTime) -> Option<Duration> {
        let nanoseconds = match (self, earlier) {
            (SampleTime::Wall(now), SampleTime::Wall(then))
            | (SampleTime::Kernel(now), SampleTime::Kernel(then)) => now.checked_sub(then),
            _ => None,
        };
        nanoseconds.map(Duration::from_nanos)
    }
}

impl Recording {
    /// What is known of a recording whose samples were not read yet.
    pub fn stated(reader: &Reader) -> Recording {
        Recording::of(reader, None, &FxHashMap::default())
    }

    pub(super) fn of(
        reader: &Reader,
        last: Option<u64>,
        mapped: &FxHashMap<FileId, u64>,
    ) -> Recording {
        let features = reader.features();
        let attrs = || reader.events().iter().map(|event| &event.attr);
        let last = last.max(features.sample_time.map(|(_, last)| last));
        let is_kernels = attrs().all(|attr| !attr.flags().contains(AttrFlags::USE_CLOCKID));
        let time = |time| match features.clock {
            Some(clock) => clock.wall_time(time).map(SampleTime::Wall),
            None => is_kernels.then_some(SampleTime::Kernel(time)),
        };
        let mapped = mapped.iter();
        let mapped = mapped.filter_map(|(file, at)| Some((*file, time(*at)?)));
        Recording {
            command_line: features.command_line.clone(),
            arch: features.arch.clone(),
            os_release: features.os_release.clone(),
            copies_alone: matches!(RecordedStacks::of(attrs()), RecordedStacks::Copies(_)),
            written: reader.written(),
            ended: last.and_then(time),
            mapped: mapped.collect(),
            host: features.hostname.clone(),
            processor: features.cpu_description.clone(),
            files: features.files.clone(),
            ..Recording::default()
        }
    }

    /// The status of an image's file when it was mapped, and its content, as far as the recorder
    /// saw them.
    pub fn mapped_file(&self, image: &Image) -> Option<(&FileStatus, Option<&FileContent>)> {
        let mut files = self
            .files
            .iter()
            .filter(|file| *utf8(&file.path) == *image.path);
        let file = match image.file {
            Some(id) => files.find(|file| id.may_be(file.status.id)),
            // Calls were counted in it, and no sample was taken; if its path had led to several
            // files, it may be any of them.
            None => files.next().filter(|_| files.next().is_none()),
        }?;
        Some((&file.status, file.content.as_ref()))
    }
}
