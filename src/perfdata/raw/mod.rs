//! Kernel records as raw bytes in this machine's byte order.
//!
//! A recorder passes records on as bytes and needs a few fields of each: its time, its thread, its
//! event. Decoding every record for that ([`Record`](super::Record)) would cost more than writing
//! it. This view knows where the fields are and reads nothing else. It does not allocate.
//!
//! ```text
//!   drained bytes ─▶ records ─▶ RawRecord ┐
//!   attrs of the events ─▶ Layouts ───────┴▶ time, thread, event, period, counters
//! ```
//!
//! The offsets come from the attrs and nowhere else ([`Offsets`]); the reader uses the same ones.
//! Records are bytes from outside: a field that is not inside its record is `None`.

pub(crate) mod arguments;
mod counters;
mod layouts;
#[cfg(test)]
pub(crate) mod oracle;
pub(crate) mod trimmed;
pub(crate) mod unwound;

use linux_perf_event_reader::{RecordType, constants};

pub(crate) use super::offsets::{Field, Offsets};
pub(crate) use counters::Counter;
pub(crate) use layouts::Layouts;

use super::record::{Body, parse_fields};
use super::split::{self, HEADER_SIZE, NATIVE};

/// One whole record of this machine's kernel, or of the recorder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRecord<'a> {
    kind: u32,
    misc: u16,
    bytes: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// The first of `bytes`; `None` if they do not begin with a whole record.
    pub(crate) fn first(bytes: &'a [u8]) -> Option<RawRecord<'a>> {
        let header = split::header(bytes, NATIVE)?;
        let size = usize::from(header.size);
        let bytes = bytes.get(..size).filter(|_| size >= HEADER_SIZE)?;
        Some(RawRecord {
            kind: header.type_,
            misc: header.misc,
            bytes,
        })
    }

    pub(crate) fn kind(self) -> u32 {
        self.kind
    }

    pub(crate) fn is_sample(self) -> bool {
        self.kind == constants::PERF_RECORD_SAMPLE
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    fn body(self) -> &'a [u8] {
        self.bytes.get(HEADER_SIZE..).unwrap_or_default()
    }

    pub(crate) fn field(self, field: Field, offsets: &Offsets) -> Option<u64> {
        let body = self.body();
        let at = if self.is_sample() {
            offsets.in_sample(field)
        } else if self.kind < constants::PERF_RECORD_USER_TYPE_START {
            offsets.in_trailer(field, body.len())
        } else {
            // What recorders add themselves has no `struct sample_id`.
            None
        };
        word(body, at?)
    }

    pub(crate) fn time(self, offsets: &Offsets) -> Option<u64> {
        self.field(Field::Time, offsets)
    }

    pub(crate) fn tid(self, offsets: &Offsets) -> Option<i32> {
        // Two halves in the order of memory: the process, then the thread.
        let [_, _, _, _, tid @ ..] = self.field(Field::Task, offsets)?.to_ne_bytes();
        Some(i32::from_ne_bytes(tid))
    }

    pub(crate) fn counters(self, offsets: &Offsets) -> impl Iterator<Item = Counter> {
        let samples = self.is_sample().then(|| self.body());
        offsets.counters(samples.unwrap_or_default())
    }

    /// What a record says that is not a sample; `None` for a sample and for what is damaged.
    pub(crate) fn says(self, offsets: &Offsets) -> Option<Body<'a>> {
        if self.is_sample() {
            return None;
        }
        let own = offsets.without_trailer(self.body());
        parse_fields(RecordType(self.kind), self.misc, own, NATIVE).ok()
    }
}

/// The whole records at the start of `bytes`, up to the first that is damaged or cut.
pub(crate) fn records(mut bytes: &[u8]) -> impl Iterator<Item = RawRecord<'_>> {
    std::iter::from_fn(move || {
        let record = RawRecord::first(bytes)?;
        bytes = &bytes[record.bytes.len()..];
        Some(record)
    })
}

pub(crate) fn whole(bytes: &[u8]) -> usize {
    records(bytes).map(|record| record.bytes.len()).sum()
}

/// The size that the header at the start of `bytes` states, whether or not all of the record is
/// there; `None` if not even the header is.
pub(crate) fn stated_size(bytes: &[u8]) -> Option<usize> {
    split::header(bytes, NATIVE).map(|header| usize::from(header.size))
}

/// Passes on the records that `admits` accepts, in slices as large as possible, up to the first
/// error of `consume`. What follows the last whole record is passed on as it is.
pub(crate) fn filter<E>(
    bytes: &[u8],
    admits: &mut dyn FnMut(RawRecord<'_>) -> bool,
    consume: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut begin, mut end) = (0, 0);
    for record in records(bytes) {
        if !admits(record) {
            if begin < end {
                consume(&bytes[begin..end])?;
            }
            begin = end + record.bytes.len();
        }
        end += record.bytes.len();
    }
    if begin < bytes.len() {
        consume(&bytes[begin..])?;
    }
    Ok(())
}

/// Appends these records to `out`, some of them replaced: `rewrite` appends a record in its new
/// form, or returns `None` and appends nothing. What follows the last whole record stays as it is.
pub(crate) fn rewrite(
    bytes: &[u8],
    out: &mut Vec<u8>,
    rewrite: &mut dyn FnMut(RawRecord<'_>, &mut Vec<u8>) -> Option<()>,
) {
    let mut end = 0;
    for record in records(bytes) {
        end += record.bytes.len();
        if rewrite(record, out).is_none() {
            out.extend_from_slice(record.bytes);
        }
    }
    out.extend_from_slice(bytes.get(end..).unwrap_or_default());
}

/// Changes the counters of one sample in place: `change` gets each id and value, and gives the new
/// value.
pub(crate) fn change_counters(
    sample: &mut [u8],
    offsets: &Offsets,
    mut change: impl FnMut(u64, u64) -> u64,
) {
    if RawRecord::first(sample).is_some_and(RawRecord::is_sample)
        && let Some(body) = sample.get_mut(HEADER_SIZE..)
    {
        offsets.change_counters(body, &mut change);
    }
}

pub(crate) fn set_read_value(record: &mut [u8], value: u64) {
    let is_read = RawRecord::first(record).is_some_and(|it| it.kind == constants::PERF_RECORD_READ);
    // Behind the header and the thread.
    if let Some(place) = record
        .get_mut(2 * HEADER_SIZE..3 * HEADER_SIZE)
        .filter(|_| is_read)
    {
        place.copy_from_slice(&value.to_ne_bytes());
    }
}

pub(crate) fn for_each_mut(mut bytes: &mut [u8], mut change: impl FnMut(&mut [u8])) {
    while let Some(record) = RawRecord::first(bytes) {
        let size = record.bytes.len();
        let (record, rest) = bytes.split_at_mut(size);
        change(record);
        bytes = rest;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(size).max(HEADER_SIZE)];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        bytes
    }

    #[test]
    fn records_end_at_the_first_that_is_not_whole() {
        let mut bytes = [record(9, 16), record(14, 24)].concat();
        assert_eq!(whole(&bytes), 40);
        assert_eq!(whole(&bytes[..39]), 16);
        bytes.extend(record(3, 7));
        assert_eq!(whole(&bytes), 40);
        assert_eq!(stated_size(&bytes[40..]), Some(7));
        assert_eq!(
            (whole(&[0; 16]), whole(&[]), stated_size(&[0; 7])),
            (0, 0, None)
        );
    }

    #[test]
    fn a_filter_passes_on_large_slices_and_what_is_not_whole() {
        let all = [
            record(9, 16),
            record(9, 24),
            record(3, 8),
            record(9, 32),
            vec![1; 5],
        ]
        .concat();
        let mut slices = Vec::new();
        let taken = filter(&all, &mut |record| record.kind() == 9, &mut |slice| {
            slices.push(slice.len());
            Ok::<(), ()>(())
        });
        assert_eq!((taken, slices), (Ok(()), vec![40, 37]));
        let stopped = filter(&all, &mut |_| true, &mut |_| Err("full"));
        assert_eq!(stopped, Err("full"));
    }

    proptest! {
        /// Whatever an attr asks for of the fields at fixed places and of counters.
        #[test]
        fn the_view_reads_and_changes_what_the_parsers_read(
            fields in any::<u16>(),
            identifier in any::<bool>(),
            read_format in 0u64..32,
            has_trailer in any::<bool>(),
            values in oracle::values(),
        ) {
            // Up to RAW, but not what needs more settings.
            let sample_type = u64::from(fields) & 0x7ff | u64::from(identifier) << 16;
            let mut attr = [0; 128];
            attr[4..8].copy_from_slice(&128u32.to_ne_bytes());
            attr[24..32].copy_from_slice(&sample_type.to_ne_bytes());
            attr[32..40].copy_from_slice(&read_format.to_ne_bytes());
            // sample_id_all.
            attr[40..48].copy_from_slice(&(u64::from(has_trailer) << 18).to_ne_bytes());
            oracle::check(&attr, &values);
        }
    }
}
