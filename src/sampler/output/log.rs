//! From the ring buffers to the file: the one consumer of a session that writes.

pub(in crate::sampler) mod limit;

use std::io::{self, Cursor, Seek, Write};
use std::os::unix::ffi::OsStrExt;

use limit::Limit;

use super::tally::Tally;
use crate::base::{CaveatKind, Caveats};
use crate::perfdata::writer::{
    BuildIdEntry, FeatureSections, Writer, WriterEvent, count_record, lost_samples_record,
    time_record,
};
use crate::perfdata::{CallCounts, Feature, Job};
use crate::sampler::calls::counting::Counting;
use crate::sampler::events::tracepoint;
use crate::sampler::kernel_images::KernelImages;
use crate::sampler::session::Session;
use crate::sampler::session::bounds::End;
use crate::sampler::session::participants::{Open, Sink};
use crate::sampler::targets::perf_maps::KEPT_BYTES;
use crate::sampler::{host, kernel};

#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct About<'a> {
    pub(in crate::sampler) events: &'a [WriterEvent],
    pub(in crate::sampler) tracepoints: &'a [(String, String)],
    /// The groups of events: of each the index of its first, and how many there are.
    pub(in crate::sampler) groups: &'a [(usize, usize)],
    pub(in crate::sampler) images: &'a KernelImages,
}

impl<'a> About<'a> {
    pub(in crate::sampler) fn session(session: &'a Session, images: &'a KernelImages) -> About<'a> {
        About {
            events: session.events(),
            tracepoints: session.tracepoints(),
            groups: session.groups(),
            images,
        }
    }
}

#[derive(Debug)]
pub(in crate::sampler) struct Log<W> {
    writer: Writer<W>,
    tally: Tally,
    passes: u64,
    drained: u64,
    /// The size of the records about what ran before; the maximum until they are written.
    existing: u64,
    file_size: u64,
    limit: Option<Limit>,
    /// Whether records were looked at before they come here.
    pub(super) is_staged: bool,
    pub(in crate::sampler) caveats: Caveats,
}

#[derive(Debug, Default)]
pub(in crate::sampler) struct AtEnd<'a> {
    lost: u64,
    calls: Option<&'a CallCounts>,
    jobs: &'a [Job],
    switches: Option<u64>,
}

impl<W: Write + Seek> Log<W> {
    pub(in crate::sampler) fn new(out: W, events: &[WriterEvent]) -> io::Result<Log<W>> {
        Ok(Log {
            writer: Writer::new(out, events)?,
            tally: Tally::new(events),
            passes: 0,
            drained: 0,
            existing: u64::MAX,
            file_size: 0,
            limit: None,
            is_staged: false,
            caveats: Caveats::default(),
        })
    }

    pub(in crate::sampler) fn compress(&mut self, level: Option<u8>) -> io::Result<()> {
        level.map_or(Ok(()), |level| self.writer.compress(level))
    }

    pub(in crate::sampler) fn passes(&self) -> u64 {
        self.passes
    }

    pub(in crate::sampler) fn drained_bytes(&self) -> u64 {
        self.drained
    }

    pub(in crate::sampler) fn data_size(&self) -> u64 {
        self.writer.data_size()
    }

    pub(in crate::sampler) fn has_recorded(&self) -> bool {
        self.data_size() > self.existing
    }

    pub(in crate::sampler) fn append(&mut self, records: &[u8]) -> io::Result<()> {
        self.writer.append(records)?;
        self.count(records);
        Ok(())
    }

    /// Counts what is written.
    fn count(&mut self, records: &[u8]) {
        if !self.is_staged {
            self.tally.look(records);
        }
        self.tally.count(records);
    }

    /// Looks at what is mapped, before these records are written.
    pub(super) fn look(&mut self, records: &[u8]) {
        self.tally.look(records);
    }

    /// Appends the records of a round, which are in order of time, as far as there is room.
    pub(super) fn append_round(&mut self, records: &[u8]) -> io::Result<()> {
        self.look_at_disk();
        if self.why_full().is_some() {
            return Ok(());
        }
        if self.may_fill(records.len() as u64) {
            self.append_to_limit(records)?;
        } else {
            self.writer.append_drained(records)?;
            self.count(records);
        }
        self.passes += 1;
        self.drained += records.len() as u64;
        if !records.is_empty() {
            self.end_round()?;
        }
        self.writer.sync()
    }

    pub(in crate::sampler) fn end_round(&mut self) -> io::Result<()> {
        self.writer.finish_round()
    }

    /// What has been written, the size of the file once it is finished, and what was written to.
    pub(in crate::sampler) fn into_parts(self) -> (Tally, u64, W) {
        (self.tally, self.file_size, self.writer.into_inner())
    }

    /// Writes what was there before the recording began: the kernel's images, and records of
    /// processes.
    pub(in crate::sampler) fn open(
        &mut self,
        images: &KernelImages,
        existing: &[u8],
    ) -> io::Result<()> {
        for mapping in &images.mappings {
            self.writer.append(&mapping.kernel_record())?;
        }
        self.append(existing)
    }

    pub(in crate::sampler) fn close(
        &mut self,
        about: &About<'_>,
        ended: &AtEnd<'_>,
    ) -> io::Result<()> {
        // The kernel tells of losses in a record when it has room again; of the last ones never.
        // As perf does, the end tells of all of them.
        if ended.lost > 0 {
            self.append(&lost_samples_record(ended.lost))?;
        }
        let mut features = fixed_features(about);
        self.describe(&mut features, about.images);
        if let Some(calls) = ended.calls {
            features.call_counts(calls);
        }
        if !ended.jobs.is_empty() {
            features.jobs(ended.jobs);
        }
        if let Some(switches) = ended.switches {
            features.switches(switches);
        }
        let room = self.room().unwrap_or(u64::MAX).min(KEPT_BYTES);
        let perf_maps = self.tally.perf_maps.kept(room);
        if !perf_maps.is_empty() {
            features.perf_maps(&perf_maps);
        }
        let used: u64 = perf_maps.iter().map(|map| map.lines.len() as u64).sum();
        let jit_dumps = self.tally.jit_dumps.kept(room - used);
        if !jit_dumps.is_empty() {
            features.jit_dumps(&jit_dumps);
        }
        self.file_size = self.writer.finish(&features)?;
        Ok(())
    }

    fn compare(&mut self, open: &Open) -> io::Result<()> {
        let session = &open.session;
        for (index, count) in session.counts(&open.user_share).into_iter().enumerate() {
            let (Some(count), Some((spec, event))) = (count, session.event(index)) else {
                continue;
            };
            let mut counted = self.tally.sums.compared(index, event, spec, count);
            counted.ended = self.tally.exits;
            counted.switches = open.switches.read();
            if let Some(&id) = event.ids.first() {
                let lost = session.lost().map(|_| 0);
                self.append(&count_record(open.ended, id, counted.counted, lost))?;
            }
            if let Some((kind, detail)) = counted.caveat(&event.name) {
                self.caveats.add_detail(kind, 1, detail);
            }
        }
        Ok(())
    }

    /// After a failed write: makes what was written before readable, if it can. If not even the
    /// head can be changed any more, the file is readable up to the pass before.
    pub(in crate::sampler) fn salvage(&mut self) {
        let _ = self.writer.sync();
    }

    fn describe(&self, features: &mut FeatureSections, images: &KernelImages) {
        if let Some((first, last)) = self.tally.times {
            features.sample_time(first, last);
        }
        let mut files: Vec<BuildIdEntry> = self
            .tally
            .images
            .iter()
            .filter_map(|(path, build_id)| {
                Some(BuildIdEntry {
                    path: path.clone(),
                    build_id: build_id.clone()?,
                    kernel: false,
                })
            })
            .collect();
        // What paths of containers lead to, for those who read the file outside of them.
        files.extend(self.tally.elsewhere.found.iter().cloned());
        let key = |file: &BuildIdEntry| (file.path.clone(), file.build_id.clone());
        files.sort_by_cached_key(key);
        files.dedup_by_key(|file| key(file));
        features.build_ids(images.build_ids.iter().chain(&files));
        let mapped = self.tally.mapped_files.with_content();
        if !mapped.is_empty() {
            features.files(&mapped);
        }
    }
}

/// A recording without records, which describes the events and the machine, and the records about
/// what was there before.
pub(in crate::sampler) fn description(open: &Open) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let about = About::session(&open.session, &open.images);
    let mut head = Log::new(Cursor::new(Vec::new()), open.session.events())?;
    head.end_round()?;
    head.close(&about, &AtEnd::default())?;
    let mappings = open.images.mappings.iter();
    let mut records: Vec<u8> = mappings.flat_map(|m| m.kernel_record()).collect();
    records.extend_from_slice(&open.existing.records);
    Ok((head.into_parts().2.into_inner(), records))
}

fn fixed_features(about: &About<'_>) -> FeatureSections {
    let mut features = FeatureSections::default();
    host::describe(&mut features);
    let version = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));
    features.text(Feature::VERSION, version);
    let words: Vec<_> = std::env::args_os().collect();
    let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
    features.command_line(&words);
    features.events(about.events);
    if !about.groups.is_empty() {
        features.groups(about.groups);
    }
    if !about.tracepoints.is_empty()
        && let Some(tracefs) = tracepoint::directory()
        && let Ok(formats) = tracepoint::formats(&tracefs, about.tracepoints)
    {
        features.tracepoints(&formats, kernel::page_size() as u32);
    }
    features
}

impl<W: Write + Seek> Sink for Log<W> {
    fn begin(&mut self, open: &Open) -> io::Result<()> {
        self.open(&open.images, &open.existing.records)?;
        self.tally.began = open.counting.as_ref().map(|_| Vec::new());
        self.existing = self.data_size();
        self.reserve(&About::session(&open.session, &open.images));
        self.writer.sync()
    }

    // Straight from the buffers to the file, in a few large writes. The file is true afterwards.
    fn pass(&mut self, open: &mut Open) -> io::Result<()> {
        let session = &mut open.session;
        let begin = kernel::now();
        self.look_at_disk();
        if self.why_full().is_some() {
            // Their place in the buffers is needed no more either.
            return session.drain(&mut |_| Ok::<(), io::Error>(())).map(drop);
        }
        let bytes = if self.may_fill(session.most_drained()) {
            self.pass_to_limit(session)?
        } else {
            session.drain(&mut |records| {
                self.writer.append_drained(records)?;
                self.count(records);
                Ok::<(), io::Error>(())
            })?
        };
        self.passes += 1;
        self.drained += bytes;
        if let (Some(counting), Some(began)) = (&mut open.counting, &mut self.tally.began) {
            counting.note_began(began);
            began.clear();
        }
        // Should the recorder be killed, threads that are off have been until now at least.
        let mark = time_record(begin);
        let is_told = session.has_switches()
            && self.why_full().is_none()
            && !self.may_fill(mark.len() as u64);
        if is_told {
            self.append(&mark)?;
        }
        if bytes > 0 || is_told {
            self.end_round()?;
        }
        self.writer.sync()
    }

    fn finish(&mut self, open: &Open) -> io::Result<()> {
        let about = About::session(&open.session, &open.images);
        // What was left out at the limit is counted all the same, and the records end before it.
        if self.why_full().is_none() {
            self.append(&time_record(open.ended))?;
            self.compare(open)?;
        }
        let calls = open.counting.as_ref().map(Counting::counts).transpose()?;
        // The first is the command, unless it ran before.
        let own = u64::from(open.begins_with_exec);
        let followed = open.counting.as_ref().map_or(0, Counting::followed);
        let others = self.tally.execs.saturating_sub(own + followed);
        if open.counting.is_some() && others > 0 {
            self.caveats.add(CaveatKind::UncountedPrograms, others);
        }
        let lost = open.session.lost().unwrap_or(0);
        let ended = AtEnd {
            lost,
            calls: calls.as_ref(),
            jobs: &open.session.jobs(),
            switches: open.switches.read(),
        };
        self.close(&about, &ended)
    }

    fn wants_end(&self) -> Option<End> {
        self.why_full()
    }
}
