//! Keeping a file within the size that was asked for, or its disk from being filled.
//!
//! ```text
//!   head │ what ran before │ records … │ room │ reserved: features, build ids, the last records
//!                                             └──────────────────────────────── limit ─┘
//! ```
//!
//! The buffers of the processors are drained one after the other. If they were written until there
//! is no room, the first processor would have samples for longer than the last, and mappings of the
//! last would be missing to samples of the first. So as soon as the buffers may hold more than
//! there is room for, their records are put in order of time, and the file ends at one moment.

use std::fs::File;
use std::io::{self, Seek, Write};

use perf_event_open_sys::bindings as sys;

use super::{About, Log, fixed_features};
use crate::perfdata::MappedFile;
use crate::perfdata::raw::{self, Offsets, RawRecord};
use crate::perfdata::writer::BuildIdEntry;
use crate::sampler::session::Session;
use crate::sampler::session::bounds::End;

// What the features take that are made at the end (times, compression), and the last records: the
// end of a round, losses.
const END_BYTES: u64 = 512;
// What the last record of an event takes at most.
const EVENT_BYTES: u64 = 128;

#[derive(Debug)]
pub(in crate::sampler) struct Limit {
    most: u64,
    fixed: u64,
    is_reached: bool,
    /// Where the limit moves with what others write.
    disk: Option<Disk>,
}

/// The file system of a recording, which nobody limits in size.
#[derive(Debug)]
pub(in crate::sampler) struct Disk {
    file: File,
    kept: u64,
}

impl Disk {
    /// The smallest one, in bytes: below, to run out of space is an error as it is elsewhere.
    const SMALLEST: u64 = 64 << 20;
    /// What is left free at most, in bytes.
    const KEPT: u64 = 1 << 30;

    /// `None` of file systems that are small, or do not state their size.
    pub(in crate::sampler) fn of(file: &File) -> Option<Disk> {
        let (size, free) = space(file)?;
        if size < Disk::SMALLEST {
            return None;
        }
        // One that is nearly full may be recorded to, too.
        let kept = (size / 20).min(Disk::KEPT).min(free / 2);
        let file = file.try_clone().ok()?;
        Some(Disk { file, kept })
    }

    /// How many bytes may still be written.
    fn room(&self) -> u64 {
        space(&self.file).map_or(u64::MAX, |(_, free)| free.saturating_sub(self.kept))
    }
}

/// The size of a file's file system, and what users may still write there, in bytes.
fn space(file: &File) -> Option<(u64, u64)> {
    let space = rustix::fs::fstatvfs(file).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    Some((bytes(space.f_blocks), bytes(space.f_bavail)))
}

impl<W: Write + Seek> Log<W> {
    /// Limits the size of the file: to `most` bytes, or else to what the disk has room for.
    pub(in crate::sampler) fn limit(&mut self, most: Option<u64>, disk: Option<Disk>) {
        let disk = disk.filter(|_| most.is_none());
        self.limit = (most.is_some() || disk.is_some()).then(|| Limit {
            most: most.unwrap_or(u64::MAX),
            fixed: 0,
            is_reached: false,
            disk,
        });
    }

    /// Why nothing more is written.
    pub(in crate::sampler) fn why_full(&self) -> Option<End> {
        let limit = self.limit.as_ref().filter(|limit| limit.is_reached)?;
        Some(match &limit.disk {
            Some(disk) => End::Disk { left: disk.kept },
            None => End::Size,
        })
    }

    /// Sets the limit by what is free on the disk now.
    pub(super) fn look_at_disk(&mut self) {
        let size = self.writer.size();
        if let Some(Limit {
            most,
            disk: Some(disk),
            ..
        }) = &mut self.limit
        {
            *most = size.saturating_add(disk.room());
        }
    }

    pub(in crate::sampler) fn reserve(&mut self, about: &About<'_>) {
        if let Some(limit) = &mut self.limit {
            let kernel = about
                .images
                .build_ids
                .iter()
                .map(|file| BuildIdEntry::size(file.path.len()));
            let events = about.events.len() as u64;
            limit.fixed = fixed_features(about).size()
                + kernel.sum::<u64>()
                + events * EVENT_BYTES
                + END_BYTES;
        }
    }

    pub(in crate::sampler) fn may_fill(&self, bytes: u64) -> bool {
        let room = self.room();
        room.is_some_and(|room| self.writer.most_appended(bytes) > room)
    }

    /// The bytes of records that the file has room for; `None` without a limit.
    pub(super) fn room(&self) -> Option<u64> {
        let limit = self.limit.as_ref()?;
        let images = self.tally.images.keys();
        let build_ids = images.map(|path| BuildIdEntry::size(path.len()));
        let files = self.tally.mapped_files.paths();
        let files = files.map(|path| MappedFile::ENTRY + path.len() as u64);
        let lists = build_ids.chain(files).sum::<u64>();
        let used = self.writer.size() + limit.fixed + lists;
        Some(limit.most.saturating_sub(used))
    }

    /// Makes one pass over the ring buffers, and takes of their records in order of time those that
    /// the file has room for. Gives the number of bytes in the buffers.
    pub(in crate::sampler) fn pass_to_limit(&mut self, session: &mut Session) -> io::Result<u64> {
        let mut drained = Vec::new();
        let bytes = session.drain(&mut |records| {
            drained.extend_from_slice(records);
            Ok::<(), io::Error>(())
        })?;
        self.append_to_limit(&drained)?;
        Ok(bytes)
    }

    pub(super) fn append_to_limit(&mut self, drained: &[u8]) -> io::Result<()> {
        let mut records = in_order_of_time(drained, self.tally.layouts.shared())
            .into_iter()
            .peekable();
        let mut batch = Vec::new();
        // What is compressed takes less room than it may take, so there may be more batches.
        while let Some(room) = self.room() {
            batch.clear();
            let mut cost = 0;
            while let Some(record) = records.peek() {
                cost += most_written(*record);
                if self.writer.most_appended(cost) > room {
                    break;
                }
                batch.extend_from_slice(record.bytes());
                records.next();
            }
            if batch.is_empty() {
                break;
            }
            self.writer.append_drained(&batch)?;
            self.count(&batch);
        }
        if let Some(limit) = &mut self.limit {
            limit.is_reached |= records.next().is_some();
        }
        Ok(())
    }
}

/// The most bytes that a file has of a record: of a mapping its build id or what it is known by,
/// too.
fn most_written(record: RawRecord<'_>) -> u64 {
    let size = record.bytes().len();
    let build_id = match record.kind() {
        // There the path is shorter than the record, and the rest of the record is larger.
        sys::PERF_RECORD_MMAP2 => BuildIdEntry::size(size) + MappedFile::ENTRY,
        _ => 0,
    };
    size as u64 + build_id
}

fn in_order_of_time<'a>(records: &'a [u8], offsets: &Offsets) -> Vec<RawRecord<'a>> {
    let mut order: Vec<_> = raw::records(records).collect();
    order.sort_by_key(|record| record.time(offsets).unwrap_or(0));
    order
}
