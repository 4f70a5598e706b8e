//! From the ring buffers to the file: the one consumer of a session that writes.

use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::kernel_images::KernelImages;
use super::session::Session;
use super::tally::Tally;
use super::{elf_notes, host, kernel, tracepoint};
use crate::perfdata::Feature;
use crate::perfdata::writer::{
    BuildIdEntry, EventDescription, FeatureSections, Writer, lost_samples_record,
};

/// A recording being written.
#[derive(Debug)]
pub(super) struct Log<W> {
    writer: Writer<W>,
    tally: Tally,
    passes: u64,
    drained: u64,
    file_size: u64,
}

impl<W: Write + Seek> Log<W> {
    pub(super) fn new(out: W, events: &[EventDescription]) -> io::Result<Log<W>> {
        Ok(Log {
            writer: Writer::new(out, events)?,
            tally: Tally::default(),
            passes: 0,
            drained: 0,
            file_size: 0,
        })
    }

    /// Compresses what comes from the ring buffers, at a level of zstd.
    pub(super) fn compress(&mut self, level: Option<u8>) -> io::Result<()> {
        level.map_or(Ok(()), |level| self.writer.compress(level))
    }

    /// How often the ring buffers were gone over.
    pub(super) fn passes(&self) -> u64 {
        self.passes
    }

    /// The bytes that came from them.
    pub(super) fn drained_bytes(&self) -> u64 {
        self.drained
    }

    /// What has been written so far.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The bytes of records so far.
    pub(super) fn data_size(&self) -> u64 {
        self.writer.data_size()
    }

    /// The size of the file, once it is finished.
    pub(super) fn file_size(&self) -> u64 {
        self.file_size
    }

    /// Writes what was there before the recording began: the kernel's images, and records of
    /// processes.
    pub(super) fn begin(&mut self, images: &KernelImages, existing: &[u8]) -> io::Result<()> {
        for mapping in &images.mappings {
            self.writer.append(&mapping.kernel_record())?;
        }
        self.writer.append(existing)?;
        self.tally.count(existing);
        self.writer.sync()
    }

    /// Makes one pass over the ring buffers: straight from them to the file, in a few large
    /// writes. The file is true afterwards.
    pub(super) fn pass(&mut self, session: &mut Session) -> io::Result<()> {
        let (writer, tally) = (&mut self.writer, &mut self.tally);
        let bytes = session.drain(&mut |records| {
            writer.append_drained(records)?;
            tally.count(records);
            Ok::<(), io::Error>(())
        })?;
        self.passes += 1;
        self.drained += bytes;
        if bytes > 0 {
            writer.finish_round()?;
        }
        writer.sync()
    }

    /// Writes what is known only at the end.
    pub(super) fn finish(&mut self, session: &Session, images: &KernelImages) -> io::Result<()> {
        // The kernel tells of losses in a record when it has room again; of the last ones never.
        // As perf does, the end tells of all of them.
        let lost = session.lost().unwrap_or(0);
        if lost > 0 {
            let record = lost_samples_record(lost);
            self.writer.append(&record)?;
            self.tally.count(&record);
        }
        let mut features = self.features(session.events(), images);
        let groups = session.groups();
        if !groups.is_empty() {
            features.groups(&groups);
        }
        if !session.tracepoints().is_empty()
            && let Some(tracefs) = tracepoint::directory()
            && let Ok(formats) = tracepoint::formats(&tracefs, session.tracepoints())
        {
            features.tracepoints(&formats, kernel::page_size() as u32);
        }
        self.file_size = self.writer.finish(&features)?;
        Ok(())
    }

    /// After a failed write: makes what was written before readable. Tells whether there are
    /// samples in it.
    pub(super) fn salvage(&mut self) -> bool {
        self.writer.sync().is_ok() && self.tally.samples > 0
    }

    fn features(&self, events: &[EventDescription], images: &KernelImages) -> FeatureSections {
        let mut features = FeatureSections::default();
        host::describe(&mut features);
        let version = concat!("proftool ", env!("CARGO_PKG_VERSION"));
        features.text(Feature::VERSION, version);
        let words: Vec<_> = std::env::args_os().collect();
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        features.command_line(&words);
        features.events(events);
        if let Some((first, last)) = self.tally.times {
            features.sample_time(first, last);
        }
        let mut files: Vec<BuildIdEntry> = self
            .tally
            .images
            .iter()
            .filter_map(|(path, build_id)| {
                let build_id = build_id.clone().or_else(|| {
                    let path = std::ffi::OsStr::from_bytes(path);
                    elf_notes::build_id_of(Path::new(path))
                })?;
                Some(BuildIdEntry {
                    path: path.clone(),
                    build_id,
                    kernel: false,
                })
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        features.build_ids(images.build_ids.iter().chain(&files));
        features
    }
}
