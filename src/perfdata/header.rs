//! The start of a recording.
//!
//! ```text
//! file mode                                  pipe mode
//!   0  u64 magic "PERFILE2"                    0  u64 magic "PERFILE2"
//!   8  u64 header size = 104                   8  u64 header size = 16
//!  16  u64 size of an attr entry              16  records: ATTR, FEATURE, …, data
//!  24  u64 attrs.offset, 32 attrs.size
//!  40  u64 data.offset,  48 data.size        attr entry
//!  56  u64 event_types.offset, .size           struct perf_event_attr
//!  72  u64 features[4] (bits)                  u64 ids.offset, ids.size
//! 104
//!
//! data.offset + data.size: { u64 offset, size } for each feature bit, then the sections
//! ```
//!
//! The magic of a machine of the other byte order reads `2ELIFREP`; version 1 (before 2012) has
//! `PERFFILE` in either order.

use linux_perf_event_reader::Endianness;

use super::attr::{MAX_ATTR_SIZE, MIN_ATTR_SIZE};
use super::cursor::Cursor;
use super::error::{Error, Flaw};
use super::source::Source;
use super::{Attr, Feature};

const FILE_HEADER: u64 = 104;
const PIPE_HEADER: u64 = 16;
const VERSION_1_ATTR_SIZES: [u64; 6] = [64, 72, 80, 96, 104, 112];
// The offset of the event types, a section that is not used since 2011, in a file that proftool has
// not finished. Readers pass over the section as its size is 0.
pub(super) const UNFINISHED: u64 = u64::from_be_bytes(*b"unfinish");
// More events than any recording has.
const MAX_EVENTS: u64 = 1 << 16;
// More instances of one event (a processor and thread each) than any recording has.
const MAX_IDS: u64 = 1 << 24;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Section {
    fn read(c: &mut Cursor<'_>) -> Result<Section, Flaw> {
        Ok(Section {
            offset: c.u64("a section")?,
            size: c.u64("a section")?,
        })
    }

    pub(super) fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.size)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Start {
    File(FileHeader),
    Pipe(Endianness),
}

#[derive(Clone, Debug)]
pub(super) struct FileHeader {
    pub(super) endian: Endianness,
    pub(super) version: u8,
    attr_entry_size: u64,
    attrs: Section,
    pub(super) data: Section,
    pub(super) is_unfinished: bool,
    pub(super) features: Vec<Feature>,
}

pub(super) const PIPE_DATA: u64 = PIPE_HEADER;

/// Reads the header.
///
/// Also returns the bytes that were read, for a source that cannot give them twice.
pub(super) fn read(source: &mut Source) -> Result<(Start, Vec<u8>), Error> {
    let mut bytes = Vec::new();
    let start = read_start(source, &mut bytes)?;
    Ok((start, bytes))
}

const MAGIC: [&[u8; 8]; 3] = [b"PERFILE2", b"2ELIFREP", b"PERFFILE"];

/// Whether these are the first bytes of a recording.
///
/// ```
/// assert!(proftool::perfdata::is_recording(b"PERFILE2 and more"));
/// assert!(!proftool::perfdata::is_recording(b"\x7fELF"));
/// ```
pub fn is_recording(head: &[u8]) -> bool {
    MAGIC.iter().any(|magic| head.starts_with(*magic))
}

fn read_start(source: &mut Source, bytes: &mut Vec<u8>) -> Result<Start, Error> {
    source.append(0, PIPE_HEADER as usize, bytes)?;
    let magic = bytes.get(..8).ok_or(Error::BadMagic)?;
    let (mut endian, version) = match magic {
        b"PERFILE2" => (Endianness::LittleEndian, 2),
        b"2ELIFREP" => (Endianness::BigEndian, 2),
        b"PERFFILE" => (Endianness::LittleEndian, 1),
        _ => return Err(Error::BadMagic),
    };
    let too_short = |found: usize, needed| Error::TooShort {
        what: "its header",
        needed,
        found: found as u64,
    };
    let size = bytes
        .get(8..16)
        .ok_or(too_short(bytes.len(), PIPE_HEADER))?;
    // The magic of version 1 is the same in both byte orders. The size tells them apart: it is
    // below 256.
    if version == 1 && size[0] == 0 {
        endian = Endianness::BigEndian;
    }
    let size = Cursor::new(size, endian).u64("").unwrap_or(0);
    if size == PIPE_HEADER {
        return Ok(Start::Pipe(endian));
    }
    if size != FILE_HEADER {
        return Err(Error::BadHeader {
            problem: format!("its size is {size}, {PIPE_HEADER} or {FILE_HEADER} expected"),
        });
    }
    source.append(PIPE_HEADER, (FILE_HEADER - PIPE_HEADER) as usize, bytes)?;
    let found = bytes.len();
    let parsed = parse_file_header(bytes, endian, version);
    let header = parsed.map_err(|_| too_short(found, FILE_HEADER))?;
    let attr_size = header.attr_entry_size.saturating_sub(16);
    if !(MIN_ATTR_SIZE..=MAX_ATTR_SIZE).contains(&attr_size) {
        return Err(Error::BadHeader {
            problem: format!(
                "entries of {} bytes for each event, at least {} expected",
                header.attr_entry_size,
                MIN_ATTR_SIZE + 16
            ),
        });
    }
    if version == 1 && !VERSION_1_ATTR_SIZES.contains(&attr_size) {
        return Err(Error::BadHeader {
            problem: format!(
                "a file of version 1 (PERFFILE) with events of {attr_size} bytes, which came later"
            ),
        });
    }
    if header.data.size > 0 && header.data.offset < FILE_HEADER {
        return Err(Error::BadHeader {
            problem: format!(
                "the data begins at offset {:#x}, inside the header",
                header.data.offset
            ),
        });
    }
    Ok(Start::File(header))
}

fn parse_file_header(bytes: &[u8], endian: Endianness, version: u8) -> Result<FileHeader, Flaw> {
    let mut c = Cursor::new(bytes, endian);
    c.take(16, "")?;
    let attr_entry_size = c.u64("")?;
    let attrs = Section::read(&mut c)?;
    let data = Section::read(&mut c)?;
    let event_types = Section::read(&mut c)?;
    let mut features = Vec::new();
    // The bits stand in words of the machine's size: those of a big-endian 32-bit one are read
    // with their halves swapped. HOSTNAME, which every recorder writes, tells.
    let first = { c }.u64("")?;
    let hostname = 1u64 << Feature::HOSTNAME.0;
    let swapped = endian == Endianness::BigEndian
        && first & hostname == 0
        && first.rotate_left(32) & hostname != 0;
    for base in [0u8, 64, 128, 192] {
        let word = c.u64("")?;
        let word = if swapped { word.rotate_left(32) } else { word };
        features.extend(
            (0..64)
                .filter(|bit| word >> bit & 1 == 1)
                .map(|bit| Feature(base + bit)),
        );
    }
    Ok(FileHeader {
        endian,
        version,
        attr_entry_size,
        attrs,
        data,
        is_unfinished: (event_types.offset, event_types.size) == (UNFINISHED, 0),
        features,
    })
}

/// An event of the recording.
#[derive(Clone, Debug)]
pub struct EventDescription {
    /// perf's name for it.
    pub name: String,
    pub attr: Attr,
    /// The kernel's ids of its instances.
    pub ids: Vec<u64>,
}

impl FileHeader {
    /// Reads the list of events. What is wrong with one event's list of ids goes to `flaw`, with
    /// its offset.
    pub(super) fn events(
        &self,
        source: &mut Source,
        mut flaw: impl FnMut(u64, String),
    ) -> Result<Vec<EventDescription>, Error> {
        let count = (self.attrs.size / self.attr_entry_size).min(MAX_EVENTS);
        if count == 0 {
            return Err(Error::NoEvents);
        }
        let wanted = count * self.attr_entry_size;
        let list = source.section(self.attrs.offset, wanted)?;
        if (list.len() as u64) < wanted && (list.len() as u64) < self.attr_entry_size {
            return Err(Error::TooShort {
                what: "its list of events",
                needed: wanted,
                found: list.len() as u64,
            });
        }
        if (list.len() as u64) < self.attrs.size {
            let (size, found) = (self.attrs.size, list.len());
            flaw(
                self.attrs.offset,
                format!("list of events: size {size}, {found} can be read"),
            );
        }
        let entry_size = usize::try_from(self.attr_entry_size).unwrap_or(usize::MAX);
        let mut events = Vec::new();
        // Lists of ids do not overlap: together they are no longer than the file.
        let mut left = source.len().unwrap_or(MAX_IDS * 8);
        for (index, entry) in list.chunks_exact(entry_size).enumerate() {
            let offset = self.attrs.offset + (index * entry_size) as u64;
            let (attr, ids) = entry.split_at(entry_size - 16);
            let bad = |flaw| Error::BadHeader {
                problem: format!("event {index} at offset {offset:#x}: {flaw}"),
            };
            let attr = Attr::parse(attr, self.endian).map_err(bad)?;
            let section = Section::read(&mut Cursor::new(ids, self.endian)).map_err(bad)?;
            let known = section.size <= left;
            left = left.saturating_sub(section.size);
            let ids = match known
                .then(|| self.ids(source, section))
                .transpose()?
                .flatten()
            {
                Some(ids) => ids,
                None => {
                    let size = section.size;
                    flaw(
                        offset,
                        format!("event {index}: its ids, of {size} bytes, cannot be read"),
                    );
                    Vec::new()
                }
            };
            let name = super::name::of(&attr);
            events.push(EventDescription { name, attr, ids });
        }
        Ok(events)
    }

    /// The ids of one event; `None` when they are not all in the file.
    fn ids(&self, source: &mut Source, section: Section) -> Result<Option<Vec<u64>>, Error> {
        if section.size > MAX_IDS * 8 || section.end().is_none() {
            return Ok(None);
        }
        let bytes = source.section(section.offset, section.size)?;
        if (bytes.len() as u64) < section.size {
            return Ok(None);
        }
        let words = Cursor::new(&bytes, self.endian).words(section.size / 8, "");
        Ok(words.ok().map(|words| words.iter().collect()))
    }
}
