//! Where the fields of an event's records stand.
//!
//! Samples begin with the fields that their event asked for; all other kernel records end with a
//! `struct sample_id` when the event has `sample_id_all`:
//!
//! ```text
//! SAMPLE      header │ identifier? ip? pid,tid? time? addr? id? …
//! any other   header │ its own fields │ pid,tid? time? id? stream_id? cpu? identifier?
//! ```

use linux_perf_event_reader::{AttrFlags, BranchSampleFormat, Endianness, SampleFormat};

use super::Attr;
use super::attr::BRANCH_COUNTERS;
use super::cursor::Cursor;
use super::record::Origin;

/// The layout of the records of one event.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) endian: Endianness,
    pub(super) format: SampleFormat,
    pub(super) read_format: u64,
    pub(super) branch_hw_index: bool,
    pub(super) branch_counters: bool,
    pub(super) user_registers: u64,
    pub(super) interrupt_registers: u64,
    /// Bytes of `struct sample_id` at the end of records that are not samples.
    trailer: Option<usize>,
    /// The time's place in a sample.
    sample_time: Option<usize>,
    /// The id's place in a sample.
    sample_id: Option<usize>,
}

fn words(format: SampleFormat, fields: SampleFormat) -> usize {
    8 * format.intersection(fields).bits().count_ones() as usize
}

impl Layout {
    pub(super) fn new(attr: &Attr, endian: Endianness) -> Layout {
        let format = attr.sample_format();
        let flags = attr.flags();
        let before_time = SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID;
        let before_id = before_time | SampleFormat::TIME | SampleFormat::ADDR;
        let trailer = SampleFormat::TID
            | SampleFormat::TIME
            | SampleFormat::ID
            | SampleFormat::STREAM_ID
            | SampleFormat::CPU
            | SampleFormat::IDENTIFIER;
        let sample_id = if format.contains(SampleFormat::IDENTIFIER) {
            Some(0)
        } else if format.contains(SampleFormat::ID) {
            Some(words(format, before_id))
        } else {
            None
        };
        Layout {
            endian,
            format,
            read_format: attr.read_format,
            branch_hw_index: attr.branch_format().contains(BranchSampleFormat::HW_INDEX),
            branch_counters: attr.branch_sample_type & BRANCH_COUNTERS != 0,
            user_registers: attr.sample_regs_user,
            interrupt_registers: attr.sample_regs_intr,
            trailer: flags
                .contains(AttrFlags::SAMPLE_ID_ALL)
                .then(|| words(format, trailer)),
            sample_time: format
                .contains(SampleFormat::TIME)
                .then(|| words(format, before_time)),
            sample_id,
        }
    }

    /// What the `struct sample_id` of a record that is not a sample says of whom the kernel was
    /// running, and where.
    pub(super) fn origin(&self, body: &[u8]) -> Origin {
        use SampleFormat as F;
        let trailer = self.trailer.and_then(|size| body.len().checked_sub(size));
        let trailer = trailer.and_then(|at| body.get(at..)).unwrap_or_default();
        let before_cpu = F::TID | F::TIME | F::ID | F::STREAM_ID;
        let pair = |field, before| {
            let at = words(self.format, before);
            let mut c = Cursor::new(trailer.get(at..)?, self.endian);
            let both = (c.u32("").ok()?, c.u32("").ok()?);
            self.format.contains(field).then_some(both)
        };
        Origin {
            task: pair(F::TID, F::empty()).map(|(pid, tid)| (pid as i32, tid as i32)),
            cpu: pair(F::CPU, before_cpu).map(|(cpu, _)| cpu),
        }
    }

    fn word_at(&self, body: &[u8], at: Option<usize>) -> Option<u64> {
        Cursor::new(body.get(at?..)?, self.endian).u64("").ok()
    }

    /// The time of a sample.
    pub(super) fn time_of_sample(&self, body: &[u8]) -> Option<u64> {
        self.word_at(body, self.sample_time)
    }

    /// The event id of a sample.
    pub(super) fn id_of_sample(&self, body: &[u8]) -> Option<u64> {
        self.word_at(body, self.sample_id)
    }

    /// The last word of a record that is not a sample, where that is its event's id.
    pub(super) fn last_identifier(&self, body: &[u8]) -> Option<u64> {
        let has_it = self.trailer.is_some() && self.format.contains(SampleFormat::IDENTIFIER);
        let last = has_it.then(|| body.len().checked_sub(8)).flatten();
        self.word_at(body, last)
    }

    /// Splits the body of a record that is not a sample into its own fields and what its
    /// `struct sample_id` says of its time.
    pub(super) fn split<'a>(&self, body: &'a [u8]) -> (&'a [u8], Option<u64>) {
        let Some(at) = self.trailer.and_then(|size| body.len().checked_sub(size)) else {
            return (body, None);
        };
        let (own, trailer) = body.split_at(at);
        let before = words(self.format, SampleFormat::TID);
        let time = self.format.contains(SampleFormat::TIME).then_some(before);
        (own, self.word_at(trailer, time))
    }
}
