//! Delivers records: the sorted ones in order of time, and those that need no sorting at once.

use std::hint::black_box;

use linux_perf_event_reader::{PerfEventHeader, RecordType, constants};

use crate::base::CaveatKind;

use super::buffers::Owner;
use super::error::{Error, Flaw};
use super::layout::Layout;
use super::origin::Origin;
use super::pass::State;
use super::reader::Reader;
use super::record::{self, Body, Record, type_name};
use super::sample::Sample;
use super::sorter::Waiting;
use super::split::{self, Split};

// The most records of a batch. The processor fetches what this number of samples needs at once.
const BATCH: usize = 16;

impl Reader {
    /// Hands out all records that wait and are not later than `limit`, in order.
    pub(super) fn hand_out<V: FnMut(&Reader, &[Record<'_>])>(
        &mut self,
        limit: u64,
        state: &mut State,
        visit: &mut V,
    ) -> Result<(), Error> {
        let due = state.sorter.take(limit);
        let most = if state.spill.is_empty() { BATCH } else { 1 };
        for batch in due.chunks(most) {
            // What is on disk came before what is in memory.
            let next = batch.first().map_or(limit, |waiting| waiting.time);
            self.hand_out_spilled(next, state, visit)?;
            self.hand_out_batch(batch, state, visit);
        }
        self.hand_out_spilled(limit, state, visit)
    }

    fn hand_out_spilled<V: FnMut(&Reader, &[Record<'_>])>(
        &mut self,
        limit: u64,
        state: &mut State,
        visit: &mut V,
    ) -> Result<(), Error> {
        while let Some(spilled) = state.spill.next(limit, &mut state.spilled)? {
            state.sorter.hands_out(spilled.time);
            if let Split::Record(header, body) = split::first(&state.spilled, self.endian) {
                self.deliver_one(&header, body, (spilled.place, Owner(None)), visit);
            }
        }
        Ok(())
    }

    /// Makes room where more waits than is to be held in memory.
    pub(super) fn make_room<V: FnMut(&Reader, &[Record<'_>])>(
        &mut self,
        state: &mut State,
        visit: &mut V,
    ) -> Result<(), Error> {
        if !state.is_overfull() {
            return Ok(());
        }
        if state.spills && state.spill.has_room() {
            self.spill(state);
        }
        if state.is_overfull() {
            let middle = state.sorter.middle();
            self.hand_out(middle, state, visit)?;
        }
        // A few records may hold many buffers.
        if state.is_overfull() {
            self.hand_out(u64::MAX, state, visit)?;
        }
        Ok(())
    }

    /// Puts all records that wait on disk. Where that cannot be, they go on waiting.
    fn spill(&mut self, state: &mut State) {
        let due = state.sorter.take(u64::MAX);
        let buffers = &state.buffers;
        let endian = self.endian;
        let records = due.iter().filter_map(|waiting| {
            let buffer = buffers.of(waiting.buffer)?;
            let start = waiting.start as usize;
            let bytes = buffer.bytes().get(start..)?;
            let size = split::record_size(bytes, endian)?;
            Some((waiting.time, buffer.place(start), bytes.get(..size)?))
        });
        match state.spill.write(records) {
            Ok(()) => {
                for waiting in due {
                    state.buffers.done(waiting.buffer);
                }
            }
            Err(_) => state.sorter.put_back(due),
        }
    }

    fn hand_out_batch<V: FnMut(&Reader, &[Record<'_>])>(
        &mut self,
        batch: &[Waiting],
        state: &mut State,
        visit: &mut V,
    ) {
        // The processor fetches the headers of all at once, where it would wait for each.
        for waiting in batch {
            let buffer = state.buffers.of(waiting.buffer);
            black_box(buffer.and_then(|it| it.bytes().get(waiting.start as usize).copied()));
        }
        let mut records = Vec::with_capacity(batch.len());
        for waiting in batch {
            state.sorter.hands_out(waiting.time);
            let Some(buffer) = state.buffers.of(waiting.buffer) else {
                continue;
            };
            let start = waiting.start as usize;
            let place = (buffer.place(start), Owner(Some(buffer)));
            let bytes = buffer.bytes().get(start..).unwrap_or_default();
            if let Split::Record(header, body) = split::first(bytes, self.endian) {
                records.extend(self.parse(&header, body, place));
            }
        }
        visit(self, &records);
        drop(records);
        for waiting in batch {
            state.buffers.done(waiting.buffer);
        }
    }

    pub(super) fn deliver_one<V: FnMut(&Reader, &[Record<'_>])>(
        &mut self,
        header: &PerfEventHeader,
        body: &[u8],
        place: (u64, Owner<'_>),
        visit: &mut V,
    ) {
        if let Some(record) = self.parse(header, body, place) {
            visit(self, &[record]);
        }
    }

    /// Parses a record. What is wrong with one that cannot be handed out becomes a caveat.
    fn parse<'a>(
        &mut self,
        header: &PerfEventHeader,
        body: &'a [u8],
        (offset, owner): (u64, Owner<'a>),
    ) -> Option<Record<'a>> {
        let kind = RecordType(header.type_);
        let Some(layout) = self.layouts.first() else {
            let flaw = Flaw::Fact("it comes before any event is described");
            self.skip(header.type_, offset, flaw);
            return None;
        };
        #[cfg(feature = "record")]
        let bytes = body;
        let (time, origin, body) = if kind == RecordType::SAMPLE {
            let Some(event) = self.event_of_sample(body) else {
                let id = layout.id_of_sample(body).unwrap_or(0);
                self.caveats
                    .add_with(CaveatKind::UnknownEvent, 1, || format!("id {id}"));
                return None;
            };
            match Sample::parse(body, event, &self.layouts[event]) {
                Ok(sample) => (sample.time, Origin::default(), Body::Sample(sample)),
                Err(flaw) => {
                    self.skip(header.type_, offset, flaw);
                    return None;
                }
            }
        } else {
            if type_name(header.type_).is_none() {
                self.unknown(header.type_, offset);
                return None;
            }
            let layout = self.layout_of(body).unwrap_or(layout);
            let (fields, time) = layout.split(body);
            let origin = layout.origin(body);
            // Kernels may set this bit in every session while one of them asks for build IDs. The
            // others then have an inode in the place of the ID.
            let has_stray_bit = kind == RecordType::MMAP2 && !self.has_build_ids();
            let misc = if has_stray_bit {
                header.misc & !constants::PERF_RECORD_MISC_MMAP_BUILD_ID
            } else {
                header.misc
            };
            match record::parse_fields(kind, misc, fields, self.endian) {
                Ok(body) => (time, origin, body),
                Err(flaw) => {
                    self.skip(header.type_, offset, flaw);
                    return None;
                }
            }
        };
        Some(Record {
            kind: kind.0,
            misc: header.misc,
            offset,
            time,
            origin,
            body,
            #[cfg(feature = "record")]
            body_bytes: bytes,
            owner,
        })
    }

    pub(super) fn unknown(&mut self, kind: u32, offset: u64) {
        self.caveats.add_with(CaveatKind::UnknownRecord, 1, || {
            format!("at offset {offset:#x}: type {kind}")
        });
    }

    pub(super) fn time_of(&self, header: &PerfEventHeader, body: &[u8]) -> Option<u64> {
        if header.type_ == constants::PERF_RECORD_SAMPLE {
            let event = self.event_of_sample(body)?;
            return self.layouts.get(event)?.time_of_sample(body);
        }
        self.layout_of(body)?.split(body).1
    }

    /// The layout of a record that is not a sample: that of its event, where its last word tells
    /// which one that is.
    fn layout_of(&self, body: &[u8]) -> Option<&Layout> {
        let first = self.layouts.first()?;
        let id = first.last_identifier(body);
        let event = id.and_then(|id| self.event_of_id(id)).unwrap_or(0);
        self.layouts.get(event)
    }

    /// The event of a sample; `None` when its id is nobody's.
    fn event_of_sample(&self, body: &[u8]) -> Option<usize> {
        let first = self.layouts.first()?;
        if self.layouts.len() == 1 || !self.has_ids() {
            return Some(0);
        }
        match first.id_of_sample(body) {
            None | Some(0) => Some(0),
            Some(id) => self.event_of_id(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert_eq, proptest};

    use super::super::buffers::Buffer;
    use super::super::empty_recording;
    use super::super::sorter::Sorter;
    use super::*;

    /// An EXIT record of this time, of a recording whose records tell time and nothing else.
    fn record(time: u64) -> Vec<u8> {
        let mut record = 4u32.to_ne_bytes().to_vec();
        record.extend([0, 0, 40, 0]);
        record.extend([0; 16]);
        record.extend(time.to_ne_bytes());
        record.extend(time.to_ne_bytes());
        record
    }

    /// Times and places of records in the order in which they are handed out, if no more than
    /// `most` bytes may wait in memory.
    fn handed_out(times: &[u64], in_a_buffer: usize, most: u64) -> Vec<(u64, u64)> {
        let mut reader = empty_recording(4, 1 << 18);
        let mut state = State::with(Sorter::of_all(), most, true);
        let mut seen = Vec::new();
        let mut visit = |_: &Reader, records: &[Record<'_>]| {
            let places = records.iter().map(|it| (it.time.unwrap_or(0), it.offset));
            seen.extend(places);
        };
        let mut offset = 0;
        for times in times.chunks(in_a_buffer) {
            let bytes: Vec<u8> = times.iter().flat_map(|&time| record(time)).collect();
            let end = offset + bytes.len() as u64;
            let buffer = Buffer::of_file(bytes, offset);
            let result = reader.split_buffer(buffer, &mut state, &mut visit, true, end);
            assert!(result.is_ok());
            offset = end;
        }
        assert!(reader.hand_out(u64::MAX, &mut state, &mut visit).is_ok());
        assert_eq!((state.late, state.buffers.held()), (0, 0));
        seen
    }

    proptest! {
        #[test]
        fn records_are_in_order_of_time_with_any_limit_of_memory(
            times in proptest::collection::vec(1u64..60, 0..300),
            in_a_buffer in 1usize..40,
            most in 0u64..12_000,
        ) {
            let places = (0..).step_by(40);
            let mut sorted: Vec<(u64, u64)> = times.iter().copied().zip(places).collect();
            sorted.sort();
            prop_assert_eq!(handed_out(&times, in_a_buffer, most), sorted);
        }
    }

    #[test]
    fn one_record_in_each_buffer_keeps_memory_within_the_limit() {
        let mut reader = empty_recording(4, 1 << 18);
        let mut state = State::with(Sorter::by_rounds(), 10_000, false);
        let mut visit = |_: &Reader, _: &[Record<'_>]| ();
        for time in 0..100 {
            // The first of each is far in the future: nothing but everything can be handed out.
            let mut bytes = record(u64::MAX - time);
            (0..100).for_each(|_| bytes.extend(record(1 + time)));
            let buffer = Buffer::of_file(bytes, 0);
            let result = reader.split_buffer(buffer, &mut state, &mut visit, true, 0);
            assert!(result.is_ok() && state.buffers.held() <= 10_000);
        }
    }
}
