//! Where the fields of an event's records are, by what its attr asks for.
//!
//! ```text
//! SAMPLE      header │ identifier? ip? pid,tid? time? addr? id? stream_id? cpu? period? read? …
//! any other   header │ its own fields │ pid,tid? time? id? stream_id? cpu? identifier?
//! ```
//!
//! Each field up to the period takes one word, so the fields before it tell its place. The counters
//! of a group come next (`struct read_format` with `PERF_FORMAT_GROUP`):
//!
//! ```text
//! u64 nr; [u64 time_enabled;] [u64 time_running;] { u64 value; [u64 id;] [u64 lost;] }[nr]
//! ```

use linux_perf_event_reader::constants::{
    PERF_FORMAT_GROUP, PERF_FORMAT_ID, PERF_FORMAT_TOTAL_TIME_ENABLED,
    PERF_FORMAT_TOTAL_TIME_RUNNING,
};
use linux_perf_event_reader::{AttrFlags, SampleFormat};

use super::Attr;
use super::attr::READ_FORMAT_LOST;

const WORD: usize = 8;

// The order of the fields of a sample that take one word each (`perf_output_sample` in the kernel).
const SAMPLE: [SampleFormat; 9] = [
    SampleFormat::IDENTIFIER,
    SampleFormat::IP,
    SampleFormat::TID,
    SampleFormat::TIME,
    SampleFormat::ADDR,
    SampleFormat::ID,
    SampleFormat::STREAM_ID,
    SampleFormat::CPU,
    SampleFormat::PERIOD,
];

// The order of the fields of `struct sample_id` (`__perf_event__output_id_sample`).
const TRAILER: [SampleFormat; 6] = [
    SampleFormat::TID,
    SampleFormat::TIME,
    SampleFormat::ID,
    SampleFormat::STREAM_ID,
    SampleFormat::CPU,
    SampleFormat::IDENTIFIER,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Task,
    Time,
    Id,
    /// The processor, in the first half.
    Cpu,
    Period,
}

impl Field {
    const ALL: [Field; 5] = [
        Field::Task,
        Field::Time,
        Field::Id,
        Field::Cpu,
        Field::Period,
    ];

    /// The bits of `sample_type` that put it into records, the preferred one first.
    fn bits(self) -> &'static [SampleFormat] {
        match self {
            Field::Task => &[SampleFormat::TID],
            Field::Time => &[SampleFormat::TIME],
            Field::Id => &[SampleFormat::IDENTIFIER, SampleFormat::ID],
            Field::Cpu => &[SampleFormat::CPU],
            Field::Period => &[SampleFormat::PERIOD],
        }
    }

    fn place(self, order: &[SampleFormat], format: SampleFormat) -> Option<u8> {
        let bit = self.bits().iter().find(|bit| format.contains(**bit))?;
        let before = order.iter().position(|field| field == bit)?;
        Some(words(&order[..before], format) as u8)
    }
}

fn words(fields: &[SampleFormat], format: SampleFormat) -> usize {
    let is_there = |field: &&SampleFormat| format.contains(**field);
    fields.iter().filter(is_there).count()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Where their number is, in words from the end of the header.
    pub(super) nr: u8,
    /// The words between their number and the first of them.
    pub(super) times: u8,
    pub(super) stride: u8,
}

/// Where the fields of an event's records are. All places are in words: those of a sample from the
/// end of its header, those of other records from the start of their `struct sample_id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(super) sample: [Option<u8>; Field::ALL.len()],
    pub(super) trailer: [Option<u8>; Field::ALL.len()],
    pub(super) trailer_words: Option<u8>,
    pub(super) group: Option<Group>,
}

impl Offsets {
    pub(crate) fn new(attr: &Attr) -> Offsets {
        let format = attr.sample_format();
        let has_trailer = attr.flags().contains(AttrFlags::SAMPLE_ID_ALL);
        let asked = |bit| attr.read_format & bit != 0;
        // Without ids nobody could tell the counters apart.
        let has_group = format.contains(SampleFormat::READ)
            && asked(PERF_FORMAT_GROUP)
            && asked(PERF_FORMAT_ID);
        Offsets {
            sample: Field::ALL.map(|field| field.place(&SAMPLE, format)),
            trailer: Field::ALL.map(|field| field.place(&TRAILER, format).filter(|_| has_trailer)),
            trailer_words: has_trailer.then(|| words(&TRAILER, format) as u8),
            group: has_group.then(|| Group {
                nr: words(&SAMPLE, format) as u8,
                times: u8::from(asked(PERF_FORMAT_TOTAL_TIME_ENABLED))
                    + u8::from(asked(PERF_FORMAT_TOTAL_TIME_RUNNING)),
                stride: 2 + u8::from(asked(READ_FORMAT_LOST)),
            }),
        }
    }

    pub(crate) fn in_sample(&self, field: Field) -> Option<usize> {
        self.sample[field as usize].map(|words| usize::from(words) * WORD)
    }

    pub(crate) fn in_trailer(&self, field: Field, body: usize) -> Option<usize> {
        let words = self.trailer[field as usize]?;
        Some(self.trailer_start(body)? + usize::from(words) * WORD)
    }

    pub(crate) fn has_trailer(&self) -> bool {
        self.trailer_words.is_some()
    }

    pub(crate) fn trailer_start(&self, body: usize) -> Option<usize> {
        body.checked_sub(usize::from(self.trailer_words?) * WORD)
    }

    pub(crate) fn without_trailer<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        let start = self.trailer_start(body.len());
        start.and_then(|start| body.get(..start)).unwrap_or(body)
    }
}
