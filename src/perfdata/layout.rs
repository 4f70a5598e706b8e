//! What the reader needs of an attr to parse an event's records, in the file's byte order.
//!
//! Samples begin with the fields that their event asked for; all other kernel records end with a
//! `struct sample_id` when the event has `sample_id_all`. [`Offsets`] has the places.

use linux_perf_event_reader::{Endianness, SampleFormat};

use super::Attr;
use super::cursor::Cursor;
use super::offsets::{Field, Offsets};
use super::origin::Origin;

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) endian: Endianness,
    pub(super) attr: Attr,
    offsets: Offsets,
}

impl Layout {
    pub(super) fn new(attr: &Attr, endian: Endianness) -> Layout {
        Layout {
            endian,
            attr: attr.clone(),
            offsets: Offsets::new(attr),
        }
    }

    /// What the `struct sample_id` of a record that is not a sample says of whom the kernel was
    /// running, and where.
    pub(super) fn origin(&self, body: &[u8]) -> Origin {
        let pair = |field| {
            let at = self.offsets.in_trailer(field, body.len())?;
            let mut c = Cursor::new(body.get(at..)?, self.endian);
            Some((c.u32("").ok()?, c.u32("").ok()?))
        };
        Origin {
            task: pair(Field::Task).map(|(pid, tid)| (pid as i32, tid as i32)),
            cpu: pair(Field::Cpu).map(|(cpu, _)| cpu),
        }
    }

    fn word_at(&self, body: &[u8], at: Option<usize>) -> Option<u64> {
        Cursor::new(body.get(at?..)?, self.endian).u64("").ok()
    }

    pub(super) fn time_of_sample(&self, body: &[u8]) -> Option<u64> {
        self.word_at(body, self.offsets.in_sample(Field::Time))
    }

    pub(super) fn id_of_sample(&self, body: &[u8]) -> Option<u64> {
        self.word_at(body, self.offsets.in_sample(Field::Id))
    }

    /// The last word of a record that is not a sample, where that is its event's id.
    pub(super) fn last_identifier(&self, body: &[u8]) -> Option<u64> {
        // The last word whatever else is in the trailer, so that it is found also where events
        // disagree about that.
        let format = self.attr.sample_format();
        let has_it = format.contains(SampleFormat::IDENTIFIER) && self.offsets.has_trailer();
        let last = has_it.then(|| body.len().checked_sub(8)).flatten();
        self.word_at(body, last)
    }

    /// Splits the body of a record that is not a sample into its own fields and what its
    /// `struct sample_id` says of its time.
    pub(super) fn split<'a>(&self, body: &'a [u8]) -> (&'a [u8], Option<u64>) {
        let time = self.offsets.in_trailer(Field::Time, body.len());
        (self.offsets.without_trailer(body), self.word_at(body, time))
    }
}
