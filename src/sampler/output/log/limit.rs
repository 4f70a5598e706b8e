//! Keeping a file within the size that was asked for.
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

use std::io::{self, Seek, Write};

use perf_event_open_sys::bindings as sys;

use super::{About, Log, fixed_features};
use crate::perfdata::MappedFile;
use crate::perfdata::raw::{self, Offsets, RawRecord};
use crate::perfdata::writer::BuildIdEntry;
use crate::sampler::session::Session;

// What the features take that are made at the end (times, compression), and the last records: the
// end of a round, losses.
const END_BYTES: u64 = 512;
// What the last record of an event takes at most.
const EVENT_BYTES: u64 = 128;

#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Limit {
    most: u64,
    fixed: u64,
    is_reached: bool,
}

impl<W: Write + Seek> Log<W> {
    pub(in crate::sampler) fn limit(&mut self, most: Option<u64>) {
        self.limit = most.map(|most| Limit {
            most,
            fixed: 0,
            is_reached: false,
        });
    }

    pub(in crate::sampler) fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| limit.is_reached)
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
        let limit = self.limit?;
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

    fn append_to_limit(&mut self, drained: &[u8]) -> io::Result<()> {
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
            self.tally.count(&batch);
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
