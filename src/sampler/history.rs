//! What was sampled so far, in little memory, to be written to a file when somebody asks for it.
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

use super::doubles::{self, is_of_time};
use super::error::{Error, reason};
use super::existing::Existing;
use super::kernel_images::KernelImages;
use super::log::{About, Log};
use super::output::Output;
use super::session::Session;
use super::tally::{SAMPLE, SAMPLE_TIME_AT, word};
use crate::perfdata::Packed;
use crate::perfdata::writer::{EventDescription, FINISHED_ROUND};

/// The first type of records that recorders make themselves.
const USER_TYPES: u32 = 64;
/// How many bytes of records are packed together.
const CHUNK: usize = 1 << 20;
/// How much memory a history takes unless it is said.
const LIMIT: usize = 128 << 20;

/// What was sampled so far, up to a limit of memory.
///
/// Records of one program are much alike: a sample with a call chain takes some ten bytes, one with
/// a copy of its stack some hundreds.
#[derive(Debug)]
pub struct History {
    events: Vec<EventDescription>,
    tracepoints: Vec<(String, String)>,
    groups: Vec<(usize, usize)>,
    images: KernelImages,
    existing: Vec<u8>,
    /// Records without samples, the oldest first.
    bare: VecDeque<Packed>,
    packed: VecDeque<Packed>,
    open: Vec<u8>,
    limit: usize,
    let_go: u64,
}

/// What was written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The samples in the file.
    pub samples: u64,
    /// The size of the file.
    pub bytes: u64,
    /// Samples that were let go for want of memory before, and are missing.
    pub let_go: u64,
}

impl History {
    /// The history of a session that begins.
    pub(super) fn new(session: &Session, images: &KernelImages, existing: &Existing) -> History {
        History {
            events: session.events().to_vec(),
            tracepoints: session.tracepoints().to_vec(),
            groups: session.groups().to_vec(),
            images: images.clone(),
            existing: existing.records.clone(),
            bare: VecDeque::new(),
            packed: VecDeque::new(),
            open: Vec::new(),
            limit: LIMIT,
            let_go: 0,
        }
    }

    /// Takes whole records.
    pub fn append(&mut self, records: &[u8]) {
        self.open.extend_from_slice(records);
    }

    /// All buffers of the kernel were looked at once.
    pub fn end_round(&mut self) {
        if self.open.is_empty() {
            return;
        }
        self.open.extend_from_slice(&FINISHED_ROUND);
        if self.open.len() >= CHUNK {
            self.packed.push_back(Packed::new(&self.open));
            self.open.clear();
            self.bound();
        }
    }

    /// Forgets the samples up to the time `until`, in nanoseconds of the recorder's clock, but not
    /// what happened between them: who runs, and what is mapped.
    pub fn reset(&mut self, until: u64) {
        let all = std::mem::take(&mut self.packed);
        let open = std::mem::take(&mut self.open);
        let is_kept = |record: &[u8]| !is_of_time(record) || time(record) > Some(until);
        let packed = all.iter().map(Packed::bytes).chain([open]);
        self.packed = packed
            .map(|records| Packed::new(&filtered(&records, is_kept)))
            .collect();
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
            reason: reason(&error),
        };
        let (output, file, _) = Output::create(path).map_err(failed)?;
        let mut log = Log::new(file, &self.events).map_err(failed)?;
        self.write_to(&mut log, until).map_err(failed)?;
        let written = Written {
            samples: log.tally().samples,
            bytes: log.file_size(),
            let_go: self.let_go,
        };
        output.commit().map_err(failed)?;
        Ok(written)
    }

    fn write_to<W: io::Write + io::Seek>(&self, log: &mut Log<W>, until: u64) -> io::Result<()> {
        log.open(&self.images, &self.existing)?;
        let packed = self.bare.iter().chain(&self.packed);
        let open = [self.open.as_slice(), &FINISHED_ROUND].concat();
        // What happened later would change how it ends.
        let is_wanted = |record: &[u8]| time(record).is_none_or(|time| time <= until);
        for records in packed.map(Packed::bytes).chain([open]) {
            log.append(&filtered(&records, is_wanted))?;
        }
        let about = About {
            events: &self.events,
            tracepoints: &self.tracepoints,
            groups: &self.groups,
            images: &self.images,
        };
        log.close(&about, 0)
    }

    /// Lets go of the oldest samples, then of the oldest records, until the limit is kept.
    fn bound(&mut self) {
        let size = |packed: &VecDeque<Packed>| packed.iter().map(Packed::size).sum::<usize>();
        let (mut with, mut bare) = (size(&self.packed), size(&self.bare));
        while with + bare > self.limit
            && let Some(oldest) = self.packed.pop_front()
        {
            with -= oldest.size();
            let (kept, samples) = samples_apart(&oldest.bytes());
            self.let_go += samples;
            let kept = Packed::new(&kept);
            bare += kept.size();
            self.bare.push_back(kept);
            while bare > self.limit / 4
                && let Some(oldest) = self.bare.pop_front()
            {
                bare -= oldest.size();
            }
        }
    }
}

/// Those of whole records that are neither samples nor tell what a thread spends time on, and how
/// many samples there are.
pub fn samples_apart(records: &[u8]) -> (Vec<u8>, u64) {
    let mut samples = 0;
    let others = filtered(records, |record| {
        samples += u64::from(doubles::kind(record) == Some(SAMPLE));
        !is_of_time(record)
    });
    (others, samples)
}

/// Those of whole records that are wanted.
fn filtered(records: &[u8], mut is_wanted: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut kept = Vec::new();
    let all = doubles::filter(records, &mut is_wanted, &mut |records| {
        kept.extend_from_slice(records);
        Ok::<(), Infallible>(())
    });
    let Ok(()) = all;
    kept
}

/// The time of a record of the kernel's.
fn time(record: &[u8]) -> Option<u64> {
    match doubles::kind(record)? {
        SAMPLE => word(record, SAMPLE_TIME_AT),
        // What stands behind other records ends with time, processor and id.
        kind if kind < USER_TYPES => word(record, record.len().checked_sub(24)?),
        _ => None,
    }
}
