//! Records that perf itself writes between those of the kernel.
//!
//! In pipe mode they carry what the header has in file mode. Two of them are followed by a payload
//! that their size does not count: TRACING_DATA and AUXTRACE.

use linux_perf_event_reader::{Endianness, PerfEventHeader, RecordType, constants};

use super::attr::{MAX_ATTR_SIZE, MIN_ATTR_SIZE};
use super::cursor::Cursor;
use super::error::Flaw;
use super::header::EventDescription;
use super::reader::{Reader, Storage};
use super::record::{least_size, type_name};
use super::{Attr, Feature, name};

const START: u32 = constants::PERF_RECORD_USER_TYPE_START;
const ATTR: u32 = START;
const EVENT_TYPE: u32 = START + 1;
const TRACING_DATA: u32 = START + 2;
const BUILD_ID: u32 = START + 3;
pub(super) const FINISHED_ROUND: u32 = START + 4;
const ID_INDEX: u32 = START + 5;
const AUXTRACE: u32 = START + 7;
const THREAD_MAP: u32 = START + 9;
const EVENT_UPDATE: u32 = START + 14;
const FEATURE: u32 = START + 16;
pub(super) const COMPRESSED: u32 = START + 17;
pub(super) const COMPRESSED2: u32 = START + 19;

/// The zstd block of a COMPRESSED record (all of its body) or a COMPRESSED2 record
/// (`u64 data_size; char data[]`, padded).
pub(super) fn compressed_block(kind: u32, body: &[u8], endian: Endianness) -> Result<&[u8], Flaw> {
    if kind == COMPRESSED {
        return Ok(body);
    }
    let mut c = Cursor::new(body, endian);
    let size = c.u64("its size")?;
    c.take(size, "its data")
}

impl Reader {
    /// Takes in what a record of perf's own says. Returns the size of the payload behind it.
    pub(super) fn handle_user_record(
        &mut self,
        header: &PerfEventHeader,
        body: &[u8],
        place: u64,
    ) -> u64 {
        if type_name(header.type_).is_none() {
            self.unknown(header.type_, place);
            return 0;
        }
        self.user_record(header, body).unwrap_or_else(|flaw| {
            self.skip(header.type_, place, flaw);
            0
        })
    }

    fn user_record(&mut self, header: &PerfEventHeader, body: &[u8]) -> Result<u64, Flaw> {
        let least = least_size(RecordType(header.type_));
        if body.len() < least {
            return Err(Flaw::Short {
                what: "the record",
                needed: least as u64 + 8,
                left: body.len() as u64 + 8,
            });
        }
        let mut c = Cursor::new(body, self.endian);
        match header.type_ {
            ATTR if self.storage() == Storage::Pipe => self.pipe_event(c)?,
            TRACING_DATA => {
                // struct { header; u32 size; }, then size bytes, padded to 8
                let size = u64::from(c.u32("its size")?);
                return Ok(size.next_multiple_of(8));
            }
            // struct { header; u64 size; … }
            AUXTRACE => return c.u64("its size"),
            BUILD_ID => self.features.read_build_id(header.misc, &mut c)?,
            EVENT_TYPE if self.storage() == Storage::Pipe => {
                // struct { header; u64 event_id; char name[64]; }: the id is the attr's config.
                c.u64("its event")?;
            }
            EVENT_UPDATE => {
                // struct { header; u64 type; u64 id; char data[]; }
                const NAME: u64 = 2;
                let kind = c.u64("its type")?;
                let id = c.u64("its event")?;
                if kind == NAME {
                    let name = crate::base::utf8(c.text()).into_owned();
                    self.name_event(id, &name);
                }
            }
            FEATURE => {
                // struct { header; u64 feature; char data[]; }
                let feature = Feature(u8::try_from(c.u64("its number")?).unwrap_or(u8::MAX));
                // An empty one of the next free number marks the end of the list.
                if feature.name().is_none() && c.left() > 0 {
                    return Err(Flaw::Value {
                        what: "the feature's number",
                        value: u64::from(feature.0),
                    });
                }
                if !self.features.present.contains(&feature) {
                    self.features.present.push(feature);
                }
                self.features.read(feature, c.rest(), self.endian)?;
                self.name_events();
            }
            ID_INDEX => {
                let count = c.u64("the number of ids")?;
                c.words(count.saturating_mul(4), "the list of ids")?;
            }
            THREAD_MAP => {
                let count = c.u64("the number of threads")?;
                c.words(count.saturating_mul(3), "the list of threads")?;
            }
            _ => {}
        }
        Ok(0)
    }

    /// `struct { header; struct perf_event_attr attr; u64 ids[]; }`
    fn pipe_event(&mut self, mut c: Cursor<'_>) -> Result<(), Flaw> {
        let mut ahead = c;
        ahead.u32("the attr")?;
        let size = match u64::from(ahead.u32("the attr")?) {
            0 => MIN_ATTR_SIZE,
            size => size,
        };
        if !(MIN_ATTR_SIZE..=MAX_ATTR_SIZE).contains(&size) {
            return Err(Flaw::Value {
                what: "the size of the attr",
                value: size,
            });
        }
        let attr = Attr::parse(c.take(size, "the attr")?, self.endian)?;
        let count = c.left() as u64 / 8;
        let ids = c.words(count, "ids")?.iter().collect();
        let name = name::of(&attr);
        self.add_event(EventDescription { name, attr, ids });
        Ok(())
    }
}
