//! What was sampled so far, in little memory, to be written to a file on request.
//!
//! ```text
//!   rounds ─▶ open ──1 MiB──▶ packed packed packed …      while all is below the limit
//!                             │ the oldest, else
//!                             ▼
//!                             its samples are let go; what happened between them is kept
//! ```

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::file::Output;
use super::group_values::GroupValues;
use super::log::{About, AtEnd, Log};
use crate::base::system_reason;
use crate::perfdata::raw::{self, Layouts, RawRecord};
use crate::perfdata::writer::{FINISHED_ROUND, WriterEvent, time_record};
use crate::perfdata::{Body, Packed};
use crate::sampler::error::Error;
use crate::sampler::kernel_images::KernelImages;
use crate::sampler::rings::duplicate_samples::is_of_time;
use crate::sampler::session::Session;
use crate::sampler::targets::existing::Existing;

const CHUNK: usize = 1 << 20;
// How much memory a history takes unless it is said.
const LIMIT: usize = 128 << 20;

/// What was sampled so far, up to a limit of memory.
///
/// Records of one program are much alike: a sample with a call chain takes some ten bytes, one with
/// a copy of its stack some hundreds.
#[derive(Clone, Debug)]
pub struct History {
    events: Vec<WriterEvent>,
    tracepoints: Vec<(String, String)>,
    groups: Vec<(usize, usize)>,
    images: KernelImages,
    existing: Arc<[u8]>,
    /// Records without samples, the oldest first.
    bare: VecDeque<Arc<Packed>>,
    packed: VecDeque<Arc<Packed>>,
    open: Vec<u8>,
    /// Samples up to this time are not wanted any more.
    since: Option<u64>,
    layouts: Layouts,
    /// What counters had counted in samples that are there no more.
    counted: GroupValues,
    limit: usize,
    let_go: u64,
    names_let_go: bool,
}

/// What was written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The samples in the file.
    pub samples: u64,
    /// The size of the file.
    pub bytes: u64,
    /// Samples that were dropped to save memory, and are missing.
    pub let_go: u64,
    /// Whether older records of tasks and mappings were dropped as well.
    pub names_let_go: bool,
}

impl History {
    pub(in crate::sampler) fn new(
        session: &Session,
        images: &KernelImages,
        existing: &Existing,
    ) -> History {
        History {
            events: session.events().to_vec(),
            tracepoints: session.tracepoints().to_vec(),
            groups: session.groups().to_vec(),
            images: images.clone(),
            existing: existing.records.clone().into(),
            bare: VecDeque::new(),
            packed: VecDeque::new(),
            open: Vec::new(),
            since: None,
            layouts: Layouts::new(session.events()),
            counted: GroupValues::new(session.events()),
            limit: LIMIT,
            let_go: 0,
            names_let_go: false,
        }
    }

    /// Takes whole records.
    pub fn append(&mut self, records: &[u8]) {
        self.open.extend_from_slice(records);
    }

    /// Ends a round, in which all buffers of the kernel were read once.
    pub fn end_round(&mut self) {
        if self.open.is_empty() {
            return;
        }
        self.open.extend_from_slice(&FINISHED_ROUND);
        if self.open.len() >= CHUNK {
            self.packed.push_back(Arc::new(Packed::new(&self.open)));
            self.open.clear();
            self.bound();
        }
    }

    /// Forgets the samples up to the time `until`, in nanoseconds of the recorder's clock, but not
    /// the records of tasks and mappings.
    pub fn reset(&mut self, until: u64) {
        self.since = Some(until);
        self.let_go = 0;
    }

    /// Writes a perf.data file of what happened up to the time `until`, in nanoseconds of the
    /// recorder's clock. An earlier file at `path` is kept with `.old` appended.
    ///
    /// # Errors
    ///
    /// If the file cannot be written. What was at `path` is then still there.
    pub fn write(&self, path: &Path, until: u64) -> Result<Written, Error> {
        let failed = |error: io::Error| Error::Output {
            path: path.to_owned(),
            reason: system_reason(&error),
        };
        // If this fails the part file is removed: the history is still here to be written again.
        let (output, file, _) = Output::create(path)?;
        let mut log = Log::new(file, &self.events).map_err(failed)?;
        self.write_to(&mut log, until).map_err(failed)?;
        let (tally, bytes, file) = log.into_parts();
        output.commit(&file)?;
        Ok(Written {
            samples: tally.samples,
            bytes,
            let_go: self.let_go,
            names_let_go: self.names_let_go,
        })
    }

    fn write_to<W: io::Write + io::Seek>(&self, log: &mut Log<W>, until: u64) -> io::Result<()> {
        log.open(&self.images, &self.existing)?;
        let packed = self.bare.iter().chain(&self.packed);
        let open = [self.open.as_slice(), &FINISHED_ROUND].concat();
        let mut counted = self.counted.clone();
        // What is counted first then has begun before what is kept.
        let is_part = self.since.is_some() || self.let_go > 0;
        let mut begun: FxHashSet<u64> = FxHashSet::default();
        for records in packed.map(|packed| packed.bytes()).chain([open]) {
            let mut kept = filtered(&records, |record| {
                let is_late = self.is_late(record);
                if !is_late {
                    counted.leave_out(&self.layouts, record);
                }
                // What happened after `until` would change how it ends.
                is_late && self.time(record).is_none_or(|time| time <= until)
            });
            if self.layouts.has_counters() {
                raw::for_each_mut(&mut kept, |record| counted.adjust(&self.layouts, record));
            }
            if is_part {
                raw::for_each_mut(&mut kept, |record| self.begin_count(record, &mut begun));
            }
            log.append(&kept)?;
        }
        log.append(&time_record(until))?;
        let about = About {
            events: &self.events,
            tracepoints: &self.tracepoints,
            groups: &self.groups,
            images: &self.images,
        };
        log.close(&about, &AtEnd::default())
    }

    /// Makes the first count of each event zero: it has begun before what is kept.
    fn begin_count(&self, record: &mut [u8], begun: &mut FxHashSet<u64>) {
        let read = RawRecord::first(record).and_then(|it| it.says(self.layouts.shared()));
        if let Some(Body::Read { id: Some(id), .. }) = read
            && begun.insert(id)
        {
            raw::set_read_value(record, 0);
        }
    }

    fn is_late(&self, record: RawRecord<'_>) -> bool {
        let is_late = |since| self.time(record) > Some(since);
        !is_of_time(record) || self.since.is_none_or(is_late)
    }

    fn time(&self, record: RawRecord<'_>) -> Option<u64> {
        record.time(self.layouts.shared())
    }

    /// Lets go of the oldest samples, then of the oldest records, until the limit is kept.
    fn bound(&mut self) {
        let size = |packed: &VecDeque<Arc<Packed>>| packed.iter().map(|p| p.size()).sum::<usize>();
        let (mut with, mut bare) = (size(&self.packed), size(&self.bare));
        while with + bare > self.limit
            && let Some(oldest) = self.packed.pop_front()
        {
            with -= oldest.size();
            let (mut counted, mut samples) = (std::mem::take(&mut self.counted), 0);
            let kept = filtered(&oldest.bytes(), |record| {
                if record.is_sample() {
                    counted.leave_out(&self.layouts, record);
                    samples += u64::from(self.is_late(record));
                }
                !is_of_time(record)
            });
            self.counted = counted;
            self.let_go += samples;
            let kept = Packed::new(&kept);
            bare += kept.size();
            self.bare.push_back(Arc::new(kept));
            while bare > self.limit / 4
                && let Some(oldest) = self.bare.pop_front()
            {
                bare -= oldest.size();
                self.names_let_go = true;
            }
        }
    }
}

/// Splits whole records: returns those that are no samples, and the number of samples.
pub fn samples_apart(records: &[u8]) -> (Vec<u8>, u64) {
    let mut samples = 0;
    let others = filtered(records, |record| {
        samples += u64::from(record.is_sample());
        !record.is_sample()
    });
    (others, samples)
}

fn filtered(records: &[u8], mut is_wanted: impl FnMut(RawRecord<'_>) -> bool) -> Vec<u8> {
    let mut kept = Vec::new();
    let all = raw::filter(records, &mut is_wanted, &mut |records| {
        kept.extend_from_slice(records);
        Ok::<(), Infallible>(())
    });
    let Ok(()) = all;
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::perfdata::raw::oracle;
    use crate::sampler::events::attr::tests::description;
    use perf_event_open_sys::bindings as sys;

    fn history(events: &[WriterEvent]) -> History {
        History {
            events: Vec::new(),
            tracepoints: Vec::new(),
            groups: Vec::new(),
            images: KernelImages::default(),
            existing: Arc::from([]),
            bare: VecDeque::new(),
            packed: VecDeque::new(),
            open: Vec::new(),
            since: None,
            layouts: Layouts::new(events),
            counted: GroupValues::new(events),
            limit: 3 * CHUNK,
            let_go: 0,
            names_let_go: false,
        }
    }

    #[test]
    fn the_oldest_samples_are_dropped_at_the_limit() {
        let mut history = history(&[]);
        // Bytes that cannot be packed: a xorshift generator's.
        let mut state = 1u64;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_ne_bytes()
        };
        for _ in 0..10 {
            while history.open.len() < CHUNK {
                let mut sample = 9u32.to_ne_bytes().to_vec();
                sample.extend([0, 0]);
                sample.extend(1024u16.to_ne_bytes());
                while sample.len() < 1024 {
                    sample.extend(noise());
                }
                history.append(&sample);
            }
            history.end_round();
            let kept = history.packed.iter().chain(&history.bare);
            assert!(kept.map(|packed| packed.size()).sum::<usize>() <= history.limit);
        }
        assert!(history.let_go > 5 * 1024, "{} samples", history.let_go);
    }

    #[test]
    fn samples_from_before_a_reset_are_not_missing() {
        let mut history = history(&[description("cpu-clock")]);
        history.limit = 0;
        // IDENTIFIER, IP, process and thread, TIME, CPU, PERIOD.
        let sample = |time: u64| {
            let words = [0, 0, 0, time, 0, 1].map(u64::to_ne_bytes);
            oracle::record(sys::PERF_RECORD_SAMPLE, 0, &words.concat())
        };
        history.reset(10);
        for time in [9, 10, 11] {
            for _ in 0..CHUNK / 3 / sample(time).len() {
                history.append(&sample(time));
            }
        }
        let late = (CHUNK / 3 / sample(11).len()) as u64;
        // What fills the chunk up.
        while history.open.len() < CHUNK {
            history.append(&sample(8));
        }
        history.end_round();
        assert!(history.packed.is_empty());
        assert_eq!(history.let_go, late);
    }
}
