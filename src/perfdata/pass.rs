//! One pass over a recording: from bytes to records in order of time.
//!
//! ```text
//!  source ──1 MiB──▶ buffer ──split──▶ records ──▶ sorter ──▶ parse ──▶ visit
//!                       ▲                  │
//!                       └── decompressed ◀─┘ COMPRESSED
//! ```
//!
//! Buffers are kept as long as a record in them waits. A record that cannot be believed is passed
//! over by its size, counted and told; where even the size cannot be believed, the next place that
//! looks like records is sought.

use std::rc::Rc;

use linux_perf_event_reader::{AttrFlags, PerfEventHeader, RecordType, constants};

use crate::base::CaveatKind;

use super::decompress::Decompressor;
use super::error::{Error, Flaw};
use super::header::Section;
use super::layout::Layout;
use super::reader::Reader;
use super::record::{self, Body, Origin, Record, type_name};
use super::sample::Sample;
use super::sorter::{Sorter, Waiting};
use super::source::Source;
use super::split::{self, HEADER_SIZE, Split};
use super::user;

/// How much is read at once.
const BUFFER_SIZE: usize = 1 << 20;

/// Whether all records were handed out in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pass {
    /// They were, or this cannot be bettered.
    Done,
    /// A record came too late. What was visited is to be thrown away, and the next pass, which
    /// holds more records back, will be in order.
    Again,
}

/// Bytes with records.
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// The place of the first byte in the file; of the COMPRESSED record for what grew from one.
    pub(super) offset: u64,
    pub(super) compressed: bool,
}

impl Buffer {
    /// The place in the file of the byte at `position`.
    fn place(&self, position: usize) -> u64 {
        match self.compressed {
            true => self.offset,
            false => self.offset + position as u64,
        }
    }
}

/// The buffers in use: each with the number of records in it that wait.
#[derive(Default)]
struct Buffers {
    slots: Vec<(Option<Rc<Buffer>>, usize)>,
    /// Slots that are in use no more, and memory of buffers.
    empty_slots: Vec<u32>,
    free: Vec<Vec<u8>>,
}

impl Buffers {
    /// An empty vector, one that was used before where there is one.
    fn empty(&mut self) -> Vec<u8> {
        let mut bytes = self.free.pop().unwrap_or_default();
        bytes.clear();
        bytes
    }

    fn add(&mut self, buffer: Buffer) -> (u32, Rc<Buffer>) {
        let buffer = Rc::new(buffer);
        // Counted as waiting until `done` is called for it.
        let row = (Some(buffer.clone()), 1);
        let slot = match self.empty_slots.pop() {
            Some(slot) => {
                self.slots[slot as usize] = row;
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 buffers");
                self.slots.push(row);
                slot
            }
        };
        (slot, buffer)
    }

    fn wait(&mut self, slot: u32) {
        self.slots[slot as usize].1 += 1;
    }

    /// One record less waits in `slot`.
    fn done(&mut self, slot: u32) {
        let (buffer, waiting) = &mut self.slots[slot as usize];
        *waiting -= 1;
        if *waiting > 0 {
            return;
        }
        self.empty_slots.push(slot);
        if let Some(Ok(buffer)) = buffer.take().map(Rc::try_unwrap)
            && self.free.len() < 64
        {
            self.free.push(buffer.bytes);
        }
    }
}

/// What a pass carries from buffer to buffer.
pub(super) struct State {
    buffers: Buffers,
    pub(super) sorter: Sorter,
    decompressor: Option<Decompressor>,
    /// The beginning of a record whose end comes with the next COMPRESSED record.
    inner_rest: Vec<u8>,
    pub(super) late: u64,
}

impl State {
    /// Nothing waits yet.
    pub(super) fn new(sorter: Sorter) -> State {
        State {
            buffers: Buffers::default(),
            sorter,
            decompressor: None,
            inner_rest: Vec::new(),
            late: 0,
        }
    }
}

/// Where reading goes on after a buffer.
pub(super) enum Next {
    /// With these bytes, which begin an incomplete record, before what comes next.
    Rest(Vec<u8>),
    /// At this place of the file.
    Place(u64),
}

impl Reader {
    /// Hands all records of the kernel to `visit` in order of time; those without a time, or with
    /// time 0, as they are met. `progress` hears how many bytes of the data were read.
    ///
    /// # Errors
    ///
    /// Only what the operating system says while reading, and that no event is described; bad
    /// contents are caveats.
    pub fn visit(
        &mut self,
        mut progress: impl FnMut(u64),
        mut visit: impl FnMut(&Reader, &Record<'_>),
    ) -> Result<Pass, Error> {
        self.begin_pass();
        let mut state = State::new(Sorter::new(self.budget()));
        let mut sources = std::mem::take(&mut self.sources);
        let mut result = Ok(());
        for (index, source) in sources.iter_mut().enumerate() {
            let data = match index {
                0 => self.data,
                _ => Section {
                    offset: 0,
                    size: source.len().unwrap_or(0),
                },
            };
            // Each file has a compression stream of its own.
            state.decompressor = None;
            result = self.visit_source(source, data, &mut state, &mut progress, &mut visit);
            if !state.inner_rest.is_empty() {
                state.inner_rest.clear();
                let what = "a compressed record lacks its end";
                self.caveats.add_detail(CaveatKind::Truncated, 1, what);
            }
            if result.is_err() {
                break;
            }
        }
        self.sources = sources;
        result?;
        if state.late > 0 {
            if self.may_try_again() {
                self.try_harder();
                return Ok(Pass::Again);
            }
            self.caveats.add(CaveatKind::Disordered, state.late);
        }
        let due = state.sorter.finish();
        self.deliver(&due, &mut state, &mut visit);
        match self.events().is_empty() {
            true => Err(Error::NoEvents),
            false => Ok(Pass::Done),
        }
    }

    fn visit_source<V: FnMut(&Reader, &Record<'_>)>(
        &mut self,
        source: &mut Source,
        data: Section,
        state: &mut State,
        progress: &mut impl FnMut(u64),
        visit: &mut V,
    ) -> Result<(), Error> {
        let end = data.offset.saturating_add(data.size);
        let mut at = data.offset;
        let mut rest = Vec::new();
        loop {
            progress(at - data.offset);
            let mut bytes = state.buffers.empty();
            bytes.append(&mut rest);
            let offset = at - bytes.len() as u64;
            let want = usize::try_from(end - at)
                .unwrap_or(usize::MAX)
                .min(BUFFER_SIZE);
            let got = source.append(at, want, &mut bytes)?;
            at += got as u64;
            let last = got < want || at >= end;
            let buffer = Buffer {
                bytes,
                offset,
                compressed: false,
            };
            match self.split_buffer(buffer, state, visit, last, end) {
                // The payload behind a record is passed over without reading it.
                Next::Place(place) if place > at => at = place.min(end),
                Next::Place(_) => {}
                Next::Rest(bytes) => rest = bytes,
            }
            if last || (state.late > 0 && self.may_try_again()) {
                return Ok(());
            }
        }
    }

    /// Takes the records of a buffer apart. `last`: nothing comes behind it; `end`: where the data
    /// ends in the file.
    pub(super) fn split_buffer<V: FnMut(&Reader, &Record<'_>)>(
        &mut self,
        buffer: Buffer,
        state: &mut State,
        visit: &mut V,
        last: bool,
        end: u64,
    ) -> Next {
        let (slot, buffer) = state.buffers.add(buffer);
        let bytes = &buffer.bytes[..];
        let mut position = 0;
        let next = loop {
            let place = buffer.place(position);
            let left = &bytes[position..];
            if left.is_empty() {
                break Next::Place(place);
            }
            let (header, body) = match split::first(left, self.endian) {
                Split::Record(header, body) => (header, body),
                Split::BadSize(size) => {
                    let skipped = split::resynchronize(left, self.endian);
                    self.caveats.add_with(CaveatKind::Skipped, 1, || {
                        format!(
                            "at offset {place:#x}: size {size} is below 8; {skipped} bytes skipped"
                        )
                    });
                    position += skipped;
                    continue;
                }
                Split::Incomplete if !last => break Next::Rest(left.to_vec()),
                Split::Incomplete => {
                    if !self.truncated {
                        self.caveats.add_with(CaveatKind::Truncated, 1, || {
                            format!("the record at offset {place:#x} passes the end")
                        });
                    }
                    break Next::Place(place);
                }
            };
            let start = position;
            position += HEADER_SIZE + body.len();
            self.count(header.type_);
            if header.type_ < constants::PERF_RECORD_USER_TYPE_START {
                match self.time_of(&header, body) {
                    Some(time) if time > 0 => {
                        let waiting = Waiting {
                            time,
                            buffer: slot,
                            start: start as u32,
                        };
                        state.buffers.wait(slot);
                        if !state.sorter.add(waiting, HEADER_SIZE + body.len()) {
                            state.late += 1;
                        }
                    }
                    _ => self.deliver_one(&header, body, place, visit),
                }
                continue;
            }
            match header.type_ {
                user::FINISHED_ROUND => {
                    let due = state.sorter.end_round();
                    self.deliver(&due, state, visit);
                }
                user::COMPRESSED | user::COMPRESSED2 if !buffer.compressed => {
                    self.decompress(&header, body, place, state, visit);
                }
                user::COMPRESSED | user::COMPRESSED2 => {
                    self.skip(header.type_, place, Flaw::Fact("compressed twice"));
                }
                _ => {
                    let payload = self.handle_user_record(&header, body, place);
                    let after = place + (HEADER_SIZE + body.len()) as u64;
                    let left = match buffer.compressed {
                        true => (bytes.len() - position) as u64,
                        false => end.saturating_sub(after),
                    };
                    if payload > left {
                        let what = "its payload";
                        let needed = payload;
                        self.skip(header.type_, place, Flaw::Short { what, needed, left });
                        if self.truncated {
                            break Next::Place(end);
                        }
                    } else if payload > (bytes.len() - position) as u64 {
                        break Next::Place(after + payload);
                    } else {
                        position += payload as usize;
                    }
                }
            }
        };
        state.buffers.done(slot);
        if state.sorter.is_overfull() {
            let due = state.sorter.hand_out_half();
            self.deliver(&due, state, visit);
        }
        next
    }

    /// Reads the records inside a COMPRESSED record.
    fn decompress<V: FnMut(&Reader, &Record<'_>)>(
        &mut self,
        header: &PerfEventHeader,
        body: &[u8],
        place: u64,
        state: &mut State,
        visit: &mut V,
    ) {
        let block = match user::compressed_block(header.type_, body, self.endian) {
            Ok(block) => block,
            Err(flaw) => return self.skip(header.type_, place, flaw),
        };
        let limit = self.features.compressed_block;
        let stream = state
            .decompressor
            .get_or_insert_with(|| Decompressor::new(limit));
        let mut bytes = std::mem::take(&mut state.inner_rest);
        let result = stream.append(block, &mut bytes);
        bytes.shrink_to_fit();
        let is_whole = result.is_ok();
        if let Err(error) = result {
            self.caveats.add_with(CaveatKind::Skipped, 1, || {
                let kind = record::describe_type(header.type_);
                format!("at offset {place:#x}: {kind}: {error}")
            });
        }
        let buffer = Buffer {
            bytes,
            offset: place,
            compressed: true,
        };
        if let Next::Rest(rest) = self.split_buffer(buffer, state, visit, false, place)
            && is_whole
        {
            state.inner_rest = rest;
        }
    }

    /// The time of a kernel's record.
    fn time_of(&self, header: &PerfEventHeader, body: &[u8]) -> Option<u64> {
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

    /// Whether mappings were asked to have build ids.
    ///
    /// While another session has build ids, kernels (seen with 6.18) set the bit also in mappings
    /// of sessions without, which hold a device and an inode in their place.
    fn has_build_ids(&self) -> bool {
        let mut attrs = self.events().iter().map(|event| &event.attr);
        attrs.any(|attr| attr.flags().contains(AttrFlags::BUILD_ID))
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

    /// Hands out records that waited.
    pub(super) fn deliver<V: FnMut(&Reader, &Record<'_>)>(
        &mut self,
        due: &[Waiting],
        state: &mut State,
        visit: &mut V,
    ) {
        for waiting in due {
            if let Some(buffer) = &state.buffers.slots[waiting.buffer as usize].0 {
                let start = waiting.start as usize;
                let place = buffer.place(start);
                if let Split::Record(header, body) =
                    split::first(&buffer.bytes[start..], self.endian)
                {
                    self.deliver_one(&header, body, place, visit);
                }
            }
            state.buffers.done(waiting.buffer);
        }
    }

    fn deliver_one<V: FnMut(&Reader, &Record<'_>)>(
        &mut self,
        header: &PerfEventHeader,
        body: &[u8],
        offset: u64,
        visit: &mut V,
    ) {
        let kind = RecordType(header.type_);
        let Some(layout) = self.layouts.first() else {
            let flaw = Flaw::Fact("it comes before any event is described");
            return self.skip(header.type_, offset, flaw);
        };
        let (time, origin, body) = if kind == RecordType::SAMPLE {
            let Some(event) = self.event_of_sample(body) else {
                let id = layout.id_of_sample(body).unwrap_or(0);
                return self
                    .caveats
                    .add_with(CaveatKind::UnknownEvent, 1, || format!("id {id}"));
            };
            match Sample::parse(body, event, &self.layouts[event]) {
                Ok(sample) => (sample.time, Origin::default(), Body::Sample(sample)),
                Err(flaw) => return self.skip(header.type_, offset, flaw),
            }
        } else {
            if type_name(header.type_).is_none() {
                return self.unknown(header.type_, offset);
            }
            let layout = self.layout_of(body).unwrap_or(layout);
            let (fields, time) = layout.split(body);
            let origin = layout.origin(body);
            let misc = match self.has_build_ids() {
                true => header.misc,
                false => header.misc & !constants::PERF_RECORD_MISC_MMAP_BUILD_ID,
            };
            let misc = if kind == RecordType::MMAP2 {
                misc
            } else {
                header.misc
            };
            match record::parse_fields(kind, misc, fields, self.endian) {
                Ok(body) => (time, origin, body),
                Err(flaw) => return self.skip(header.type_, offset, flaw),
            }
        };
        let record = Record {
            kind,
            misc: header.misc,
            offset,
            time,
            origin,
            body,
        };
        visit(self, &record);
    }

    /// Counts a record of a type that is not known.
    pub(super) fn unknown(&mut self, kind: u32, offset: u64) {
        self.caveats.add_with(CaveatKind::UnknownRecord, 1, || {
            format!("at offset {offset:#x}: type {kind}")
        });
    }
}
