//! An open recording: its header, its events, and what was found while reading.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use linux_perf_event_reader::{AttrFlags, Endianness};

use crate::base::{CaveatKind, Caveats};

use super::Features;
use super::cursor::Cursor;
use super::error::{Error, Flaw};
use super::header::{self, EventDescription, Section, Start};
use super::layout::Layout;
use super::record::describe_type;
use super::source::Source;

// No section of the header is as large.
const MAX_FEATURE: u64 = 256 << 20;

/// How a recording is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A file with a header of sections.
    File,
    /// A stream, as `perf record -o -` writes it.
    Pipe,
    /// A directory with a file for each buffer.
    Directory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Rounds are believed, and beyond what memory holds that records are in order: where that
    /// shows to be wrong, there is another pass.
    Rounds,
    /// Rounds are believed, as there is no other pass.
    Stream,
    None,
}

/// An open recording. See the [room's page](super) for what it reads.
pub struct Reader {
    pub(super) sources: Vec<Source>,
    storage: Storage,
    version: u8,
    pub(super) endian: Endianness,
    pub(super) data: Section,
    /// The file ends before its data should, or nobody knows where the data should end.
    pub(super) truncated: bool,
    events: Vec<EventDescription>,
    pub(super) layouts: Vec<Layout>,
    event_by_id: HashMap<u64, usize>,
    has_build_ids: bool,
    pub(super) features: Features,
    pub(super) header_caveats: Caveats,
    pub(super) caveats: Caveats,
    pub(super) path: Option<PathBuf>,
    pub(super) counts: BTreeMap<u32, u64>,
    order: Order,
}

impl Reader {
    /// Opens a recording: a file, or the directory of `perf record --threads`.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let opened = if path.is_dir() {
            Reader::open_directory(path)
        } else {
            Source::open(path).and_then(Reader::from_source)
        };
        let mut reader = opened.map_err(|error| error.in_file(Some(path)))?;
        reader.path = Some(path.to_owned());
        Ok(reader)
    }

    /// Reads a recording from a file that is open already.
    pub fn from_file(file: File) -> Result<Reader, Error> {
        Reader::from_source(Source::regular(file)?)
    }

    /// Reads a recording that comes once, from front to back: a pipe.
    pub fn from_stream(stream: Box<dyn Read>) -> Result<Reader, Error> {
        Reader::from_source(Source::Stream { stream, at: 0 })
    }

    /// Reads a recording that is in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Reader, Error> {
        Reader::from_source(Source::Memory(bytes))
    }

    fn open_directory(path: &Path) -> Result<Reader, Error> {
        let main = path.join("data");
        if !main.exists() {
            return Err(Error::NotRegular {
                kind: "a directory",
            });
        }
        let mut reader = Reader::from_source(Source::open(&main)?)?;
        let number = |name: &std::ffi::OsStr| name.to_str()?.strip_prefix("data.")?.parse().ok();
        let mut parts: Vec<(u32, PathBuf)> = std::fs::read_dir(path)?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((number(&entry.file_name())?, entry.path()))
            })
            .collect();
        parts.sort();
        for (_, part) in parts {
            reader.sources.push(Source::open(&part)?);
        }
        reader.storage = Storage::Directory;
        // The rounds in the main file say nothing about the other files.
        reader.order = Order::None;
        Ok(reader)
    }

    fn from_source(mut source: Source) -> Result<Reader, Error> {
        let (start, head) = header::read(&mut source)?;
        let mut reader = Reader {
            order: match source {
                Source::Stream { .. } => Order::Stream,
                _ => Order::Rounds,
            },
            sources: Vec::new(),
            storage: Storage::Pipe,
            version: 2,
            endian: Endianness::LittleEndian,
            data: Section::default(),
            truncated: false,
            events: Vec::new(),
            layouts: Vec::new(),
            event_by_id: HashMap::new(),
            has_build_ids: false,
            features: Features::default(),
            header_caveats: Caveats::default(),
            caveats: Caveats::default(),
            path: None,
            counts: BTreeMap::new(),
        };
        match start {
            Start::Pipe(endian) => {
                reader.endian = endian;
                reader.data.offset = header::PIPE_DATA;
                reader.data.size = match source.len() {
                    Some(len) => len.saturating_sub(header::PIPE_DATA),
                    None => u64::MAX,
                };
            }
            Start::File(file) => {
                // The features are behind the data, but are needed before them. On a pipe, such a
                // file has to be kept whole.
                source = source.into_seekable(head)?;
                reader.order = Order::Rounds;
                reader.read_file_header(&file, &mut source)?;
            }
        }
        reader.sources.push(source);
        reader.caveats = reader.header_caveats.clone();
        Ok(reader)
    }

    fn read_file_header(
        &mut self,
        file: &header::FileHeader,
        source: &mut Source,
    ) -> Result<(), Error> {
        self.storage = Storage::File;
        self.version = file.version;
        self.endian = file.endian;
        let mut flaws = Vec::new();
        let events = file.events(source, |offset, text| {
            flaws.push(format!("at offset {offset:#x}: {text}"));
        })?;
        for flaw in flaws {
            self.header_caveats.add_detail(CaveatKind::Skipped, 1, flaw);
        }
        for event in events {
            self.add_event(event);
        }
        self.data = file.data;
        let len = source.len().unwrap_or(u64::MAX);
        // perf writes the size last: it was killed.
        let lacks_size = file.data.size == 0 && len > file.data.offset;
        if lacks_size || file.is_unfinished {
            self.header_caveats.add(CaveatKind::Unfinished, 1);
        }
        if lacks_size {
            self.truncated = true;
            self.data.size = len - file.data.offset;
        } else if file.data.end().is_none_or(|end| end > len) {
            let due = file.data.offset.saturating_add(file.data.size);
            let what = format!("the data should end at offset {due:#x}, the file ends at {len:#x}");
            self.header_caveats
                .add_detail(CaveatKind::Truncated, 1, what);
            self.truncated = true;
            self.data.size = len.saturating_sub(file.data.offset);
        } else {
            self.read_features(file, source)?;
        }
        Ok(())
    }

    fn read_features(
        &mut self,
        file: &header::FileHeader,
        source: &mut Source,
    ) -> Result<(), Error> {
        let table_at = file.data.offset.saturating_add(file.data.size);
        let table = source.section(table_at, 16 * file.features.len() as u64)?;
        let mut table = Cursor::new(&table, self.endian);
        let len = source.len().unwrap_or(u64::MAX);
        for &feature in &file.features {
            let mut flawed = |text: String| {
                let text = format!("section {feature}: {text}");
                self.header_caveats.add_detail(CaveatKind::Skipped, 1, text);
            };
            let entry = table
                .u64("")
                .and_then(|offset| Ok((offset, table.u64("")?)));
            let Ok((offset, size)) = entry else {
                flawed("the file ends before its place is told".into());
                continue;
            };
            if offset.checked_add(size).is_none_or(|end| end > len) {
                flawed(format!(
                    "at offset {offset:#x}: its size {size:#x} passes the file's end"
                ));
                continue;
            }
            // `info` lists it even if its contents are left out.
            self.features.present.push(feature);
            if size > MAX_FEATURE {
                flawed(format!(
                    "at offset {offset:#x}: its size {size:#x} is not believed"
                ));
                continue;
            }
            let bytes = source.section(offset, size)?;
            if let Err(flaw) = self.features.read(feature, &bytes, self.endian) {
                flawed(format!("at offset {offset:#x}: {flaw}"));
            }
        }
        self.name_events();
        Ok(())
    }

    /// Gives the events the names and ids of EVENT_DESC: by id, else by place.
    pub(super) fn name_events(&mut self) {
        let described = std::mem::take(&mut self.features.events);
        for (place, described) in described.into_iter().enumerate() {
            let by_id = described.ids.iter().find_map(|id| self.event_by_id.get(id));
            let index = by_id.copied().unwrap_or(place);
            let Some(event) = self.events.get_mut(index) else {
                continue;
            };
            if !described.name.is_empty() {
                event.name = described.name;
            }
            for id in described.ids {
                self.event_by_id.entry(id).or_insert(index);
            }
        }
    }

    pub(super) fn name_event(&mut self, id: u64, name: &str) {
        let index = self.event_by_id.get(&id);
        if let Some(event) = index.and_then(|&index| self.events.get_mut(index)) {
            event.name = name.to_owned();
        }
    }

    pub(super) fn add_event(&mut self, event: EventDescription) {
        let index = self.events.len();
        let layout = Layout::new(&event.attr, self.endian);
        for &id in &event.ids {
            self.event_by_id.entry(id).or_insert(index);
        }
        self.layouts.push(layout);
        self.has_build_ids |= event.attr.flags().contains(AttrFlags::BUILD_ID);
        self.events.push(event);
    }

    pub(super) fn begin_pass(&mut self) {
        self.caveats = self.header_caveats.clone();
        self.counts.clear();
        if self.storage == Storage::Pipe {
            self.events.clear();
            self.layouts.clear();
            self.event_by_id.clear();
            self.has_build_ids = false;
            self.features = Features::default();
        }
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    pub(super) fn may_try_again(&self) -> bool {
        self.order == Order::Rounds
    }

    pub(super) fn try_harder(&mut self) {
        self.order = Order::None;
    }

    // Counts a record by type. A hostile file may have as many types as records: those that are not
    // known are counted together beyond a number.
    pub(super) fn count(&mut self, kind: u32) {
        const KINDS: usize = 1024;
        let kind = if self.counts.len() < KINDS || self.counts.contains_key(&kind) {
            kind
        } else {
            u32::MAX
        };
        *self.counts.entry(kind).or_insert(0) += 1;
    }

    pub(super) fn skip(&mut self, kind: u32, offset: u64, flaw: Flaw) {
        self.caveats.add_with(CaveatKind::Skipped, 1, || {
            format!("at offset {offset:#x}: {}: {flaw}", describe_type(kind))
        });
    }

    /// How the recording is stored.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// The version of the file format, 1 or 2.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Returns whether the machine that recorded puts the lowest byte first.
    pub fn is_little_endian(&self) -> bool {
        self.endian == Endianness::LittleEndian
    }

    /// The events. In pipe mode they come with the records: complete after a pass, and during it
    /// as far as was read.
    pub fn events(&self) -> &[EventDescription] {
        &self.events
    }

    /// What the header's sections say; in pipe mode complete after a pass.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns how many records of each type number the last pass read, skipped ones included.
    pub fn counts(&self) -> &BTreeMap<u32, u64> {
        &self.counts
    }

    /// What could not be read.
    pub fn caveats(&self) -> &Caveats {
        &self.caveats
    }

    /// The event of a counter's id.
    pub fn event_of_id(&self, id: u64) -> Option<usize> {
        self.event_by_id.get(&id).copied()
    }

    /// Whether ids tell the events apart; without any, all samples are of the first.
    pub(super) fn has_ids(&self) -> bool {
        !self.event_by_id.is_empty()
    }

    // Whether mappings were asked to have build ids. While another session has build ids, kernels
    // (seen with 6.18) set the bit also in mappings of sessions without, which hold a device and an
    // inode in their place.
    pub(super) fn has_build_ids(&self) -> bool {
        self.has_build_ids
    }

    /// When the recording was written, where it is a file.
    pub fn written(&self) -> Option<SystemTime> {
        self.sources.first()?.written()
    }

    /// The size of the data in bytes, where it is known.
    pub fn data_size(&self) -> Option<u64> {
        (self.data.size < u64::MAX).then_some(self.data.size)
    }
}
