//! One pass over a recording: from bytes to records in order of time.
//!
//! ```text
//!  source ──1 MiB──▶ buffer ──split──▶ records ──▶ sorter ──▶ parse ──▶ visit
//!                       ▲                  │
//!                       └── decompressed ◀─┘ COMPRESSED
//! ```
//!
//! Buffers are kept as long as a record in them waits; if there are too many, records wait on disk.
//! A damaged record is skipped by its size, counted and reported. If the size is damaged too,
//! reading continues at the next place that looks like records.

use linux_perf_event_reader::{PerfEventHeader, constants};

use crate::base::CaveatKind;

use super::buffers::{Buffer, Buffers, Owner};
use super::decompress::{Block, Decompressor};
use super::error::{Error, Flaw};
use super::header::Section;
use super::reader::{Order, Reader};
use super::record::{self, Record};
use super::sorter::{Sorter, Waiting};
use super::source::Source;
use super::spill::{self, Spill};
use super::split::{self, HEADER_SIZE, Split};
use super::user;

const BUFFER_SIZE: usize = 1 << 20;

/// Whether all records were handed out in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pass {
    /// They were, or another pass could not improve the order.
    Done,
    /// A record came too late. The caller discards what was visited; the next pass, which holds
    /// more records back, is in order.
    Again,
}

const MOST_WAITING: u64 = 56 << 20;
// Records that are read as they are made never wait on disk: more of them may wait in memory.
const MOST_WAITING_LIVE: u64 = 256 << 20;

pub(super) struct State {
    pub(super) buffers: Buffers,
    pub(super) sorter: Sorter,
    most: u64,
    /// Whether those beyond go to disk; else some are handed out before their time.
    pub(super) spills: bool,
    pub(super) spill: Spill,
    pub(super) spilled: Vec<u8>,
    decompressor: Option<Decompressor>,
    /// The beginning of a record whose end comes with the next COMPRESSED record.
    inner_rest: Vec<u8>,
    pub(super) late: u64,
}

impl State {
    fn new(order: Order) -> State {
        let sorter = match order {
            Order::Rounds | Order::Stream => Sorter::by_rounds(),
            Order::None => Sorter::of_all(),
        };
        State::with(sorter, MOST_WAITING, order != Order::Rounds)
    }

    pub(super) fn live() -> State {
        State::with(Sorter::prompt(), MOST_WAITING_LIVE, false)
    }

    pub(super) fn with(sorter: Sorter, most: u64, spills: bool) -> State {
        State {
            buffers: Buffers::default(),
            sorter,
            most,
            spills,
            spill: Spill::new(spill::MOST),
            spilled: Vec::new(),
            decompressor: None,
            inner_rest: Vec::new(),
            late: 0,
        }
    }

    pub(super) fn is_overfull(&self) -> bool {
        self.buffers.held() + self.sorter.held() > self.most
    }
}

pub(super) enum Next {
    /// With these bytes, which begin an incomplete record, before what comes next.
    Rest(Vec<u8>),
    Place(u64),
}

impl Reader {
    /// Hands all records of the kernel to `visit` in order of time; those without a time, or with
    /// time 0, as they are read. `progress` is called with the number of bytes read so far.
    ///
    /// # Errors
    ///
    /// Errors of reading, and recordings that describe no event. Damaged contents are caveats.
    pub fn visit(
        &mut self,
        progress: impl FnMut(u64),
        mut visit: impl FnMut(&Reader, &Record<'_>),
    ) -> Result<Pass, Error> {
        self.visit_batches(progress, |reader, records| {
            records.iter().for_each(|record| visit(reader, record));
        })
    }

    /// Does what [`visit`](Self::visit) does, and hands out several records at once where they
    /// follow one another: a visitor can look ahead.
    ///
    /// # Errors
    ///
    /// As `visit`.
    pub fn visit_batches(
        &mut self,
        mut progress: impl FnMut(u64),
        mut visit: impl FnMut(&Reader, &[Record<'_>]),
    ) -> Result<Pass, Error> {
        self.begin_pass();
        let mut state = State::new(self.order());
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
        result.map_err(|error| error.in_file(self.path.as_deref()))?;
        if state.late > 0 {
            if self.may_try_again() {
                self.try_harder();
                return Ok(Pass::Again);
            }
            self.caveats.add(CaveatKind::Disordered, state.late);
        }
        self.hand_out(u64::MAX, &mut state, &mut visit)?;
        if self.events().is_empty() {
            Err(Error::NoEvents)
        } else {
            Ok(Pass::Done)
        }
    }

    fn visit_source<V: FnMut(&Reader, &[Record<'_>])>(
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
            let buffer = Buffer::of_file(bytes, offset);
            match self.split_buffer(buffer, state, visit, last, end)? {
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
    pub(super) fn split_buffer<V: FnMut(&Reader, &[Record<'_>])>(
        &mut self,
        buffer: Buffer,
        state: &mut State,
        visit: &mut V,
        last: bool,
        end: u64,
    ) -> Result<Next, Error> {
        let (slot, buffer) = state.buffers.add(buffer);
        let bytes = buffer.bytes();
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
            let (start, size) = (position, HEADER_SIZE + body.len());
            position += size;
            self.count(header.type_);
            if header.type_ < constants::PERF_RECORD_USER_TYPE_START {
                match self.time_of(&header, body) {
                    Some(time) if time > 0 => {
                        let (buffer, start) = (slot, start as u32);
                        let waiting = Waiting {
                            time,
                            buffer,
                            start,
                        };
                        state.buffers.wait(slot);
                        state.late += u64::from(!state.sorter.add(waiting, size));
                    }
                    // Without a time it has no place in the order. Such records describe what later
                    // ones refer to.
                    _ => self.deliver_one(&header, body, (place, Owner(Some(&buffer))), visit),
                }
                continue;
            }
            match header.type_ {
                // The recorder has read all buffers once more: what comes now is not older than
                // what was read in the round before.
                user::FINISHED_ROUND => {
                    if let Some(limit) = state.sorter.end_round() {
                        self.hand_out(limit, state, visit)?;
                    }
                }
                user::COMPRESSED | user::COMPRESSED2 if !buffer.compressed => {
                    self.decompress(&header, body, place, state, visit)?;
                }
                user::COMPRESSED | user::COMPRESSED2 => {
                    self.skip(header.type_, place, Flaw::Fact("compressed twice"));
                }
                _ => {
                    // AUXTRACE and tracing data are not in their record but behind it.
                    let payload = self.handle_user_record(&header, body, place);
                    let after = place + size as u64;
                    let left = if buffer.compressed {
                        (bytes.len() - position) as u64
                    } else {
                        end.saturating_sub(after)
                    };
                    if payload > left {
                        let (what, needed) = ("its payload", payload);
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
        self.make_room(state, visit)?;
        Ok(next)
    }

    fn decompress<V: FnMut(&Reader, &[Record<'_>])>(
        &mut self,
        header: &PerfEventHeader,
        body: &[u8],
        place: u64,
        state: &mut State,
        visit: &mut V,
    ) -> Result<(), Error> {
        let block = match user::compressed_block(header.type_, body, self.endian) {
            Ok(block) => block,
            Err(flaw) => {
                self.skip(header.type_, place, flaw);
                return Ok(());
            }
        };
        let mut block = Block::new(block);
        let limit = self.features.compressed_block;
        loop {
            let stream = state
                .decompressor
                .get_or_insert_with(|| Decompressor::new(limit));
            let mut bytes = std::mem::take(&mut state.inner_rest);
            let result = stream.append(&mut block, &mut bytes);
            // The buffer stays in memory as long as one record in it waits to be sorted.
            bytes.shrink_to_fit();
            let buffer = Buffer::decompressed(bytes, place);
            if let Err(error) = &result {
                self.caveats.add_with(CaveatKind::Skipped, 1, || {
                    let kind = record::describe_type(header.type_);
                    format!("at offset {place:#x}: {kind}: {error}")
                });
            }
            // What came out before an error is sound, so it is read all the same.
            let next = self.split_buffer(buffer, state, visit, false, place)?;
            let Ok(is_whole) = result else {
                return Ok(());
            };
            // perf cuts the stream anywhere: a record may go on in the next COMPRESSED record.
            if let Next::Rest(rest) = next {
                state.inner_rest = rest;
            }
            if is_whole {
                return Ok(());
            }
        }
    }
}
